"""Where the parts of an instruction stand in the text that it was read from.

An instruction keeps a `Layout`, and each of its operands an `Extent`. Both count from where the statement, or the
operand, begins, so that what is written alike shares them; spans are added up when somebody asks. Instructions out of
containers, and those made by a program, have no layout: then each part stands where the whole statement does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from ptxtools.diagnostics import Span
from ptxtools.records import NamedTuple

from .layout import Layout
from .nodes import (
    Address,
    Arguments,
    Element,
    Instruction,
    Name,
    Negated,
    Operand,
    Pair,
    SymbolOffset,
    Vector,
)

#: A part of an operand: its index, or the indices on the way to it, as in `{a, b}|p`. See `part_span`.
Part = int | tuple[int, ...]


class Parts(NamedTuple):
    """Spans in the source text. guard: the name behind the `@`, or None; operands: none where they are not known."""

    guard: Span | None
    opcode: Span
    operands: tuple[Span, ...]


class Spot(NamedTuple):
    """What stands at a span. name: the identifier that it is, else ""; parts: as `extent_of` has them."""

    span: Span
    name: str = ""
    parts: tuple[Spot, ...] = ()


def parts_of(item: Instruction) -> Parts:
    """Guard, opcode and operands of an instruction."""
    layout, (start, end) = item.layout, item.span
    if layout is None:
        return Parts(None, (start, end), ())
    guard = None
    if item.guard is not None:
        begin = start + (layout.guard or 1 + item.guard.negated)
        guard = begin, begin + len(item.guard.name)
    begin = start + layout.opcode
    opcode = begin, start + layout.pieces[-1][1] if layout.pieces else begin + len(item.opcode)
    return Parts(guard, opcode, tuple(_operands(item, layout, start, opcode[1])))


def _operands(item: Instruction, layout: Layout, start: int, at: int) -> Iterator[Span]:
    """at: the end of the opcode."""
    distance = layout.gap
    for index, operand in enumerate(item.operands):
        begin = at + distance if layout.starts is None else start + layout.starts[index]
        at, distance = begin + _width(operand), layout.between
        yield begin, at


def _width(operand: Operand) -> int:
    if operand.extent:
        return operand.extent[0]
    return len(operand.name) if isinstance(operand, Name) else 0


def word_of_opcode(item: Instruction, word: str) -> Span:
    """Where a modifier, or the first word, stands in the opcode; the whole opcode if it is none of its words."""
    whole, at = parts_of(item).opcode, _find_word(item.opcode, word) if word else -1
    layout = item.layout
    if at < 0 or layout is None:
        return whole
    for begin, end in layout.pieces:
        if at < end - begin:
            whole = item.span[0] + begin, 0
            break
        at -= end - begin
    return whole[0] + at, whole[0] + at + len(word)


def _find_word(opcode: str, word: str) -> int:
    """Where a word begins that no letter or digit goes on with: `.s` is none of `cvt.sat.s32`."""
    at = opcode.find(word)
    while at >= 0 and opcode[at + len(word) : at + len(word) + 1].isalnum():
        at = opcode.find(word, at + 1)
    return at


def part_span(item: Instruction, operand: int, part: Part | None = None) -> Span:
    """Where an operand stands, or a part of it: an element, an argument, a half of `p|q`, or what stands between commas
    in brackets. A part that is not known stands where its operand does, and that where the opcode does."""
    parts = parts_of(item)
    if not 0 <= operand < len(parts.operands):
        return parts.opcode
    spot = spot_of(item.operands[operand], parts.operands[operand])
    node: Operand | None = item.operands[operand]
    for index in () if part is None else (part,) if isinstance(part, int) else part:
        pieces = _pieces(node, spot)
        if not 0 <= index < len(pieces):
            break
        spot = pieces[index]
        node = None
    return spot.span


def _pieces(node: Operand | None, spot: Spot) -> tuple[Spot, ...]:
    """The parts that commas or `|` divide; those of an address: base and offset, then each one behind a comma."""
    if isinstance(node, Address) and len(spot.parts) > 2:
        base, offset, *extra, _ = spot.parts
        return Spot((base.span[0], max(base.span[1], offset.span[1]))), *extra
    return () if isinstance(node, (Element, SymbolOffset, Negated)) else spot.parts


def name_span(item: Instruction, name: str, operand: int | None = None) -> Span:
    """Where a name first stands in the guard and the operands, or in one operand; the whole of where it is looked for
    if it is not there. `%v` is found in `%v.x`, too."""
    parts = parts_of(item)
    spots = [spot_of(node, span) for node, span in zip(item.operands, parts.operands, strict=False)]
    if operand is not None:
        spots = spots[operand : operand + 1]
        whole = spots[0].span if spots else parts.opcode
    else:
        whole = item.span
        if item.guard is not None and parts.guard is not None:
            spots.insert(0, Spot(parts.guard, item.guard.name))
    for spot in chain.from_iterable(map(_all, spots)):
        if spot.name == name or spot.name.startswith(name + "."):
            return spot.span[0], spot.span[0] + len(name)
    return whole


def _all(spot: Spot) -> Iterator[Spot]:
    yield spot
    for part in spot.parts:
        yield from _all(part)


def spot_of(operand: Operand, span: Span) -> Spot:
    """An operand that stands at a span, with its parts."""
    numbers = iter(operand.extent[1:])

    def follow() -> Span:
        first = next(numbers, None)
        return span if first is None else (span[0] + first, span[0] + next(numbers, first))

    def spot(node: Operand, at: Span) -> Spot:
        if isinstance(node, Name):
            return Spot(at, node.name)
        if isinstance(node, SymbolOffset):
            return Spot(at, "", (Spot(follow(), node.name), Spot(follow())))
        if isinstance(node, Element):
            return Spot(at, "", (Spot(follow(), node.name), Spot(follow(), node.register or ""), Spot(follow())))
        if isinstance(node, Address):
            base, offset = spot(node.base, follow()), Spot(follow())
            return Spot(at, "", (base, offset, *[spot(part, follow()) for part in node.extra], Spot(follow())))
        return Spot(at, "", tuple([spot(part, follow()) for part in _plain_parts(node)]))

    return spot(operand, span)


def _plain_parts(node: Operand) -> Sequence[Operand]:
    if isinstance(node, (Vector, Arguments)):
        return node.items
    if isinstance(node, Pair):
        return node.first, node.second
    return (node.operand,) if isinstance(node, Negated) else ()
