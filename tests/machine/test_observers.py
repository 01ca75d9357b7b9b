"""Observers are told of the same events by both engines, and of nothing that they do not listen to."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.machine.observers import EVENTS, LINES, Listeners, Observer, wants
from ptxtools.machine.residents import Wait
from ptxtools.program.passes.instrument import instrument
from ptxtools.sim.stored import encode_program
from tests.rows import rows

ENGINES = ("native", "reference")
HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n.extern .shared .align 128 .b8 sh[];\n"
DECLARED = ".reg .b64 %a, %b, %c, %m<4>; .reg .b32 %i, %l, %r<16>; .reg .b16 %h<4>; .reg .pred %p, %q;"


def kernel(body: str, before: str = "") -> str:
    """k(a): %a holds its argument, %i the thread's number."""
    return f"""{HEAD}{before}
.visible .entry k(.param .u64 a) {{
  {DECLARED}
  ld.param.u64 %a, [a];
  mov.u32 %i, %tid.x;
{body}
  ret;
}}"""


class Everything(Observer):
    """Writes all events down: name, who (CTA and warp), line of the text, and what else it says."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []
        self.order: list[str] = []

    def note(self, name: str, at: Any, *more: Any) -> None:
        self.order.append(name)
        self.events.append((name, (at.cta.number, at.warp), at.text, *more))

    def grid_begun(self, launch: Any) -> None:
        self.order.append("grid_begun")
        self.events.append(("grid_begun", None, launch.program.kernel, launch.grid, launch.block))

    def grid_ended(self, launch: Any) -> None:
        self.order.append("grid_ended")
        self.events.append(("grid_ended", None, launch.program.kernel))

    def cta_begun(self, cta: Any) -> None:
        self.order.append("cta_begun")
        self.events.append(("cta_begun", (cta.number, None), ""))

    def cta_ended(self, cta: Any) -> None:
        self.order.append("cta_ended")
        self.events.append(("cta_ended", (cta.number, None), ""))

    def warp_begun(self, at: Any) -> None:
        self.note("warp_begun", at, at.mask)

    def warp_ended(self, at: Any) -> None:
        self.note("warp_ended", at)

    def instruction(self, at: Any, lanes: Any) -> None:
        self.note("instruction", at, at.mask, *lanes.tolist())

    def retired(self, at: Any, lanes: Any) -> None:
        self.note("retired", at, at.mask, *lanes.tolist())

    def access(self, at: Any, access: Any) -> None:
        start = at.launch.memory.base if access.space == "global" else 0
        places = (access.addresses - np.uint64(start)).tolist()
        more = access.size, access.action, access.strength
        self.note("access", at, access.space, access.lanes.tolist(), places, *more)

    def arrive(self, at: Any, what: str, lanes: Any) -> None:
        self.note("arrive", at, what, *lanes.tolist())

    def leave(self, at: Any, what: str, lanes: Any) -> None:
        self.note("leave", at, what, *lanes.tolist())

    def fence(self, at: Any, lanes: Any) -> None:
        self.note("fence", at, *lanes.tolist())

    def issued(self, claim: Any) -> None:
        spans = [(s.start, s.end, s.kind, s.tensor, s.owner is None) for s in claim.spans if s.owner is not None]
        self.note("issued", claim.view, claim.lane, claim.text.split(" to ")[0], spans)

    def completed(self, claim: Any) -> None:
        self.note("completed", claim.view, claim.lane)

    def called(self, at: Any, function: str, lanes: Any) -> None:
        self.note("called", at, function, *lanes.tolist())

    def returned(self, at: Any, lanes: Any) -> None:
        self.note("returned", at, *lanes.tolist())

    def trapped(self, trap: Any) -> None:
        self.order.append("trapped")
        self.events.append(("trapped", None, trap.text, trap.line, trap.thread))

    def wrote_shared(self, cta: Any, offset: int, size: int) -> None:
        self.events.append(("wrote_shared", (cta.number, None), "", offset, size))

    def by_warp(self) -> dict[Any, list[tuple[Any, ...]]]:
        """Events of each warp in their order; between warps there is none."""
        found: dict[Any, list[tuple[Any, ...]]] = {}
        for event in self.events:
            found.setdefault(event[1], []).append(event)
        return found


def observed(
    text: str, engine: str, observer: Any, *, threads: int = 32, grid: int = 1, shared: int = 0, **options: Any
) -> Any:
    device = ptxtools.Device("sm_90a", engine=engine, observers=[observer], **options)
    data = np.arange(256, dtype=np.uint32)
    device.launch(ptxtools.loads(text)["k"], grid, threads, [data], shared=shared)
    return data


COUNT = """
  and.b32 %l, %i, 3; mov.u32 %r0, 0;
