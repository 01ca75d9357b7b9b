"""Content of memory that is kept, and put back."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.sim import kept
from ptxtools.sim.kept import Kept, touched_bytes
from tests.observe.programs import module

MIB = 1 << 20


def _change(memory: np.ndarray, draw: random.Random) -> None:
    for _ in range(draw.randrange(1, 8)):
        first = draw.randrange(len(memory))
        memory[first : first + draw.choice([1, 7, 4096, 70_000])] = draw.randrange(256)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_what_is_put_back_is_what_was_kept(monkeypatch: pytest.MonkeyPatch, seed: int, known: bool) -> None:
    """Where the system says which pages have content, and where it does not; at any address."""
    if not known:
        monkeypatch.setattr(kept, "_PAGES", "/nowhere/pagemap")
    draw = random.Random(seed)
    first = draw.choice([0, 1, 4095, 4096])
    memory = np.zeros(draw.choice([100, 4097, 3 * MIB, 9 * MIB + 5]) + first, np.uint8)[first:]
    for _ in range(3):
        _change(memory, draw)
        before, expected = Kept(memory), memory.copy()
        _change(memory, draw)
        before.put_back()
        np.testing.assert_array_equal(memory, expected)


def _bytes_of(device: Any) -> int:
    arena = device.arena
    return touched_bytes(np.frombuffer(arena.view(arena.base, arena.used), np.uint8))


@pytest.mark.skipif(kept._there(0, 1) is None, reason="the system does not say which pages have content")
def test_what_nobody_touches_costs_no_memory() -> None:
    """A buffer of 1.5 GB with a few words in use: the first look and what is run behind it leave the rest alone."""
    kernel = module("mad.wide.u32 %b, %i, 4, %a; red.global.add.u32 [%b], 1; st.global.u32 [%a+0x20000000], %i;")["k"]
    device = ptxtools.Device(checks="all", memory=3 << 30, threads=1)
    buffer = device.alloc(1536 * MIB)
    result = device.launch(kernel, 1, 64, [buffer])
    assert {one.checker for one in result.reports} >= {"racecheck"}
    assert _bytes_of(device) < 8 * MIB
