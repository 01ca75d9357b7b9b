"""Data classes that are made quickly: `dataclass` compiles each method of each class from text, every time that a
program starts. Here `__repr__` and the `__eq__` of classes that can change are closures; they behave the same."""

from __future__ import annotations

import dataclasses
from dataclasses import astuple, field, fields, replace
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["astuple", "dataclass", "field", "fields", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """As `dataclasses.dataclass`."""
        return _made(cls, options) if cls is not None else lambda cls: _made(cls, options)


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _made(cls: type, options: dict[str, Any]) -> Any:
    own = cls.__dict__
    shown = options.get("repr", True) and "__repr__" not in own
    changes = not (options.get("frozen") or options.get("order") or options.get("unsafe_hash"))
    compared = changes and options.get("eq", True) and "__eq__" not in own and "__hash__" not in own
    made: Any = dataclasses.dataclass(cls, **{**options, "repr": False, "eq": options.get("eq", True) and not compared})
    if shown:
        made.__repr__ = _repr
    if compared:
        made.__eq__ = _equality([one.name for one in fields(made) if one.compare])
        made.__hash__ = None
    return made


def _equality(names: list[str]) -> Any:
    """Equality by the fields with these names, of objects of one class."""
    values = attrgetter(*names, names[0]) if names else lambda _: ()  # more than one name gives a tuple

    def __eq__(self: Any, other: Any) -> Any:  # noqa: N807 - it becomes that method
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__
