"""Intrinsics (11, 12.2.2, 14.2, 15): their declarations, and the constants that calls must give."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from ptxtools.records import NamedTuple

from ..assembly import types
from ..assembly.nodes import Function, Instruction, Value
from ..assembly.reader import Reader
from ..assembly.types import Type
from ..intrinsics import Intrinsic, intrinsics
from .context import Context

UNKNOWN, SIGNATURE, CONSTANT, TARGET, SPACE, OVERLOAD = "NVVM401", "NVVM402", "NVVM403", "NVVM404", "NVVM405", "NVVM406"
HELD = "NVVM422"
#: What gives the handle of a texture or surface.
HANDLE = "@llvm.nvvm.texsurf.handle"
_CONSTANT_SPACE = 4


class Standard(NamedTuple):
    """An intrinsic of LLVM (11). types: of its overload, as in the name, "" if it has none; vectors: of them, too;
    signature: T is the overload, P a pointer, I an integer; "" is not checked; modern: only in the modern dialect;
    constants: arguments that must be constants."""

    types: str
    signature: str = ""
    vectors: bool = False
    modern: bool = False
    constants: tuple[int, ...] = ()


_FLOATS, _NARROW, _WIDE, _ANY_INTS = "f32 f64", "i8 i16 i32 i64", "i16 i32 i64", "i1 i8 i16 i32 i64 i128"
_OVERFLOW = {
    f"{sign}{op}.with.overflow": Standard(_WIDE, "{ T, i1 } (T, T)") for sign in "su" for op in ("add", "sub", "mul")
}
#: 11.1 to 11.9
STANDARD: dict[str, Standard] = {
    "va_start": Standard("", "void (P)"), "va_end": Standard("", "void (P)"), "va_copy": Standard("", "void (P, P)"),
    "copysign": Standard(_FLOATS, "T (T, T)", vectors=True, modern=True),
    "memcpy": Standard("*", "void (P, P, I, i1)", constants=(3,)),
    "memmove": Standard("*", "void (P, P, I, i1)", constants=(3,)),
    "memset": Standard("*", "void (P, i8, I, i1)", constants=(3,)),
    "sqrt": Standard(_FLOATS, "T (T)", vectors=True), "fma": Standard(_FLOATS, "T (T, T, T)", vectors=True),
    "bitreverse": Standard(_NARROW, "T (T)"), "bswap": Standard(_WIDE, "T (T)"),
    "ctpop": Standard(_NARROW, "T (T)", vectors=True),
    "ctlz": Standard(_NARROW, "T (T, i1)", vectors=True, constants=(1,)),
    "cttz": Standard(_NARROW, "T (T, i1)", vectors=True, constants=(1,)),
    "fshl": Standard(_NARROW, "T (T, T, T)"), "fshr": Standard(_NARROW, "T (T, T, T)"),
    "fmuladd": Standard("f16 bf16 f32 f64", "T (T, T, T)", vectors=True), **_OVERFLOW,
    "convert.to.fp16": Standard(_FLOATS, "i16 (T)"), "convert.from.fp16": Standard(_FLOATS, "T (i16)"),
    **dict.fromkeys(("dbg.addr", "dbg.declare", "dbg.value"), Standard("", "void (metadata, metadata, metadata)")),
    **dict.fromkeys(("lifetime.start", "lifetime.end"), Standard("*", "void (i64, P)", constants=(0,))),
    "invariant.start": Standard("*", constants=(0,)), "invariant.end": Standard("*"),
    **dict.fromkeys(("var.annotation", "ptr.annotation", "annotation"), Standard("*")),
    "trap": Standard("", "void ()"), "expect": Standard(_ANY_INTS, "T (T, T)"), "assume": Standard("", "void (i1)"),
    "donothing": Standard("", "void ()"), "sideeffect": Standard("", "void ()"),
}  # fmt: skip
#: Flags of these need not be constants, but constant ones are checked (15.2).
_FLAGS = "15.2"
_SUFFIX = re.compile(r"(?:v(\d+))?(i\d+|f16|bf16|f32|f64|f80|f128)")
_FLOAT_NAMES = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double", "f80": "x86_fp80", "f128": "fp128"}


@cache
def _modern_names() -> dict[str, Intrinsic]:
    return {one.modern_name: one for one in intrinsics().values()}


def intrinsic(name: str, modern: bool) -> Intrinsic | None:
    """The form of a name of NVVM's own; the modern dialect has names for opaque pointers, and upgrades the others."""
    return intrinsics().get(name) or (_modern_names().get(name) if modern else None)


