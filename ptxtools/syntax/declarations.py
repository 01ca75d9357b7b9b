"""Declarations (5.4): the meaning of a list of specifiers and a declarator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from ptxtools.diagnostics import NO_SPAN, Span
from ptxtools.ir import Initializer, Variable
from ptxtools.records import NamedTuple, replace

from .faults import Fault
from .limits import MOST_RANGE_VARIABLES

#: A specifier from the grammar: its kind (a token class, "BANK" or "ATTRIBUTE"), value and position.
Specifier: TypeAlias = tuple[str, Any, Span]

#: Kinds in the order that a declaration requires; those of the same rank may be in any order. The manual has the
#: alignment after the state space (5.4.5); ptxas accepts either order.
_RANK = {"LINKAGE": 0, "SPACE": 1, "BANK": 1, "ALIGN": 1, "ATTRIBUTE": 1, "VECTOR": 2, "TYPE": 3, "PTR": 4}
_NAMES = {
    "LINKAGE": "linking directive",
    "SPACE": "state space",
    "BANK": "state space",
    "ALIGN": "alignment",
    "ATTRIBUTE": ".attribute",
    "VECTOR": "vector length",
    "TYPE": "type",
    "PTR": ".ptr",
}


class Declarator(NamedTuple):
    """A declared name and its suffix. `span` is the name's, `range` the n of `%r<n>`."""

    name: str
    span: Span = NO_SPAN
    range: int | None = None
    dims: tuple[int | None, ...] = ()
    init: Initializer | None = None


class Specifiers:
    """`.visible .global .align 4 .v4 .f32`, `.param .u64 .ptr .global .align 8`: sorted into fields."""

    def __init__(self, items: list[Specifier], span: Span) -> None:
        self.span = span
        self.found: dict[str, Any] = {}
        self.ptr: tuple[str, int | None] | None = None
        last: Specifier | None = None
        for index, item in enumerate(items):
            if item[0] == "PTR":
                self._pointer(items[index:])
                break
            self._add(item, last)
            last = item

    def _add(self, item: Specifier, last: Specifier | None) -> None:
        kind, value, place = item
        kind = "SPACE" if kind == "BANK" else kind
        again = kind == "ALIGN" and kind in self.found and value >= self.found[kind]  # ptxas has the last one
        if kind in self.found and not again:
            raise Fault("PTX108", f"a declaration has only one {_NAMES[kind]}", place)
        if last is not None and _RANK[last[0]] > _RANK[kind]:
            raise Fault("PTX108", f"the {_NAMES[kind]} must precede the {_NAMES[last[0]]}", place)
        self.found[kind] = value

    def _pointer(self, items: list[Specifier]) -> None:
        """`.ptr {.space} {.align N}` (5.1.6.3), or a type of texture in place of the space (5.3)."""
        space, align = "", None
        for kind, value, place in items[1:]:
            opaque = kind == "TYPE" and value in ("texref", "samplerref", "surfref")
            if (kind == "SPACE" or opaque) and not space and align is None:
                space = value
            elif kind == "ALIGN" and align is None:
                align = value
            else:
                raise Fault(
                    "PTX108",
                    "only a state space, or a type such as .texref, and then an alignment may follow .ptr",
                    place,
                )
        self.ptr = (space, align)

    def check(self) -> Specifiers:
        """Check the specifiers that every declaration needs."""
        for kind, article in (("SPACE", "a state space such as .global"), ("TYPE", "a type such as .b32")):
            if kind not in self.found:
                raise Fault("PTX108", f"this declaration lacks {article}", self.span)
        if self.found["SPACE"] == "sreg":
            raise Fault("PTX108", "special registers are predefined and cannot be declared", self.span)
        return self

    def variable(self, declared: Declarator, span: Span) -> Variable:
        """The variable declared by these specifiers and one declarator."""
        found = self.found
        space, bank = found["SPACE"] if isinstance(found["SPACE"], tuple) else (found["SPACE"], None)
        return Variable(
            declared.name,
            space,
            found["TYPE"],
            int(found["VECTOR"][1:]) if "VECTOR" in found else 1,
            found.get("ALIGN"),
            declared.dims,
            declared.range,
            declared.init,
            found.get("LINKAGE", ""),
            found.get("ATTRIBUTE", ()),
            self.ptr,
            bank,
            span,
            declared.span,
        )


def names_nothing(variable: Variable) -> bool:
    """Whether a declaration has no name, or a range of none: `.global .b32;`, `.global .b32 x<0>;`."""
    return not variable.name or (variable.count == 0 and variable.space != "reg")


def single_variables(variables: list[Variable]) -> Iterator[Variable]:
    """The variables of a declaration, those of a range `d<4>` one by one (5.4.6); registers stay a range."""
    for variable in variables:
        if variable.count is None or variable.space == "reg":
            yield variable
            continue
        if variable.count > MOST_RANGE_VARIABLES:
            message = f"{variable.count} variables in one declaration; at most {MOST_RANGE_VARIABLES} are allowed"
            raise Fault("PTX104", message, variable.name_span)
        for number in range(variable.count):
            yield replace(variable, name=f"{variable.name}{number}", count=None)
