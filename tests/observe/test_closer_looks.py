"""racecheck's closer look, with clocks in Python and plain accesses in native code, says what the judge says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.native.loop import events
from ptxtools.observe import race_flags, race_guess, race_shadow
from ptxtools.sim import trial

from . import counters, guards, rings
from .programs import module, written
from .test_race_trial import _judged, _looks

#: Statements of random programs: %r4 is an address in shared memory, %b one in global memory, of words that some
#: threads share; what orders threads is between them.
ACCESSES = (
    "st.shared.u32 [%r4], %i;", "ld.shared.u32 %r1, [%r4];", "st.global.u32 [%b], %i;", "ld.global.u32 %r1, [%b];",
    "st.shared.u32 [%r4], 7;", "ld.shared.v2.u32 {%r1, %r2}, [%r4];", "st.shared.u16 [%r4+2], 1;",
    "atom.shared.add.u32 %r1, [%r4], 1;", "red.global.add.u32 [%b], 1;",
)  # fmt: skip
ORDERS = (
    "bar.sync 0;", "bar.sync 1, 64;", "bar.warp.sync -1;", "membar.gl;", "membar.cta;", "barrier.sync 2;",
    "st.release.gpu.global.u32 [%a], 1;", "ld.acquire.gpu.global.u32 %r1, [%a];", "ld.volatile.shared.u32 %r1, [0];",
    "st.volatile.shared.u32 [0], 1;", "atom.acq_rel.gpu.global.add.u32 %r1, [%a+4], 1;",
)  # fmt: skip
THREADS = 64


def _program(seed: int) -> str:
    """Threads have words of their own, those of their neighbours, or one for all; some statements are for one warp."""
    random = np.random.default_rng(seed)
    lines = ["setp.lt.u32 %p, %i, 32;"]
    for _ in range(random.integers(4, 14)):
        kind = random.random()
        place = ("%i", "%l", "%w", "0")[random.choice(4, p=(0.55, 0.2, 0.15, 0.1))]
        shift = int(random.choice([0, 0, 0, 4, 64]))
        lines.append(f"mad.lo.u32 %r4, {place}, 8, {64 + 8 * shift}; and.b32 %r4, %r4, 1016;")
        lines.append("cvt.u64.u32 %b, %r4; add.u64 %b, %b, %a;")
        if kind < 0.5:
            guard = ("", "@%p ", "@!%p ")[random.choice(3, p=(0.6, 0.2, 0.2))]
            lines.append(guard + ACCESSES[random.integers(len(ACCESSES))])
        else:
            lines.append(ORDERS[random.choice(len(ORDERS), p=(0.3, 0.1, 0.1, *[0.5 / 8] * 8))])
    return "\n".join(lines)


def _found(seed: int) -> tuple[Any, ...]:
    words = np.zeros(1024, np.uint32)
    device = ptxtools.Device("sm_80", checks="racecheck")
    result = device.launch(module(_program(seed))["k"], 1 + seed % 2, THREADS, [words], shared=2048)
    reports = [(found.line, found.message, found.thread, found.count, found.help) for found in result.reports]
    return reports, str(result.verdict), words.tolist()


def _closer(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Closer looks alone."""
    looks, found = _looks(monkeypatch, closer=True), trial.looks
    monkeypatch.setattr(trial, "looks", lambda *what: [look for look in found(*what) if look == 2])
    return looks


