"""racecheck: what orders two warps and what does not."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtools
from ptxtools.diagnostics import Trap

from .programs import HEAD, messages, module, run

ENGINES = ("native", "reference")
WRITE, READ = "shl.b32 %r0, %i, 2; st.shared.u32 [%r0], %i;", "xor.b32 %r1, %r0, 128; ld.shared.u32 %r2, [%r1];"
BARRIER = "bar.sync 0;"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_read_without_a_barrier(engine: str) -> None:
    found = run(f"{WRITE}\n{READ}", "racecheck", shared=256, engine=engine).reports
    assert len(found) == 1 and {finding.checker for finding in found} == {"racecheck"}
    assert "race on byte 0x" in found[0].message and "with no barrier between" in found[0].message
    assert run(f"{WRITE} {BARRIER} {READ}", "racecheck", shared=256, engine=engine).reports == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_write_after_a_read_in_a_loop(engine: str) -> None:
    """Each turn writes, meets, and reads; the next turn's writes race with the reads unless they meet again."""
    loop = (
        "mov.u32 %r3, 0; LOOP: {w} bar.sync 0; {r} {again} add.u32 %r3, %r3, 1; setp.lt.u32 %p, %r3, 4; @%p bra LOOP;"
    )
    write = "shl.b32 %r0, %i, 2; add.u32 %r4, %i, %r3; st.shared.u32 [%r0], %r4;"
    racy = run(loop.format(w=write, r=READ, again=""), "racecheck", shared=256, engine=engine)
    assert any("write here, read by" in message or "read here, written by" in message for message in messages(racy))
    fine = run(loop.format(w=write, r=READ, again=BARRIER), "racecheck", shared=256, engine=engine)
    assert fine.reports == []


@pytest.mark.parametrize("engine", ENGINES)
def test_two_writes(engine: str) -> None:
    assert len(run("st.shared.u32 [0], %w;", "racecheck", shared=64, engine=engine).reports) == 1
    assert run("st.shared.u32 [0], 7;", "racecheck", shared=64, engine=engine).reports == []  # the same value again
    assert run("st.shared.v4.u8 [0], {1, 2, 3, 4};", "racecheck", shared=64, engine=engine).reports == []


@pytest.mark.parametrize("engine", ENGINES)
def test_one_report_for_a_pair_of_lines(engine: str) -> None:
    """Whichever came first; and of races of lanes and of warps the latter, which a barrier of the CTA helps."""
    body = """shl.b32 %r0, %i, 2; st.shared.u32 [%r0], %i;
    xor.b32 %r1, %r0, {lanes}; ld.shared.u32 %r2, [%r1]; bar.sync 0;
    and.b32 %r3, %i, 1; setp.ne.u32 %p, %r3, 0; add.u32 %r1, %r0, 4; and.b32 %r1, %r1, 255; mov.u32 %r4, 0;
    AGAIN: @%p st.shared.u32 [%r0], %r4;
    @!%p ld.shared.u32 %r2, [%r1];
    add.u32 %r4, %r4, 1; setp.lt.u32 %q, %r4, 3; @%q bra AGAIN;"""
    found = run(body.format(lanes=128), "racecheck", shared=256, engine=engine).reports
    pairs = [frozenset({one.line, one.others[0].line}) for one in found]
    assert len(set(pairs)) == len(pairs) == 2
    wider = """shl.b32 %r0, %i, 2; st.shared.u32 [%r0], %i;
    mov.u32 %r4, 4; AGAIN: xor.b32 %r1, %r0, %r4;
    ld.shared.u32 %r2, [%r1];
    shl.b32 %r4, %r4, 5; setp.le.u32 %q, %r4, 128; @%q bra AGAIN;"""
    (only,) = run(wider, "racecheck", shared=256, engine=engine).reports
    assert only.help.startswith("bar.sync") and only.count == 4  # once for each warp, of each sort


def test_the_same_value_hides_no_other_store() -> None:
    """Two warps store 5 in any order, and one of them 6 behind that."""
    body = """setp.ne.u32 %p, %l, 0; @%p bra DONE; setp.eq.u32 %p, %w, 1; @%p bra LATER;
    st.shared.u32 [0], 5; bra DONE; LATER: nanosleep.u32 2000; st.shared.u32 [0], 5; {second}
    DONE: bar.sync 0; ld.shared.u32 %r1, [0];"""
    assert len(run(body.format(second="st.shared.u32 [0], 6;"), "racecheck", shared=64).reports) == 1
    assert run(body.format(second=""), "racecheck", shared=64).reports == []