@cache
def standard(name: str) -> tuple[str, Standard, str] | None:
    """The intrinsic of a name "llvm.fma.f32": its row's name, the row, and the overload's name."""
    plain = name.removeprefix("llvm.")
    while True:
        if plain in STANDARD:
            return plain, STANDARD[plain], name[len("llvm.") + len(plain) + 1 :]
        plain, dot, _ = plain.rpartition(".")
        if not dot:
            return None


@cache
def takes_any_value(name: str, modern: bool) -> bool:
    """Whether no rule asks for the values of the arguments of an intrinsic, which is one that there is."""
    found = intrinsic(name, modern)
    if found is not None:
        return not found.constants and name != "llvm.nvvm.membar" and not name.startswith(HANDLE[1:])
    known = standard(name)
    return known is not None and not known[1].constants


def _overload(text: str) -> Type | None:
    match = _SUFFIX.fullmatch(text)
    if not match or len(text) > 12:
        return None
    of = types.simple(_FLOAT_NAMES.get(match[2], match[2]))
    return types.vector(int(match[1]), of) if of is not None and match[1] and int(match[1]) else of


def check_intrinsic(context: Context, function: Function) -> None:
    """A declaration `@llvm.…`."""
    name = function.name[1:]
    found = intrinsic(name, context.modern)
    if found is not None:
        _check_form(context, function, found)
        return
    known = standard(name)
    if known is None:
        what = "NVVM IR has no such intrinsic"
        if name.startswith("llvm.nvvm.ptr."):
            what = "NVVM IR 2.0 has no intrinsics for address spaces: use addrspacecast"
        context.at_name(UNKNOWN, function.at, function.name, f"'{name}' is not supported: {what}")
        return
    _check_standard(context, function, *known)


def _check_form(context: Context, function: Function, found: Intrinsic) -> None:
    wanted = _form_type(found.name, context.modern)
    if function.type is not wanted:
        context.at_name(
            SIGNATURE, function.at, function.name, f"'{function.name[1:]}' is {wanted}, not {function.type}"
        )
    context.needs(TARGET, (function.at, function.at + len(function.name)), f"'{found.name}'", found.since)


@cache
def _form_type(name: str, modern: bool) -> Type:
    found = intrinsics()[name]
    result, *arguments = (Reader(one).type() for one in (found.result, *found.parameters))
    if modern:
        arguments = [types.opaque_pointer(one.space) if one.kind == "pointer" else one for one in arguments]
    return types.function(result, arguments)


