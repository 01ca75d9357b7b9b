"""Video instructions: selectors and signs of their operands become part of what is computed (9.7.18)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ptxtools.ir import Instruction, Name, Negated, Operand
from ptxtools.isa import Opcode, OperandSpec
from ptxtools.program.details import Suffixes
from ptxtools.records import replace

from .arithmetic import compute, shape_of
from .registry import lowers

if TYPE_CHECKING:
    from .function import FunctionLowering

_SELECTED = re.compile(r"(.+)\.([bh][0-7]{1,4})")
_KINDS = frozenset({"select", "select2", "select4", "mask2", "mask4"})
_SCALAR = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset")
_SIMD = tuple(name + n for n in "24" for name in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset"))


@lowers(*_SCALAR, *_SIMD)
def video(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """As any arithmetic instruction, with the operands' suffixes as the operation's detail."""
    plain: list[Operand] = []
    suffixes = ["", "", "", ""]
    signs = [False, False, False, False]
    for place, (operand, spec) in enumerate(zip(instruction.operands, shape_of(op, instruction), strict=False)):
        if isinstance(operand, Negated) and operand.operator == "-":
            operand, signs[place] = operand.operand, True
        operand, suffixes[place] = _without_selector(operand, spec)
        plain.append(operand)
    made = Suffixes(suffixes[0], suffixes[1], suffixes[2], (signs[1], signs[2], signs[3]))
    compute(f, replace(instruction, operands=tuple(plain)), op, made)


def _without_selector(operand: Operand, spec: OperandSpec) -> tuple[Operand, str]:
    """The register and its selector's text."""
    if isinstance(operand, Name) and spec.kinds & _KINDS:
        match = _SELECTED.fullmatch(operand.name)
        if match is not None:
            return Name(match[1]), match[2]
    return operand, ""
