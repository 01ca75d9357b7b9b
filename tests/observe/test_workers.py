"""Several workers share a checked grid: what is reported, and what memory has in the end, is what one worker finds."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.machine.claims import Span
from ptxtools.machine.observers import Anew, Doubt
from ptxtools.machine.residents import SEVERAL_GLOBAL, WRITTEN_GLOBAL
from ptxtools.native.code.structures import ATOMIC_GLOBAL
from ptxtools.native.loop import driver
from ptxtools.observe import race_meeting
from ptxtools.observe.async_flights import Ground
from ptxtools.sim import keeping, trial

from . import bugs
from .programs import written

FILES = sorted(path.stem for path in bugs.FOLDER.glob("*.bugs"))
CHECKS = ("memcheck", "initcheck", "synccheck", "memcheck,initcheck,synccheck,leakcheck")
THREADS, WORDS = 64, 4096
#: Words of global memory: who has written, that several have read, and a sort of atomics.
W, S, A = WRITTEN_GLOBAL, SEVERAL_GLOBAL, WRITTEN_GLOBAL | ATOMIC_GLOBAL + 3
#: Statements by what they are; %x is the address of a thread's own word, %g the CTA's number. Some CTAs have no bug.
GOOD = (
    "st.global.u32 [%x], %i;",
    "ld.global.u32 %r1, [%x]; add.u32 %r1, %r1, 3; st.global.u32 [%x], %r1;",
    "red.global.add.u32 [%a+8192], 1;",
    "st.shared.u32 [%s], %i; bar.sync 0; ld.shared.u32 %r2, [%s]; st.global.u32 [%x], %r2;",
    "mov.u32 %r3, 100; LOOP{n}: sub.u32 %r3, %r3, 1; setp.ne.u32 %q, %r3, 0; @%q bra LOOP{n};",
)
BAD = (
    "@%p st.global.u32 [%x+1048576], %i;",
    "@%p ld.global.u32 %r1, [%x+1];",
    "@%p st.shared.u32 [%s+65536], %i;",
    "@%p ld.shared.u32 %r2, [%s+1024]; st.global.u32 [%x], %r2;",
    "setp.eq.u32 %q, %r7, 0; @%q st.global.u32 [%x], %i;",
    "@%p shfl.sync.idx.b32 %r1, %i, 0, 31, 0xff;",
    "@!%p bra AROUND{n}; setp.lt.u32 %q, %l, 7; @%q bra.uni AROUND{n}; AROUND{n}:",
)
#: Of several CTAs.
RACES = (
    "@%p st.global.u32 [%a+12288], %g;",
    "@%p ld.global.u32 %r1, [%a+12292]; setp.eq.u32 %q, %r0, 65; @%q st.global.u32 [%a+12292], %i;",
    "@%p red.global.add.u32 [%a+12296], 1; setp.eq.u32 %q, %r0, 130; @%q st.global.u32 [%a+12296], 5;",
    "@%p red.global.add.u32 [%a+12296], 1; @%p red.global.max.u32 [%a+12296], %i;",
    "ld.global.u32 %r1, [%x+256]; add.u32 %r1, %r1, 1; @%p st.global.u32 [%x], %r1;",
)
ENDS = (
    "@%p trap;",
    "@%p ld.global.u32 %r1, [%x+1073741824];",
    "setp.lt.u32 %q, %l, 3; and.pred %q, %q, %p; @%q bra AWAY{n}; bar.warp.sync 0xffffffff; AWAY{n}:",
    "ENDLESS{n}: @%p bra ENDLESS{n};",
)


def _body(seed: int, kinds: tuple[tuple[str, ...], ...]) -> str:
    draw, lines = random.Random(seed), []
    for n in range(6):
        text = draw.choice(draw.choice(kinds)).replace("{n}", str(n))
        lines.append(f"and.b32 %r6, %g, {draw.choice((1, 3, 7))}; setp.eq.u32 %p, %r6, {draw.randrange(4)};\n{text}")
    return """.reg .b64 %x, %y, %s; .reg .b32 %g;
