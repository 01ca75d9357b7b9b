"""Operands of a container by number: the counterpart of `operands.Pool`, which describes the groups.

The nodes are restricted to those that a parser can create: there is never an address inside a predicate.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import repeat
from struct import unpack_from
from typing import Any

from ptxtools.ir import (
    Address,
    Arguments,
    Element,
    Guard,
    Immediate,
    Name,
    Negated,
    Pair,
    SymbolOffset,
    Vector,
)

from .codec import all_match, unpack_column
from .errors import Damage
from .operands import (
    ADDRESS,
    ARGUMENTS,
    ELEMENT,
    GROUP,
    GUARD,
    IMMEDIATE,
    NAME,
    NEGATED,
    NO_OPERANDS,
    NOT_GUARD,
    OFFSET,
    PAIR,
    RECORD,
    VECTOR,
)

#: The components of operands by kind: types of the first, and of the others.
_ANY = frozenset({Name, Immediate, SymbolOffset, Element, Vector, Address, Negated, Pair})
_NAMES = frozenset({Name})
_PARTS: dict[int, tuple[frozenset[type], frozenset[type]]] = {
    OFFSET: (_NAMES, frozenset()), ELEMENT: (_NAMES, _NAMES), NEGATED: (_NAMES, frozenset()),
    GUARD: (_NAMES, frozenset()), NOT_GUARD: (_NAMES, frozenset()),
    ADDRESS: (frozenset({Name, Immediate, Element}), _ANY),
    PAIR: (frozenset({Name, Vector}), frozenset({Name, Vector})), VECTOR: (_ANY, _ANY), ARGUMENTS: (_ANY, _ANY),
}  # fmt: skip
#: Number of components; kinds not listed take any number.
_ARITY = {NAME: (0,), IMMEDIATE: (0,), OFFSET: (1,), ELEMENT: (1, 2), NEGATED: (1,), PAIR: (2,), GUARD: (1,),
          NOT_GUARD: (1,), RECORD: (0,)}  # fmt: skip
_TEXTS = {IMMEDIATE: ("s64", "u64", "f32", "f64"), NEGATED: ("!", "-"), ADDRESS: ("", "unified")}
_IDENTIFIERS = re.compile(r"(?:[\w$%.]+\n)*", re.ASCII)
#: Nested operands; code that traverses them may recurse this deep.
_DEEPEST = 64
#: Parts of one operand, counted recursively: repeated sharing could otherwise multiply them without limit.
_MOST_PARTS = 1 << 14


class OperandPool:
    """The operands and the guards, each by its number; in format 1, followed by records."""

    def __init__(self, data: memoryview, strings: Sequence[str]) -> None:
        self.strings = strings
        self.operands: list[Any] = []
        self.guards: list[Guard] = []
        self.records: list[int] = []
        self._level = self._level_start = 0
        #: The start of each group, and the most parts of an operand before it.
        self._starts, self._most_parts = [0], [1]
        (count,) = unpack_from("<I", data)
        at = 4
        for _ in range(count):
            at = self._group(data, at)

    def _group(self, data: memoryview, at: int) -> int:
        """Decode the group at `at`; returns the start of the next one."""
        kind, width, id_width, arity, text, count = GROUP.unpack_from(data, at)
        at += GROUP.size
        if kind > RECORD:
            raise Damage(f"operands of unknown kind {kind}")
        if arity not in _ARITY.get(kind, (arity,)) or (kind in (IMMEDIATE, RECORD) and not width):
            raise Damage("operands of an invalid form")
        if not count or arity > _MOST_PARTS:  # else no bytes would stand against the columns
            raise Damage("a group without operands, or with too many parts")
        if self.records or (self.guards and kind not in NO_OPERANDS):
            raise Damage("operands after guards")
        columns = []
        for _ in range(1 if kind == NAME else arity):
            columns.append(_column(data, at, count, id_width))
            at += count * id_width
        numbers, at = _numbers(data, at, count, width)
        found = self.records if kind == RECORD else self.guards if kind in NO_OPERANDS else self.operands
        found.extend(self._made(kind, columns, numbers, count, text))
        return at

    def _made(self, kind: int, columns: list[Any], numbers: Iterable[int], count: int, text: int) -> Iterable[Any]:
        if kind == NAME:
            return map(Name, _identifiers([self.strings[n] for n in columns[0]]))
        word = self.strings[text]
        if word not in _TEXTS.get(kind, ("",)):
            raise Damage(f"an operand with the invalid word {word!r}")
        if kind == RECORD:
            return numbers
        if kind == IMMEDIATE:
            return map(Immediate, _bits(numbers, word), repeat(word))
        parts = self._components(kind, columns)
        if kind in (VECTOR, ARGUMENTS):
            rows: Iterable[Any] = zip(*parts, strict=True) if parts else [()] * min(count, 1)
            return map(Vector if kind == VECTOR else Arguments, rows)
        if kind == ADDRESS:
            rows = zip(*parts[1:], strict=True) if len(parts) > 1 else repeat(())
            return map(Address, parts[0], numbers, rows, repeat(word))
        if kind == NEGATED:
            return map(Negated, parts[0], repeat(word))
        if kind == PAIR:
            return map(Pair, parts[0], parts[1])
        names = [[part.name for part in column] for column in parts]
        if kind == OFFSET:
            return map(SymbolOffset, names[0], numbers)
        if kind == ELEMENT:
            return map(Element, names[0], numbers, names[1] if len(names) > 1 else repeat(None))
        return map(Guard, names[0], repeat(kind == NOT_GUARD))

    def _components(self, kind: int, columns: list[Any]) -> list[list[Any]]:
        """Columns of earlier operands, of types that this kind can have inside."""
        first, others = _PARTS[kind]
        if any(len(column) and max(column) >= self._level_start for column in columns):
            self._level += 1
            self._level_start = len(self.operands)
        if self._level > _DEEPEST:
            raise Damage("operands are nested too deeply")
        self._count_parts([max(column) for column in columns if len(column)])
        parts = [list(map(self.operands.__getitem__, column)) for column in columns]
        for n, column in enumerate(parts):
            if not set(map(type, column)) <= (others if n else first):
                raise Damage("an operand has an invalid part")
        return parts

    def _count_parts(self, largest: list[int]) -> None:
        """Bound the parts of a group's operands. largest: operand number in each of its columns."""
        if largest:
            count = len(largest) * self._most_parts[bisect_right(self._starts, max(largest)) - 1]
            if count > _MOST_PARTS:
                raise Damage("an operand with too many parts")
            self._starts.append(len(self.operands))
            self._most_parts.append(max(count, self._most_parts[-1]))


def _identifiers(names: list[str]) -> list[str]:
    if not all_match(_IDENTIFIERS, names):
        raise Damage("an invalid name")
    return names


def _bits(numbers: Iterable[int], type_: str) -> Iterable[int]:
    """The values of constants; floats are their bits."""
    if type_ in ("f32", "f64"):
        values, most = list(numbers), 1 << int(type_[1:])
        if values and (min(values) < 0 or max(values) >= most):
            raise Damage(f"a constant of type {type_} with too many bits")
        return values
    return numbers


def _column(data: memoryview, at: int, count: int, width: int, signed: bool = False) -> Sequence[int]:
    if at + count * width > len(data):
        raise Damage("an operand group extends past its section")
    return unpack_column(data[at : at + count * width], width, signed)


def _numbers(data: memoryview, at: int, count: int, width: int) -> tuple[Iterable[int], int]:
    if width == 0:
        return repeat(0, count), at
    if width == 16:
        low, high = _column(data, at, count, 8), _column(data, at + 8 * count, count, 8, signed=True)
        return [h << 64 | n for n, h in zip(low, high, strict=True)], at + 16 * count
    return _column(data, at, count, width, signed=True), at + count * width
