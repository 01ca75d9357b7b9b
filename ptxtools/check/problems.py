"""Problems of operands, and the words that describe an operand."""

from __future__ import annotations

from ptxtools.ir.nodes import (
    Address,
    Arguments,
    Element,
    Immediate,
    Instruction,
    Name,
    Negated,
    Operand,
    Pair,
    SymbolOffset,
    Variable,
    Vector,
)
from ptxtools.ir.positions import Part
from ptxtools.ir.references import operand_names
from ptxtools.isa.chips import Version
from ptxtools.records import NamedTuple

from . import codes
from .values import Scope

#: The kinds of names and other operands, in words.
_KINDS = {
    "function": "a function",
    "label": "a label",
    "targets": "a list of branch targets",
    "callees": "a list of call targets",
    "prototype": "a prototype",
    "int": "a constant",
    "sreg": "a special register",
    "sink": "the sink",
    "unknown": "not declared",
}
_SHAPES: dict[type, str] = {
    Immediate: "a constant",
    Vector: "a vector",
    Address: "an address in brackets",
    Negated: "negated",
    Pair: "a pair",
    Arguments: "a list of arguments",
}


class Problem(NamedTuple):
    """What is wrong with one operand. operand: its index; part: which one inside its brackets or braces, or None; name:
    that it is about, where it is not the operand; past_range: that lies past the end of a declared range; better: what
    the operand should be; space: the state space that the opcode should have."""

    code: str
    message: str
    operand: int
    part: Part | None = None
    help: tuple[str, ...] = ()
    section: str | None = None
    name: str = ""
    past_range: bool = False
    better: str = ""
    space: str = ""


class Setting(NamedTuple):
    """Facts about the module for the rules on addresses."""

    address_bits: int
    wide_only: bool  # the target has no 32-bit addressing
    long: bool = False  # no ptxas of this version has 32-bit addresses
    independent: bool = False  # textures and samplers are separate variables (.target texmode_independent)
    version: Version = (0, 0)


def describe(operand: Operand, scope: Scope) -> str:
    """Such as "'%f1' is a .f32 register", "this is a constant"."""
    if isinstance(operand, (Name, SymbolOffset, Element)):
        found = scope.resolve(operand.name)
        if found.kind == "reg":
            shape = f"vector .v{found.vector} " if found.vector else ""
            return f"'{operand.name}' is a {shape}.{found.type} register"
        if found.kind == "memory":
            return f"'{operand.name}' is a .{found.space} variable"
        return f"'{operand.name}' is {_KINDS.get(found.kind, found.kind)}"
    return f"this is {_SHAPES[type(operand)]}"


def undeclared(name: str, scope: Scope, index: int, part: int | None = None) -> Problem:
    """The finding for a name without a declaration, with near misses."""
    from .suggestions import near_names, range_of

    base, dot, component = name.partition(".")
    if dot and scope.lookup(base) is not None:
        return Problem(codes.BAD_COMPONENT, f"'{base}' has no component '.{component}'", index, part, name=name)
    if name.startswith("%") and dot and scope.resolve(base).kind == "sreg":
        return Problem(
            codes.BAD_COMPONENT, f"special register '{base}' has no component '.{component}'", index, part, name=name
        )
    like = base.rstrip("0123456789") if base.startswith("%") else base
    near = scope.near.get(like)
    if near is None:
        near = scope.near[like] = near_names(base, scope)
    help = (f"did you mean {' or '.join(repr(n) for n in near)}?",) if near else ()
    limit = range_of(base, scope)
    if limit is not None:
        help = (f"{limit.name}<{limit.count}> declares {limit.name}0 to {limit.name}{(limit.count or 1) - 1}",)
    return Problem(
        codes.UNDECLARED, f"'{base}' is not declared here", index, part, help, "4.4", base, limit is not None
    )


def is_array(operand: Element, scope: Scope) -> bool:
    """Whether what is indexed is an array (6.4.2), or no variable at all."""
    symbol = scope.lookup(operand.name)
    return not isinstance(symbol, Variable) or symbol.space == "reg" or bool(symbol.dims)


def no_array(operand: Element, index: int, part: int | None = None) -> Problem:
    """The finding for an index behind a name that is no array."""
    message = f"'{operand.name}' is no array: it has no elements"
    return Problem(codes.OPERAND_KIND, message, index, part, (f"write [{operand.name}]",), "6.4.2")


def names_of(item: Instruction, operand: int, part: int | None = None) -> tuple[str, ...]:
    """The names in an operand of an instruction, or in one part of a list of arguments; none if it is not an
    operand."""
    if not 0 <= operand < len(item.operands):
        return ()
    found = item.operands[operand]
    if part is not None and isinstance(found, Arguments) and part < len(found.items):
        found = found.items[part]
    return tuple(operand_names(found))


def same_space(wanted: str, have: str) -> bool:
    """Whether an instruction on space `wanted` can refer to a variable of space `have` ("shared::cta" is shared)."""
    return wanted.partition("::")[0] == have.partition("::")[0]
