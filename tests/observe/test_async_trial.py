"""asynccheck's first look: it is silent only where `AsyncCheck` is, and leaves no trace where it is not."""

from __future__ import annotations

import contextlib
from functools import cache
from typing import Any

import numpy as np
import pytest

import ptxtools

from . import bugs
from .programs import module
from .test_race_trial import _judged, _looks

THREADS, GRID, ROWS, COLUMNS = 64, 2, 10, 7
EVERYBODY = THREADS * GRID
#: Words of global memory that are copied, and words in all; likewise of shared memory that is copied to.
SOURCES, WORDS = EVERYBODY + 8, 2 * EVERYBODY + 8


@cache
def _kernel(rule: str) -> Any:
    """Rows of: a copy of a word, a load and a store in shared memory, a store in global memory, and a wait, as a table
    says. rule: "size", "ignore" or ""."""
    last = {"size": ", %z", "ignore": ", %q", "": ""}[rule]
    text = f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 t) {{
  .reg .b64 %a, %t, %x, %y, %n; .reg .b32 %i, %j, %v, %z; .reg .pred %p, %q;
  .shared .align 8 .b8 s[{12 * THREADS}];
  ld.param.u64 %a, [a]; ld.param.u64 %t, [t]; mov.u64 %n, s;
  mov.u32 %i, %ctaid.x; mov.u32 %v, %tid.x; mad.lo.u32 %v, %i, {THREADS}, %v; mul.wide.u32 %x, %v, {8 * COLUMNS};
  add.u64 %t, %t, %x; mov.u32 %j, 0;
ROW:
  ld.global.s64 %x, [%t]; setp.ge.s64 %p, %x, 0; add.u64 %x, %x, %n; ld.global.s64 %y, [%t+8]; add.u64 %y, %y, %a;
  ld.global.u32 %z, [%t+16]; setp.eq.u32 %q, %z, 0; @%p cp.async.ca.shared.global [%x], [%y], 4{last};
  cp.async.commit_group;
  ld.global.s64 %x, [%t+24]; add.u64 %x, %x, %n; ld.shared.u32 %v, [%x];
  ld.global.s64 %x, [%t+32]; setp.ge.s64 %p, %x, 0; add.u64 %x, %x, %n; @%p st.shared.u32 [%x], %v;
  ld.global.s64 %x, [%t+40]; setp.ge.s64 %p, %x, 0; add.u64 %x, %x, %a; @%p st.global.u32 [%x], %v;
  ld.global.s64 %x, [%t+48]; setp.eq.s64 %p, %x, 1; @%p bra ONE; setp.eq.s64 %p, %x, 2; @%p bra ALL; bra.uni GO;
ONE: cp.async.wait_group 1; bra.uni GO;
ALL: cp.async.wait_all; bar.sync 0;
GO:
  add.u64 %t, %t, {8 * COLUMNS * EVERYBODY}; add.u32 %j, %j, 1; setp.lt.u32 %p, %j, {ROWS}; @%p bra ROW;
  ret;
}}"""
    return ptxtools.loads(text)["k"]


def _table(seed: int) -> Any:
    """Threads copy to places of their own, load what is complete or nobody writes, and store elsewhere. In two tables
    of three some stray."""
    random = np.random.default_rng(seed)
    table = np.zeros((ROWS, EVERYBODY, COLUMNS), np.int64)
    own, numbers, flying = np.tile(random.permutation(THREADS), GRID), np.arange(EVERYBODY), 0
    used = np.zeros(EVERYBODY, np.bool_)  # places that a copy may be writing
    for number, row in enumerate(table):
        copies = (random.random(EVERYBODY) < 0.6) & ~used
        used |= copies
        row[:, 0] = np.where(copies, 4 * own, -1)
        row[:, 1], row[:, 2] = 4 * random.integers(SOURCES, size=EVERYBODY), 4 * random.integers(2, size=EVERYBODY)
        row[:, 3] = 4 * np.where(used, THREADS + numbers % THREADS, own)
        row[:, 4] = np.where(random.random(EVERYBODY) < 0.5, 4 * (2 * THREADS + numbers % THREADS), -1)
        row[:, 5] = np.where(random.random(EVERYBODY) < 0.5, 4 * (SOURCES + numbers), -1)
        flying += 1
        row[:, 6] = 2 if flying > 4 or number + 1 == ROWS else random.choice(3)
        if row[0, 6] == 2:
            used[:], own, flying = False, np.tile(random.permutation(THREADS), GRID), 0
        if seed % 3 and random.random() < 0.3:
            column, thread = random.choice([0, 3, 4, 5]), random.integers(EVERYBODY)
            row[thread, column] = 4 * random.integers(THREADS)
        if seed % 3 == 2 and random.random() < 0.3:
            row[:, 6] = 0
    return table


def _run(seed: int, rule: str, checks: str) -> tuple[list[Any], Any]:
    memory = np.arange(WORDS, dtype=np.uint32)
    device = ptxtools.Device(checks=checks)
    result = device.launch(_kernel(rule), GRID, THREADS, [memory, _table(seed)])
    return sorted((found.line, found.message, found.count) for found in result.reports), memory.tolist()


@pytest.mark.share(6)
@pytest.mark.parametrize("rule", ["size", "ignore", ""])
@pytest.mark.parametrize("seed", range(12))
def test_reports_and_results_are_those_of_the_judge(seed: int, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _looks(monkeypatch)
    found = _run(seed, rule, "asynccheck")
    assert looks in ([1], [1, 0])
    if seed % 3 == 0:
        assert looks == [1] and not found[0]
    elif found[0]:
        assert looks == [1, 0]
    both = _run(seed, rule, "asynccheck,racecheck")
    _judged(monkeypatch)
    assert found == _run(seed, rule, "asynccheck") and both == _run(seed, rule, "asynccheck,racecheck")


def test_seeded_bugs_are_reported_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [pair for pair in bugs.read(bugs.FOLDER / "copies.bugs") if "cp.async." in str(pair)]
    found = [bugs.shown(bugs.run(pair, sign, "asynccheck")) for pair in pairs for sign in "-+"]
    _judged(monkeypatch)
    assert pairs and found == [bugs.shown(bugs.run(pair, sign, "asynccheck")) for pair in pairs for sign in "-+"]


COPY = "mad.lo.u32 %r0, %i, 4, 0; mad.wide.u32 %b, %i, 4, %a; cp.async.ca.shared.global [%r0], [%b], 4;"
WAIT = "cp.async.wait_all;"


@pytest.mark.parametrize(("body", "message"), [
    (f"{COPY} {WAIT} ld.shared.u32 %r1, [%r0];", ""),
    (f"{COPY} ld.shared.u32 %r1, [%r0]; {WAIT}", "shared read of 4 bytes"),
    (f"{COPY} cp.async.commit_group; cp.async.wait_group 1; ld.shared.u32 %r1, [%r0]; {WAIT}", "shared read of"),
    (f"{COPY} st.shared.u32 [%r0], %i; {WAIT}", "shared write of 4 bytes"),
    (f"{COPY} st.global.u32 [%b], %i; {WAIT}", "global write of 4 bytes"),
    (f"{COPY} {COPY} {WAIT}", "a cp.async of 4 bytes"),
    (f"{COPY} {WAIT} {COPY} cp.async.commit_group;", "the CTA ends without"),
    (COPY, "the CTA ends without"),
    (f"{COPY} setp.lt.u32 %p, %i, 16; @%p {WAIT} @!%p {WAIT} ld.shared.u32 %r1, [%r0];", ""),
    (COPY + "cp.async.commit_group;" * 9 + "cp.async.wait_group 8;" + WAIT, ""),
])  # fmt: skip
def test_what_is_in_flight(body: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _looks(monkeypatch)
    device = ptxtools.Device(checks="asynccheck")
    result = device.launch(module(body)["k"], 1, 64, [np.zeros(64, np.uint32)], shared=256)
    assert looks[0] == 1 and bool(result.reports) == bool(message)
    assert all(message in report.message for report in result.reports[:1])


@pytest.mark.parametrize("body", [
    f"{COPY} cp.async.mbarrier.arrive.shared.b64 [0]; {WAIT}",
    f"{COPY} {WAIT} cp.async.mbarrier.arrive.noinc.shared.b64 [0];",
    "st.shared.u32 [0], %i;",
])  # fmt: skip
def test_there_is_no_first_look_at_other_work(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _looks(monkeypatch)
    text = module(body)
    with contextlib.suppress(ptxtools.Trap):
        ptxtools.Device(checks="asynccheck").launch(text["k"], 1, 64, [np.zeros(64, np.uint32)], shared=256)
    assert not looks


def test_seeds_decide_when_copies_end(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _looks(monkeypatch)
    ptxtools.Device(checks="asynccheck", seed=3).launch(
        module(f"{COPY} {WAIT}")["k"], 1, 64, [np.zeros(64, np.uint32)], shared=256
    )
    assert not looks
