"""Requirements that depend on the operands of an instruction: which of them are written, and as what."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.ir.nodes import Address, Immediate, Name, Operand, Pair, Vector
from ptxtools.isa import Need, Opcode, OperandSpec

from .opaque import is_handle
from .operands import best_fit
from .problems import Setting
from .values import Scope


def required(op: Opcode, operands: Sequence[Operand], scope: Scope, setting: Setting) -> list[Need]:
    """Those of the operand requirements of `op` that apply; operands go by their names in the list that fits them,
    which need not be that of the form that the modifiers have named."""
    specs, _ = best_fit(op, operands, scope, setting)
    return [need for need in op.operand_requirements if _written(specs, need, operands, scope, setting)]


def _written(
    specs: Sequence[OperandSpec], need: Need, operands: Sequence[Operand], scope: Scope, setting: Setting
) -> bool:
    """Whether the operand that a requirement depends on is there, in the kind that it names."""
    for spec, operand in zip(specs, operands, strict=False):
        if spec.name == need.operand:
            return _is(need.kind, operand, scope, setting)
        if spec.second and spec.second.name == need.operand:
            return isinstance(operand, Pair)
    return False


def _is(kind: str, operand: Operand, scope: Scope, setting: Setting) -> bool:
    if kind == "imm":
        return isinstance(operand, Immediate)
    if kind.isdigit():
        return isinstance(operand, Immediate) and operand.value == int(kind)
    if kind == "reg":
        return isinstance(operand, Name)
    if kind == "unified":
        return isinstance(operand, Address) and operand.suffix == "unified"
    if kind == "vec":
        return isinstance(operand, Vector)
    if kind == "handle":
        return isinstance(operand, Address) and _in_register(operand.base, scope)
    if kind == "indirect":
        return isinstance(operand, Address) and _is_indirect(operand, scope, setting)
    if kind in ("opaque", "sampler"):
        found = scope.resolve(operand.name) if isinstance(operand, Name) else None
        return found is not None and is_handle(operand, found) and kind in ("opaque", found.type.removesuffix("ref"))
    if kind in ("entry", "func"):
        found = scope.resolve(operand.name) if isinstance(operand, Name) else None
        return found is not None and found.kind == "function" and found.role == kind
    return True


def _in_register(operand: Operand, scope: Scope) -> bool:
    return isinstance(operand, Name) and scope.resolve(operand.name).kind == "reg"


def _is_indirect(place: Address, scope: Scope, setting: Setting) -> bool:
    """Whether a texture has a sampler beside it, not both of them by their names in independent mode."""
    if len(place.extra) < 2:
        return False
    return not setting.independent or _in_register(place.base, scope) or _in_register(place.extra[0], scope)