@pytest.mark.share(10)
@pytest.mark.parametrize("seed", range(120))
def test_random_programs_are_judged_alike(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _closer(monkeypatch)
    found = _found(seed)
    assert looks in ([2], [2, 0])
    _judged(monkeypatch)
    assert found == _found(seed)


def _with_other_proxies(seed: int) -> tuple[str, bool]:
    """A random program that also reads another buffer by ld.global.nc, and constants; in some it reads by .nc what the
    program may write, too, or writes what it reads so."""
    random, lines = np.random.default_rng(seed), _program(seed).splitlines()
    wrong = bool(random.random() < 0.3)
    more = ["ld.global.nc.u32 %r3, [%c];", "ld.global.nc.u32 %r3, [%c+128];", "ld.const.u32 %r3, [known+4];"]
    for _ in range(3):
        lines.insert(int(random.integers(1, len(lines) + 1)), str(random.choice(more)))
    if wrong:
        lines.append(str(random.choice(["ld.global.nc.u32 %r3, [%b];", "st.global.u32 [%c], %i;"])))
    return "\n".join(lines), wrong


def _found_with_proxies(seed: int, checks: str = "racecheck") -> tuple[Any, ...]:
    text, _ = _with_other_proxies(seed)
    start = "ld.param.u64 %c, [other]; mad.wide.u32 %c, %i, 4, %c;\n"
    source = written(start + text).replace("(.param .u64 a)", "(.param .u64 a, .param .u64 other)")
    source = source.replace(".visible .entry", ".const .u32 known[4] = {1, 2, 3, 4};\n.visible .entry")
    words, others = np.zeros(1024, np.uint32), np.arange(1024, dtype=np.uint32)
    device = ptxtools.Device("sm_80", checks=checks)
    kernel = ptxtools.loads(source)["k"]
    result = device.launch(kernel, 1 + seed % 2, THREADS, [words, others], shared=2048)
    reports = [(found.line, found.message, found.thread, found.count, found.help) for found in result.reports]
    return reports, str(result.verdict), words.tolist(), others.tolist()


@pytest.mark.share(6)
@pytest.mark.parametrize("seed", range(60))
def test_what_is_only_read_may_be_read_through_any_proxy(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _closer(monkeypatch)
    found = _found_with_proxies(seed)
    if not _with_other_proxies(seed)[1]:  # the judge is asked where it is asked without those reads
        mine = looks.copy()
        looks.clear()
        _found(seed)
        assert looks == mine
    _judged(monkeypatch)
    assert found == _found_with_proxies(seed)


@pytest.mark.share(6)
@pytest.mark.parametrize("checks", ["memcheck", "memcheck,racecheck"])
@pytest.mark.parametrize("seed", range(60))
def test_memcheck_sees_what_is_read_through_nc_and_written(
    seed: int, checks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _found_with_proxies(seed, checks)
    monkeypatch.setattr(race_guess, "only_read", lambda launch, live: [])
    assert found == _found_with_proxies(seed, checks)


#: The second warp waits for a flag that the first one sets late, and stores what it finds.
FLAG = """setp.lt.u32 %p, %i, 32; mov.u32 %r5, 0; @!%p bra WAIT; nanosleep.u32 90000;
st.shared.u32 [256], 5; st.release.cta.shared.u32 [0], 1; bra DONE;
WAIT: {load} %r1, [0]; setp.eq.u32 %q, %r1, 0; @%q bra WAIT; ld.shared.u32 %r2, [256];
DONE: """


@pytest.mark.parametrize("load", ["ld.acquire.cta.shared.u32", "ld.volatile.shared.u32"])
def test_polls_pass_until_somebody_has_written(load: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a look at the flag finds is told of, with or without the looks in vain before it."""
    kernel, told, find = module(FLAG.format(load=load))["k"], list[str](), events.find
    monkeypatch.setattr(events, "find", lambda launch, kind: told.append(kind) or find(launch, kind))
    _judged(monkeypatch)
    result = ptxtools.Device("sm_80", checks="racecheck").launch(kernel, 1, 64, [np.zeros(1, np.uint32)], shared=512)
    assert bool(result.reports) == ("acquire" not in load)
    assert 1 < told.count("observe.access") < 40


@pytest.mark.share(10)
@pytest.mark.parametrize("make", [guards.kernel, guards.handover])
@pytest.mark.parametrize("seed", range(60))
def test_clusters_are_judged_alike(seed: int, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _closer(monkeypatch)
    found = guards.run(seed, make=make, threads=1)  # with two, those that race may do so in another order
    assert looks[0] == 2
    _judged(monkeypatch)
    assert _settled(found, make) == _settled(guards.run(seed, " // judged", make, threads=1), make)


def _settled(found: Any, make: Any) -> Any:
    """What is the same in all schedules: not what a poll of a counter has read, nor who is the first to race."""
    if isinstance(found, str) or make is guards.kernel or "every schedule" in found[1]:
        return found
    reports, verdict, _ = found
    return sorted({(checker, line) for checker, line, *_ in reports}), verdict


@pytest.mark.share(10)
@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("kernel", [rings.kernel, counters.kernel])
def test_rings_of_mbarriers_and_counters_are_judged_alike(kernel: Any, seed: int) -> None:
    for _ in range(rings.RUNS):
        found, judged, looks = rings.compared(seed, kernel)
        assert looks[0] == 2
        if not rings.differ(found, judged):
            return
    assert found == judged


#: Three CTAs meet at a counter; `end` is what thread 0 of each does with it behind that.
COUNTER = """ld.global.u32 %r3, [%a+64]; bar.sync 0; setp.ne.u32 %p, %i, 0; @%p bra MET; {fence} mov.u32 %r2, 0;
NEXT: add.u32 %r2, %r2, 3; red.global.add.u32 [%a], 1;
LOOK: ld.acquire.gpu.global.u32 %r1, [%a]; setp.lt.u32 %q, %r1, %r2; @%q bra LOOK;
setp.lt.u32 %q, %r2, 15; @%q bra NEXT; {end}
MET: bar.sync 0; mov.u32 %r2, %ctaid.x; setp.eq.u32 %p, %r2, 0; @%p st.global.u32 [%a+64], 1;"""


@pytest.mark.parametrize(
    ("fence", "end", "races"),
    [
        ("membar.gl;", "", False),
        ("membar.cta;", "", True),
        ("", "", True),
        ("membar.gl;", "membar.gl; red.global.add.u32 [%a+4], 1;", False),
        ("membar.gl;", "ld.global.u32 %r1, [%a];", False),
        ("membar.gl;", "st.global.u32 [%a], 100;", True),
        ("membar.gl;", "atom.global.exch.b32 %r1, [%a], 100;", False),
        ("membar.gl;", "st.relaxed.gpu.global.u16 [%a+2], 0;", True),
    ],
)
def test_counters_are_written_down_until_something_else_accesses_them(
    fence: str, end: str, races: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[int] = []
    note = race_flags.Flags._note
    monkeypatch.setattr(race_flags.Flags, "_note", lambda self, *what: (noted.append(1), note(self, *what)))

    def run(more: str = "") -> Any:
        text = COUNTER.format(fence=fence, end=end) + more
        result = ptxtools.Device("sm_80", checks="racecheck").launch(
            module(text)["k"], 3, 64, [np.zeros(64, np.uint32)]
        )
        return sorted({(one.line, one.others[0].line) for one in result.reports}), str(result.verdict)

    found = run()
    assert bool(found[0]) == races
    assert bool(noted) == ("gl" in fence)
    _judged(monkeypatch)
    assert found == run(" // judged")


#: A warp fills what another one reads, in rounds, each behind a wait for an mbarrier, and arrives at the other one.
RING = """.shared .align 8 .b64 full, empty; .reg .b64 %s; .reg .pred %z; mov.u32 %r4, sh;
mad.lo.u32 %r4, {place}, 4, %r4;
mov.u32 %r5, full; mov.u32 %r6, empty; mov.u32 %r7, 0; mov.u32 %r2, 0; setp.ne.u32 %q, %i, 0; @%q bra READY;
mbarrier.init.shared.b64 [%r5], {count}; mbarrier.init.shared.b64 [%r6], {count};
READY: bar.sync 0; setp.lt.u32 %p, %i, 32; setp.eq.u32 %q, %l, 0;
NEXT: and.b32 %r1, %r7, 1; @!%p bra READ; xor.b32 %r1, %r1, 1;
FREE: mbarrier.{wait}.parity.shared.b64 %z, [%r6], %r1; @!%z bra FREE;
{write} {lanes} mbarrier.arrive.shared.b64 %s, [%r5]; bra ON;
READ: {read}
ON: add.u32 %r7, %r7, 1; setp.lt.u32 %z, %r7, 40; @%z bra NEXT;"""
READ = """mbarrier.{wait}.parity.shared.b64 %z, [%r5], %r1; @!%z bra READ;
ld.shared.u32 %r3, [%r4]; add.u32 %r2, %r2, %r3; {lanes} mbarrier.arrive.shared.b64 %s, [%r6];"""


@pytest.mark.parametrize("wait", ["try_wait", "test_wait"])
@pytest.mark.parametrize(("count", "lanes"), [(32, ""), (1, "bar.warp.sync -1; @%q")])
@pytest.mark.parametrize(("place", "write"), [("%l", ""), ("0", "@%q ")])
@pytest.mark.parametrize("late", [False, True])
def test_mbarriers_pass_natively(
    wait: str, count: int, lanes: str, place: str, write: str, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, told, find = _closer(monkeypatch), list[str](), events.find
    monkeypatch.setattr(events, "find", lambda launch, kind: told.append(kind) or find(launch, kind))
    read = READ.format(wait=wait, lanes=lanes)
    write += "st.shared.u32 [%r4], %r7;"
    if late:  # behind the arrival that gives the place back
        read += "ld.shared.u32 %r3, [%r4];"
    text = RING.format(wait=wait, count=count, lanes=lanes, place=place, write=write, read=read)
    kernel = module(text, head=guards.TARGET)["k"]
    result = ptxtools.Device("sm_90", checks="racecheck").launch(kernel, 2, 64, [np.zeros(1, np.uint32)], shared=256)
    assert bool(result.reports) == late and looks == ([2, 0] if late else [2])
    if not late:
        assert told.count("observe.arrive") == 4 and "observe.leave" not in told
        assert str(result.verdict) == "race-free in every schedule of this launch"


#: Two CTAs that read what the other one has stored, in rounds; what orders that.
ROUNDS = """mov.u32 %r5, %cluster_ctarank; xor.b32 %r5, %r5, 1; mov.u32 %r6, 0; mov.u32 %r4, sh;
mad.lo.u32 %r4, %i, 4, %r4; mov.u32 %r7, sh; mapa.shared::cluster.u32 %r5, {place}, %r5;
NEXT: st.shared.u32 [%r4], %r6; {order} ld.shared::cluster.u32 %r1, [%r5];
{back} add.u32 %r6, %r6, 1; setp.lt.u32 %q, %r6, 20; @%q bra NEXT; barrier.cluster.arrive; barrier.cluster.wait;"""
BARRIER = "barrier.cluster.arrive; bar.sync 0; barrier.cluster.wait;"


@pytest.mark.parametrize("place", ["%r4", "%r7"])
@pytest.mark.parametrize(("order", "back"), [(BARRIER, BARRIER), (BARRIER, "bar.sync 0;"), ("bar.sync 0;", BARRIER)])
def test_barriers_pass_natively(order: str, back: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, told, find = _closer(monkeypatch), list[str](), events.find
    monkeypatch.setattr(events, "find", lambda launch, kind: told.append(kind) or find(launch, kind))
    kernel = module(ROUNDS.format(order=order, back=back, place=place), head=guards.TARGET)["k"]
    device = ptxtools.Device("sm_90", checks="racecheck")
    result = device.launch(kernel, 4, 64, [np.zeros(1, np.uint32)], shared=256, cluster=2)
    assert looks == ([2] if order == back else [2, 0]) and bool(result.reports) == (order != back)
    assert order != back or told.count("observe.arrive") + told.count("observe.leave") == 0


#: CTAs of a cluster that count in each other's memory, and then read their own.
COUNTING = """mov.u32 %r0, sh; mad.lo.u32 %r0, %i, 4, %r0; st.shared.u32 [%r0], 0; {first}
mov.u32 %r5, %cluster_ctarank; xor.b32 %r5, %r5, 1; mapa.shared::cluster.u32 %r5, %r0, %r5;
red.shared::cluster.add.u32 [%r5], 1; {then} ld.shared.u32 %r1, [%r0]; """
MEET = "barrier.cluster.arrive; barrier.cluster.wait;"


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("cluster", [(2, 1), (1, 2), (2, 2), (1, 2, 2)])
@pytest.mark.parametrize(("first", "then"), [(MEET, MEET), (MEET, "bar.sync 0;"), ("bar.sync 0;", MEET)])
def test_clusters_of_several_dimensions(first: str, then: str, cluster: tuple[int, ...], engine: str) -> None:
    """Their CTAs are no neighbours in the grid."""
    kernel = module(COUNTING.format(first=first, then=then), head=guards.TARGET)["k"]
    device = ptxtools.Device("sm_90", checks="racecheck", engine=engine)
    result = device.launch(kernel, (4, 4, 2), 64, [np.zeros(1, np.uint32)], shared=256, cluster=cluster)
    assert bool(result.reports) == (first != then)
    assert first != then or str(result.verdict) == "race-free in every schedule of this launch"


def test_waiting_for_the_grid_before_orders_nothing_in_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _closer(monkeypatch)
    kernel = module("griddepcontrol.wait; st.global.u32 [%a], 1; membar.gl;", head=guards.TARGET)["k"]
    assert not ptxtools.Device("sm_90", checks="racecheck").launch(kernel, 1, 1, [np.zeros(1, np.uint32)]).reports
    assert looks == [2]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pages are protected by Linux's mprotect")
def test_nothing_is_written_behind_what_is_kept() -> None:
    """Random kernels in a process of their own, whose tables end at protected pages."""
    command = [sys.executable, "-m", "tests.observe.guards", "--count", "24"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout.split()[-1] + done.stderr


#: A grid meets at a counter, once by reads that acquire and once by relaxed ones with a fence behind them, and each CTA
#: reads what the next one has stored. %s: how it waits.
MEETING = """
    mov.u32 %%r1, %%ctaid.x; mov.u32 %%r2, %%nctaid.x; mul.wide.u32 %%b, %%r1, 4; add.u64 %%b, %%b, %%a;
    st.global.u32 [%%b+64], %%r1; membar.gl; red.global.add.u32 [%%a], 1;
WAIT:
    %s setp.lt.u32 %%p, %%r3, %%r2; @%%p bra WAIT;
    %s
    add.u32 %%r1, %%r1, 1; rem.u32 %%r1, %%r1, %%r2; mul.wide.u32 %%b, %%r1, 4; add.u64 %%b, %%b, %%a;
    ld.global.u32 %%r4, [%%b+64];
"""


@pytest.mark.parametrize("closer", (True, False))
@pytest.mark.parametrize(
    ("look", "behind", "races"),
    (
        ("ld.acquire.gpu.global.u32 %r3, [%a];", "", False),
        ("ld.volatile.global.u32 %r3, [%a];", "membar.gl;", False),
        ("ld.volatile.global.u32 %r3, [%a];", "", True),
        ("ld.volatile.global.u32 %r3, [%a];", "membar.cta;", True),
        ("ld.acquire.cta.global.u32 %r3, [%a];", "", True),
    ),
)
def test_a_grid_of_many_ctas_meets_at_a_counter(
    look: str, behind: str, races: bool, closer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many have arrived there, one waits for all of them."""
    if not closer:
        monkeypatch.setattr(trial, "looks", lambda *_: [])
    device = ptxtools.Device("sm_80", checks="racecheck", threads=1)
    result = device.launch(module(MEETING % (look, behind))["k"], 80, 1, [np.zeros(96, np.uint32)])
    assert bool(result.reports) is races


@pytest.mark.parametrize("seed", range(6))
def test_what_several_have_told_is_what_each_of_them_has(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(seed)
    steps = (
        "red.global.add.u32 [%a], 1;", "membar.gl;", "membar.cta;", "ld.acquire.gpu.global.u32 %r1, [%a];",
        "ld.relaxed.sys.global.u32 %r1, [%a];", "st.global.u32 [%b+64], 1;", "ld.global.u32 %r1, [%b+64];",
        "red.release.gpu.global.add.u32 [%a], 1;", "st.relaxed.gpu.global.u32 [%a], 2;", "bar.sync 0;",
        "ld.acquire.cta.global.u32 %r1, [%a];", "atom.acq_rel.gpu.global.add.u32 %r1, [%a], 1;",
    )  # fmt: skip
    places = "mov.u32 %r2, %ctaid.x; shr.u32 %r2, %r2, 1; mul.wide.u32 %b, %r2, 4; add.u64 %b, %b, %a;"
    text = places + "\n".join(random.choice(steps, 14))
    found = []
    for several in (1, 1000):
        monkeypatch.setattr(race_shadow, "_SEVERAL", several)
        device = ptxtools.Device("sm_80", checks="racecheck", threads=1)
        result = device.launch(module(text)["k"], 8, 33, [np.zeros(96, np.uint32)])
        found.append(([(one.line, one.message, one.help, one.count) for one in result.reports], str(result.verdict)))
    assert found[0] == found[1]
