"""Constants (LLVM's "Constants"; 5 of the specification)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache

from ..assembly.nodes import Value, Variable
from ..assembly.tokens import unescaped
from ..assembly.types import I8, Type
from ..assembly.values import CASTS
from .casts import between_spaces, cast_fault
from .context import Context
from .typing import MISMATCH, address_type

_HEX_BITS = {"H": 16, "R": 16, "K": 80, "L": 128, "M": 128}
UNSUPPORTED = "NVVM229"


def check_constant(context: Context, value: Value, locals: Mapping[str, Type | None] = {}) -> None:
    """A constant, and what it consists of. locals: names that metadata may mention."""
    check = _CHECKS.get(value.kind)
    if check:
        fault = check(context, value)
        if fault:
            context.at_value(MISMATCH, value, fault)
    for part in value.parts:
        if part.kind == "local":
            if value.kind in ("aggregate", "expression"):
                context.at_value(MISMATCH, part, f"'{part.text}' is no constant, and stands in one")
            elif part.text not in locals:
                context.at_value("NVVM110", part, f"use of undefined value '{part.text}'")
        else:
            check_constant(context, part, locals)


def fits(text: str, type: Type) -> bool:
    """Whether an integer constant has only bits that its type has."""
    bits = type.bits
    if bits > 64 or text[:1] in "us":
        return True
    return -(1 << (bits - 1)) <= int(text[:2500]) < 1 << bits


def _int(context: Context, value: Value) -> str:
    if value.type.kind == "float":
        return f"an integer is no constant of type {value.type}: write it with a point"
    if value.type.kind != "int":
        return f"an integer is no constant of type {value.type}"
    if not fits(value.text, value.type):
        context.at_value("NVVM119", value, f"{value.text[:40]} does not fit {value.type}: its upper bits are dropped")
    return ""


def _float(context: Context, value: Value) -> str:
    text, type = value.text, value.type
    if type.kind != "float":
        return f"a floating-point number is no constant of type {type}"
    if text[:2] == "0x":
        bits = _HEX_BITS.get(text[2:3].upper() if text[2:3] in "KLMHR" else "", 64)
        ours = type.bits if text[2:3] in "KLMHR" else 64
        if bits != ours or (bits == 64 and type.bits > 64):
            return f"{text[:40]} is no constant of type {type}"
    elif type.bits > 64:
        return f"a constant of type {type} is written in hexadecimal"
    return inexact(text, type)


@lru_cache(4096)
def inexact(text: str, type: Type) -> str:
    """What is wrong with a number that this type does not have, written as a decimal or as the bits of a double: LLVM
    rounds none. "" if it has it."""
    if type.kind != "float":
        return f"a floating-point number is no constant of type {type}"
    hexadecimal = text[:2] == "0x"
    if type.bits >= 64 or (hexadecimal and text[2:3] in "KLMHR"):
        return ""
    bits = int(text[2:], 16) if hexadecimal else _bits(float(text))
    kept, exponents = (10, 5) if type.text == "half" else (type.bits - 9, 8)
    exponent, fraction = bits >> 52 & 0x7FF, bits & (1 << 52) - 1
    if exponent == 0x7FF:
        dropped = 52 - kept
    elif exponent - 1023 >= 1 << exponents - 1:
        return f"{text[:40]} is too large for {type}"
    else:
        below = 2 - (1 << exponents - 1) - (exponent - 1023)  # how far it is below the normal numbers
        dropped, fraction = 52 - kept + max(0, below), fraction | (1 << 52 if exponent else 0)
    if fraction & (1 << dropped) - 1:
        return f"{text[:40]} is no number of type {type}, and LLVM does not round it"
    return ""


def _bits(number: float) -> int:
    bits: int = struct.unpack("<Q", struct.pack("<d", number))[0]
    return bits


def _word(context: Context, value: Value) -> str:
    word, type = value.text, value.type
    if word in ("true", "false") and not (type.kind == "int" and type.bits == 1):
        return f"{word} is of type i1, not {type}"
    if word == "null" and type.kind != "pointer":
        return f"null is a pointer, not {type}"
    if word == "none":
        if type.kind == "token":
            context.at_value(UNSUPPORTED, value, "constants of type token are not supported")
            return ""
        return f"none is of type token, not {type}"
    if word == "poison" and not context.modern:
        context.at_value("NVVM103", value, "poison is not in LLVM 7: it came with LLVM 12", "undef is in both dialects")
    if type.kind in ("void", "label", "function"):
        return f"there are no constants of type {type}"
    return ""


def _string(context: Context, value: Value) -> str:
    type, length = value.type, len(unescaped(value.text))
    if type.kind != "array" or type.elements[0] is not I8:
        return f"a string is of type [{length} x i8], not {type}"
    return "" if type.count == length else f"a string of {length} characters is of type [{length} x i8], not {type}"


_BRACKETS = {"array": "[", "vector": "<", "struct": "{"}


def _aggregate(context: Context, value: Value) -> str:
    type = context.resolved(value.type)
    begin = "<" if type.kind == "struct" and type.open else _BRACKETS.get(type.kind, "")
    if begin != value.text[:1] or (begin == "<" and value.text[1:].lstrip()[:1] == "{") != (
        type.kind == "struct" and begin == "<"
    ):
        return f"this is no constant of type {value.type}"
    if type.count != len(value.parts):
        return f"{value.type} has {type.count} elements, not {len(value.parts)}"
    for number, part in enumerate(value.parts):
        wanted = type.elements[number if type.kind == "struct" else 0]
        if part.type is not wanted:
            context.at_value(MISMATCH, part, f"an element of type {part.type} where {value.type} has {wanted}")
    return ""


def _global(context: Context, value: Value) -> str:
    module = context.module
    function, variable = module.functions.get(value.text), module.variables.get(value.text)
    if function is None and variable is None:
        context.at_value("NVVM110", value, f"use of undefined value '{value.text}'")
        return ""
    if variable is not None and variable.kind in ("alias", "ifunc"):
        to, space = variable.type, variable.space
        if variable.initial is not None and variable.initial.type.kind == "pointer":
            space = variable.initial.type.space
    else:
        to, space = (function.type, function.space) if function else (variable.type, variable.space)  # type: ignore[union-attr]
    if value.type.kind != "pointer":
        return f"'{value.text}' is a pointer, not {value.type}"
    have = context.pointer(to, space) if value.type.pointee is None else None
    if value.type.space != space or (value.type.pointee is not None and value.type.pointee is not to):
        from ..assembly import types

        have = have or types.pointer(to, space)
        return f"'{value.text}' is of type {have}, and is used as {value.type}"
    return ""


def _expression(context: Context, value: Value) -> str:
    op = value.extra["op"]
    if op in CASTS:
        want: Type = value.extra["type"]
        have = value.parts[0].type.scalar
        if op == "addrspacecast" and have.kind == "pointer" and between_spaces(have, want.scalar):
            context.at_value("NVVM308", value, f"a pointer to space {have.space} is not cast to one to space "
                             f"{want.scalar.space}", "cast it to a generic pointer first")  # fmt: skip
        fault = cast_fault(op, value.parts[0].type, want)
        return fault or ("" if want is value.type else f"{op} to {want} where {value.type} is expected")
    if op == "getelementptr" and value.parts:
        found = address_type(context, value.extra["type"], list(value.parts))
        if isinstance(found, Type):
            return "" if found is value.type else f"a pointer of type {found} where {value.type} is expected"
        context.at_value(MISMATCH, *found)
    return ""


def _block_address(context: Context, value: Value) -> str:
    context.at_value(UNSUPPORTED, value, "blockaddress is not supported")
    return ""


_CHECKS = {
    "int": _int, "float": _float, "word": _word, "string": _string, "aggregate": _aggregate, "global": _global,
    "expression": _expression, "block address": _block_address,
}  # fmt: skip

#: Expressions that reduce to a symbol and an offset (5).
_REDUCIBLE = frozenset(("bitcast", "getelementptr", "addrspacecast", "ptrtoint", "inttoptr", "add", "sub"))


def check_initial(context: Context, variable: Variable, value: Value) -> None:
    """The initialiser of a variable: what mentions a symbol must be a bitcast of it plus an offset (5)."""
    if value.kind == "expression":
        names = _symbols(value)
        strange = _irreducible(value)
        if names and (strange or len(names) > 1):
            what = f"{strange} of '{names[0]}'" if strange else f"an expression of {' and '.join(names[:3])}"
            context.at_value(UNSUPPORTED, value, f"the initialiser of {variable.name} is {what}",
                             "an address in an initialiser is a symbol plus an integer")  # fmt: skip
        return
    for part in value.parts:
        check_initial(context, variable, part)


def _symbols(value: Value) -> list[str]:
    if value.kind == "global":
        return [value.text]
    return [name for part in value.parts for name in _symbols(part)]


def _irreducible(value: Value) -> str:
    if value.kind == "expression" and value.extra["op"] not in _REDUCIBLE and _symbols(value):
        return str(value.extra["op"])
    return next(filter(None, map(_irreducible, value.parts)), "")
