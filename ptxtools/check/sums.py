"""Sums of a register and a constant as source operands: `add.u32 %r1, %r2, %r3+1`. The manual has them only in
addresses (6.4.1); ptxas adds in the operands below as it adds there (testdata/conformance/lenience.tsv)."""

from __future__ import annotations

from ptxtools.isa import Opcode, OperandSpec
from ptxtools.isa.types import TYPES, TypeInfo

from .problems import Setting
from .values import Value

_VIDEO = "9.7.18"
#: Instructions that take no sum, and those that take none of 64 bits.
_NONE = frozenset({"clmad", "createpolicy", "cvta", "fabric", "istypep"})
_NONE_WIDE = frozenset({"cp", "getctarank", "mapa", "mbarrier", "tcgen05", "wgmma"})
#: .bf16 is a type of its own from this version on, as ptxas has it.
_TYPED_BFLOATS = (9, 1)
_INTEGERS = frozenset({"int", "bits"})


def takes_sum(op: Opcode, spec: OperandSpec, found: Value, setting: Setting) -> bool:
    """Whether ptxas adds a constant to the register `found` there: 64 bits, or 32, of which a narrower operand takes
    the low ones. A sum of 32 bits is none of 64: ptxas makes up the rest."""
    info = TYPES.get(spec.type or "")
    if found.kind != "reg" or found.vector or found.role or info is None or spec.role != "src" or spec.vector:
        return False
    have = TYPES[found.type]
    if have.kind not in _INTEGERS or op.family in _NONE:
        return False
    if have.bits != info.bits and (have.bits != 32 or info.bits > 32):
        return False
    if have.kind != "bits" and info.kind not in _INTEGERS:
        return False
    if info.bits == 64 and (op.family in _NONE_WIDE or op.name == "red.async"):
        return False
    return "reg" in spec.kinds and _takes_its_type(op, spec, info, setting)


def _takes_its_type(op: Opcode, spec: OperandSpec, info: TypeInfo, setting: Setting) -> bool:
    """Whether an operand that suits the register takes a sum, by its type and what else may stand there."""
    if "imm" in spec.kinds:
        narrow = info.bits < 32 and spec.width in ("typed", "wider")
        described = op.family == "tcgen05" and spec.name == "idesc"
        return (info.bits >= 32 or narrow) and info.kind != "pred" and "select" not in spec.kinds and not described
    if info.bits == 16:
        return spec.width == "typed" and (
            spec.type == "f16" or (spec.type == "bf16" and setting.version >= _TYPED_BFLOATS)
        )
    untyped = info.name == "b32" and ("braced" in spec.kinds or op.family == "movmatrix")
    return info.bits >= 32 and (untyped or (info.kind == "packed" and not op.section.startswith(_VIDEO)))