loop:
  add.u32 %r0, %r0, 1;
  setp.lt.u32 %p, %r0, %l;
  @%p bra loop;
  setp.eq.u32 %q, %l, 2;
  @%q bra two;
  mul.wide.u32 %b, %i, 4; add.u64 %b, %a, %b;
  st.global.u32 [%b], %r0;
  bra done;
two:
  @%q add.u32 %r0, %r0, 100;
  @!%q add.u32 %r0, %r0, 5;
done:
"""
BARRIERS = """
  mov.u32 %r1, sh; mad.lo.u32 %r1, %i, 4, %r1;
  st.shared.u32 [%r1], %i;
  bar.sync 0;
  membar.cta;
  ld.shared.u32 %r2, [%r1];
  shr.u32 %l, %i, 5; setp.eq.u32 %p, %l, 0;
  @%p atom.global.add.u32 %r3, [%a], 1;
  @%p bar.arrive 1, 64;
  @!%p bar.sync 1, 64;
  bar.warp.sync 0xffffffff;
  st.relaxed.gpu.global.u32 [%a+4], %r2;
"""
COPIES = """
  mov.u32 %r1, sh; mad.lo.u32 %r1, %i, 16, %r1; mul.wide.u32 %b, %i, 16; add.u64 %b, %a, %b;
  cp.async.ca.shared.global [%r1], [%b], 16;
  cp.async.commit_group;
  cp.async.wait_group 0;
  bar.sync 0;
  mov.u32 %r2, sh; add.u32 %r3, %r2, 1024;
  setp.eq.u32 %p, %i, 0;
  @!%p bra wait;
  mbarrier.init.shared.b64 [%r3], 1;
  fence.proxy.async.shared::cta;
  mbarrier.arrive.expect_tx.shared.b64 %m0, [%r3], 64;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%a], 64, [%r3];
wait:
  bar.sync 0;
again:
  mbarrier.try_wait.parity.shared.b64 %q, [%r3], 0;
  @!%q bra again;
  @!%p bra out;
  cp.async.bulk.global.shared::cta.bulk_group [%a+64], [%r2], 64;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
out:
"""
CALLS = """
  setp.lt.u32 %p, %i, 8;
  @%p call (%r1), twice, (%i);
  @%p bra join;
  mov.u64 %b, thrice;
  call (%r1), %b, (%i), shape;
join:
  mul.wide.u32 %c, %i, 4; add.u64 %c, %a, %c;
  st.global.u32 [%c], %r1;
