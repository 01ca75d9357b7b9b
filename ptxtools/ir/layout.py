"""How an instruction is laid out in its text, as distances that many instructions share; spans: `positions`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from ptxtools.diagnostics import Span
from ptxtools.records import NamedTuple

#: The length of an operand's text, then begin and end of each of its parts from there on (`extent_of`).
#: Only whole operands have one, and of names only those whose text is not the name.
Extent: TypeAlias = tuple[int, ...]


class Layout(NamedTuple):
    """Where guard, opcode and operands of an instruction begin, from its start; shared by all that are laid out alike.

    opcode: where it begins; gap: from its end to the first operand; between: from the end of an operand to the next;
    starts: of the operands, where the distances between them differ; guard: where its name begins, 0 where that is
    right behind `@` or `@!`; pieces: of an opcode with blanks or comments in it.
    """

    opcode: int
    gap: int
    between: int
    starts: tuple[int, ...] | None = None
    guard: int = 0
    pieces: tuple[Span, ...] = ()


def extent_of(spans: Sequence[Span]) -> Extent:
    """The extent of an operand whose first span is its own, followed by those of its parts, each before its own parts.

    Parts that a node may lack are there in any case, without a length where they are not written:
    SymbolOffset: name, offset. Element: name, register, index. Address: base, offset, those of `extra`, suffix.
    """
    start, end = spans[0]
    return (end - start, *[at - start for span in spans[1:] for at in span])


def layout_of(start: int, opcode: Sequence[Span], operands: Sequence[Span]) -> Layout:
    """The layout of a statement without a guard that begins at `start`. opcode: its pieces, where blanks part it."""
    first = opcode[0][0] - start
    pieces = tuple([(begin - start, end - start) for begin, end in opcode]) if _parted(opcode) else ()
    gap = operands[0][0] - opcode[-1][1] if operands else 0
    between = {after[0] - before[1] for before, after in pairwise(operands)}
    if len(between) > 1:
        return Layout(first, gap, 0, tuple([begin - start for begin, _ in operands]), 0, pieces)
    return Layout(first, gap, between.pop() if between else 0, None, 0, pieces)


def _parted(pieces: Sequence[Span]) -> bool:
    return any(before[1] != after[0] for before, after in pairwise(pieces))


def guarded(layout: Layout, guard: int, moved: int) -> Layout:
    """The layout with a guard in front. guard: where its name begins; moved: how much later all else begins."""
    starts = layout.starts and tuple([start + moved for start in layout.starts])
    pieces = tuple([(begin + moved, end + moved) for begin, end in layout.pieces])
    return Layout(layout.opcode + moved, layout.gap, layout.between, starts, guard, pieces)
