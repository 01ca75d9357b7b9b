"""racecheck's first look: it is silent only where `RaceCheck` is, and leaves no trace where it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.machine.observers import Alone
from ptxtools.sim import trial

from . import bugs
from .programs import module

THREADS, GRID, ROWS, COLUMNS = 64, 2, 12, 5
EVERYBODY = THREADS * GRID
#: By size in bytes: the type of an access, and a register.
KINDS = {1: ("u8", "%h"), 2: ("u16", "%h"), 4: ("u32", "%v"), 8: ("u64", "%c")}


def _kernel(size: int) -> Any:
    """Rows of: a store and a load in shared memory, the same in global memory, and a barrier, as a table says."""
    kind, register = KINDS[size]
    text = f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 t) {{
  .reg .b64 %a, %t, %x, %n, %c; .reg .b32 %i, %j, %v; .reg .b16 %h; .reg .pred %p;
  .shared .align 8 .b8 s[{2 * size * THREADS}];
  ld.param.u64 %a, [a]; ld.param.u64 %t, [t]; mov.u64 %n, s;
  mov.u32 %i, %ctaid.x; mov.u32 %v, %tid.x; mad.lo.u32 %v, %i, {THREADS}, %v; mul.wide.u32 %x, %v, {8 * COLUMNS};
  add.u64 %t, %t, %x; mov.u32 %j, 0; cvt.u64.u32 %c, %v; cvt.u16.u32 %h, %v;
ROW:
  ld.global.s64 %x, [%t]; setp.ge.s64 %p, %x, 0; add.u64 %x, %x, %n; @%p st.shared.{kind} [%x], {register};
  ld.global.s64 %x, [%t+8]; add.u64 %x, %x, %n; ld.shared.{kind} {register}, [%x];
  ld.global.s64 %x, [%t+16]; setp.ge.s64 %p, %x, 0; add.u64 %x, %x, %a; @%p st.global.{kind} [%x], {register};
  ld.global.s64 %x, [%t+24]; add.u64 %x, %x, %a; ld.global.{kind} {register}, [%x];
  ld.global.s64 %x, [%t+32]; setp.ne.s64 %p, %x, 0; @%p bar.sync 0;
  add.u64 %t, %t, {8 * COLUMNS * EVERYBODY}; add.u32 %j, %j, 1; setp.lt.u32 %p, %j, {ROWS}; @%p bra ROW;
  ret;
}}"""
    return ptxtools.loads(text)["k"]


def _table(seed: int, size: int) -> Any:
    """Each thread has places of its own, in shared memory others after each barrier; behind them is what nobody writes.
    In two tables of three some threads stray."""
    random = np.random.default_rng(seed)
    table = np.zeros((ROWS, EVERYBODY, COLUMNS), np.int64)
    own, numbers = np.tile(random.permutation(THREADS), GRID), np.arange(EVERYBODY)
    for row in table:
        stores = random.random((2, EVERYBODY)) < 0.6
        loads = random.random((2, EVERYBODY)) < 0.5
        row[:, 0] = np.where(stores[0], own * size, -1)
        row[:, 1] = size * np.where(loads[0], own, THREADS + random.integers(THREADS, size=EVERYBODY))
        row[:, 2] = np.where(stores[1], numbers * size, -1)
        row[:, 3] = size * np.where(loads[1], numbers, EVERYBODY + random.integers(8, size=EVERYBODY))
        if seed % 3 and random.random() < 0.25:
            column, thread = random.integers(4), random.integers(EVERYBODY)
            row[thread, column] = size * random.integers(THREADS)
        if random.random() < 0.6:
            row[:, 4] = 1
            own = np.tile(random.permutation(THREADS), GRID)
    return table


def _run(seed: int, size: int) -> tuple[list[Any], Any]:
    memory = np.zeros(size * (EVERYBODY + 8), np.uint8)
    result = ptxtools.Device(checks="racecheck").launch(_kernel(size), GRID, THREADS, [memory, _table(seed, size)])
    return [(found.line, found.message, found.thread, found.count) for found in result.reports], memory.tolist()


