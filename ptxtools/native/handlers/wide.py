"""Accesses of two or four words for each lane, where all lanes make them: half a warp at words in a row, or at the same
ones (`regions`)."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.native.code.handler import Handler
from ptxtools.native.code.runs import Step
from ptxtools.semantics.algebra import Value

from . import transposed
from .parts import half, join
from .patterns import SIDES, WORDS


def width_of(step: Step) -> int:
    """Words of each lane in an access."""
    return len(step.targets) if step.kind == "ld" else max(1, len(step.sources) - 1)


def loaded(h: Handler, together: str, pointers: Sequence[str], width: int, *, near: bool) -> list[Value]:
    """The words of all lanes. together: an i1, whether each half is at one place; pointers: host addresses (i64) of
    the halves' first lanes; near: they are at hand, so that it pays to look whether both are the same (where loads wait
    for memory, prefix sums took 1.7 times as long)."""
    e = h.code
    same, several, apart, on = (e.label(hint) for hint in ("same", "several", "apart", "loaded"))
    e.branch(together, same, several)
    e.begin(same)
    ways = [(same, joined(h, [_same(h, pointer, width) for pointer in pointers], width))]
    e.jump(on)
    e.begin(several)
    first = row(h, pointers[0], width)
    if near:
        ways.append((several, joined(h, [first, first], width)))
        e.branch(e.value(f"icmp eq i64 {pointers[0]}, {pointers[1]}"), on, apart)
        e.begin(apart)
    ways.append((apart if near else several, joined(h, [first, row(h, pointers[1], width)], width)))
    e.jump(on)
    e.begin(on)
    return [
        e.value(f"phi <32 x i32> {', '.join(f'[{values[number]}, %{label}]' for label, values in ways)}")
        for number in range(width)
    ]


def _same(h: Handler, pointer: str, width: int) -> list[Value]:
    e = h.code
    base = e.value(f"inttoptr i64 {pointer} to ptr")
    places = [e.value(f"getelementptr i32, ptr {base}, i64 {number}") for number in range(width)]
    return [e.spread("i32", e.value(f"load i32, ptr {place}"), WORDS) for place in places]


def row(h: Handler, pointer: str, width: int) -> list[Value]:
    """The words of half a warp, whose lanes have so many words each, one lane behind the other."""
    e, kind = h.code, f"<{WORDS * width} x i32>"
    place = e.value(f"inttoptr i64 {pointer} to ptr")
    if transposed.suits(e, width):
        return transposed.load(e, place, WORDS, width)
    data = e.value(f"load {kind}, ptr {place}, align 4")
    return [e.shuffle(kind, range(number, WORDS * width, width), data) for number in range(width)]


def joined(h: Handler, sides: list[list[Value]], width: int) -> list[Value]:
    """Words of both halves."""
    return [h.code.concatenate("i32", [side[number] for side in sides], WORDS) for number in range(width)]


def store(h: Handler, pointers: Sequence[str], values: Sequence[Value]) -> None:
    """Store the words of all lanes in rows."""
    e, kind = h.code, f"<{WORDS * len(values)} x i32>"
    for side in SIDES:
        data = join(h, 32, [half(h, value, "i32", side) for value in values])
        e.line(f"store {kind} {data}, ptr {e.value(f'inttoptr i64 {pointers[side]} to ptr')}, align 4")
