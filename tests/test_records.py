"""`ptxtools.records.dataclass` beside `dataclasses.dataclass`."""

import dataclasses
import types
import typing
from dataclasses import FrozenInstanceError
from inspect import signature

import pytest

from ptxtools import records
from tests.rows import rows

MAKERS = (dataclasses, records)


def made(maker, **options):
    """A class with fields of each kind, and one that inherits from it."""
    dataclass, field = maker.dataclass, maker.field

    @dataclass(**options)
    class Point:
        """A point."""

        x: int
        y: object = 2
        note: str = field(default="", compare=False)
        hidden: int = field(default=0, repr=False)

    @dataclass(**options)
    class Inner(Point):
        """A point with more."""

        z: int = 3

    return Point, Inner


@rows("options", [{}, {"slots": True}, {"frozen": True}, {"eq": False}, {"order": True}, {"repr": False},
                  {"slots": True, "frozen": True}, {"unsafe_hash": True}])  # fmt: skip
def test_it_behaves_as_the_standard_one(options):
    seen = []
    for maker in MAKERS:
        plain, derived = made(maker, **options)
        a, b, c, d = plain(1), plain(1, note="n"), plain(1, hidden=1), derived(1)
        found = [repr(a) if options.get("repr", True) else "", repr(d) if options.get("repr", True) else ""]
        found += [a == b, a == c, a == d, a != b, a == 1, a.__eq__(1), dataclasses.astuple(d)]
        found += [plain.__hash__ is None, derived.__hash__ is object.__hash__]
        if plain.__hash__ is not None and options.get("eq", True):
            found += [hash(a) == hash(b), len({a, b, c})]
        if options.get("frozen"):
            with pytest.raises(FrozenInstanceError):
                a.x = 2
        if options.get("order"):
            found += [a < c, c >= a]
        seen.append(found)
    assert seen[0] == seen[1]


def test_a_class_that_holds_itself():
    for maker in MAKERS:
        plain, _ = made(maker)
        point = plain(1)
        point.y = point
        assert repr(point) == "made.<locals>.Point(x=1, y=..., note='')"


def test_methods_of_the_class_stay():
    for maker in MAKERS:

        @maker.dataclass
        class Mine:
            """With methods of its own."""

            x: int

            def __repr__(self):
                return "mine"

            def __eq__(self, other):
                return True

        assert repr(Mine(1)) == "mine"
        assert Mine(1) == Mine(2)
        assert Mine.__hash__ is None


def test_no_fields_and_one_field():
    for maker in MAKERS:

        @maker.dataclass
        class Nothing:
            """No field."""

        @maker.dataclass
        class One:
            """One field, which may be a tuple."""

            x: object

        assert (Nothing() == Nothing(), One((1,)) == One((1,)), One(1) == One((1,))) == (True, True, False)


def test_signatures():
    seen = []
    for maker in MAKERS:

        @maker.dataclass
        class Plain:
            """Whose `__init__` is a copy."""

            x: int
            y: int = 2

        @maker.dataclass
        class Late:
            """Whose `__init__` the first object compiles."""

            x: int
            y: list = maker.field(default_factory=list)

        class Derived(Late):
            """With the same one."""

        @maker.dataclass(kw_only=True)
        class Named:
            """With keywords alone."""

            x: int
            y: int = 2

        class Own(Late):
            """With one of its own."""

            def __init__(self, z):
                super().__init__(z)

        kinds = (Derived, Plain, Late, Named, Own)
        seen.append([[(each.name, each.kind) for each in signature(kind).parameters.values()] for kind in kinds])
        seen[-1].append([vars(Late(1)), vars(Own(4)), vars(Named(x=3))])
    assert seen[0] == seen[1]


@rows("fields", [0, 1, 3, 14, 17])
def test_named_tuples(fields):
    names = [f"f{number}" for number in range(fields)]
    seen = []
    for base in (typing.NamedTuple, records.NamedTuple):
        body = {"__annotations__": dict.fromkeys(names, int), "__module__": __name__, "__qualname__": "Made"}
        body |= dict.fromkeys(names[2:], 7)
        made = types.new_class("Made", (base,), exec_body=lambda space, body=body: space.update(body))
        needed = range(min(fields, 2))
        one, other = made(*needed), made(**dict(zip(names, needed, strict=False)))
        found = [one == other, hash(one) == hash(other), repr(one), one._asdict(), made._fields, made._field_defaults]
        found += [tuple(one), [getattr(one, name) for name in names], made._make(one) == one, made.__match_args__]
        found += [one.__getnewargs__(), list(signature(made).parameters)]
        found += [one._replace(**{names[0]: 9})] if names else []
        for wrong in (lambda made=made: made(*range(fields + 1)), lambda made=made, one=one: made._make([*one, 1]),
                      lambda one=one: one._replace(none=1)):  # fmt: skip
            with pytest.raises((TypeError, ValueError)) as error:
                wrong()
            found.append(error.type)
        seen.append(found)
    assert seen[0] == seen[1]