def _check_standard(context: Context, function: Function, plain: str, row: Standard, suffix: str) -> None:
    def fault(code: str, message: str) -> None:
        context.at_name(code, function.at, function.name, message)

    if row.modern and not context.modern:
        fault(TARGET, f"'llvm.{plain}' is only in the modern dialect")
    overload = _overload(suffix)
    if row.types and row.types != "*":
        element = suffix.partition(".")[0].lstrip("v0123456789") if suffix.startswith("v") else suffix
        if element not in row.types.split() or (suffix.startswith("v") and not row.vectors):
            those = row.types.replace(" ", ", ") + (" and vectors of them" if row.vectors else "")
            fault(OVERLOAD, f"'llvm.{plain}' is not supported for {suffix or 'no type'}, but for {those}")  # fmt: skip
            return
    elif not row.types and suffix and not re.fullmatch(r"p\d+(?:i8)?", suffix):
        fault(UNKNOWN, f"'{function.name[1:]}' is not supported: 'llvm.{plain}' has no overloads")
        return
    if row.signature and not _fits(function.type, row.signature, overload):
        shown = row.signature.replace("T", overload.text if overload else "T")
        fault(
            SIGNATURE,
            f"'{function.name[1:]}' is {shown.replace('P', 'pointer').replace('I', 'integer')}, not {function.type}",
        )
        return
    if plain in ("memcpy", "memmove", "memset"):
        for param in function.params[: 1 if plain != "memmove" else 2]:
            if param.type.kind == "pointer" and param.type.space == _CONSTANT_SPACE:
                message = f"'llvm.{plain}' does not {'use' if plain == 'memmove' else 'write'} constant memory"
                context.at_name(SPACE, param.at, param.name, message)


def _fits(have: Type, signature: str, overload: Type | None) -> bool:
    result, _, inside = signature.partition(" (")
    wanted = [result, *filter(None, inside.removesuffix(")").split(", "))]
    if len(wanted) != len(have.elements):
        return False
    return all(_fits_one(type, want, overload) for type, want in zip(have.elements, wanted, strict=True))


def _fits_one(type: Type, want: str, overload: Type | None) -> bool:
    if want == "P":
        return type.kind == "pointer"
    if want == "I":
        return type.kind == "int"
    if "T" in want and overload is not None:
        want = want.replace("T", overload.text)
    return type.text == want


def check_call(context: Context, one: Instruction, name: str) -> None:
    """A call of an intrinsic: its constants."""
    arguments = one.operands[1:]
    found = intrinsic(name, context.modern)
    if found is None:
        known = standard(name)
        for number in known[1].constants if known else ():
            if number < len(arguments) and arguments[number].kind in ("local", "global"):
                context.at_value(CONSTANT, arguments[number], f"argument {number + 1} of '{name}' must be a constant")
        return
    if name.startswith(HANDLE[1:]) and len(arguments) == 2:
        _check_handle(context, *arguments)
    for number, values in found.constants.items():
        if number < len(arguments):
            _check_argument(context, arguments[number], number, found, values)
    if name == "llvm.nvvm.membar" and arguments and arguments[0].text == "4":
        context.needs(TARGET, (one.at, one.end), "a membar of the cluster", 90)


def _check_handle(context: Context, metadata: Value, variable: Value) -> None:
    """A call of `texsurf.handle` (14.2): metadata that holds one texture or surface, and this variable."""
    node = context.module.metadata.get(metadata.text) if metadata.extra == "node" else None
    held: Sequence[Value | None] = node.operands if node is not None else metadata.parts
    while len(held) == 1 and held[0] is not None and held[0].kind == "metadata" and held[0].parts:
        held = held[0].parts
    names = [one.text for one in held if one is not None and one.kind == "global"]
    if len(names) != 1 or len(held) != 1 or names[0] not in context.opaque:
        context.at_value(HELD, metadata, "the metadata holds one texture or surface, and nothing else")
    elif variable.text != names[0]:
        context.at_value(HELD, variable, f"the metadata holds {names[0]}, and this is {variable.text[:60]}")


def _check_argument(context: Context, value: Value, number: int, found: Intrinsic, values: tuple[int, ...]) -> None:
    if value.kind != "int":
        if found.section != _FLAGS:
            context.at_value(CONSTANT, value, f"argument {number + 1} of '{found.name}' must be a constant")
    elif value.text.lstrip("-").isdecimal() and len(value.text) < 20 and int(value.text) not in values:
        allowed = ", ".join(map(str, values))
        context.at_value(CONSTANT, value, f"argument {number + 1} of '{found.name}' is {value.text}: it must be "
                         f"{'one of ' if len(values) > 1 else ''}{allowed}")  # fmt: skip