def test_atomics_do_not_race_with_each_other() -> None:
    assert run("atom.shared.add.u32 %r0, [0], 1;", "racecheck", shared=64).reports == []
    mixed = run("setp.eq.u32 %p, %w, 0; @%p atom.shared.add.u32 %r0, [0], 1; @!%p st.shared.u32 [0], 99;", "racecheck",
                shared=64)  # fmt: skip
    assert len(mixed.reports) == 1


def test_a_flag_hands_over() -> None:
    body = """setp.eq.u32 %p, %w, 0; @!%p bra WAIT;
    st.shared.u32 [64], 5; membar.cta; st.volatile.shared.u32 [0], 1; bra DONE;
    WAIT: ld.volatile.shared.u32 %r0, [0]; setp.eq.u32 %q, %r0, 0; @%q bra WAIT;
    membar.cta; ld.shared.u32 %r1, [64];
    DONE:"""
    assert run(f"st.volatile.shared.u32 [0], 0; {BARRIER} {body}", "racecheck", shared=128).reports == []
    weak = body.replace("st.volatile", "st").replace("ld.volatile", "ld.relaxed.cta")
    assert len(run(f"st.volatile.shared.u32 [0], 0; {BARRIER} {weak}", "racecheck", shared=128).reports) > 0


def test_producers_and_consumers_with_named_barriers() -> None:
    body = """setp.eq.u32 %p, %w, 0; @!%p bra TAKE;
    shl.b32 %r0, %i, 2; st.shared.u32 [%r0], %i; bar.arrive 1, 64; bra DONE;
    TAKE: bar.sync 1, 64; shl.b32 %r0, %l, 2; ld.shared.u32 %r1, [%r0];
    DONE:"""
    assert run(body, "racecheck", shared=256).reports == []
    wrong = body.replace("st.shared.u32 [%r0], %i; bar.arrive 1, 64;", "bar.arrive 1, 64; st.shared.u32 [%r0], %i;")
    assert len(run(wrong, "racecheck", shared=256).reports) == 1


def test_barriers_of_subsets_order_only_their_warps() -> None:
    body = """setp.lt.u32 %p, %w, 2; @!%p bra OTHER;
    setp.eq.u32 %q, %i, 0; @%q st.shared.u32 [0], %i; bar.sync 1, 64; bra DONE;
    OTHER: bar.sync 2, 64; ld.shared.u32 %r0, [0];
    DONE:"""
    assert len(run(body, "racecheck", shared=64, threads=128).reports) == 1


def test_lanes_of_a_warp_run_independently() -> None:
    body = """xor.b32 %r0, %i, 1; shl.b32 %r0, %r0, 2; st.shared.u32 [%r0], %i; {sync} shl.b32 %r1, %i, 2;
    ld.shared.u32 %r2, [%r1];"""
    for sync in ("", "shfl.sync.idx.b32 %r3, %i, 0, 31, -1;"):
        found = run(body.format(sync=sync), "racecheck", threads=32, shared=128).reports
        assert [finding.kind for finding in found] == ["lanes"] and "bar.warp.sync" in found[0].help
    assert run(body.format(sync="bar.warp.sync -1;"), "racecheck", threads=32, shared=128).reports == []
    some = body.format(sync="setp.lt.u32 %p, %i, 16; @!%p bra REST; bar.warp.sync 0xFFFF; REST:")
    assert {finding.kind for finding in run(some, "racecheck", threads=32, shared=128).reports} == {"lanes"}


_FLAG = """st.volatile.shared.u32 [0], 0; bar.sync 0; setp.eq.u32 %p, %w, 0; @!%p bra WAIT;
    st.shared.u32 [64], 5; {before} {store}.shared.u32 [0], 1; bra DONE;
    WAIT: {load}.shared.u32 %r0, [0]; setp.eq.u32 %q, %r0, 0; @%q bra WAIT;
    {behind} ld.shared.u32 %r1, [64];
    DONE:"""
_RELAXED = {"store": "st.relaxed.cta", "load": "ld.relaxed.cta", "before": "", "behind": ""}