mov.u32 %g, %ctaid.x; mad.lo.u32 %r0, %g, 64, %i; mul.wide.u32 %x, %r0, 4; add.u64 %x, %x, %a;
mul.wide.u32 %s, %i, 4; mov.u64 %y, sh; add.u64 %s, %s, %y;
""" + "\n".join(lines)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, bool]]:
    """Of each run of a grid whether it was shared, and told anything; the workers begin at once, and what is written is
    guessed, however little memory there is."""
    monkeypatch.setattr(keeping, "SMALL", 0)
    monkeypatch.setattr(driver, "_ALONE", 1)
    monkeypatch.setattr(driver, "_LONG", 0)
    found: list[tuple[bool, bool]] = []
    attempt = trial.attempt

    def noted(device: Any, context: Any, run: Any, *rest: Any) -> Any:
        def one(how: trial.How) -> Any:
            try:
                result = run(how)
            except (Anew, Doubt, ptxtools.Trap):
                found.append((how.shared, True))
                raise
            found.append((how.shared, False))
            return result

        return attempt(device, context, one, *rest)

    monkeypatch.setattr(trial, "attempt", noted)
    return found


def _run(text: str, checks: str, threads: int, **options: Any) -> Any:
    """Reports, a trap, and memory."""
    device = ptxtools.Device("sm_80", checks=checks, threads=threads, **options)
    words = np.zeros(WORDS, np.uint32)
    kernel, end, found = ptxtools.loads(text, "k.ptx")["k"], "", ()
    try:
        found = device.launch(kernel, 32, THREADS, [words], shared=2048, max_instructions=4_000_000).reports
    except ptxtools.Trap as trap:
        end, found = str(trap), trap.findings
    return json.dumps([one.to_json() for one in found]), end, words.tolist()


@pytest.mark.share(6)
@pytest.mark.parametrize("checks", CHECKS)
@pytest.mark.parametrize("seed", range(30))
def test_several_workers_report_what_one_does(seed: int, checks: str, shared: list[tuple[bool, bool]]) -> None:
    kinds = [(GOOD,), (GOOD, GOOD, BAD), (GOOD, GOOD, GOOD, BAD, ENDS)][seed % 3]
    text = written(_body(seed, kinds))
    found = _run(text, checks, 2)
    assert shared[0][0], "nothing is in the way of sharing it"
    assert shared[0] == (True, False) or shared[-1][0] is False, "one worker reports"
    assert seed % 3 or (shared == [(True, False)] and found[:2] == ("[]", ""))
    assert found == _run(text, checks, 1)


@pytest.mark.share(6)
@pytest.mark.parametrize("checks", ["asynccheck", "racecheck", "all"])
@pytest.mark.parametrize("seed", range(40))
def test_several_workers_find_the_races_that_one_does(seed: int, checks: str, shared: list[tuple[bool, bool]]) -> None:
    kinds = [(GOOD,), (GOOD, GOOD, RACES), (GOOD, RACES, BAD), (GOOD, GOOD, GOOD, RACES, ENDS)][seed % 4]
    text = written(_body(1000 + seed, kinds))
    found = _run(text, checks, 2)
    assert shared[0][0] and (seed % 4 or shared == [(True, False)])
    assert shared[0] == (True, False) or not shared[-1][0]
    judged = _run(text, checks, 1)
    assert found[:2] == judged[:2]
    races = checks == "asynccheck" and seed % 4  # of which it knows nothing: who stores last is left open
    assert found[2] == judged[2] or found[0] != "[]" or races


@pytest.mark.share(8)
@pytest.mark.parametrize("checks", ["asynccheck", "racecheck", "all"])
@pytest.mark.parametrize("name", ["wgmma", "tcgen05", "copies", "maps_and_proxies"])
def test_asynchronous_work_of_several_ctas_is_reported_alike(
    name: str, checks: str, shared: list[tuple[bool, bool]]
) -> None:
    for pair in bugs.read(bugs.FOLDER / f"{name}.bugs"):
        if "cluster" not in pair.keys:
            pair.keys["grid"] = "4"
            for sign in "-+":
                found = [bugs.shown(bugs.run(pair, sign, checks, threads=threads)) for threads in (2, 1)]
                assert found[0] == found[1], (pair.name, sign)
    assert checks != "asynccheck" or (True, False) in shared


def _ground(stored: tuple[int, int] | None, spans: str) -> Ground:
    """Where a worker's threads have stored, and what its copies have touched ("r" or "w" and two addresses)."""
    found = Ground((1000, 9000))
    for kind, first, after in (text.split() for text in spans.split(",") if text):
        found.touch(Span(None, int(first), int(after), {"r": "read", "w": "write"}[kind]))
    if stored is not None:
        found.marked[1:] = stored
    return found


@pytest.mark.parametrize(("first", "second", "meet"), [
    ((None, "r 1000 2000"), (None, "r 1000 2000"), False),
    ((None, "w 1000 1992"), (None, "w 1992 3000"), False),
    ((None, "w 1000 2016"), (None, "w 2000 3000"), True),
    ((None, "w 1000 2000"), (None, "r 1500 1600"), True),
    (((4000, 5000), "r 1000 2000"), ((5000, 6000), "r 1000 2000"), False),
    (((1500, 1504), ""), (None, "r 1000 2000"), True),
    (((1500, 1504), ""), (None, "w 1000 2000"), True),
    (((2500, 2504), ""), (None, "r 1000 2000,r 3000 4000"), True),
    (((1000, 9000), ""), ((1000, 9000), ""), False),
])  # fmt: skip
def test_what_workers_copy_is_compared(first: Any, second: Any, meet: bool) -> None:
    one, other = _ground(*first), _ground(*second)
    assert (one.meets(other) or other.meets(one)) is meet


def _noted(*words: int) -> Any:
    return np.array([*words, *[0] * 1000], np.uint32)


@pytest.mark.parametrize(("first", "second", "both"), [
    ((0, 5, W | 6), (7, 0, 0), (7, 5, W | 6)),
    ((5, S, S), (6, 6, S), (S, S, S)),
    ((A,), (A,), (A,)),
    ((W | 5,), (6,), None),
    ((5,), (W | 6,), None),
    ((W | 5,), (W | 6,), None),
    ((S,), (W | 6,), None),
    ((A,), (A + 1,), None),
    ((A,), (5,), None),
])  # fmt: skip
def test_what_workers_have_noted_is_compared(first: Any, second: Any, both: Any) -> None:
    mine = _noted(*first)
    assert race_meeting.together([mine, _noted(*second)]) is (both is not None)
    assert both is None or mine[: len(both)].tolist() == list(both)
    if both is not None:  # a third worker has written there
        assert not race_meeting.together([mine, _noted(*[0] * (len(both) - 1), W | 99)])


@pytest.mark.share(6)
@pytest.mark.parametrize("name", FILES)
def test_seeded_bugs_are_reported_alike(name: str, shared: list[tuple[bool, bool]]) -> None:
    pairs = bugs.read(bugs.FOLDER / f"{name}.bugs")
    for pair in pairs:
        for sign in "-+":
            for checks in ("all", CHECKS[-1]):
                found = [bugs.shown(bugs.run(pair, sign, checks, threads=threads)) for threads in (2, 1)]
                assert found[0] == found[1], (pair.name, sign)
