"""What two sequences of lines have in common, in time in proportion to their length."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, TypeAlias, TypeVar

_Line = TypeVar("_Line", bound=Hashable)
#: A tag, and the stretches of both sequences that it is about, as `SequenceMatcher.get_opcodes` has them.
_Opcode: TypeAlias = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]

#: Lines of which the difference is looked for as a whole; lines of a part, where there are more.
_MANY, _PART = 5000, 500
#: Lines of a stretch that both sequences have once, so that it is where they meet.
_STRETCHES = (1, 8)


class Matcher(SequenceMatcher[_Line]):
    """As `difflib.SequenceMatcher`, whose time grows with the square of the length: long sequences are aligned where
    both begin and end alike, and at stretches that both have once; what is between is compared part by part."""

    def __init__(self, a: Sequence[_Line], b: Sequence[_Line]) -> None:
        self.whole = max(len(a), len(b)) <= _MANY
        super().__init__(None, a if self.whole else a[:0], b if self.whole else b[:0])
        self.lines = a, b

    def get_opcodes(self) -> list[_Opcode]:
        if self.whole:
            return super().get_opcodes()
        return list(_joined(_aligned(*self.lines)))


def _joined(codes: Iterator[_Opcode]) -> Iterator[_Opcode]:
    """Neighbours of one kind as one; what is neither equal nor alone is a replacement."""
    tag, i, last, j, end = "", 0, 0, 0, 0
    for each in codes:
        equal = each[0] == "equal"
        if tag and equal == (tag == "equal"):
            last, end = each[2], each[4]
            continue
        if tag:
            yield _opcode(tag == "equal", i, last, j, end)
        tag, i, last, j, end = each
    if tag:
        yield _opcode(tag == "equal", i, last, j, end)


def _opcode(equal: bool, i: int, last: int, j: int, end: int) -> _Opcode:
    return ("equal" if equal else "insert" if i == last else "delete" if j == end else "replace", i, last, j, end)


def _aligned(a: Sequence[_Line], b: Sequence[_Line]) -> Iterator[_Opcode]:
    """Long sequences: without what they begin and end with, and from anchor to anchor."""
    shorter = min(len(a), len(b))
    first = next((at for at in range(shorter) if a[at] != b[at]), shorter)
    last = next((at for at in range(shorter - first) if a[-1 - at] != b[-1 - at]), shorter - first)
    if first:
        yield "equal", 0, first, 0, first
    i = j = first
    for x, y in _anchors(a, b, first, last):
        yield from _between(a, b, (i, x), (j, y))
        yield "equal", x, x + 1, y, y + 1
        i, j = x + 1, y + 1
    yield from _between(a, b, (i, len(a) - last), (j, len(b) - last))
    if last:
        yield "equal", len(a) - last, len(a), len(b) - last, len(b)


def _anchors(a: Sequence[_Line], b: Sequence[_Line], first: int, last: int) -> list[tuple[int, int]]:
    """Places of stretches that both have once between their first and last lines, in an order that both agree on."""
    found: list[tuple[int, int]] = []
    for length in _STRETCHES:
        here, there = _once(a, first, len(a) - last, length), _once(b, first, len(b) - last, length)
        pairs = sorted((place, there[stretch]) for stretch, place in here.items() if stretch in there)
        found = max(found, _rising(pairs), key=len)
    return found


def _once(lines: Sequence[_Line], first: int, last: int, length: int) -> dict[tuple[_Line, ...], int]:
    """The stretches of a length that occur once, and where."""
    known: dict[tuple[_Line, ...], int] = {}
    for at in range(first, last - length + 1):
        stretch = tuple(lines[at : at + length])
        known[stretch] = -1 if stretch in known else at
    return {stretch: at for stretch, at in known.items() if at >= 0}


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most pairs, of those sorted by the first number, whose second numbers rise."""
    ends: list[int] = []  # the least second number that so many pairs end with
    places: list[int] = []
    before: list[int] = []
    for at, (_, number) in enumerate(pairs):
        length = bisect_left(ends, number)
        before.append(places[length - 1] if length else -1)
        ends[length : length + 1] = [number]
        places[length : length + 1] = [at]
    found = []
    at = places[-1] if places else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _between(
    a: Sequence[_Line], b: Sequence[_Line], mine: tuple[int, int], other: tuple[int, int]
) -> Iterator[_Opcode]:
    """What differs in a stretch of each sequence, part by part. Behind the last line that both parts have the next ones
    begin; a part without one is replaced."""
    (i, last), (j, end) = mine, other
    while i < last or j < end:
        part, against = a[i : min(i + _PART, last)], b[j : min(j + 2 * _PART, end)]
        codes: list[_Opcode] = SequenceMatcher(None, part, against).get_opcodes()
        if part and against and (i + len(part) < last or j + len(against) < end):
            while codes and codes[-1][0] != "equal":
                codes.pop()
            if not codes or codes[-1][2] < len(part) // 2:
                codes = [("replace", 0, len(part), 0, min(len(part), len(against)))]
        for tag, *places in codes:
            yield tag, places[0] + i, places[1] + i, places[2] + j, places[3] + j
        i, j = i + codes[-1][2], j + codes[-1][4]
