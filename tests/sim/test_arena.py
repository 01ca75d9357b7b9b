"""Device memory: addresses, alignment, reuse, exhaustion."""

from __future__ import annotations

import os

import pytest

from ptxtools.diagnostics import LaunchError
from ptxtools.sim.arena import ALIGNMENT, BASE, Arena, OutOfMemory

MIB = 1 << 20


def test_addresses_repeat_and_are_aligned() -> None:
    first = [a.address for a in map(Arena(MIB).allocate, (10, 300, 0, 1))]
    second = [a.address for a in map(Arena(MIB).allocate, (10, 300, 0, 1))]
    assert first == second == [BASE, BASE + 512, BASE + 1280, BASE + 1792]


def test_larger_alignment() -> None:
    arena = Arena(MIB)
    arena.allocate(1)
    assert arena.allocate(1, 4096).address % 4096 == 0
    assert arena.allocate(1, 4).address % ALIGNMENT == 0


def test_default_memory_is_within_32_bits() -> None:
    arena = Arena()
    assert arena.base + arena.size <= 1 << 32
    assert arena.size > 3 << 30


def test_freed_memory_is_used_again() -> None:
    arena = Arena(MIB)
    blocks = [arena.allocate(1000) for _ in range(4)]
    arena.free(blocks[1].address, reuse=True)
    assert arena.allocate(2000).address > blocks[3].address
    assert arena.allocate(900).address == blocks[1].address
    for address, _ in reversed(arena.live()):
        arena.free(address, reuse=True)
    assert arena.end == arena.base
    assert arena.allocate(1).address == BASE


def test_exhaustion_says_how_much_is_left() -> None:
    arena = Arena(MIB)
    arena.allocate(MIB // 2)
    with pytest.raises(OutOfMemory, match=r"1,048,576 bytes requested, 524,288 of 1,048,576 free"):
        arena.allocate(MIB)
    arena.allocate(MIB // 2 - 256)
    with pytest.raises(OutOfMemory):
        arena.allocate(1)


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(OutOfMemory):
        Arena(1 << 60)


def test_a_limited_address_space_gets_less_by_default() -> None:
    import subprocess
    import sys

    code = (
        "import resource as r; r.setrlimit(r.RLIMIT_AS, (2 << 30,) * 2); "
        "from ptxtools.sim.arena import Arena; print(Arena().size)"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # else NumPy takes address space for each core
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert 1 << 26 <= int(ran.stdout) < 2 << 30, ran.stderr


def test_more_memory_than_the_machine_has() -> None:
    try:
        arena = Arena(1 << 40)
    except OutOfMemory:
        pytest.skip("this system promises no more memory than it has")
    block = arena.allocate(1 << 39)
    arena.view(block.address + (1 << 39) - 8, 8)[:] = b"12345678"


def test_freeing_what_is_not_there() -> None:
    arena = Arena(MIB)
    block = arena.allocate(10)
    arena.free(block.address)
    for address in (block.address, 0, block.address + 1):
        with pytest.raises(LaunchError, match="no allocation"):
            arena.free(address, reuse=True)


def test_zeroed_memory_is_zero_even_when_used_before() -> None:
    arena = Arena(MIB)
    block = arena.allocate(100)
    arena.view(block.address, 100)[:] = b"\xff" * 100
    arena.free(block.address, reuse=True)
    again = arena.allocate(200, zero=True)
    assert again.address == block.address
    assert bytes(arena.view(again.address, 200)) == bytes(200)


def test_views_write_through_and_are_bounded() -> None:
    arena = Arena(MIB)
    arena.view(BASE + 8, 4)[:] = b"abcd"
    assert bytes(arena.view(BASE, 16)) == b"\0" * 8 + b"abcd" + b"\0" * 4
    for address, size in ((BASE - 1, 4), (BASE + MIB - 1, 2), (BASE, -1), (0, 1)):
        with pytest.raises(LaunchError, match="outside device memory"):
            arena.view(address, size)


def test_end_follows_the_last_allocation() -> None:
    arena = Arena(MIB)
    arena.allocate(1)
    last = arena.allocate(20)
    assert arena.end == last.address + 32
    arena.free(last.address)
    assert arena.end == BASE + 16


def test_host_addresses() -> None:
    arena = Arena(MIB, host_addresses=True)
    block = arena.allocate(8)
    assert arena.host_address(block.address) == block.address


def test_reserving_touches_no_memory() -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    arenas = [Arena() for _ in range(4)]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000
    assert len(arenas) == 4


def test_memory_of_arguments_is_used_again_once_nobody_can_have_kept_its_address() -> None:
    arena = Arena(MIB, checked=True)
    held = arena.allocate(64)
    first = arena.allocate(64)
    arena.free(first.address, reuse=True)
    assert arena.allocate(64).address > first.address  # `held` may have the address
    arena = Arena(MIB, checked=True)
    held, first, second = (arena.allocate(64) for _ in range(3))
    arena.free(held.address)
    arena.free(second.address, reuse=True)
    arena.free(first.address, reuse=True)
    assert arena.freed_at(held.address)  # which the host may still pass
    assert not arena.freed_at(first.address)
    assert arena.allocate(64).address == first.address
