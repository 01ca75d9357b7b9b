"""memcheck and leakcheck: addresses outside of allocations, and blocks that nobody frees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxtools

from .programs import HEAP, module, run

ENGINES = ("native", "reference")
PRINT = Path(__file__).parents[2] / "testdata" / "syscalls" / "print.ptx"


def trap_of(body: str, **how) -> ptxtools.Trap:
    with pytest.raises(ptxtools.Trap) as caught:
        run(body, "memcheck", **how)
    assert caught.value.kind == "memcheck"
    return caught.value


@pytest.mark.parametrize("engine", ENGINES)
def test_one_element_behind_a_buffer(engine: str) -> None:
    trap = trap_of("mad.wide.u32 %b, %i, 4, %a;\n st.global.u32 [%b+4], %i;", threads=32, words=32, engine=engine)
    assert trap.reason == "global write of 4 bytes at 0x10000080 is out of bounds"
    assert trap.details == ("behind the nearest allocation: 128 bytes at 0x10000000",)
    assert trap.thread == (31, 0, 0) and trap.line == 10 and trap.text == "st.global.u32 [%b+4], %i"


def test_before_a_buffer_and_between_two() -> None:
    device = ptxtools.Device(checks="memcheck")
    first, second = device.alloc(100), device.alloc(100)
    kernel = module("ld.global.u8 %r0, [%a];")["k"]
    device.launch(kernel, 1, 1, [second + 99])
    with pytest.raises(ptxtools.Trap, match="28 bytes before the nearest allocation"):
        device.launch(kernel, 1, 1, [second.address - 28])
    with pytest.raises(ptxtools.Trap, match="3 bytes behind the nearest allocation: 100 bytes"):
        device.launch(kernel, 1, 1, [first.address + 103])
    first.free()
    with pytest.raises(ptxtools.Trap, match="out of bounds"):
        device.launch(kernel, 1, 1, [second.address - 256])


def test_guards_and_generic_addresses() -> None:
    body = """mad.wide.u32 %b, %i, 4, %a; setp.lt.u32 %p, %i, 16;
    @%p ld.u32 %r0, [%b]; @!%p ld.u32 %r0, [%a]; @%p st.v2.u16 [%b], {%h0, %h1}; @%p atom.add.u32 %r1, [%b], 1;"""
    assert run(body, "memcheck", words=16).reports == []
    trap = trap_of(body.replace("%i, 16", "%i, 17"), words=16)
    assert trap.thread == (16, 0, 0) and "global read of 4 bytes" in trap.reason


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("ld.shared.u32 %r0, [256];", "shared read of 4 bytes at 0x100 is out of bounds"),
        ("cvta.shared.u64 %b, 0; st.u64 [%b+252], %a;", "shared write at 0xfc is not aligned to 8 bytes"),
        ("st.global.u32 [%a+2], %i;", "global write at 0x10000002 is not aligned to 4 bytes"),
        (".local .b8 v[16]; cvta.local.u64 %b, v; ld.u32 %r0, [%b+1073741824];", "local read of 4 bytes"),
        ("red.global.add.u32 [%a+256], 1;", "global atomic of 4 bytes at 0x10000100 is out of bounds"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_other_spaces(body: str, message: str, engine: str) -> None:
    body = body.replace("cvta.shared.u64 %b, 0;", "mov.u64 %b, 0; cvta.shared.u64 %b, %b;")
    body = body.replace("cvta.local.u64 %b, v;", "mov.u64 %b, v; cvta.local.u64 %b, %b;")
    assert trap_of(body, shared=256, words=64, engine=engine).reason.startswith(message)


def test_variables_have_names() -> None:
    trap = trap_of("st.global.u32 [table+40], %i;", outer=".global .u32 table[10]; .global .u32 other;\n")
    assert trap.details[0].endswith("behind the nearest variable 'table': 40 bytes at 0x10000000")
    trap = trap_of("ld.const.u32 %r0, [bank+8];", outer=".const .u32 bank[2];\n")
    assert "variable 'bank': 8 bytes" in trap.details[0]


ALLOCATE = """{ .param .b64 n; .param .b64 r; st.param.b64 [n], 24; call (r), malloc, (n); ld.param.b64 %b, [r]; }"""
FREE = "{ .param .b64 p; st.param.b64 [p], %b; call free, (p); }"


@pytest.mark.parametrize("engine", ENGINES)
def test_blocks_of_the_heap(engine: str) -> None:
    good = f"{ALLOCATE} st.u64 [%b+16], %a; {FREE}"
    assert run(good, "memcheck,leakcheck", outer=HEAP, engine=engine).reports == []
    trap = trap_of(f"{ALLOCATE} st.u64 [%b+24], %a;", outer=HEAP, threads=1, engine=engine)
    assert trap.details == ("behind the nearest block of the heap: 24 bytes at 0x10000100",)
    trap = trap_of(f"{ALLOCATE} {FREE} ld.u64 %a, [%b];", outer=HEAP, threads=1, engine=engine)
    assert "out of bounds" in trap.reason
    trap = trap_of(f"{ALLOCATE} {FREE} {FREE}", outer=HEAP, threads=1, engine=engine)
    assert "where no block of the heap in use begins" in trap.reason


@pytest.mark.parametrize("engine", ENGINES)
def test_leaks(engine: str) -> None:
    result = run(f"\n{ALLOCATE}", "leakcheck", outer=HEAP, threads=2, engine=engine)
    assert [finding.thread for finding in result.reports] == [(0, 0, 0), (1, 0, 0)]
    finding = result.reports[0]
    assert finding.checker == "leakcheck" and finding.line == 12
    assert finding.message == "24 bytes of the heap at 0x10000100 were never freed; allocated"


def test_a_block_that_a_later_launch_frees_is_no_leak_of_that_launch() -> None:
    device = ptxtools.Device(checks=["leakcheck"])
    kernel = ptxtools.load(PRINT)["heap"]
    out = np.zeros(1, np.int32)
    assert len(device.launch(kernel, 1, 1, [out, 8, 3]).reports) == 2
    assert len(device.launch(kernel, 1, 1, [out, 8, 1]).reports) == 0  # it frees its only one
    assert len(device.runtime.leaks()) == 2


def test_without_checkers_nothing_is_added() -> None:
    device, checked = ptxtools.Device(), ptxtools.Device(checks="memcheck")
    loaded = module("st.global.u32 [%a], %i;")
    plain = device.program(loaded.loadable, loaded["k"].entry)
    looked = checked.program(loaded.loadable, loaded["k"].entry)
    assert all(block.terminator.kind != "event" for block in plain.blocks)
    assert len(looked.blocks) == len(plain.blocks) + 1