@pytest.mark.share(3)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("pattern", "missing"),
    [
        ({}, "no release"),
        ({"store": "st.release.cta"}, "no acquire"),
        ({"load": "ld.acquire.cta"}, "no release"),
        ({"store": "st.release.cta", "load": "ld.acquire.cta"}, ""),
        ({"before": "fence.acq_rel.cta;", "behind": "fence.acq_rel.cta;"}, ""),
        ({"before": "fence.sc.gpu;", "load": "ld.acquire.gpu"}, ""),
        ({"before": "fence.acq_rel.cta;"}, "no acquire"),
        ({"behind": "fence.acq_rel.cta;"}, "no release"),
    ],
    ids=lambda value: " ".join(value.values()) if isinstance(value, dict) else "",
)
def test_patterns_need_both_halves(engine: str, pattern: dict[str, str], missing: str) -> None:
    found = run(_FLAG.format(**_RELAXED | pattern), "racecheck", shared=128, engine=engine).reports
    assert [finding.kind for finding in found] == (["pattern"] if missing else [])
    assert all(missing in finding.message for finding in found)


HOPPER = HEAD.replace("8.0", "8.6", 1).replace("sm_80", "sm_90")


def test_a_relaxed_wait_orders_nothing() -> None:
    """Neither loads nor stores behind a wait that acquires nothing come behind what was before the arrivals."""
    body = """setp.eq.u32 %p, %i, 0; @%p mbarrier.init.shared.b64 [512], 32; bar.sync 0; shl.b32 %r1, %l, 2;
    setp.eq.u32 %p, %w, 1; @%p bra WAIT; {first}; mbarrier.arrive.shared.b64 %b, [512]; bra DONE;
    WAIT: mbarrier.try_wait.parity{order}.shared::cta.b64 %q, [512], 0; @!%q bra WAIT; {fence} {second};
    DONE:"""
    load, store, relaxed = "ld.shared.u32 %r2, [%r1]", "st.shared.u32 [%r1], %i", ".relaxed.cta"
    for first, second in ((load, store), (store, load), (store, store)):
        for order, fence, races in (("", "", 0), (relaxed, "", 1), (relaxed, "fence.acq_rel.cta;", 0)):
            text = body.format(first=first, second=second, order=order, fence=fence)
            assert len(run(text, "racecheck", shared=520, head=HOPPER).reports) == races, (first, second, order, fence)


def test_a_chain_of_atomics_hands_over() -> None:
    """Relaxed atomics between a release and an acquire keep what was released; a store in between ends it."""
    body = """setp.eq.u32 %p, %i, 0; @%p st.shared.u32 [0], 0; bar.sync 0;
    setp.eq.u32 %p, %w, 0; @%p st.shared.u32 [64], 5; @%p red.release.cta.shared.add.u32 [0], 1;
    setp.eq.u32 %p, %w, 1; @%p red.relaxed.cta.shared.add.u32 [0], 1;
    WAIT: ld.{load}.cta.shared.u32 %r0, [0]; setp.lt.u32 %q, %r0, 64; @%q bra WAIT;
    ld.shared.u32 %r1, [64];"""
    assert run(body.format(load="acquire"), "racecheck", shared=128).reports == []
    assert len(run(body.format(load="relaxed"), "racecheck", shared=128).reports) == 1


def test_the_guess_of_a_compare_and_swap_loop() -> None:
    """A plain read that the same thread's swap confirms is fine; one that nothing confirms is a race."""
    body = """setp.eq.u32 %p, %i, 0; @%p st.shared.u32 [0], 0; bar.sync 0; ld.shared.u32 %r0, [0];
    AGAIN: mov.u32 %r1, %r0; add.u32 %r2, %r1, 1; atom.shared.cas.b32 %r0, [{where}], %r1, %r2;
    setp.ne.u32 %p, %r0, %r1; @%p bra AGAIN;"""
    assert run(body.format(where=0), "racecheck", shared=128).reports == []
    other = """setp.eq.u32 %p, %i, 0; @%p st.shared.u32 [0], 0; bar.sync 0; setp.eq.u32 %p, %w, 0;
    @%p ld.shared.u32 %r0, [0]; @!%p atom.shared.cas.b32 %r0, [0], 0, 1;"""
    assert len(run(other, "racecheck", shared=128).reports) == 1


