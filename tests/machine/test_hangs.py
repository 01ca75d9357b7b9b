"""Deadlocks are found whatever waits, and whatever else has happened: kinds of waiting × CTAs that have ended before ×
clusters × workers × engines × checkers. Each report names every warp of every CTA that waits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.native.loop import polling
from tests.work import HANG

ROOT = Path(__file__).resolve().parents[2]
_ONLY_WAITS = polling.Watch.only_waits

HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %d<24>; .reg .u32 %t, %warp, %c; .reg .u64 %out;
    .shared .align 8 .b64 bar;
    mov.u32 %t, %tid.x; shr.u32 %warp, %t, 5; mov.u32 %c, %ctaid.x; ld.param.u64 %out, [out];
    add.u64 %out, %out, 64;
    setp.ge.u32 %p7, %c, 4; @%p7 bra ENDS;
    setp.ne.u32 %p1, %t, 0; @!%p1 mbarrier.init.shared.b64 [bar], 65; bar.sync 0;
"""
TAIL = "\n    ENDS: ret; }"

LOOK = "ld.relaxed.gpu.global.u32 %r1, [%out]; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;"
SLEEP = "nanosleep.u32 100;"

#: What 64 threads do; for each warp how many of its threads the report has, and what it says of them.
KINDS: dict[str, tuple[str, list[tuple[str, int, str]]]] = {
    "a barrier of the CTA": (
        "barrier.sync 1, 96;",
        [("warps 0, 1", 64, "wait at barrier 1: 64 of 96 threads came, 32 are missing (barrier.sync 1, 96)")],
    ),
    "two barriers": (
        "setp.eq.u32 %p2, %warp, 0; @%p2 bra A; barrier.sync 2; bra ENDS; A: barrier.sync 3;",
        [
            ("warp 0", 32, "wait at barrier 3: 32 of 64 threads came, 32 are missing (barrier.sync 3)"),
            ("warp 1", 32, "wait at barrier 2: 32 of 64 threads came, 32 are missing (barrier.sync 2)"),
        ],
    ),
    "lanes of a warp": (
        "setp.eq.u32 %p2, %t, 5; @%p2 bra A; bar.warp.sync -1; bra ENDS; A: barrier.sync 1, 96;",
        [
            ("warp 0", 31, "wait for other lanes of the warp (bar.warp.sync -1)"),
            ("warp 0", 1, "wait at barrier 1: 1 of 96 threads came, 95 are missing (barrier.sync 1, 96)"),
        ],
    ),
    "an mbarrier": (
        "mbarrier.arrive.shared.b64 %d1, [bar]; L: mbarrier.try_wait.shared.b64 %p2, [bar], %d1; @!%p2 bra L;",
        [
            (
                "warps 0, 1",
                64,
                "wait for the mbarrier at shared 0x0*, phase 0: 64 of 65 arrivals came, 1 missing "
                "(mbarrier.try_wait.shared.b64 %p2, [bar], %d1)",
            )
        ],
    ),
    "an mbarrier that is only tested": (
        "mbarrier.arrive.shared.b64 %d1, [bar]; L: mbarrier.test_wait.shared.b64 %p2, [bar], %d1; @!%p2 bra L;",
        [
            (
                "warps 0, 1",
                64,
                "wait in a loop that changes nothing, for the mbarrier at shared 0x0* (bar), phase 0: "
                "64 of 65 arrivals came, 1 missing (mbarrier.test_wait.shared.b64 %p2, [bar], %d1)",
            )
        ],
    ),
    "a flag": (f"L: {LOOK}", [("warps 0, 1", 64, "wait in a loop that changes nothing (*)")]),
    "a lock": (
        """and.b32 %r2, %t, 31; setp.ne.u32 %p3, %r2, 0; @%p3 bra ENDS;
        L: atom.global.cas.b32 %r1, [%out], 7, 1; setp.ne.u32 %p2, %r1, 7; @%p2 bra L;""",
        [("warps 0, 1", 2, "wait in a loop that changes nothing (*)")],
    ),
    "a flag, asleep": (f"L: {SLEEP} {LOOK}", [("warps 0, 1", 64, "wait for 100 ns to pass (nanosleep.u32 100)")]),
    "a barrier and a flag": (
        f"setp.eq.u32 %p2, %warp, 0; @%p2 bra A; L: {LOOK} bra ENDS; A: barrier.sync 1;",
        [
            ("warp 0", 32, "wait at barrier 1: 32 of 64 threads came, 32 are missing (barrier.sync 1)"),
            ("warp 1", 32, "wait in a loop that changes nothing (*)"),
        ],
    ),
    "a flag and an mbarrier": (
        f"""setp.eq.u32 %p2, %warp, 0; @%p2 bra A; L: {LOOK} bra ENDS;
        A: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra A;""",
        [
            ("warp 0", 32, "wait for the mbarrier at shared 0x0*, phase 0: 0 of 65 arrivals came, 65 missing (*)"),
            ("warp 1", 32, "wait in a loop that changes nothing (*)"),
        ],
    ),
}
#: With clusters there is another one.
CLUSTERS = {
    "the cluster": (
        """setp.eq.u32 %p2, %warp, 0; @%p2 bra A; barrier.sync 1, 96; bra ENDS;
        A: barrier.cluster.arrive; barrier.cluster.wait;""",
        [
            ("warp 0", 32, "wait at the cluster barrier: 64 of 128 threads came, 64 are missing (*)"),
            ("warp 1", 32, "wait at barrier 1: 32 of 96 threads came, 64 are missing (barrier.sync 1, 96)"),
        ],
    ),
}  # fmt: skip


