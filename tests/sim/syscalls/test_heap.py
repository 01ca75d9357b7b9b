"""malloc and free of kernels, new and delete, and assertions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxtools
from ptxtools.sim.arena import Arena
from ptxtools.sim.heap import Heap

PRINT = ptxtools.load(Path(__file__).parents[3] / "testdata" / "syscalls" / "print.ptx")
ENGINES = ("native", "reference")
OWNER = ("k", (0, 0, 0), (1, 2, 3), "k.ptx", 7)


@pytest.mark.parametrize("engine", ENGINES)
def test_new_and_delete(engine: str) -> None:
    out = np.zeros(64, np.int32)
    device = ptxtools.Device(engine=engine)
    device.launch(PRINT["newdel"], 2, 32, [out])
    assert out[:32].tolist() == [45 * n for n in range(32)]
    assert device.runtime.heap.live() == []


@pytest.mark.parametrize("engine", ENGINES)
def test_an_exhausted_heap_gives_null(engine: str) -> None:
    out = np.zeros(4, np.int32)
    ptxtools.Device(engine=engine, heap=1 << 16).launch(PRINT["heap"], 1, 4, [out, 1000, 100])
    assert out.sum() == (1 << 16) // 1024  # with what lies behind each
    assert out.max() - out.min() <= 1  # lanes take turns


def test_no_heap() -> None:
    out = np.ones(1, np.int32)
    ptxtools.Device(heap=0).launch(PRINT["heap"], 1, 1, [out, 1, 3])
    assert out[0] == 0
    with pytest.raises(ptxtools.LaunchError, match="heap of -1 bytes"):
        ptxtools.Device(heap=-1)


def test_blocks_survive_the_launch_that_made_them() -> None:
    device = ptxtools.Device()
    out = np.zeros(1, np.int32)
    device.launch(PRINT["heap"], 1, 1, [out, 24, 3])
    live = device.runtime.heap.live()
    assert [block.size for block in live] == [24, 24]  # the third was freed
    assert "24 bytes at 0x" in str(live[0]) and "allocated by heap at line" in str(live[0])


def test_free_of_what_is_no_block() -> None:
    text = """.version 8.0
.target sm_75
.address_size 64
.extern .func free (.param .b64 p);
.visible .entry k(.param .u64 a) {
  .reg .b64 %a; ld.param.u64 %a, [a];
  { .param .b64 q; st.param.b64 [q], %a; call.uni free, (q); }
  ret; }"""
    with pytest.raises(ptxtools.Trap, match="free of 0x10000000, which is not the start of an allocated heap block"):
        ptxtools.Device().launch(ptxtools.loads(text)["k"], 1, 1, [0x1000_0000])


def test_free_ranges_join_again() -> None:
    heap = Heap(Arena(1 << 26), 4096)
    blocks = [heap.allocate(1000, OWNER) for _ in range(4)]
    assert 0 not in blocks and heap.allocate(1000, OWNER) == 0
    for address in (blocks[2], blocks[0], blocks[3], blocks[1]):
        assert heap.free(address) is not None
        assert heap.free(address) is None
    assert heap.allocate(4096, OWNER) == heap.base


def test_alignment() -> None:
    heap = Heap(Arena(1 << 26), 4096)
    assert heap.allocate(1, OWNER) % 16 == 0
    assert heap.allocate(1, OWNER, 256) == heap.base + 256
    assert heap.allocate(200, OWNER) == heap.base + 32  # the gap before the aligned block is used


@pytest.mark.parametrize("engine", ENGINES)
def test_a_failed_assertion_says_what_failed(engine: str) -> None:
    device = ptxtools.Device(engine=engine)
    device.launch(PRINT["fails"], 1, 40, [0])
    with pytest.raises(ptxtools.Trap) as caught:
        device.launch(PRINT["fails"], 1, 64, [0])
    trap = caught.value
    assert trap.reason == "assertion `threadIdx.x + n < 40` failed at print.cu:23 in void fails(int)"
    assert trap.thread == (40, 0, 0) and trap.line is not None