"""
FUNCTIONS = """
.func (.reg .u32 r) twice (.reg .u32 x) { add.u32 r, x, x; ret; }
.func (.reg .u32 r) thrice (.reg .u32 x) { .reg .pred q; setp.eq.u32 q, x, 20; mul.lo.u32 r, x, 3; @q ret; ret; }
"""
PROTOTYPE = "shape: .callprototype (.reg .u32 _) _ (.reg .u32 _);\n"
KERNELS = {
    "divergence": (kernel(COUNT), {"threads": 48, "grid": 2}),
    "barriers": (kernel(BARRIERS), {"threads": 64, "shared": 512}),
    "copies": (kernel(COPIES), {"threads": 32, "shared": 2048}),
    "calls": (kernel(PROTOTYPE + CALLS, FUNCTIONS), {"threads": 32}),
}


@pytest.mark.parametrize("name", KERNELS)
def test_both_engines_tell_the_same(name: str) -> None:
    text, shape = KERNELS[name]
    first, second = Everything(), Everything()
    results = [observed(text, engine, one, **shape) for engine, one in zip(ENGINES, (first, second), strict=True)]
    assert np.array_equal(*results)
    native, reference = first.by_warp(), second.by_warp()
    assert native.keys() == reference.keys()
    for who, events in native.items():
        assert events == reference[who]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", KERNELS)
def test_results_are_those_without_observers(name: str, engine: str) -> None:
    text, shape = KERNELS[name]
    seen = observed(text, engine, Everything(), **shape)
    data = np.arange(256, dtype=np.uint32)
    grid, threads = shape.get("grid", 1), shape["threads"]
    device = ptxtools.Device("sm_90a", engine=engine)
    device.launch(ptxtools.loads(text)["k"], grid, threads, [data], shared=shape.get("shared", 0))
    assert np.array_equal(seen, data)


def told(name: str, engine: str = "native") -> Everything:
    text, shape = KERNELS[name]
    observer = Everything()
    observed(text, engine, observer, **shape)
    return observer


def of(observer: Everything, *names: str) -> list[tuple[Any, ...]]:
    return [event for event in observer.events if event[0] in names]


@pytest.mark.parametrize("engine", ENGINES)
def test_beginnings_and_ends(engine: str) -> None:
    observer = told("divergence", engine)
    assert observer.order[0] == "grid_begun" and observer.order[-1] == "grid_ended"
    assert sorted(event[1][0] for event in of(observer, "cta_begun")) == [0, 1]
    assert sorted(event[1][0] for event in of(observer, "cta_ended")) == [0, 1]
    assert sorted((*event[1], event[3]) for event in of(observer, "warp_begun")) == [
        (0, 0, 0xFFFF_FFFF), (0, 1, 0xFFFF), (1, 0, 0xFFFF_FFFF), (1, 1, 0xFFFF)
    ]  # fmt: skip
    assert sorted(event[1] for event in of(observer, "warp_ended")) == [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.parametrize("engine", ENGINES)
def test_each_instruction_is_told_of_with_its_lanes(engine: str) -> None:
    observer = told("divergence", engine)
    counts: Counter[str] = Counter()
    for _, who, line, _, *lanes in of(observer, "retired"):
        if who == (0, 0):
            counts[line] += len(lanes)
    assert counts["add.u32 %r0, %r0, 1"] == 8 * (1 + 1 + 2 + 3) == counts["@%p bra loop"] + 8 * 4
    assert counts["st.global.u32 [%b], %r0"] == 24 == counts["bra done"]
    assert counts["@%q add.u32 %r0, %r0, 100"] == 8
    assert "@!%q add.u32 %r0, %r0, 5" in {event[2] for event in of(observer, "retired")}
    assert counts["@!%q add.u32 %r0, %r0, 5"] == 0 and counts["ret"] == counts["ld.param.u64 %a, [a]"] == 32
    before = [event[1:3] for event in of(observer, "instruction")]
    assert Counter(before) == Counter(event[1:3] for event in of(observer, "retired"))


@pytest.mark.parametrize("engine", ENGINES)
def test_accesses_and_barriers(engine: str) -> None:
    observer = told("barriers", engine)
    accesses = [(*event[1:2], *event[3:]) for event in of(observer, "access")]
    lanes = list(range(32))
    assert accesses.count(((0, 1), "shared", lanes, [4 * (32 + i) for i in lanes], 4, "write", "")) == 1
    assert accesses.count(((0, 1), "shared", lanes, [4 * (32 + i) for i in lanes], 4, "read", "")) == 1
    atoms = [event for event in accesses if event[-2] == "atomic"]
    assert [event[0] for event in atoms] == [(0, 0)] and len(set(atoms[0][3])) == 1
    assert [event[-1] for event in accesses if event[-2] == "write" and event[1] == "global"] == ["relaxed"] * 2
    meetings = [(name, who[1], what) for name, who, _, what, *_ in of(observer, "arrive", "leave")]
    assert [event[0::2] for event in meetings if event[1] == 0] == [
        ("arrive", "bar"), ("leave", "bar"), ("arrive", "arrive"), ("leave", "arrive"), ("leave", "warp")
    ]  # fmt: skip
    assert [event[2] for event in meetings if event[1] == 1 and event[0] == "arrive"] == ["bar", "bar"]
    assert [event[2] for event in of(observer, "fence")] == ["membar.cta"] * 2


@pytest.mark.parametrize("engine", ENGINES)
def test_asynchronous_work(engine: str) -> None:
    observer = told("copies", engine)
    issued = of(observer, "issued")
    assert [event[4] for event in issued] == [
        "a cp.async of 16 bytes", "a bulk copy of 64 bytes", "a bulk copy of 64 bytes", "a bulk copy of 64 bytes"
    ]  # fmt: skip
    assert issued[0][5] == [(0, 512, "write", False, False)] and issued[1][5] == [(0, 64, "write", False, False)]
    assert Counter(event[2] for event in issued) == Counter(event[2] for event in of(observer, "completed"))
    assert [event[3] for event in of(observer, "arrive") if event[3].startswith("mbarrier")][:2] == [
        "mbarrier init", "mbarrier arrive.expect_tx"
    ]  # fmt: skip
    assert ("access", (0, 0)) in {event[:2] for event in observer.events if "copy" in event}
    assert any(event[0] == "wrote_shared" for event in observer.events)


@pytest.mark.parametrize("engine", ENGINES)
def test_calls(engine: str) -> None:
    observer = told("calls", engine)
    assert {(event[3], *event[4:]) for event in of(observer, "called")} == {
        ("twice", *range(8)), ("thrice", *range(8, 32))
    }  # fmt: skip
    returned = sorted(lane for event in of(observer, "returned") for lane in event[3:])
    assert returned == list(range(32))
    order = [event[0] for event in observer.events if event[0] in ("called", "returned")]
    assert order[0] == "called" and order[-1] == "returned"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("body", ["setp.eq.u32 %p, %i, 5;\n@%p trap;", "mov.u64 %b, 0;\nld.global.u32 %r0, [%b];"])
def test_traps(body: str, engine: str) -> None:
    observer = Everything()
    with pytest.raises(ptxtools.Trap) as caught:
        observed(kernel(body), engine, observer)
    found = of(observer, "trapped")
    assert found == [("trapped", None, caught.value.text, caught.value.line, caught.value.thread)]
    assert observer.order[-2:] == ["trapped", "grid_ended"] and caught.value.line is not None
    told_of = {event[2] for event in of(observer, "instruction")}
    assert caught.value.text in told_of
    assert caught.value.text not in {event[2] for event in of(observer, "retired")}


# --- what is not listened to ------------------------------------------------------------------------------------------


def lowered(text: str, observers: list[Any], **options: Any) -> Any:
    device = ptxtools.Device("sm_90a", observers=observers, **options)
    module = ptxtools.loads(text)
    return device.program(module.loadable, module["k"].entry)


class Outside(Observer):
    """Listens to nothing that stands in a program."""

    def grid_begun(self, launch: Any) -> None: ...

    def trapped(self, trap: Any) -> None: ...


@rows("name", KERNELS)
@rows("observers", [[], [Observer()], [object()], [Outside()]])
def test_a_program_that_nobody_watches_is_as_it_was_lowered(name: str, observers: list[Any]) -> None:
    module = ptxtools.loads(KERNELS[name][0])
    device = ptxtools.Device("sm_90a")
    plain = module.loadable.lower("k", device.load(module.loadable))
    program = lowered(KERNELS[name][0], observers)
    program.cache.clear()
    assert encode_program(program) == encode_program(plain)


def test_a_plain_run_loads_nothing_of_observers() -> None:
    script = """
