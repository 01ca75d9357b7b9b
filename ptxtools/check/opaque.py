"""Textures, samplers and surfaces in brackets: variables of the right type, or registers with their addresses
(5.3, 9.7.10, 9.7.11)."""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.ir.nodes import Address, Name, Operand
from ptxtools.isa import Opcode, OperandSpec
from ptxtools.isa.types import TYPES

from . import codes
from .problems import Problem, Setting, describe, undeclared
from .values import OPAQUE, Scope, Value

#: Geometries that accept a texture as their sampler in unified mode, by the kind of level selection; "": tld4.
_OWN_SAMPLERS = {
    **dict.fromkeys(("base", "grad"), frozenset({"1d", "2d", "3d"})),
    "level": frozenset({"1d", "2d", "cube"}),
    "": frozenset({"2d"}),
}


def check_opaque(
    op: Opcode, spec: OperandSpec, index: int, operand: Address, scope: Scope, setting: Setting
) -> Iterator[Problem]:
    """Check the base of the address, and the sampler next to a texture in independent mode."""
    if operand.offset:
        message = f"'{op.text}' takes a texture, sampler or surface as a whole: no offset"
        yield Problem(codes.ADDRESS_FORM, message, index, None, (), op.section)
    yield from check_name(op, spec, index, None, operand.base, scope, setting)
    if "texref" in spec.kinds and op.family in ("tex", "tld4"):
        if setting.independent and len(operand.extra) == 1:
            message = f"'{op.text}' requires a sampler after the texture: the module is texmode_independent"
            help = ("write [texture, sampler, {coordinates}]",)
            yield Problem(codes.ADDRESS_FORM, message, index, None, help, "9.7.10.1")
        elif not setting.independent and len(operand.extra) == 2 and not _samples_itself(op):
            message = f"'{op.text}' takes no sampler: in unified mode the texture is its own sampler"
            yield Problem(codes.ADDRESS_FORM, message, index, 1, ("write [texture, {coordinates}]",), "9.7.10.1")


def _samples_itself(op: Opcode) -> bool:
    """Whether unified mode has a form with a second texture instead of the sampler."""
    mode = op.mods.get("mode", "base") if op.family == "tex" else ""
    return op.mods["geom"] in _OWN_SAMPLERS[mode]


def check_name(
    op: Opcode, spec: OperandSpec, index: int, part: int | None, base: Operand, scope: Scope, setting: Setting
) -> Iterator[Problem]:
    """Check an opaque variable or register. In unified mode a texture is its own sampler (9.7.10.1)."""
    wanted = next(iter(OPAQUE & spec.kinds))
    found = scope.resolve(base.name) if isinstance(base, Name) else None
    if isinstance(base, Name) and found is not None and found.kind == "unknown":
        yield undeclared(base.name, scope, index, part)
        return
    if found is not None and found.kind == "reg":
        if found.vector or TYPES[found.type].kind not in ("int", "bits") or TYPES[found.type].bits != 64:
            message = f"{describe(base, scope)}: the address of a .{wanted} has 64 bits"
            yield Problem(codes.ADDRESS_REGISTER, message, index, part, (), op.section)
        return
    if found is None or found.kind != "memory" or not _fits(wanted, found, spec, setting):
        what = describe(base, scope)
        if found is not None and found.type in OPAQUE:
            what = f"'{base.name}' is a .{found.type}"  # type: ignore[union-attr]
        message = f"{what}; '{op.text}' requires a .{wanted} variable or a register with its address"
        yield Problem(codes.ADDRESS_FORM, message, index, part, (), op.section)
    elif isinstance(base, Name) and found.role == "array":
        message = f"'{base.name}' is an array: '{op.text}' requires one .{wanted}, or a register with its address"
        yield Problem(codes.ADDRESS_FORM, message, index, part, (), op.section)


def is_handle(operand: Operand, found: Value) -> bool:
    """Whether this names a single texture, sampler or surface, which ptxas accesses by its address (5.3)."""
    return isinstance(operand, Name) and found.type in OPAQUE and found.kind == "memory" and found.role != "array"


def _fits(wanted: str, found: Value, spec: OperandSpec, setting: Setting) -> bool:
    if found.type == wanted or (wanted == "texref" and found.space == "tex"):  # .tex: PTX before 1.5 (5.1.8)
        return True
    return (wanted, found.type) == ("samplerref", "texref") and not setting.independent and "alone" not in spec.kinds
