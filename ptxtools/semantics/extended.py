"""Extended-precision integer arithmetic (9.7.2): the carry flag CC.CF as an explicit predicate.

Inputs end with the carry in, outputs with the carry out, where the opcode has them. The flag is one bit, whichever
instruction wrote it: a subtraction is a + ~b + 1, and leaves the carry of that sum, 1 where nothing was borrowed. The
manual calls it the borrow, which is the same as long as only subtractions read it; 128-bit divisions as nvcc makes them
read it by addc, and rely on this.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ptxtools.semantics.algebra import Algebra, Value
from ptxtools.semantics.registry import Outputs, defines
from ptxtools.semantics.types import unsigned, word_bits

if TYPE_CHECKING:
    from ptxtools.isa import Opcode

extended = partial(defines, "extended")


def _word(op: Opcode) -> str:
    assert op.type is not None
    return unsigned(word_bits(op.type))


def _sum(A: Algebra, op: Opcode, a: Value, b: Value, carry: Value | None) -> Outputs:
    t = _word(op)
    total = A.add(t, a, b)
    out = A.compare("lt", t, total, a) if op.carry_out else None
    if carry is not None:
        with_carry = A.add(t, total, A.resize("pred", t, carry))
        if op.carry_out:
            out = A.or_("pred", out, A.compare("lt", t, with_carry, total))
        total = with_carry
    return (total, out) if op.carry_out else (total,)


@extended("add", "addc")
def add(A: Algebra, op: Opcode, a: Value, b: Value, carry: Value | None = None) -> Outputs:
    """9.7.2.1, 9.7.2.2"""
    return _sum(A, op, a, b, carry)


@extended("sub", "subc")
def sub(A: Algebra, op: Opcode, a: Value, b: Value, carry: Value | None = None) -> Outputs:
    """9.7.2.3, 9.7.2.4"""
    t = _word(op)
    if carry is not None:
        return _sum(A, op, a, A.not_(t, b), carry)
    difference = A.sub(t, a, b)
    return (difference, A.compare("ge", t, a, b)) if op.carry_out else (difference,)


@extended("mad", "madc")
def mad(A: Algebra, op: Opcode, a: Value, b: Value, c: Value, carry: Value | None = None) -> Outputs:
    """9.7.2.5, 9.7.2.6"""
    assert op.type is not None
    product = A.mul_high(op.type, a, b) if op.has("hi") else A.mul(op.type, a, b)
    return _sum(A, op, product, c, carry)
