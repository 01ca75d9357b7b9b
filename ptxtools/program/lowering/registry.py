"""The functions that lower instructions; files of this package register theirs by the instruction's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from ptxtools.ir import Instruction
from ptxtools.isa import Opcode
from ptxtools.semantics import covers

if TYPE_CHECKING:
    from .function import FunctionLowering

Lowerer: TypeAlias = "Callable[[FunctionLowering, Instruction, Opcode], None]"

#: Lowerers by `Opcode.name` ("ld", "bar.warp.sync"); "*" takes whatever has no entry of its own.
LOWERERS: dict[str, Lowerer] = {}
#: Opcodes whose forms have a meaning, as far as they have been met.
_covered: set[str] = set()


class Unsupported(Exception):  # noqa: N818 - not an error of ours: becomes a diagnostic
    """The instruction cannot be run; the message says why."""


def lowers(*names: str) -> Callable[[Lowerer], Lowerer]:
    """Register a function for instruction names."""

    def register(function: Lowerer) -> Lowerer:
        for name in names:
            LOWERERS[name] = function
        return function

    return register


def lowerer_of(op: Opcode) -> Lowerer:
    """What lowers an opcode. Raises `Unsupported` for a form that has no meaning: it must not run as another one."""
    if op.text not in _covered:
        if not covers(op):
            raise Unsupported("this form has no simulation")
        _covered.add(op.text)
    return LOWERERS.get(op.name) or LOWERERS["*"]
