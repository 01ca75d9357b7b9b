"""What lies between allocations, and what was freed, without a checker: poison that is looked at after each launch."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import ptxtools
from ptxtools.sim.arena import BASE, Arena, OutOfMemory
from ptxtools.sim.heap import Heap
from ptxtools.sim.poison import ZONE, poison
from tests.observe.programs import HEAP, module, run
from tests.observe.test_memcheck import ALLOCATE, FREE

ENGINES = ("native", "reference")
OWNER = ("k", (0, 0, 0), (1, 2, 3), "k.ptx", 7)


# --- the allocator ----------------------------------------------------------------------------------------------------


def bytes_at(arena: Arena, address: int, size: int) -> bytes:
    return bytes(arena.view(address, size))


def test_allocations_are_apart_at_addresses_that_repeat() -> None:
    arenas = [Arena(1 << 26), Arena(1 << 26)]
    places = [[arena.allocate(size).address - BASE for size in (1, 256, 300, 0)] for arena in arenas]
    assert places[0] == places[1] == [0, 512, 1024, 1792]


@pytest.mark.parametrize("size", [1, 7, 256, 5000])
def test_poison_is_beside_every_allocation(size: int) -> None:
    arena = Arena(1 << 26)
    first = arena.allocate(size, zero=True).address
    assert bytes_at(arena, first + size, arena.end - first - size) == poison(first + size, arena.end - first - size)
    second = arena.allocate(size, 4096, zero=True).address
    between = second - first - size
    assert between >= ZONE and bytes_at(arena, first + size, between) == poison(first + size, between)
    assert bytes_at(arena, first, size) == bytes_at(arena, second, size) == bytes(size)
    assert arena.overwritten() == []


def test_what_was_overwritten_is_told_once() -> None:
    arena = Arena(1 << 26)
    first, second = arena.allocate(100).address, arena.allocate(100).address
    arena.view(first + 100, 3)[:] = b"abc"
    arena.view(second - 4, 4)[:] = bytes(4)
    arena.view(second + 100, 1)[:] = b"x"
    assert arena.overwritten() == [(first + 100, second - first - 100), (second + 100, 1)]
    assert arena.overwritten() == []


def test_any_order_of_allocating_and_freeing_keeps_the_poison() -> None:
    """Whatever lies where something was: no zone may hold what a buffer left there."""
    chosen = np.random.default_rng(5)
    for checked in (False, True):
        arena, live = Arena(1 << 26, checked=checked), list[tuple[int, int]]()
        for _ in range(600):
            if live and chosen.random() < 0.45:
                address, _ = live.pop(int(chosen.integers(len(live))))
                arena.free(address, reuse=bool(chosen.random() < 0.6))
            else:
                size = int(chosen.choice([1, 16, 255, 256, 257, 4000, 70000]))
                address = arena.allocate(size, int(chosen.choice([1, 256, 1024, 8192]))).address
                arena.view(address, size)[:] = bytes([7]) * size
                live.append((address, size))
            assert arena.overwritten() == []
            assert arena.live() == sorted(live)
            ends = [(a, a + size) for a, size in arena.live()]
            assert all(after - end >= ZONE for (_, end), (after, _) in pairwise(ends))


def test_freed_memory_is_kept_and_then_handed_out_again() -> None:
    arena = Arena(1 << 26)
    first, other = arena.allocate(1000).address, arena.allocate(1000).address
    arena.free(first)
    assert arena.freed_at(first + 999) == (first, 1000) and arena.freed_at(first + 1000) is None
    assert bytes_at(arena, first, 1000) == poison(first, 1000)
    assert arena.allocate(1000).address > other
    with pytest.raises(ptxtools.LaunchError, match="it was freed already"):
        arena.free(first)
    arena.view(first + 10, 1)[:] = b"x"
    assert arena.overwritten() == [(first + 10, 1)]
    for _ in range(70):
        arena.free(arena.allocate(10).address)
    assert arena.freed_at(first) != (first, 1000)  # something else may lie there now
    arena.free(other, reuse=True)
    assert arena.freed_at(other) is None


def test_what_is_kept_makes_way_before_memory_runs_out() -> None:
    arena = Arena(1 << 20, checked=True)
    for _ in range(9):
        address = arena.allocate(700_000).address
        assert address == BASE
        arena.free(address)
    with pytest.raises(OutOfMemory, match="out of device memory"):
        arena.allocate(2 << 20)


def test_the_last_allocation_ends_what_kernels_reach() -> None:
    arena = Arena(1 << 26)
    first, second = arena.allocate(64).address, arena.allocate(64).address
    assert arena.end == second + 64
    arena.free(second)
    assert arena.end == first + 64


def test_blocks_of_the_heap() -> None:
    arena = Arena(1 << 26)
    heap = Heap(arena, 4096)
    block = heap.allocate(20, OWNER)
    arena.view(block, 20)[:] = bytes(20)
    assert heap.overwritten() == []
    arena.view(block + 20, 1)[:] = b"x"
    ((address, overrun),) = heap.overwritten()
    assert address == block + 20 and overrun.address == block and heap.overwritten() == []
    heap.free(block, ("f", (1, 0, 0), (0, 0, 0), "k.ptx", 9))
    assert heap.freed_at(block + 19) is not None and heap.allocate(20, OWNER) != block
    arena.view(block + 3, 1)[:] = b"x"
    ((address, freed),) = heap.overwritten()
    assert address == block + 3 and str(freed).endswith("freed by f at line 9, CTA (1,0,0) thread (0,0,0)")


def test_an_exhausted_heap_takes_back_what_it_kept() -> None:
    heap = Heap(Arena(1 << 26), 4096, keep_all=True)
    blocks = [heap.allocate(1000, OWNER) for _ in range(4)]
    for block in blocks:
        heap.free(block)
    assert heap.allocate(1000, OWNER) == blocks[0]
    assert heap.allocate(3000, OWNER) == blocks[1] and heap.allocate(1000, OWNER) == 0


# --- launches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_write_between_buffers_is_a_trap_after_the_launch(engine: str) -> None:
    device = ptxtools.Device(engine=engine)
    first, second = device.alloc(256), device.alloc(256)
    kernel = module("st.global.u32 [%a+256], %i;")["k"]
    with pytest.raises(ptxtools.Trap) as caught:
        device.launch(kernel, 1, 32, [first])
    assert caught.value.kind == "trap" and caught.value.reason == "memory outside of allocations was overwritten"
    assert caught.value.details == (
        "written: argument 0 (a), right after its end: 256 bytes at 0x10000000",
        "help: --check memcheck names the instruction and the thread",
    )
    before = module("st.global.u16 [%a+-2], 1;")["k"]
    with pytest.raises(ptxtools.Trap, match=r"argument 0 \(a\), 2 bytes before its start"):
        device.launch(before, 1, 32, [second])
    device.launch(module("st.global.u32 [%a+252], %i;")["k"], 1, 32, [first])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_read_between_buffers_gives_no_number(engine: str) -> None:
    body = """ld.global.u32 %r0, [%a+256]; ld.global.u64 %c, [%a+-8]; st.global.u32 [%a], %r0; st.global.u64 [%a+8], %c;
    ld.global.f32 %f, [%a+256]; add.f32 %f, %f, 0f3F800000; st.global.f32 [%a+16], %f;"""
    device = ptxtools.Device(engine=engine)
    _, buffer, _ = (device.alloc(256) for _ in range(3))
    device.launch(module(".reg .f32 %f;" + body)["k"], 1, 1, [buffer])
    got = buffer.download()
    assert got[:4].view("u4") == 0xFFFD_FFFD and got[8:16].view("u8") == 0xFFFD_FFFD_FFFD_FFFD
    assert np.isnan(got[16:20].view("f4"))


def test_variables_are_apart_without_a_checker() -> None:
    outer = ".global .u32 table[64]; .global .u32 other;\n"
    with pytest.raises(ptxtools.Trap, match="variable 'table', right after its end"):
        run("st.global.u32 [table+256], %i;", "", outer=outer)
    outer = ".const .u32 one[64]; .const .u32 two[64];\n"
    device, out = ptxtools.Device(), np.zeros(1, np.uint32)
    device.launch(module("ld.const.u32 %r0, [one+256]; st.global.u32 [%a], %r0;", outer=outer)["k"], 1, 1, [out])
    assert out[0] == 0xFFFD_FFFD


def test_freed_buffers() -> None:
    device = ptxtools.Device()
    first, second = device.alloc(256), device.alloc(256)
    address = first.address
    first.free()
    with pytest.raises(ptxtools.Trap, match="written: freed allocation: 256 bytes at 0x10000000"):
        device.launch(module("st.global.u32 [%a+16], %i;")["k"], 1, 1, [address])
    second.free()
    with pytest.raises(ptxtools.Trap, match="global read of 4 bytes at 0x10000000 is out of bounds"):
        device.launch(module("ld.global.u32 %r0, [%a];")["k"], 1, 1, [address])


@pytest.mark.parametrize("engine", ENGINES)
def test_blocks_of_the_heap_without_a_checker(engine: str) -> None:
    with pytest.raises(ptxtools.Trap, match="written: a heap block, right after its end: 24 bytes"):
        run(f"{ALLOCATE} st.u64 [%b+24], %a;", "", outer=HEAP, threads=1, engine=engine)
    with pytest.raises(ptxtools.Trap, match="byte 8 of a freed heap block: 24 bytes"):
        run(f"{ALLOCATE} {FREE} st.u64 [%b+8], %a;", "", outer=HEAP, threads=1, engine=engine)
    run(f"{ALLOCATE} st.u64 [%b+16], %a; {FREE}", "", outer=HEAP, engine=engine)


def test_another_trap_says_it_too() -> None:
    device = ptxtools.Device()
    first, _ = device.alloc(256), device.alloc(256)
    with pytest.raises(ptxtools.Trap, match="trap instruction") as caught:
        device.launch(module("st.global.u32 [%a+256], %i; trap;")["k"], 1, 1, [first])
    assert caught.value.details[0].startswith("written: argument 0 (a), right after its end")


def test_arrays_of_launches_keep_their_addresses() -> None:
    """What only a launch knew is free at once."""
    device, out = ptxtools.Device(), np.zeros(2, np.uint64)
    kernel = module("st.global.u64 [%a], %a;")["k"]
    seen = set()
    for _ in range(3):
        device.launch(kernel, 1, 1, [out])
        seen.add(int(out[0]))
    assert seen == {BASE}