def test_bytes_of_a_word_are_told_apart() -> None:
    assert run("cvt.u64.u32 %rd0, %i; st.shared.u8 [%rd0], 1; ld.shared.u8 %r0, [%rd0];".replace("%rd0", "%r1").replace(
        "cvt.u64.u32 %r1, %i", "mov.u32 %r1, %i"), "racecheck", shared=128).reports == []  # fmt: skip
    mixed = (
        "mov.u32 %r1, %i; st.shared.u8 [%r1], 1; and.b32 %r2, %r1, 60; xor.b32 %r2, %r2, 32; ld.shared.u32 %r0, [%r2];"
    )
    assert len(run(mixed, "racecheck", shared=128).reports) >= 1


def test_ctas_have_their_own_memory() -> None:
    assert run(f"{WRITE} {BARRIER} {READ}", "racecheck", shared=256, grid=5).reports == []


@pytest.mark.parametrize("engine", ENGINES)
def test_ctas_race_that_are_never_resident_together(engine: str) -> None:
    kernel = module("mov.u32 %r0, %ctaid.x; st.global.u32 [%a], %r0;")["k"]
    device = ptxtools.Device("sm_80", sms=1, engine=engine, checks="racecheck")
    result = device.launch(kernel, 3, 32, [np.zeros(1, np.uint32)], shared=100_000)
    assert ["of another CTA" in message for message in messages(result)] == [True]


def test_reports_name_the_memory() -> None:
    """The variable or allocation that the byte is in, with the offset, and its space."""
    shared = run("st.shared.u32 [4], %w;", "racecheck", shared=256).reports[0]
    assert (shared.space, shared.allocation) == ("shared", "variable 'sh', byte 4: 256 bytes at shared 0x0")
    one = run("st.global.u32 [%a+8], %w;", "racecheck").reports[0]
    assert (one.space, one.allocation.split(":")[0]) == ("global", "argument 0 (a), byte 8")
    tensor = """setp.eq.u32 %p, %w, 0; @!%p bra OTHER; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [0], 32;
    OTHER: bar.sync 0; ld.shared.u32 %r0, [0]; mov.u32 %r1, 0; {who} @!%q bra NEXT;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r0], {{%r1}}; tcgen05.wait::st.sync.aligned;
    NEXT: bar.sync 0; @!%p bra DONE; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 32; DONE:"""
    head = HEAD.replace("8.0", "8.6").replace("sm_80", "sm_100a")
    fine = tensor.format(who="setp.eq.u32 %q, %w, 4;")
    assert run(fine, "racecheck", shared=64, head=head, threads=160).reports == []
    both = tensor.format(who="and.b32 %r2, %w, 3; setp.eq.u32 %q, %r2, 0;")
    found = run(both, "racecheck", shared=64, head=head, threads=160).reports
    assert [one.space for one in found] == ["tensor"] and "lanes 0 to 15 of the tensor memory" in found[0].message
    assert "by the warp of thread (" in found[0].message


