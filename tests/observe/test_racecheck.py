"""racecheck: what orders two warps and what does not."""

from __future__ import annotations

import pytest

from .programs import messages, run

ENGINES = ("native", "reference")
WRITE, READ = "shl.b32 %r0, %i, 2; st.shared.u32 [%r0], %i;", "xor.b32 %r1, %r0, 128; ld.shared.u32 %r2, [%r1];"
BARRIER = "bar.sync 0;"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_read_without_a_barrier(engine: str) -> None:
    found = run(f"{WRITE}\n{READ}", "racecheck", shared=256, engine=engine).reports
    assert len(found) in (1, 2) and {finding.checker for finding in found} == {"racecheck"}
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


def test_atomics_do_not_race_with_each_other() -> None:
    assert run("atom.shared.add.u32 %r0, [0], 1;", "racecheck", shared=64).reports == []
    mixed = run("setp.eq.u32 %p, %w, 0; @%p atom.shared.add.u32 %r0, [0], 1; @!%p st.shared.u32 [0], 99;", "racecheck",
                shared=64)  # fmt: skip
    assert len(mixed.reports) == 1


def test_a_flag_hands_over() -> None:
    body = """setp.eq.u32 %p, %w, 0; @!%p bra WAIT;
    st.shared.u32 [64], 5; membar.cta; st.volatile.shared.u32 [0], 1; bra DONE;
    WAIT: ld.volatile.shared.u32 %r0, [0]; setp.eq.u32 %q, %r0, 0; @%q bra WAIT;
    ld.shared.u32 %r1, [64];
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


def test_a_warp_does_not_race_with_itself() -> None:
    assert run("xor.b32 %r0, %i, 1; shl.b32 %r0, %r0, 2; st.shared.u32 [%r0], %i; shl.b32 %r1, %i, 2;"
               "ld.shared.u32 %r2, [%r1];", "racecheck", threads=32, shared=128).reports == []  # fmt: skip


def test_ctas_have_their_own_memory() -> None:
    assert run(f"{WRITE} {BARRIER} {READ}", "racecheck", shared=256, grid=5).reports == []
