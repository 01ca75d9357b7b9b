"""Lines that differ in values and symbols: the rules say the same of them if these have the same types.

A template is the text of such a line with a mark in the place of each name, number and `undef`, and with the types of
symbols for their names. What was learnt from one line says which of these places are values, and of which types; so the
shape of another line of the template follows, whatever stands there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import repeat

from ptxtools.records import NamedTuple

from ..assembly.nodes import Instruction, Value
from ..assembly.types import Type
from .constants import fits, inexact
from .families import Family, family_of
from .shape import HOLE, INCOMING, NODE, OPERAND, PHI, VALUE, Shape

#: Values: names, integers that are no alignments, numbers that every type of up to 64 bits has, undefined ones.
_VALUES = re.compile(r" (?<!align )(\0|undef|poison|-?\d{1,18}|0x[0-9A-Fa-f]{16}|-?\d+\.\d+e[-+]\d+)(?=[,\s\])>]|\Z)")
_SYMBOLS = re.compile(r"@[-\w$.]+")
_MARKS = re.compile(f"[{HOLE}{VALUE}]")
_UNDEFINED = ("undef", "poison")
#: What stands for a number among values.
_NUMBER = "0"
#: A character for each sort of value.
_KINDS = {HOLE: HOLE, "undef": "u", "poison": "p"}


class Place(NamedTuple):
    """A mark. role: of a name there; type: of a value, None for another name; within: whether it is a part of a
    constant, where only numbers may stand."""

    role: int
    type: Type | None
    within: bool = False


class Line(NamedTuple):
    """A line by its family, and the values in it. kinds: a character for each."""

    family: Family
    values: list[str]
    kinds: str

    def of_numbers(self, types: Iterable[Type | None]) -> list[Type]:
        """The types of numbers among those of values."""
        return [
            type for value, type in zip(self.values, types, strict=True) if value not in _KINDS and type is not None
        ]


#: A line without its values; a character for the kind of each; the values.
Separated = tuple[str, str, list[str]]


def separated(lines: str) -> Iterator[Separated]:
    """Lines of a text, with their values apart."""
    parts = _VALUES.split(lines)
    values, at = parts[1::2], 0
    kinds = "".join(map(_KINDS.get, values, repeat(_NUMBER)))
    for plain in VALUE.join(parts[::2]).split("\n"):
        begin, at = at, at + plain.count(VALUE)
        yield plain, kinds[begin:at], values[begin:at]


class Templates:
    """What is known of templates. stands_for: what is the same for all symbols that may stand for one; added: gives the
    number of a shape; modern: the dialect."""

    def __init__(self, stands_for: Callable[[str], str], added: Callable[[Shape], int], modern: bool) -> None:
        self._stands_for, self._added, self._modern = stands_for, added, modern
        #: By a line without values: the family; None if its values are more than that.
        self._families: dict[str, Family | None] = {}
        #: By family and kinds of values: the number of the shape, and the types of numbers.
        self._known: dict[tuple[Family, str], tuple[int, list[Type]]] = {}
        #: By the name of a family: a shape, and the places in a line without repetition and nodes.
        self._learnt: dict[str, tuple[Shape, list[Place]]] = {}

    def shapes_of(self, lines: str) -> list[int | None]:
        """The numbers of the shapes of some lines; None for one whose family is not known, or whose values do not
        have the types of its."""
        return list(map(self.shape_of, separated(lines)))

    def shape_of(self, line: Separated) -> int | None:
        """The number of the shape of a line, as of `shapes_of`."""
        plain, kinds, values = line
        family = self._families[plain] if plain in self._families else self._family(plain)
        if not family:
            return None
        shape = self._known.get((family, kinds)) or self._made(Line(family, values, kinds))
        return shape[0] if shape and (not shape[1] or _fit(values, family, shape[1])) else None

    def _family(self, plain: str) -> Family | None:
        """The family of a line without its values; None if they are more than that."""
        line = _SYMBOLS.sub(lambda symbol: self._stands_for(symbol[0]), plain) if "@" in plain else plain
        found = self._families[plain] = family_of(line, self._modern)
        return found

    def learn(self, text: str, number: int, shape: Shape, one: Instruction) -> None:
        """Note what is known of a line without fault, which is this instruction, and its shape with its number."""
        parts = _VALUES.split(text)
        values, family = parts[1::2], self._family(VALUE.join(parts[::2]))
        if family is None:
            return
        line = Line(family, values, "".join([_KINDS.get(one, _NUMBER) for one in values]))
        places = _places(line, shape, one)
        single = family.single(places, _NODE) if places is not None else None
        if places is None or single is None:
            return
        if family.of == "switch":  # cases are numbers
            single[2] = single[2]._replace(within=True)
        self._learnt[family.name] = shape, single
        self._known[family, line.kinds] = number, line.of_numbers(_types_of_values(family, places))

    def _made(self, line: Line) -> tuple[int, list[Type]] | None:
        """The shape of a line of a known family, and the types of its numbers; None if some value does not fit."""
        family = line.family
        if family.name not in self._learnt:
            return None
        shape, single = self._learnt[family.name]
        places, values = family.spread(single, _NODE), iter(line.values)
        named: list[Place] = []
        for mark, place in zip(_marks(family), places, strict=True):
            value = HOLE if mark == HOLE else next(values)
            if value == HOLE:
                if place.within:
                    return None
                named.append(place)
            elif place.type is None or (value in _UNDEFINED and (place.within or not self._has(value))):
                return None
        shape = shape._replace(
            roles=bytes([one.role for one in named]), types=tuple([one.type for one in named if one.type is not None])
        )
        numbers = line.of_numbers(_types_of_values(family, places))
        made = self._known[family, line.kinds] = self._added(shape), numbers
        return made

    def _has(self, word: str) -> bool:
        return self._modern or word != "poison"


#: What is at the mark of a node behind a line.
_NODE = Place(NODE, None)


def _marks(family: Family) -> list[str]:
    return family.spread(_MARKS.findall(family.name), VALUE)


def _types_of_values(family: Family, places: list[Place]) -> list[Type | None]:
    """The types at the places of values."""
    return [place.type for mark, place in zip(_marks(family), places, strict=True) if mark == VALUE]


def _fit(values: list[str], family: Family, types: list[Type]) -> bool:
    """Whether the numbers among the values of a line are of these types, and the cases of a switch differ."""
    if not all(map(_takes, types, [one for one in values if one not in _KINDS])):
        return False
    return family.of != "switch" or len(set(values[2 : 2 + 2 * family.times : 2])) == family.times


@lru_cache(4096)
def _takes(type: Type, number: str) -> bool:
    """Whether a number is one of this type."""
    if type.kind == "int":
        return "." not in number and number[:2] != "0x" and fits(number, type)
    return ("." in number or number[:2] == "0x") and type.bits <= 64 and not inexact(number, type)


def _places(line: Line, shape: Shape, one: Instruction) -> list[Place] | None:
    """What is at the marks of a line; None if not all that was left out are values of this instruction."""
    operands = {value.at: value for value in one.operands}
    inside = sorted(_parts(one.operands), key=lambda each: each.at)
    written = iter([each for each in inside if each.kind in ("int", "float") or each.text in _UNDEFINED])
    roles, types, values = iter(shape.roles), iter(shape.types), iter(line.values)
    places: list[Place] = []
    for mark in _marks(line.family):
        value = HOLE if mark == HOLE else next(values)
        if value == HOLE:
            role = next(roles)
            places.append(Place(role, next(types) if role in (OPERAND, INCOMING) else None))
            continue
        found = next(written, None)
        if found is None or found.text != value:
            return None
        places.append(
            Place(INCOMING if shape.kind == PHI else OPERAND, found.type, operands.get(found.at) is not found)
        )
    return places if next(written, None) is None else None


def _parts(values: Iterable[Value]) -> Iterator[Value]:
    """All values, with what they consist of."""
    for value in values:
        yield value
        yield from _parts(value.parts)