@pytest.mark.parametrize("form", ["m8n8.x4.shared.b16", "m8n8.x2.trans.shared.b16", "m16n8.x1.trans.shared.b8"])
def test_equal_matrices_of_two_warps(form: str) -> None:
    """Two warps store the same rows; then different ones, by one byte of one lane."""
    count = int(form.split(".x")[1][0])
    registers = ", ".join(f"%r{4 + n}" for n in range(count))
    body = f"""shl.b32 %r0, %l, 4; mov.u32 %r1, sh; add.u32 %r0, %r0, %r1; mad.lo.u32 %r4, %l, 257, 9;
    mov.u32 %r5, %r4; mov.u32 %r6, %l; mov.u32 %r7, 3; setp.eq.u32 %p, %i, 46; {{change}}
    stmatrix.sync.aligned.{form} [%r0], {{{{{registers}}}}};"""
    head = HEAD.replace("8.0", "8.6").replace("sm_80", "sm_100a")
    assert run(body.format(change=""), "racecheck", shared=512, head=head).reports == []
    found = run(body.format(change="@%p xor.b32 %r4, %r4, 65536;"), "racecheck", shared=512, head=head).reports
    # Byte 2 of lane 14 (9.7.14.5.16).
    row, byte = (5, 6) if "m8n8.x2" in form else (4, 11) if "m16n8" in form else (3, 10)
    assert [one.address for one in found] == [(16 * row + byte) // 4 * 4]


def test_passes_of_a_barrier_are_those_of_all_who_come() -> None:
    """One warp has passed it more often than the other, with which it then meets; if nothing keeps that one from coming
    to an earlier pass, the order is open."""
    body = """setp.eq.u32 %p, %w, 0; @!%p bra OTHER; bar.sync 1, 32; bar.sync 1, 32; {free} bra MEET;
    OTHER: {free} shl.b32 %r0, %l, 2; add.u32 %r0, %r0, %w; st.shared.u32 [0], 7;
    MEET: {meet} @!%p bra DONE; ld.shared.u32 %r1, [0]; DONE:"""
    result = run(body.format(meet="bar.sync 1, 64;", free="bar.sync 2, 64;"), "racecheck", shared=256)
    assert result.reports == [] and str(result.verdict) == "race-free in every schedule of this launch"
    result = run(body.format(meet="bar.sync 1, 64;", free=""), "racecheck", shared=256)
    assert result.reports == [] and "(a barrier) decides the order" in str(result.verdict)
    assert len(run(body.format(meet="", free=""), "racecheck", shared=256).reports) == 1


def test_atomics_of_bytes_that_are_made_of_words() -> None:
    """Libraries change a byte by comparing and swapping its word, and load or store it alone; without that, accesses of
    different sizes do not fit together."""
    body = """mov.u32 %r4, 0; setp.eq.u32 %p, %w, 0; @!%p bra OTHER; setp.ne.u32 %q, %i, 0; @%q bra DONE;
    ld.relaxed.cta.shared.b32 %r0, [0]; or.b32 %r1, %r0, 1;
    atom.relaxed.cta.shared.cas.b32 %r2, [0], %r0, %r1; bra DONE;
    OTHER: setp.ne.u32 %q, %i, 32; @%q bra DONE; ld.relaxed.cta.shared.u8 %r3, [0]; st.relaxed.cta.shared.u8 [1], %r3;
    DONE:"""
    start = f"st.shared.u32 [0], 0; {BARRIER}"
    assert run(f"{start} {body}", "racecheck", shared=64).reports == []
    other = body.replace("cas.b32 %r2, [0], %r0, %r1", "exch.b32 %r2, [0], %r1")
    found = run(f"{start} {other}", "racecheck", shared=64).reports
    assert {finding.kind for finding in found} == {"size"}


def test_what_a_vote_orders() -> None:
    """Reads before it with writes behind it, among its members; nothing that was written before it."""
    vote = "setp.ne.u32 %p, %r2, 0; vote.sync.any.pred %q, %p, {mask};"
    neighbour = "xor.b32 %r1, %i, 1; shl.b32 %r1, %r1, 2; shl.b32 %r0, %i, 2;"
    start = f"{neighbour} st.shared.u32 [%r0], %i; {BARRIER}"
    read, write = "ld.shared.u32 %r2, [%r1];", "add.u32 %r3, %i, 7; st.shared.u32 [%r0], %r3;"
    after_read = f"{start} {read} {vote} {write}"
    assert run(after_read.format(mask=-1), "racecheck", shared=256).reports == []
    assert len(run(f"{start} {read} {write}", "racecheck", shared=256).reports) == 1
    halves = "and.b32 %r4, %i, 1; mov.u32 %r5, 0x55555555; shl.b32 %r5, %r5, %r4;"  # each without its neighbour
    apart = f"{start} {read} {halves} {vote} {write}".format(mask="%r5")
    assert [one.kind for one in run(apart, "racecheck", shared=256).reports] == ["lanes"]
    after_write = f"{start} {write} setp.ne.u32 %p, %i, 0; vote.sync.any.pred %q, %p, -1; {read}"
    assert [one.kind for one in run(after_write, "racecheck", shared=256).reports] == ["lanes"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("instruction", ["shfl.sync.idx.b32 %r1, %i, 0, 31, %r0;", "bar.warp.sync %r0;"])
def test_a_member_mask_that_names_nobody(engine: str, instruction: str) -> None:
    """The instruction traps, as without checkers."""
    with pytest.raises(Trap, match="not in its own member mask"):
        run(f"mul.lo.u32 %r0, %i, 0; {instruction} st.shared.u32 [0], %r1;", "racecheck", shared=64, engine=engine)
