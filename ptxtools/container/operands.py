"""The operand pool: every operand of a module once, in groups of like ones.

Instructions refer to operands by number. A group holds operands of one kind, with the same number of components and the
same width of their number; components are operands of earlier groups. So a group is a few columns, and decodes without
a loop over single bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

from ptxtools.ir import (
    Address,
    Arguments,
    Element,
    Guard,
    Immediate,
    Name,
    Negated,
    Operand,
    Pair,
    SymbolOffset,
    Vector,
)

from .codec import Strings, pack_column, signed_width_for, unpack_column, width_for
from .errors import Damage

#: Numbers of the kinds. A TEXT is a bare name (label), a GUARD or NOT_GUARD a predicate, a RECORD a record's number.
NAME, IMMEDIATE, OFFSET, ELEMENT, VECTOR, ADDRESS, NEGATED, PAIR, ARGUMENTS, GUARD, NOT_GUARD, RECORD = range(12)
#: Kind, width of the number column (0: none, 16: two columns of 8), width of component columns, unused,
#: components, texts (the type of immediates), operands.
_GROUP = struct.Struct("<BBBxIII")
_NO_OPERANDS = (GUARD, NOT_GUARD, RECORD)
_LAST = 1 << 30
_HAS_NUMBER = (IMMEDIATE, OFFSET, ELEMENT, ADDRESS, RECORD)

#: kind, component numbers, number, text
_Shape = tuple[int, tuple[int, ...], int, str]


class Pool:
    """The pool while it grows; `number(operand)` is provisional until `finish` has ordered the groups."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self._by_id: dict[int, int] = {}
        self._by_value: dict[Any, int] = {}
        self._kept: list[Operand] = []  # keeps ids in `_by_id` from being used again
        self.shapes: list[_Shape] = []

    def number(self, operand: Operand) -> int:
        if type(operand) is Name:
            known = self.names.get(operand.name)
            return self.name(operand.name) if known is None else known
        known = self._by_id.get(id(operand))
        if known is None:
            known = self._by_value.get(operand)
            if known is None:
                known = self._by_value[operand] = self._add(self._shape(operand))
            self._by_id[id(operand)] = known
            self._kept.append(operand)
        return known

    def name(self, name: str) -> int:
        known = self.names.get(name)
        if known is None:
            known = self.names[name] = self._add((NAME, (), 0, name))
        return known

    def guard(self, guard: Guard) -> int:
        return self._special((NOT_GUARD if guard.negated else GUARD, (self.name(guard.name),), 0, ""))

    def record(self, number: int) -> int:
        return self._special((RECORD, (), number, ""))

    def _special(self, shape: _Shape) -> int:
        known = self._by_value.get(shape)
        if known is None:
            known = self._by_value[shape] = self._add(shape)
        return known

    def _add(self, shape: _Shape) -> int:
        self.shapes.append(shape)
        return len(self.shapes) - 1

    def _shape(self, o: Operand) -> _Shape:
        if isinstance(o, Immediate):
            return IMMEDIATE, (), o.value, o.type
        if isinstance(o, Address):
            return ADDRESS, (self.number(o.base), *map(self.number, o.extra)), o.offset, o.suffix
        if isinstance(o, (Vector, Arguments)):
            return VECTOR if isinstance(o, Vector) else ARGUMENTS, tuple(map(self.number, o.items)), 0, ""
        if isinstance(o, Negated):
            return NEGATED, (self.number(o.operand),), 0, o.operator
        if isinstance(o, Pair):
            return PAIR, (self.number(o.first), self.number(o.second)), 0, ""
        if isinstance(o, SymbolOffset):
            return OFFSET, (self.name(o.name),), o.offset, ""
        if isinstance(o, Element):
            names = (o.name,) if o.register is None else (o.name, o.register)
            return ELEMENT, tuple(map(self.name, names)), o.index, ""
        raise TypeError(f"no operand: {o!r}")

    def finish(self, strings: Strings) -> tuple[bytes, list[int]]:
        """The section's bytes, and the final number of each provisional one."""
        depth: list[int] = []
        groups: dict[tuple[Any, ...], list[int]] = {}
        for index, (kind, parts, number, text) in enumerate(self.shapes):
            # What is no operand stands last, so that nothing can be made of it by mistake.
            level = _LAST if kind in _NO_OPERANDS else 1 + max([depth[p] for p in parts], default=-1)
            depth.append(level)
            width = _number_width(number) if kind in _HAS_NUMBER and (number or kind != ADDRESS) else 0
            groups.setdefault((level, kind, len(parts), width, text), []).append(index)
        ordered = sorted(groups.items(), key=lambda entry: (entry[0][:4], strings(entry[0][4]), entry[1][0]))
        ordered = _names_together(ordered)
        final = [0] * len(self.shapes)
        position = 0
        for _, members in ordered:
            for index in members:
                final[index] = position
                position += 1
        out = [self._encode(key, members, final, strings) for key, members in ordered]
        return struct.pack("<I", len(ordered)) + b"".join(out), final

    def _encode(self, key: tuple[Any, ...], members: list[int], final: list[int], strings: Strings) -> bytes:
        _, kind, arity, width, text = key
        if kind == NAME:
            columns = [[strings(self.shapes[m][3]) for m in members]]
        else:
            columns = [[final[self.shapes[m][1][n]] for m in members] for n in range(arity)]
        id_width = max((width_for(c) for c in columns), default=1)
        out = [_GROUP.pack(kind, width, id_width, arity, strings(text) if kind != NAME else 0, len(members))]
        out += [pack_column(c, id_width) for c in columns]
        numbers = [self.shapes[m][2] for m in members]
        if width == 16:
            out.append(pack_column([n & (1 << 64) - 1 for n in numbers], 8))
            out.append(pack_column([n >> 64 & (1 << 64) - 1 for n in numbers], 8))
        elif width:
            out.append(pack_column(numbers, width, signed=True))
        return b"".join(out)