def _looks(monkeypatch: pytest.MonkeyPatch, *, closer: bool = False) -> list[int]:
    """What each run of a grid was: a first look (1), a closer one (2), if there are any, or for the judge (0)."""
    attempts, attempt, looks = list[int](), trial.attempt, trial.looks

    def counted(device: Any, context: Any, run: Any, *rest: Any) -> Any:
        def one(how: trial.How) -> Any:
            attempts.append(how.trial)
            try:
                return run(how)
            except Alone:  # what all workers have shared is looked at again by one
                attempts.pop()
                raise

        return attempt(device, context, one, *rest)

    monkeypatch.setattr(trial, "attempt", counted)
    if not closer:
        monkeypatch.setattr(trial, "looks", lambda *what: [look for look in looks(*what) if look == 1])
    return attempts


def _judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a first look."""
    monkeypatch.setattr(trial, "looks", lambda *what: [])


@pytest.mark.share(8)
@pytest.mark.parametrize("size", KINDS)
@pytest.mark.parametrize("seed", range(9))
def test_reports_and_results_are_those_of_the_judge(seed: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _looks(monkeypatch)
    found = _run(seed, size)
    assert looks in ([1], [1, 0])
    if seed % 3 == 0:
        assert looks == [1] and not found[0]
    _judged(monkeypatch)
    assert found == _run(seed, size)


@pytest.mark.share(10)
@pytest.mark.parametrize("path", sorted(bugs.FOLDER.glob("*.bugs")), ids=lambda path: path.stem)
def test_seeded_bugs_are_reported_alike(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, pairs = _looks(monkeypatch, closer=True), bugs.read(path)
    found = [bugs.shown(bugs.run(pair, sign, "racecheck")) for pair in pairs for sign in "-+"]
    if "races" in path.stem:
        assert 1 in looks and 2 in looks
    _judged(monkeypatch)
    assert found == [bugs.shown(bugs.run(pair, sign, "racecheck")) for pair in pairs for sign in "-+"]


RACE = "st.shared.u32 [0], %i;"
#: Each thread adds 1 to its word.
COUNT = "mad.wide.u32 %b, %i, 4, %a; ld.global.u32 %r1, [%b]; add.u32 %r1, %r1, 1; st.global.u32 [%b], %r1;"


def test_what_was_doubted_begins_again_from_the_same_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, words = _looks(monkeypatch), np.arange(64, dtype=np.uint32)
    result = ptxtools.Device(checks="racecheck").launch(module(f"{COUNT}{RACE}")["k"], 1, 64, [words], shared=64)
    assert looks == [1, 0] and len(result.reports) == 1
    assert words.tolist() == list(range(1, 65))
    result = ptxtools.Device(checks="racecheck").launch(module(COUNT)["k"], 1, 64, [words])
    assert looks == [1, 0, 1] and not result.reports
    assert words.tolist() == list(range(2, 66))


def test_what_other_checkers_found_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, device = _looks(monkeypatch), ptxtools.Device(checks="initcheck,racecheck,memcheck")
    fresh = device.alloc(256)
    (found,) = device.launch(module(COUNT)["k"], 1, 64, [fresh]).reports
    assert looks == [1, 0] and found.checker == "initcheck" and found.count == 2
    assert not device.launch(module(COUNT)["k"], 1, 64, [fresh]).reports
    assert looks == [1, 0, 0]


@pytest.mark.parametrize(
    "body",
    [
        "atom.global.add.u32 %r1, [%a], 1; st.global.u32 [%a+4], %r1;",
        "atom.global.exch.b32 %r1, [%a], 1;",
        "red.global.add.f32 [%a], 0f3F800000;",
        "red.cta.global.add.u32 [%a], 1;",
        "red.release.gpu.global.add.u32 [%a], 1;",
        "ld.volatile.global.u32 %r1, [%a];",
        "st.relaxed.gpu.global.u32 [%a], 1;",
        "bar.sync 1, 32;",
        "setp.lt.u32 %p, %l, 32; bar.arrive 1, 64; bar.sync 1, 64;",
        "mbarrier.init.shared.b64 [0], 64; bar.sync 0; mbarrier.arrive_drop.shared.b64 %b, [0];",
    ],
)
def test_there_is_no_first_look_where_order_comes_from_elsewhere(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _looks(monkeypatch)
    device = ptxtools.Device(checks="racecheck")
    device.launch(module(body)["k"], 1, 32, [np.zeros(64, np.uint32)], shared=64)
    assert not looks


def test_one_checker_that_needs_more_is_enough_to_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _looks(monkeypatch)
    body = "cp.async.ca.shared.global [0], [%a], 4; cp.async.wait_all; bar.sync 1, 32;"
    device = ptxtools.Device(checks="asynccheck,racecheck")
    device.launch(module(body)["k"], 1, 32, [np.zeros(64, np.uint32)], shared=64)
    assert not looks


def test_what_memcheck_reads_of_an_atomic_is_no_use_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _looks(monkeypatch)
    body = (
        "mov.u32 %r0, 0; L: atom.global.add.u32 %r1, [%a], 1; add.u32 %r0, %r0, 1; setp.lt.u32 %p, %r0, 3; @%p bra L;"
    )
    result = ptxtools.Device(checks="all").launch(module(body)["k"], 1, 64, [np.zeros(64, np.uint32)])
    assert looks == [1] and str(result.verdict) == "race-free in every schedule of this launch"


MBARRIER = "setp.ne.u32 %p, %i, 0; @!%p mbarrier.init.shared.b64 [0], 1; "
ARRIVES = "@!%p mbarrier.arrive.shared.b64 %b, [0]; "
WAITS = "W{0}: mbarrier.test_wait.parity.shared.b64 %q, [0], {0}; @!%q bra W{0}; "


@pytest.mark.parametrize(
    ("body", "alone"),
    [
        (f"{MBARRIER} bar.sync 0; {ARRIVES} {WAITS.format(0)}", True),
        (f"{MBARRIER} bar.sync 0; {ARRIVES} {WAITS.format(0)} bar.sync 0; {ARRIVES} {WAITS.format(1)}", True),
        (f"{MBARRIER} bar.sync 0; {ARRIVES} {WAITS.format(0)} setp.ne.u32 %p, %i, 32; {ARRIVES}", False),
        (f"{MBARRIER} {ARRIVES} bar.sync 0; {WAITS.format(0)} @!%p mbarrier.inval.shared.b64 [0];", False),
        (f"{MBARRIER} {ARRIVES} bar.sync 0; {WAITS.format(0)} bar.sync 0; @!%p mbarrier.inval.shared.b64 [0];", True),
        (f"{MBARRIER} bar.sync 0; {ARRIVES} {WAITS.format(0)} ld.shared.u32 %r1, [0];", True),
        (f"{MBARRIER} ld.shared.u32 %r1, [0];", False),
    ],
)
def test_mbarriers_whose_phases_barriers_keep_apart(body: str, alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _looks(monkeypatch)
    device = ptxtools.Device(checks="racecheck")
    kernel = module(body)["k"]

    def run() -> Any:
        result = device.launch(kernel, 1, 64, [np.zeros(64, np.uint32)], shared=64)
        return [(found.line, found.message) for found in result.reports], str(result.verdict)

    first = run()
    assert looks == ([1] if alone else [1, 0])
    _judged(monkeypatch)
    assert run() == first


@pytest.mark.parametrize(("body", "alone", "reports"), [
    ("st.shared.u32 [0], 7;", True, 0),
    ("and.b32 %r1, %i, 24; shl.b32 %r0, %r1, 2; mov.b64 %b, {%r1, %r0}; st.shared.u64 [%r0], %b;", True, 0),
    ("and.b32 %r1, %i, 15; shl.b32 %r0, %r1, 3; st.shared.v2.u32 [%r0], {%r1, 5}; bar.sync 0; ld.shared.u32 %r2, [0];",
     True, 0),
    ("and.b32 %r1, %i, 15; shl.b32 %r0, %r1, 3; st.shared.v2.u32 [%r0], {%r1, %i};", False, 1),
    ("mov.u32 %r1, %w; st.shared.u32 [0], %r1;", False, 1),
    ("mov.u32 %r1, %w; setp.lt.u32 %p, %i, 32; @%p st.shared.u32 [0], %r1;", True, 0),
    ("setp.eq.u32 %p, %l, 0; @%p ld.shared.u32 %r1, [0]; @%p st.shared.u32 [0], 7;", False, 1),
    ("setp.eq.u32 %p, %l, 0; @%p st.shared.u32 [0], 7; @%p ld.shared.u32 %r1, [0];", False, 1),
    ("st.shared.u32 [0], 7; st.shared.u32 [0], 7;", True, 0),
    ("st.shared.u32 [0], 7; ld.shared.u32 %r1, [0];", False, 1),
    ("setp.eq.u32 %p, %i, 0; @%p st.shared.u32 [0], 0; setp.eq.u32 %p, %i, 40; @%p st.shared.u32 [0], 0;", True, 0),
    ("setp.eq.u32 %p, %i, 0; @%p st.shared.u32 [0], 1; setp.eq.u32 %p, %i, 40; @%p st.shared.u32 [0], 0;", False, 1),
    ("cvt.u16.u32 %h1, %w; st.shared.u16 [2], %h1;", False, 1),
    ("st.global.u32 [%a], 7;", False, 0),
    ("setp.lt.u32 %p, %i, 32; @%p st.global.u32 [%a], 7;", True, 0),
])  # fmt: skip
def test_stores_of_the_same_value(body: str, alone: bool, reports: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are made where threads have the same data. alone: whether the first look suffices, where operations are
    looked at one by one; it may not in a region, and what is found is the same."""
    looks = _looks(monkeypatch)

    def run(tier: str = "interpreter") -> tuple[int, Any, Any]:
        words = np.zeros(64, np.uint32)
        result = ptxtools.Device(checks="racecheck", tier=tier).launch(module(body)["k"], 1, 64, [words], shared=256)
        return len(result.reports), words.tolist(), result.verdict

    found = run()
    assert looks == ([1] if alone else [1, 0]) and min(found[0], 1) == reports
    assert found == run("regions")
    _judged(monkeypatch)
    assert found == run()


