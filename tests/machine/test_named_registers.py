"""PTX registers are read by their names where a warp has stopped, on both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.machine import registers
from ptxtools.machine.observers import Observer
from ptxtools.program.variant import Variant

ENGINES = ("native", "reference")
TEXT = """.version 8.0
.target sm_80
.address_size 64
.func (.reg .u32 result) square (.reg .u32 x) {
  .reg .u32 %r1;
  mul.lo.u32 %r1, x, x;
  add.u32 result, %r1, 1;
  ret;
}
.visible .entry k(.param .u64 a) {
  .reg .b64 %a; .reg .b32 %i; .reg .b32 %r<4>; .reg .f32 %f; .reg .f64 %d; .reg .s32 %s; .reg .pred %p; .reg .b16 %h;
  .reg .v2 .u32 %v; .reg .b64 %at;
  ld.param.u64 %a, [a];
  mov.u32 %i, %tid.x;
  cvt.rn.f32.u32 %f, %i;
  neg.s32 %s, %i;
  cvt.f64.f32 %d, %f;
  setp.gt.u32 %p, %i, 3;
  cvt.u16.u32 %h, %i;
  mov.u32 %v.x, %i;
  add.u32 %v.y, %i, 7;
  { .reg .f32 %i; mov.f32 %i, 0f40000000; mul.f32 %f, %f, %i; }
  mov.u32 %r0, %i;
  @%p add.u32 %r0, %r0, 100;
  call (%r1), square, (%i);
  add.f64 %d, %d, 0d3FE0000000000000;
  add.u32 %r2, %r0, %r1; add.u32 %r2, %r2, %v.x; add.u32 %r2, %r2, %v.y;
  cvt.rzi.u32.f64 %r3, %d; add.u32 %r2, %r2, %r3;
  cvt.rzi.u32.f32 %r3, %f; add.u32 %r2, %r2, %r3; add.s32 %r2, %r2, %s;
  cvt.u32.u16 %r3, %h; add.u32 %r2, %r2, %r3;
  mul.wide.u32 %at, %i, 4;
  add.u64 %at, %a, %at;
  st.global.u32 [%at], %r2;
  ret;
}
"""
LANE = np.arange(32, dtype=np.uint32)
SUM = (LANE + 100 * (LANE > 3)) + (LANE * LANE + 1) + LANE + (LANE + 7) + LANE + 2 * LANE - LANE + LANE


class Reader(Observer):
    """Keeps what all registers hold before, and after, some instructions."""

    def __init__(self) -> None:
        self.before: dict[str, dict[str, Any]] = {}
        self.after: dict[str, dict[str, Any]] = {}

    def instruction(self, at: Any, lanes: Any) -> None:
        self.before[at.text] = registers.registers(at)

    def retired(self, at: Any, lanes: Any) -> None:
        self.after[at.text] = registers.registers(at)


def launch(engine: str, observer: Any, **options: Any) -> Any:
    data = np.zeros(32, np.uint32)
    device = ptxtools.Device(engine=engine, observers=[observer], **options)
    device.launch(ptxtools.loads(TEXT)["k"], 1, 32, [data])
    assert np.array_equal(data, SUM)
    return device


@pytest.mark.parametrize("engine", ENGINES)
def test_values_at_lines(engine: str) -> None:
    reader = Reader()
    launch(engine, reader)
    store = reader.before["st.global.u32 [%at], %r2"]
    assert np.array_equal(store["%i"], LANE) and store["%i"].dtype == np.uint32
    assert np.array_equal(store["%s"], -LANE.astype(np.int32)) and store["%s"].dtype == np.int32
    assert np.array_equal(store["%f"], LANE.astype(np.float32) * 2) and store["%f"].dtype == np.float32
    assert np.array_equal(store["%d"], LANE + 0.5) and store["%d"].dtype == np.float64
    assert np.array_equal(store["%p"], LANE > 3) and store["%p"].dtype == np.bool_
    assert np.array_equal(store["%h"], LANE) and store["%h"].dtype == np.uint16
    assert np.array_equal(store["%v.x"], LANE) and np.array_equal(store["%v.y"], LANE + 7)
    assert np.array_equal(store["%at"] - store["%a"], 4 * LANE) and np.array_equal(store["%r2"], SUM)


@pytest.mark.parametrize("engine", ENGINES)
def test_before_and_after_an_instruction(engine: str) -> None:
    reader = Reader()
    launch(engine, reader)
    text = "@%p add.u32 %r0, %r0, 100"
    assert np.array_equal(reader.before[text]["%r0"], LANE)
    assert np.array_equal(reader.after[text]["%r0"], LANE + 100 * (LANE > 3))


@pytest.mark.parametrize("engine", ENGINES)
def test_names_mean_what_they_do_in_their_scope_and_function(engine: str) -> None:
    reader = Reader()
    launch(engine, reader)
    inner = reader.after["mul.f32 %f, %f, %i"]["%i"]
    assert inner.dtype == np.float32 and (inner == 2).all()
    callee = reader.before["add.u32 result, %r1, 1"]
    assert set(callee) == {"%r1", "x", "result"}
    assert np.array_equal(callee["x"], LANE) and np.array_equal(callee["%r1"], LANE * LANE)


class AtStore(Observer):
    """Listens to accesses only: the program may be optimised."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def access(self, at: Any, access: Any) -> None:
        self.found = registers.registers(at)
        with pytest.raises(KeyError):
            registers.register(at, "%unheard")


@pytest.mark.parametrize("engine", ENGINES)
def test_optimised_programs_know_what_is_needed(engine: str) -> None:
    """What is known is right; what is not is left out."""
    reader, some = Reader(), AtStore()
    launch(engine, reader)
    launch(engine, some)
    everything = reader.before["st.global.u32 [%at], %r2"]
    assert {"%at", "%r2"} <= set(some.found) < set(everything)
    for name in set(some.found) - {"%at", "%a"}:  # addresses: each device has its own
        assert np.array_equal(some.found[name], everything[name]), name


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_is_optimised_where_that_is_switched_off(engine: str) -> None:
    reader, some = Reader(), AtStore()
    launch(engine, reader)
    device = launch(engine, some, optimise=False)
    everything = reader.before["st.global.u32 [%at], %r2"]
    assert set(some.found) == set(everything)
    assert all(np.array_equal(some.found[name], everything[name]) for name in everything if name not in ("%a", "%at"))
    assert not any(program.optimised for program in device._programs.values())


def test_nobody_works_out_names_that_nobody_asks_for() -> None:
    module = ptxtools.loads(TEXT)
    device = ptxtools.Device(observers=[AtStore()])
    program = device.program(module.loadable, module["k"].entry)
    assert not program.named and callable(program.cache["registers"])
    named = module.loadable.lower("k", device.load(module.loadable), Variant(names=True))
    assert named.named and "registers" not in named.cache


def test_loops_and_unoptimised_programs_compute_the_same() -> None:
    text = TEXT.replace("mov.u32 %r0, %i;", "mov.u32 %r0, 0;\nmore:\nadd.u32 %r0, %r0, 1;\nsetp.lt.u32 %p, %r0, %i;\n"
                        "@%p bra more;\nsetp.gt.u32 %p, %i, 3;\nmov.u32 %r0, %i;")  # fmt: skip
    for engine in ENGINES:
        data = np.zeros(32, np.uint32)
        ptxtools.Device(engine=engine, optimise=False).launch(ptxtools.loads(text)["k"], 1, 32, [data])
        assert np.array_equal(data, SUM)
