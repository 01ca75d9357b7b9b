"""The canonical layout of a part of a text."""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.diagnostics import Span
from ptxtools.syntax.edited import edit_of


def edit_within(text: str, canonical: str, area: Span) -> tuple[Span, str] | None:
    """What to write for some lines, so that they are as in the canonical layout of the whole text; None if they are so.

    area: of the lines; it grows to where lines of both texts begin and end. The two texts have the same characters but
    for blanks, and the order of modifiers in an opcode: so a line begins where as many stand before it.
    """
    first, last = edit_of(text, canonical)
    if first == len(text) == len(canonical) or area[1] < first or last < area[0]:
        return None
    begin = text.rfind("\n", 0, first) + 1
    end = text.find("\n", last)
    end = len(text) if end < 0 else end
    mine = list(_lines(text, begin, end))
    theirs = list(_lines(canonical, begin, end + len(canonical) - len(text)))
    starts = {count: start for count, start, _, _ in theirs}
    ends = {count: stop for _, _, count, stop in theirs}
    wanted = [place for place, (_, start, _, stop) in enumerate(mine) if start <= area[1] and area[0] <= stop]
    if not wanted:
        return None
    low, high = wanted[0], wanted[-1]
    while low and mine[low][0] not in starts:
        low -= 1
    while high < len(mine) - 1 and mine[high][2] not in ends:
        high += 1
    if mine[low][0] not in starts or mine[high][2] not in ends:
        return None
    span, made = (mine[low][1], mine[high][3]), canonical[starts[mine[low][0]] : ends[mine[high][2]]]
    return None if text[slice(*span)] == made else (span, made)


def _lines(text: str, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Of each line of a part of a text that is not blank: how many characters but blanks stand before it, where it
    begins, how many stand before its end, and where that is."""
    count = 0
    while begin < end:
        stop = text.find("\n", begin, end)
        stop = end if stop < 0 else stop
        length = len("".join(text[begin:stop].split()))
        if length:
            yield count, begin, count + length, stop - text.endswith("\r", begin, stop)
        count += length
        begin = stop + 1
