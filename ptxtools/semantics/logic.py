"""Logic and shifts (9.7.8)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ptxtools.semantics.algebra import Algebra, Value
from ptxtools.semantics.registry import Outputs, defines, defines_value
from ptxtools.semantics.types import is_signed, unsigned, word_bits

if TYPE_CHECKING:
    from ptxtools.isa import Opcode

logic = partial(defines_value, "logic")


def _type(op: Opcode) -> str:
    assert op.type is not None
    return op.type


@logic("and")
def and_(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.8.1"""
    return A.and_(_type(op), a, b)


@logic("or")
def or_(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.8.2"""
    return A.or_(_type(op), a, b)


@logic("xor")
def xor(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.8.3"""
    return A.xor(_type(op), a, b)


@logic("not")
def not_(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.8.4"""
    return A.not_(_type(op), a)


@logic("cnot")
def cnot(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.8.5"""
    t = unsigned(word_bits(_type(op)))
    return A.resize("pred", t, A.is_zero(t, a))


@defines("logic", "lop3")
def lop3(A: Algebra, op: Opcode, a: Value, b: Value, c: Value, table: Value, q: Value | None = None) -> Outputs:
    """9.7.8.6: bit 4a+2b+c of the table, for each bit of a, b and c.

    The table is an operand like any other here, so that one handler serves all 256: a tree of multiplexers, each leaf
    a table bit in every position.

    A table given as a Python int is compiled in.
    """
    result = _lookup(A, table, a, b, c)
    if q is None:
        return (result,)
    nonzero = A.is_nonzero("u32", result)
    predicate = A.and_("pred", nonzero, q) if op.has("and") else A.or_("pred", nonzero, q)
    return (result, predicate)


def _lookup(A: Algebra, table: Value, a: Value, b: Value, c: Value) -> Value:
    if isinstance(table, int):
        leaves = [A.const("u32", -(table >> i & 1)) for i in range(8)]
    else:
        leaves = [A.shr_by("s32", A.shl_by("s32", table, 31 - i), 31) for i in range(8)]
    by_c = [_choose(A, c, leaves[i + 1], leaves[i]) for i in range(0, 8, 2)]
    by_b = [_choose(A, b, by_c[i + 1], by_c[i]) for i in range(0, 4, 2)]
    return _choose(A, a, by_b[1], by_b[0])


def _choose(A: Algebra, mask: Value, ones: Value, zeros: Value) -> Value:
    return A.xor("u32", zeros, A.and_("u32", mask, A.xor("u32", ones, zeros)))


@logic("shf")
def shf(A: Algebra, op: Opcode, a: Value, b: Value, c: Value) -> Value:
    """9.7.8.7: `b` is the upper word, `a` the lower."""
    thirty_two = A.const("u32", 32)
    count = A.and_with("u32", c, 31)
    if op.has("l"):
        shifted = A.funnel_left("u32", b, a, count)
        beyond = a
    else:
        # (b:a) >> n is the low word; as a left shift by 32 - n it is the high word, and a itself for n = 0.
        left = A.funnel_left("u32", b, a, A.and_with("u32", A.neg("u32", count), 31))
        shifted = A.select("u32", A.is_zero("u32", count), a, left)
        beyond = b
    if op.has("wrap"):
        return shifted
    return A.select("u32", A.compare("ge", "u32", c, thirty_two), beyond, shifted)


@logic("shl")
def shl(A: Algebra, op: Opcode, a: Value, n: Value) -> Value:
    """9.7.8.8: counts beyond the width give zero; the count is always 32 bits wide."""
    t = unsigned(word_bits(_type(op)))
    inside, count = _count(A, t, n)
    return A.select(t, inside, A.shl(t, a, count), A.const(t, 0))


@logic("shr")
def shr(A: Algebra, op: Opcode, a: Value, n: Value) -> Value:
    """9.7.8.9: counts beyond the width give zero or the sign."""
    t = _type(op)
    bits = word_bits(t)
    if is_signed(t):
        count = A.resize("u32", t, A.minimum("u32", n, A.const("u32", bits - 1)))
        return A.shr(t, a, count)
    inside, count = _count(A, unsigned(bits), n)
    return A.select(unsigned(bits), inside, A.shr(unsigned(bits), a, count), A.const(unsigned(bits), 0))


def _count(A: Algebra, t: str, n: Value) -> tuple[Value, Value]:
    """Whether a shift count lies below the width, and the count in `t`'s width, masked."""
    bits = word_bits(t)
    inside = A.compare("lt", "u32", n, A.const("u32", bits))
    return inside, A.resize("u32", t, A.and_with("u32", n, bits - 1))
