"""The operand pool: every operand of a module once, in groups of similar ones.

Instructions refer to operands by number. A group holds operands of one kind, with the same number of components and the
same width of their number; components are operands of earlier groups. So a group is a few columns, and decodes without
a loop over single bytes.
"""

from __future__ import annotations

import struct
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

from .codec import Strings, pack_column, signed_width_for, width_for

#: Numbers of the kinds. A GUARD or NOT_GUARD is a predicate; a RECORD, only in format 1, the number of a record.
NAME, IMMEDIATE, OFFSET, ELEMENT, VECTOR, ADDRESS, NEGATED, PAIR, ARGUMENTS, GUARD, NOT_GUARD, RECORD = range(12)
#: Kind, width of the number column (0: none, 16: two columns of 8), width of component columns, unused,
#: components, texts (the type of immediates), operands.
GROUP = struct.Struct("<BBBxIII")
NO_OPERANDS = (GUARD, NOT_GUARD, RECORD)
_LAST = 1 << 30
_HAS_NUMBER = (IMMEDIATE, OFFSET, ELEMENT, ADDRESS)

#: kind, component numbers, number, text
_Shape = tuple[int, tuple[int, ...], int, str]


class Pool:
    """The pool under construction; `number(operand)` is provisional until `finish` has ordered the groups."""

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
        raise TypeError(f"not an operand: {o!r}")

    def finish(self, strings: Strings) -> tuple[bytes, list[int], int]:
        """The table's bytes, the final number of each provisional one, and the number of the first guard."""
        depth: list[int] = []
        groups: dict[tuple[Any, ...], list[int]] = {}
        for index, (kind, parts, number, text) in enumerate(self.shapes):
            # Non-operands come last, so that they cannot be used as operands by mistake.
            level = _LAST if kind in NO_OPERANDS else 1 + max([depth[p] for p in parts], default=-1)
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
        guards = sum(shape[0] in NO_OPERANDS for shape in self.shapes)
        return struct.pack("<I", len(ordered)) + b"".join(out), final, len(final) - guards

    def _encode(self, key: tuple[Any, ...], members: list[int], final: list[int], strings: Strings) -> bytes:
        _, kind, arity, width, text = key
        if kind == NAME:
            columns = [[strings(self.shapes[m][3]) for m in members]]
        else:
            columns = [[final[self.shapes[m][1][n]] for m in members] for n in range(arity)]
        id_width = max((width_for(c) for c in columns), default=1)
        out = [GROUP.pack(kind, width, id_width, arity, strings(text) if kind != NAME else 0, len(members))]
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
