"""Instructions that a module repeats verbatim: stored once, and referred to like a shape.

Functions from one template, prologues and unrolled loops repeat instructions. Those that occur more than once are in
the table `repeats`, which is encoded like a body; in bodies their numbers follow those of the shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

from .code import GUARDED, RECORD, Body, Shape

#: An instruction: its shape, the number of its guard (-1: none), those of its operands.
_Key: TypeAlias = "tuple[int, ...]"


def fold(bodies: Sequence[Body], shapes: Sequence[Shape], kept: Collection[int]) -> Body:
    """Build the table of repeated instructions, removing them from the bodies.

    kept: numbers of operands that relocations point to; instructions that have one stay where they are.
    """
    counts = Counter(key for body in bodies for key in _keys(body, shapes))
    kept = set(kept)
    repeated = [key for key, count in counts.most_common() if count > 1 and kept.isdisjoint(key[2:])]
    numbers = {key: number for number, key in enumerate(repeated, len(shapes))}
    table = Body()
    for key in repeated:
        _append(table, key[0], key[1], key[2:])
    for body in bodies:
        _take_out(body, shapes, numbers)
    return table


def _keys(body: Body, shapes: Sequence[Shape]) -> Iterator[_Key]:
    """The instructions of a body."""
    return (key for kind, key in _statements(body, shapes) if kind <= GUARDED)


def _statements(body: Body, shapes: Sequence[Shape]) -> Iterator[tuple[int, _Key]]:
    """Kind of each statement, and shape, extra and operands as a key."""
    operands, extra, at = body.operands, iter(body.extras).__next__, 0
    for head in body.heads:
        kind, _, count = shapes[head]
        end = at + count
        yield kind, (head, extra() if kind in (GUARDED, RECORD) else -1, *operands[at:end])
        at = end


def _take_out(body: Body, shapes: Sequence[Shape], numbers: dict[_Key, int]) -> None:
    short = Body()
    for _, key in _statements(body, shapes):
        number = numbers.get(key)
        if number is None:
            _append(short, key[0], key[1], key[2:])
        else:
            short.heads.append(number)
    body.heads, body.operands, body.extras = short.heads, short.operands, short.extras


def _append(body: Body, head: int, extra: int, operands: Sequence[int]) -> None:
    body.heads.append(head)
    body.operands += operands
    if extra >= 0:
        body.extras.append(extra)