def _names_together(groups: list[tuple[Any, list[int]]]) -> list[tuple[Any, list[int]]]:
    """All names are one group: their text is a component, not part of the key."""
    names = [m for key, members in groups if key[1] == NAME for m in members]
    rest = [group for group in groups if group[0][1] != NAME]
    return [((0, NAME, 0, 0, ""), sorted(names)), *rest] if names else rest


def _number_width(number: int) -> int:
    width = signed_width_for(number)
    if width:
        return width
    if -(1 << 127) <= number < 1 << 127:
        return 16
    raise ValueError(f"the constant {number} has more than 128 bits")


def decode_pool(data: memoryview, strings: Sequence[str]) -> list[Any]:
    """Operands by number; a guard is (name, negated), a record its number. Raises Damage."""
    pool: list[Any] = []
    last = False
    (count,) = struct.unpack_from("<I", data)
    at = 4
    for _ in range(count):
        kind, width, id_width, arity, text, members = _GROUP.unpack_from(data, at)
        at += _GROUP.size
        if kind in (IMMEDIATE, RECORD) and not width:
            raise Damage("constants without a value")
        if last and kind not in _NO_OPERANDS:
            raise Damage("operands behind what is none")
        last = kind in _NO_OPERANDS
        columns = []
        for _ in range(1 if kind == NAME else arity):
            columns.append(_column(data, at, members, id_width))
            at += members * id_width
        numbers, at = _numbers(data, at, members, width)
        pool.extend(_members(kind, columns, numbers, members, text, pool, strings))
    return pool


def _column(data: memoryview, at: int, count: int, width: int, signed: bool = False) -> Sequence[int]:
    if at + count * width > len(data):
        raise Damage("an operand group reaches beyond its section")
    return unpack_column(data[at : at + count * width], width, signed)


def _numbers(data: memoryview, at: int, count: int, width: int) -> tuple[Iterable[int], int]:
    if width == 0:
        return repeat(0, count), at
    if width == 16:
        low, high = _column(data, at, count, 8), _column(data, at + 8 * count, count, 8, signed=True)
        return [h << 64 | n for n, h in zip(low, high, strict=True)], at + 16 * count
    return _column(data, at, count, width, signed=True), at + count * width


def _members(kind: int, columns: list[Any], numbers: Iterable[int], count: int, text: int, pool: list[Any],
             strings: Sequence[str]) -> Iterable[Any]:  # fmt: skip
    if kind == NAME:
        return map(Name, map(strings.__getitem__, columns[0]))
    if kind == RECORD:
        return numbers
    if kind == IMMEDIATE:
        return map(Immediate, numbers, repeat(strings[text]))
    parts = [list(map(pool.__getitem__, column)) for column in columns]
    if kind in (VECTOR, ARGUMENTS):
        rows: Iterable[Any] = zip(*parts, strict=True) if parts else [()] * min(count, 1)
        return map(Vector if kind == VECTOR else Arguments, rows)
    if kind == ADDRESS:
        rows = zip(*parts[1:], strict=True) if len(parts) > 1 else repeat(())
        return map(Address, parts[0], numbers, rows, repeat(strings[text]))
    if kind == NEGATED:
        return map(Negated, parts[0], repeat(strings[text]))
    if kind == PAIR:
        return map(Pair, parts[0], parts[1])
    names = [[part.name for part in column] for column in parts]
    if kind == OFFSET:
        return map(SymbolOffset, names[0], numbers)
    if kind == ELEMENT:
        return map(Element, names[0], numbers, names[1] if len(names) > 1 else repeat(None))
    if kind in (GUARD, NOT_GUARD):
        return zip(names[0], repeat(kind == NOT_GUARD))
    raise Damage(f"operands of unknown kind {kind}")
