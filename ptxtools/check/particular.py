"""Rules of single instructions that no table column holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxtools.ir.nodes import Immediate, Operand
from ptxtools.isa import Opcode

from . import codes
from .operands import Problem

#: Hardware barriers of a CTA, and the granularity of their thread counts (9.7.13.1).
_BARRIERS, _WARP = 16, 32


def particular(op: Opcode, operands: Sequence[Operand]) -> Iterator[Problem]:
    """What is wrong with an instruction beyond its operand list."""
    plain = not op.has("warp") and not op.has("cluster")
    if op.family in ("bar", "barrier") and plain:
        yield from _barrier(op, operands)


def needs_particular(op: Opcode) -> bool:
    """Whether `particular` must see every instance: the values of constants count."""
    return op.family in ("bar", "barrier")


def _barrier(op: Opcode, operands: Sequence[Operand]) -> Iterator[Problem]:
    first = 1 if op.has("red") else 0
    number = operands[first] if len(operands) > first else None
    if isinstance(number, Immediate) and not 0 <= number.value < _BARRIERS:
        message = f"barrier {number.value} does not exist: they are numbered 0 to {_BARRIERS - 1}"
        yield Problem(codes.CONSTANT_RANGE, message, first)
    count = operands[first + 1] if len(operands) > first + 1 else None
    if isinstance(count, Immediate) and count.value % _WARP:
        message = f"a barrier waits for whole warps: {count.value} threads are no multiple of {_WARP}"
        yield Problem(codes.CONSTANT_RANGE, message, first + 1)
    elif isinstance(count, Immediate) and count.value == 0 and op.has("arrive"):
        yield Problem(codes.CONSTANT_RANGE, "an arrival needs the number of threads, found 0", first + 1)