OWN = "mul.wide.u32 %b, %i, 4; add.u64 %b, %b, %a; "


@pytest.mark.parametrize(("body", "alone", "reports"), [
    ("red.global.add.u32 [%a], 1; red.shared.max.s32 [4], %i; atom.shared.add.u32 %r1, [0], 2;", True, 0),
    ("red.shared.add.u32 [0], 1; bar.sync 0; ld.shared.u32 %r1, [0]; bar.sync 0; st.shared.u32 [0], %i;", False, 1),
    ("red.cta.shared.or.b32 [0], 1; bar.sync 0; ld.shared.u32 %r1, [0];", True, 0),
    (f"{OWN} red.global.add.u32 [%b], 1;", True, 0),
    ("red.global.add.u32 [%a], 1; red.global.max.u32 [%a], 1;", False, 0),
    ("red.global.max.s32 [%a], 1; red.global.max.u32 [%a], 1;", False, 0),
    ("red.global.add.u32 [%a+4], 1; red.global.add.u64 [%a], 1;", False, 1),
    ("red.global.add.u32 [%a], 1; ld.global.u32 %r1, [%a];", False, 1),
    ("ld.global.u32 %r1, [%a]; red.global.add.u32 [%a], 1;", False, 1),
    ("red.shared.add.u32 [0], 1; st.shared.u32 [0], %i;", False, 1),
    (f"{OWN} st.global.u32 [%b], 1; red.global.add.u32 [%a], 1;", False, 1),
])  # fmt: skip
def test_atomics_in_any_order(body: str, alone: bool, reports: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """alone: whether the first look suffices."""
    looks = _looks(monkeypatch)

    def run() -> tuple[int, Any, Any]:
        words = np.zeros(128, np.uint32)
        result = ptxtools.Device(checks="racecheck").launch(module(body)["k"], 1, 64, [words], shared=64)
        return len(result.reports), words.tolist(), result.verdict

    found = run()
    assert looks == ([1] if alone else [1, 0]) and min(found[0], 1) == reports
    _judged(monkeypatch)
    assert found == run()


def test_a_barrier_that_not_all_threads_reach_orders_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first warp stores and exits; the others meet twice, the first time as many as the CTA has threads left."""
    body = """shl.b32 %r0, %i, 2; setp.lt.u32 %p, %i, 32; @%p st.shared.u32 [%r0], %i; @%p exit;
    bar.sync 0; bar.sync 0; bar.sync 0; and.b32 %r0, %r0, 124; ld.shared.u32 %r1, [%r0];"""
    looks = _looks(monkeypatch)
    result = ptxtools.Device(checks="racecheck").launch(module(body)["k"], 1, 96, [np.zeros(64, np.uint32)], shared=512)
    assert looks == [1, 0] and result.reports


def test_a_deadlock_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _looks(monkeypatch)
    with pytest.raises(ptxtools.Trap, match="deadlock"):
        ptxtools.Device(checks="racecheck").launch(
            module("setp.lt.u32 %p, %i, 32; @%p bar.sync 0; @!%p bar.sync 1;")["k"], 1, 64, [np.zeros(64, np.uint32)]
        )
    assert looks == [1, 0]
