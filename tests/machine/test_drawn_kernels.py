"""Random kernels of all types leave the same on each tier, in quick code and on the reference engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxtools import native, reference
from ptxtools.diagnostics import Trap
from ptxtools.native.code import jit, library, tiers
from tests.native.harness import Memory, launch_of, short_slices
from tests.rows import rows

from .drawn import INPUT, OWN, Writer

CTAS = 3
#: What some threads do wrong.
WRONG = (
    "@%p1 ld.global.u32 %r1, [%y1+6553600];", "setp.eq.s32 %p7, %s1, 20; @%p7 trap;", "st.shared.u32 [%s0+65536], %r1;",
    "@!%p2 st.global.u64 [%out+4], %d1;", "ld.local.u32 %r2, [%l0+100000];",
)  # fmt: skip


def outcome(engine: Any, text: str, block: tuple[int, int, int], **options: Any) -> tuple[object, bytes]:
    """What a launch counts, or its trap; and all memory behind it."""
    memory, rng = Memory(CTAS * OWN * 256 + 2 * INPUT + 256), np.random.default_rng(5)
    memory.put(rng.integers(0, 256, 256, np.uint8))  # where the harness has constant memory
    out = memory.put(np.zeros(CTAS * OWN * 256, np.uint8))
    source = memory.put(rng.integers(0, 256, 2 * INPUT, np.uint8))
    launch = launch_of(text, memory, [out, source], block=block, grid=(CTAS, 1, 1), **options)
    try:
        ending: object = engine.run(launch).instructions
    except Trap as trap:
        ending = str(trap)
    return ending, memory.bytes.tobytes()


@contextmanager
def quick_code(folder: Path) -> Iterator[None]:
    """No handler is there that was compiled well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiers, "QUICK", True)
        patch.setattr(tiers, "AT_ONCE", False)
        patch.setattr(library, "_full", library.Level(jit.FULL, folder))
        yield


def agree(seed: int, folder: Path) -> None:
    """One kernel on the reference engine, and on the native one in all ways; folder: has no code compiled well."""
    writer = Writer(seed)
    text, block = writer.kernel(), writer.block
    expected = outcome(reference, text, block)
    assert isinstance(expected[0], int), (expected[0], text)
    for tier in ("interpreter", "regions"):
        assert outcome(native, text, block, tier=tier) == expected, (seed, tier, text)
    with short_slices(seed):
        expected = outcome(native, text, block, tier="interpreter")
        assert outcome(native, text, block, tier="regions") == expected, (seed, "regions in short slices", text)
    with quick_code(folder):
        assert outcome(native, text + "\n", block) == expected, (seed, "quick code", text)


def trap_alike(seed: int, folder: Path) -> None:
    """One kernel that traps, or whose wrong access is made by nobody: the same trap, and the same memory left."""
    writer = Writer(seed)
    text, block = writer.kernel(WRONG[seed % len(WRONG)]), writer.block
    expected = outcome(native, text, block, tier="interpreter")
    assert outcome(native, text, block, tier="regions") == expected, (seed, "regions", text)
    with quick_code(folder):
        assert outcome(native, text + "\n", block) == expected, (seed, "quick code", text)
    assert isinstance(outcome(reference, text, block)[0], type(expected[0]))


@rows("seed", range(80), share=10)
def test_tiers_agree(seed: int, tmp_path: Path) -> None:
    agree(seed, tmp_path)


@rows("seed", range(1000, 1040), share=10)
def test_traps_agree(seed: int, tmp_path: Path) -> None:
    trap_alike(seed, tmp_path)
