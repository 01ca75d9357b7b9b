"""Which operand list of an opcode an instruction is written with."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.isa import Opcode, OperandSpec

from .nodes import Address, Operand, Vector

#: Kinds of operands that are written in braces, beside vectors of a known length.
_VECTORS = frozenset({"vec", "many", "braced"})


def fitting(op: Opcode, operands: Sequence[Operand]) -> tuple[OperandSpec, ...] | None:
    """The first list with as many operands, and with addresses and vectors where these have them; None if none fits.

    Types and registers are not looked at: of a valid instruction this is the list that `check` has found to fit.
    """
    for specs in op.shapes:
        needed = sum(not spec.optional for spec in specs)
        if needed <= len(operands) <= len(specs) and all(
            (spec.role == "addr") == isinstance(operand, Address)
            and (not isinstance(operand, Vector) or spec.vector or not _VECTORS.isdisjoint(spec.kinds))
            for spec, operand in zip(specs, operands, strict=False)
        ):
            return specs
    return None