import atexit, sys
from ptxtools.cli.run import main
def end():
    last = ("observers", "looks", "claims", "findings")
    print([n for n in sys.modules if n.startswith("ptxtools.") and ("observe." in n or n.split(".")[-1] in last)])
atexit.register(end)
main()
"""
    example = str(Path(__file__).resolve().parents[2] / "examples" / "vecadd.ptx")
    args = ["--grid", "1", "--block", "4", *["--arg", "zeros:f32[4]"] * 3, "--arg", "4"]
    done = subprocess.run([sys.executable, "-c", script, example, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def kinds(program: Any) -> set[str]:
    ops = [op for block in program.blocks for op in (*block.ops, block.terminator.op) if op is not None]
    return {op.kind for op in ops if op.kind.startswith(("observe.", "line"))}


def only(*names: str) -> Any:
    """An observer with these methods."""
    return type("Only", (), dict.fromkeys(names, lambda self, *what: None))()


#: What stands in a program that one event is wanted of.
STANDS = {
    "access": "access", "arrive": "arrive", "leave": "leave", "fence": "fence", "called": "call", "returned": "return",
    "instruction": "line", "cta_begun": "begin", "warp_begun": "begin", "cta_ended": "begin", "permit": "access",
    "delays": "access",
}  # fmt: skip
TWO = {"retired": {"observe.line", "observe.retired"}, "warp_ended": {"observe.begin", "observe.exit"}}


@rows("event", EVENTS, share=3)
def test_only_what_is_listened_to_stands_in_the_program(event: str) -> None:
    wanted = TWO.get(event) or ({f"observe.{STANDS[event]}"} if event in STANDS else set())
    text = kernel(PROTOTYPE + BARRIERS + CALLS, FUNCTIONS)
    assert kinds(lowered(text, [only(event)])) == wanted
    assert lowered(text, [only(event)]).optimised == (event not in LINES)


def test_methods_that_are_defined_are_wanted() -> None:
    assert wants(Observer()) == wants(object()) == frozenset() and wants(Everything()) >= {"access", "retired"}
    assert wants(only("access", "fence")) == wants(type(only("access", "fence"))) == {"access", "fence"}
    seen: list[Any] = []
    one = Observer()
    one.fence = lambda at, lanes: seen.append(at)  # type: ignore[method-assign]
    listeners = Listeners([one])
    listeners.tell("fence", 1, 2)
    listeners.tell("arrive", 1, "bar", 2)
    assert seen == [1] and listeners.hear("fence") and not listeners.hear("arrive") and not listeners.hear_work


@pytest.mark.parametrize("engine", ENGINES)
def test_lanes_that_are_delayed_come_again(engine: str) -> None:
    """Warp 0 lets warp 1 store first, in a block that computes before and behind the store."""

    class Late:
        def __init__(self) -> None:
            self.told: list[tuple[int, int]] = []

        def delays(self, at: Any) -> bool:
            if at.warp == 1 or at.slept:
                return False
            wait = Wait(at.cta, at.warp, at.mask, "late", "warp 1 to pass", at.now + 1_000_000, None, at.op.where)
            at.hold(wait)
            return True

        def access(self, at: Any, access: Any) -> None:
            self.told.append((at.warp, len(access.lanes)))

    late, data = Late(), np.zeros(4, np.uint32)
    device = ptxtools.Device(engine=engine, observers=[late])
    body = "shr.u32 %r1, %i, 5; add.u32 %r1, %r1, 7; st.global.u32 [%a], %r1; add.u32 %r1, %r1, 1;"
    device.launch(ptxtools.loads(kernel(body))["k"], 1, 64, [data])
    assert late.told == [(1, 32), (0, 32)]
    assert data[0] == 7


@pytest.mark.parametrize("engine", ENGINES)
def test_lanes_that_are_not_permitted_make_no_access(engine: str) -> None:
    class Upper(Observer):
        def permit(self, at: Any, access: Any) -> Any:
            return access.lanes < 16

    body = "mul.wide.u32 %b, %i, 4; add.u64 %b, %a, %b;\nst.global.u32 [%b], 77;"
    result = observed(kernel(body), engine, Upper())
    assert result[:32].tolist() == [*range(16), *[77] * 16]


def test_instrumenting_twice_is_not_needed_for_several_observers() -> None:
    program = lowered(KERNELS["barriers"][0], [only("fence"), only("arrive"), Observer()])
    assert kinds(program) == {"observe.fence", "observe.arrive"}
    assert kinds(instrument(program, [])) == kinds(program)
