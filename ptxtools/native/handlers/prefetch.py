"""Words of global memory that the next round of a loop will load, fetched into the cache (`unison`).

A warp that goes round by itself mostly loads at a constant distance from its last round. Where that is more than a
page, CPUs do not see it coming, or see it or not by where the code happens to lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxtools.native.code.emitter import Emitter

if TYPE_CHECKING:
    from ptxtools.native.code.unison import Stage


def rounds(stages: Sequence[Stage]) -> set[int]:
    """Blocks in loops that a warp goes round in without meeting others."""
    found: set[int] = set()
    for last, stage in enumerate(stages):
        for first in (stage.target, stage.other):
            inside = range(first, last + 1)
            if 0 <= first <= last and all(stages[number].kind in ("jump", "branch") for number in inside):
                found |= set(inside)
    return found


def next_round(e: Emitter, last: str, pointers: Sequence[str]) -> None:
    """Fetch what is as far from host addresses (i64) as the first of them is from that of the round before; last: where
    that is."""
    name = "llvm.prefetch.p0"
    e.declare(name, f"declare void @{name}(ptr, i32, i32, i32)")
    step = e.value(f"sub i64 {pointers[0]}, {e.value(f'load i64, ptr {last}')}")
    e.line(f"store i64 {pointers[0]}, ptr {last}")
    for pointer in pointers:
        place = e.value(f"inttoptr i64 {e.value(f'add i64 {pointer}, {step}')} to ptr")
        e.line(f"call void @{name}(ptr {place}, i32 0, i32 3, i32 1)")
