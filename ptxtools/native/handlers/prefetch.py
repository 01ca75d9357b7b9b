"""Words of global memory that later rounds of a loop will load, fetched into the cache.

A warp that goes round by itself mostly loads at a constant distance from its last round. Where that is more than a
page, CPUs do not see it coming, or see it or not by where the code happens to lie (`unison`). Regions that go round by
themselves know the distance; where each round is long, as there are accesses that it does not hold for, some rounds
ahead are fetched, or what the next warp will load.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxtools.native.code.emitter import Emitter
from ptxtools.native.code.runs import Step
from ptxtools.semantics.algebra import Value

from .regions import Accesses

if TYPE_CHECKING:
    from ptxtools.native.code.unison import Stage

#: Loads of one stream that are fetched ahead.
_LOADS = 4


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
    step = e.value(f"sub i64 {pointers[0]}, {e.value(f'load i64, ptr {last}')}")
    e.line(f"store i64 {pointers[0]}, ptr {last}")
    fetch(e, pointers, step)


def fetch(e: Emitter, pointers: Sequence[str], step: str) -> None:
    """Fetch what is so many bytes (i64) behind host addresses (i64)."""
    name = "llvm.prefetch.p0"
    e.declare(name, f"declare void @{name}(ptr, i32, i32, i32)")
    for pointer in pointers:
        place = e.value(f"inttoptr i64 {e.value(f'add i64 {pointer}, {step}')} to ptr")
        e.line(f"call void @{name}(ptr {place}, i32 0, i32 3, i32 1)")


class FetchingAccesses(Accesses):
    """Accesses of a region that may go round by itself."""

    def load(self, step: Step) -> list[Value]:
        values, place = super().load(step), self._place(step)
        root, group = self.sums.get(place[0], (place[0], ()))[0], self.groups[place]
        if self.found and root in self.strides and not self.trusted and place[3] == "global":
            e, grown = self.code, "0"
            for term in self.strides[root]:
                grown = e.value(f"add i64 {grown}, {self._scalar(term)}")
            ahead = e.value(f"mul i64 {grown}, {max(1, _LOADS // len(group.imms))}")
            more = e.value(f"add i64 {ahead}, {step.imm - min(group.imms)}")
            fetch(e, group.hosts, more)
        return values