def stuck(
    body: str, *, engine: str, threads: int = 1, ended: int = 0, cluster: int = 1, checks: str = "", ctas: int = 4
) -> str:
    """The report of 64 threads in each of some CTAs, beside CTAs that have ended."""
    module = ptxtools.loads((HEAD + body + TAIL).replace("%c, 4;", f"%c, {ctas};"))
    device = ptxtools.Device("sm_90", engine=engine, threads=threads, checks=checks)
    with pytest.raises(ptxtools.Trap) as failure:
        device.launch(
            module["k"], grid=ctas + ended, block=64, cluster=cluster, args=[np.zeros(64, np.uint32)], timeout=HANG
        )
    assert failure.value.kind == "deadlock"
    return str(failure.value)


def lines_of(report: str) -> list[str]:
    """The lines that tell where warps are, without their number."""
    return [line.strip().partition(": ")[2] for line in report.splitlines() if ", warp" in line]


def fits(line: str, wanted: str) -> bool:
    """Whether a line is as wanted, where * stands for anything."""
    at = 0
    for part in wanted.split("*"):
        found = line.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


#: How so many CTAs are told.
ALL = {2: "(0,0,0), (1,0,0)", 4: "(0,0,0) to (3,0,0)"}
#: Their warps may be told while they look again, between two waits.
RESTLESS = ("a flag, asleep", "a flag and an mbarrier")


def told(kind: str, *, cluster: int = 1, ctas: int = 4, **shape) -> None:
    """All CTAs say the same, each in one line; where clusters have mbarriers their ranks have a line each."""
    body, warps = (KINDS | CLUSTERS)[kind]
    lines = lines_of(stuck(body, cluster=cluster, ctas=ctas, **shape))
    if kind in RESTLESS:
        counts = [int(found[1]) for line in lines if (found := re.search(r": (\d+) threads? wait", line))]
        assert len(counts) == len(lines) and sum(counts) == ctas * 64, lines
        assert all(any(fits(line, what) for line in lines) for _, _, what in warps), lines
        return
    wanted = []
    for who, count, what in warps:
        several = cluster > 1 and "mbarrier" in what
        ranks = ["(0,0,0), (2,0,0)", "(1,0,0), (3,0,0)"] if several else [ALL[ctas]]
        wanted += [f"CTAs {place}, {who}: {ctas // len(ranks) * count} threads {what}" for place in ranks]
    assert len(lines) == len(wanted) and all(any(fits(line, one) for line in lines) for one in wanted), lines


#: Workers are there in the native engine only.
RUNS = [("native", 1), ("native", 2), ("native", 3), ("reference", 1)]


@pytest.mark.share(8)
@pytest.mark.parametrize("ended", [0, 2, 40])
@pytest.mark.parametrize(("engine", "threads"), RUNS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_wait(kind, engine, threads, ended):
    told(kind, engine=engine, threads=threads, ended=ended)


@pytest.mark.share(8)
@pytest.mark.parametrize(("engine", "threads", "ended"), [(*run, ended) for run in RUNS for ended in (0, 4)])
@pytest.mark.parametrize("kind", [*KINDS, *CLUSTERS])
def test_every_wait_in_clusters(kind, engine, threads, ended):
    told(kind, engine=engine, threads=threads, ended=ended, cluster=2)


@pytest.mark.share(10)
@pytest.mark.parametrize(("engine", "threads", "ended"), [("native", 1, 2), ("native", 2, 0), ("reference", 1, 2)])
@pytest.mark.parametrize("kind", KINDS)
def test_every_wait_under_all_checkers(kind, engine, threads, ended):
    told(kind, engine=engine, threads=threads, ended=ended, checks="all", ctas=2)


def test_the_clock_decides_nothing_where_a_run_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a seed, a deadlock is found after as many jumps in time on a fast machine as on a slow one."""
    found = []
    for seconds in (0.0, 50.0):
        looks, ticks = [0], [0.0]

        def clock(ticks: list[float] = ticks, seconds: float = seconds) -> float:
            ticks[0] += seconds
            return ticks[0]

        def only_waits(watch: Any, looks: list[int] = looks) -> bool:
            looks[0] += 1
            return _ONLY_WAITS(watch)

        monkeypatch.setattr(polling.time, "monotonic", clock)
        monkeypatch.setattr(polling.Watch, "only_waits", only_waits)
        with pytest.raises(ptxtools.Trap, match="deadlock"):
            ptxtools.Device(seed=3, threads=1).launch(
                ptxtools.load(str(ROOT / "testdata/hangs/mb.ptx"))["k"], 1, 64, [np.zeros(4, np.uint32)]
            )
        found.append(looks[0])
    assert found[0] == found[1] > 2
