"""Integer arithmetic (9.7.1)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ptxtools.semantics.algebra import Algebra, Value
from ptxtools.semantics.registry import defines_value
from ptxtools.semantics.types import bits_of, element_of, is_signed, unsigned, with_sign, word_bits

if TYPE_CHECKING:
    from ptxtools.isa import Opcode

integer = partial(defines_value, "integer")


def _type(op: Opcode) -> str:
    assert op.type is not None
    return op.type


def _elementwise(A: Algebra, op: Opcode, body: object, *inputs: Value) -> Value:
    """Apply `body(B, element_type, *elements)` to each element of packed operands, or once."""
    element, count = element_of(_type(op))
    if count == 1:
        return body(A, element, *inputs)  # type: ignore[operator]
    if bits_of(element) == 8:  # in words of 16 bits, extended by their sign
        parts = zip(*(A.unpack(element, count, value) for value in inputs), strict=True)
        return A.pack(element, [body(A, with_sign(element, 16), *part) for part in parts])  # type: ignore[operator]
    word, part = unsigned(bits_of(_type(op))), unsigned(bits_of(element))
    return A.elementwise(word, part, lambda B, *parts: body(B, element, *parts), *inputs)  # type: ignore[operator]


@integer("add")
def add(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.1.1"""
    if op.has("sat") and bits_of(element_of(_type(op))[0]) == 8:
        return _elementwise(A, op, lambda B, t, x, y: _byte(B, t, B.add("s16", x, y)), a, b)
    if op.has("sat"):
        return _elementwise(A, op, lambda B, t, x, y: B.add_saturating(t, x, y), a, b)
    return _elementwise(A, op, lambda B, t, x, y: B.add(t, x, y), a, b)


def _byte(A: Algebra, t: str, value: Value) -> Value:
    """A sum or difference of two bytes brought into the range of a byte, signed as `t` is."""
    low, high = (-128, 127) if is_signed(t) else (0, 255)
    return A.minimum("s16", A.maximum("s16", value, A.const("s16", low)), A.const("s16", high))


@integer("sub")
def sub(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.1.2"""
    if op.has("sat") and bits_of(element_of(_type(op))[0]) == 8:
        return _elementwise(A, op, lambda B, t, x, y: _byte(B, t, B.sub("s16", x, y)), a, b)
    if op.has("sat"):
        return _elementwise(A, op, lambda B, t, x, y: B.sub_saturating(t, x, y), a, b)
    return _elementwise(A, op, lambda B, t, x, y: B.sub(t, x, y), a, b)


@integer("mul")
def mul(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.1.3"""
    t = _type(op)
    if op.has("wide"):
        wide = with_sign(t, 2 * word_bits(t))
        if word_bits(t) == 64:
            return A.join(A.mul(t, a, b), A.mul_high(t, a, b))
        return A.mul(wide, A.resize(t, wide, a), A.resize(t, wide, b))
    return A.mul_high(t, a, b) if op.has("hi") else A.mul(t, a, b)


@integer("mad")
def mad(A: Algebra, op: Opcode, a: Value, b: Value, c: Value) -> Value:
    """9.7.1.4"""
    t = _type(op)
    product = mul(A, op, a, b)
    if op.has("wide"):
        if word_bits(t) == 64:
            return _add_128(A, product, c)
        return A.add(with_sign(t, 2 * word_bits(t)), product, c)
    return A.add_saturating(t, product, c) if op.has("sat") else A.add(t, product, c)


def _add_128(A: Algebra, a: Value, b: Value) -> Value:
    (a_low, a_high), (b_low, b_high) = A.split(a), A.split(b)
    low = A.add("u64", a_low, b_low)
    carry = A.resize("pred", "u64", A.compare("lt", "u64", low, a_low))
    return A.join(low, A.add("u64", A.add("u64", a_high, b_high), carry))


@integer("clmad")
def clmad(A: Algebra, op: Opcode, a: Value, b: Value, c: Value) -> Value:
    """9.7.1.5 of PTX 9.3: half of the 128-bit product without carries, and c added without carries."""
    t = _type(op)
    result = c
    for place in range(bits_of(t)):
        if op.has("lo"):
            term = A.shl_by(t, a, place)
        elif place:
            term = A.shr_by(t, a, bits_of(t) - place)
        else:
            continue
        chosen = A.neg(t, A.and_with(t, A.shr_by(t, b, place), 1))
        result = A.xor(t, result, A.and_(t, term, chosen))
    return result


@integer("mul24")
def mul24(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.1.5: low or high 32 bits of the 48-bit product of the operands' low 24 bits."""
    t = _type(op)
    x, y = (A.shr_by(t, A.shl_by(t, v, 8), 8) for v in (a, b))
    low = A.mul(t, x, y)
    if op.has("lo"):
        return low
    return A.funnel_left("u32", A.mul_high(t, x, y), low, A.const("u32", 16))


@integer("mad24")
def mad24(A: Algebra, op: Opcode, a: Value, b: Value, c: Value) -> Value:
    """9.7.1.6"""
    product = mul24(A, op, a, b)
    return A.add_saturating("s32", product, c) if op.has("sat") else A.add("u32", product, c)


@integer("sad")
def sad(A: Algebra, op: Opcode, a: Value, b: Value, c: Value) -> Value:
    """9.7.1.7"""
    t = _type(op)
    return A.add(t, c, A.sub(t, A.maximum(t, a, b), A.minimum(t, a, b)))


@integer("div")
def div(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.1.8: division by zero gives all ones, as the hardware's instruction sequence does."""
    t = _type(op)
    zero = A.is_zero(t, b)
    quotient = A.div(t, a, A.select(t, zero, A.const(t, 1), b))
    return A.select(t, zero, A.const(t, -1), quotient)


@integer("rem")
def rem(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.1.9: by zero as for div."""
    t = _type(op)
    zero = A.is_zero(t, b)
    remainder = A.rem(t, a, A.select(t, zero, A.const(t, 1), b))
    return A.select(t, zero, A.const(t, -1), remainder)


@integer("abs")
def absolute(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.1.10"""
    return _elementwise(A, op, lambda B, t, x: B.maximum(t, x, B.neg(t, x)), a)


@integer("neg")
def neg(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.1.11"""
    return _elementwise(A, op, lambda B, t, x: B.neg(t, x), a)


def _relu(A: Algebra, op: Opcode, t: str, value: Value) -> Value:
    return A.maximum(t, value, A.const(t, 0)) if op.has("relu") else value


@integer("min")
def minimum(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.1.12"""
    return _elementwise(A, op, lambda B, t, x, y: _relu(B, op, t, B.minimum(t, x, y)), a, b)


@integer("max")
def maximum(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.1.13"""
    return _elementwise(A, op, lambda B, t, x, y: _relu(B, op, t, B.maximum(t, x, y)), a, b)


@integer("popc")
def popc(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.1.14"""
    t = unsigned(word_bits(_type(op)))
    return A.resize(t, "u32", A.popcount(t, a))


@integer("clz")
def clz(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.1.15"""
    t = unsigned(word_bits(_type(op)))
    return A.resize(t, "u32", A.leading_zeros(t, a))


@integer("bfind")
def bfind(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.1.16"""
    t = _type(op)
    bits = word_bits(t)
    if is_signed(t):
        a = A.xor(t, a, A.shr_by(t, a, bits - 1))
    zeros = A.resize(unsigned(bits), "u32", A.leading_zeros(t, a))
    found = zeros if op.has("shiftamt") else A.sub("u32", A.const("u32", bits - 1), zeros)
    return A.select("u32", A.is_zero(t, a), A.const("u32", -1), found)


@integer("fns")
def fns(A: Algebra, op: Opcode, mask: Value, base: Value, offset: Value) -> Value:
    """9.7.1.17: going down is going up in the reversed mask."""
    down = A.is_negative("s32", offset)
    last = A.const("u32", 31)
    inside = A.compare("le", "u32", base, last)
    start = A.and_with("u32", A.select("u32", down, A.sub("u32", last, base), base), 31)
    bits = A.select("u32", down, A.reverse_bits("u32", mask), mask)
    here = A.is_zero("u32", offset)
    ones = A.const("u32", -1)
    window = A.select("u32", here, A.shl("u32", A.const("u32", 1), start), A.shl("u32", ones, start))
    bits = A.and_("u32", bits, window)
    count = A.maximum("u32", A.select("u32", down, A.neg("u32", offset), offset), A.const("u32", 1))
    found = A.and_("pred", inside, A.compare("ge", "u32", A.popcount("u32", bits), count))
    position = _nth_set_bit(A, bits, count)
    position = A.select("u32", down, A.sub("u32", last, position), position)
    return A.select("u32", found, position, ones)


def _nth_set_bit(A: Algebra, bits: Value, count: Value) -> Value:
    """Position of the count-th (from 1) set bit, by halving; any number if there are fewer."""
    position = A.const("u32", 0)
    for width in (16, 8, 4, 2, 1):
        low = A.and_with("u32", A.shr("u32", bits, position), (1 << width) - 1)
        here = A.popcount("u32", low)
        beyond = A.compare("gt", "u32", count, here)
        count = A.select("u32", beyond, A.sub("u32", count, here), count)
        position = A.select("u32", beyond, A.add("u32", position, A.const("u32", width)), position)
    return position


@integer("brev")
def brev(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.1.18"""
    return A.reverse_bits(unsigned(word_bits(_type(op))), a)


def _field_operand(A: Algebra, t: str, n: Value, most: int) -> Value:
    """Bits 0 to 7 of a position or length, at most `most`, in `t`'s width."""
    clamped = A.minimum("u32", A.and_with("u32", n, 0xFF), A.const("u32", most))
    return A.resize("u32", t, clamped)


@integer("bfe")
def bfe(A: Algebra, op: Opcode, a: Value, b: Value, c: Value) -> Value:
    """9.7.1.19: shift the field to the bottom, then to the top and back; the shifts bring in the right sign."""
    t = _type(op)
    bits = word_bits(t)
    u = unsigned(bits)
    position = _field_operand(A, t, b, bits - 1)
    length = _field_operand(A, t, c, bits)
    moved = A.shr(t, a, position)
    if not is_signed(t):
        outside = A.compare("ge", "u32", A.and_with("u32", b, 0xFF), A.const("u32", bits))
        moved = A.select(t, outside, A.const(t, 0), moved)
    empty = A.is_zero(u, length)
    spare = A.and_with(u, A.sub(u, A.const(u, bits), length), bits - 1)
    field = A.shr(t, A.shl(t, moved, spare), spare)
    return A.select(t, empty, A.const(t, 0), field)


@integer("bfi")
def bfi(A: Algebra, op: Opcode, a: Value, b: Value, c: Value, d: Value) -> Value:
    """9.7.1.20"""
    bits = word_bits(_type(op))
    u = unsigned(bits)
    position = _field_operand(A, u, c, bits - 1)
    length = _field_operand(A, u, d, bits)
    outside = A.compare("ge", "u32", A.and_with("u32", c, 0xFF), A.const("u32", bits))
    unchanged = A.or_("pred", outside, A.is_zero(u, length))
    spare = A.and_with(u, A.sub(u, A.const(u, bits), length), bits - 1)
    mask = A.shl(u, A.shr(u, A.const(u, -1), spare), position)
    inserted = A.xor(u, b, A.and_(u, mask, A.xor(u, b, A.shl(u, a, position))))
    return A.select(u, unchanged, b, inserted)


@integer("szext")
def szext(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.1.21"""
    t = _type(op)
    width = A.and_with("u32", b, 31)
    spare = A.and_with("u32", A.neg("u32", width), 31)
    extended = A.shr(t, A.shl(t, a, spare), spare)
    result = A.select(t, A.is_zero("u32", width), A.const(t, 0), extended)
    if op.has("clamp"):
        result = A.select(t, A.compare("ge", "u32", b, A.const("u32", 32)), a, result)
    return result


@integer("bmsk")
def bmsk(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.1.22"""
    start, width = A.and_with("u32", a, 31), A.and_with("u32", b, 31)
    ones, zero, limit = A.const("u32", -1), A.const("u32", 0), A.const("u32", 32)
    end = A.add("u32", start, width)
    above = A.shl("u32", ones, A.and_with("u32", end, 31))
    above = A.select("u32", A.compare("ge", "u32", end, limit), zero, above)
    below = A.shl("u32", ones, start)
    if op.has("clamp"):
        above = A.select("u32", A.compare("ge", "u32", b, limit), zero, above)
        below = A.select("u32", A.compare("ge", "u32", a, limit), zero, below)
    return A.and_("u32", below, A.not_("u32", above))


def _extract(A: Algebra, t: str, a: Value, bits: int, index: int) -> Value:
    """Field `index` of `bits` bits, extended to 32 by the sign of `t`."""
    source = with_sign(t, 32)
    return A.shr_by(source, A.shl_by(source, a, 32 - bits * (index + 1)), 32 - bits)


def _dot(A: Algebra, op: Opcode, a: Value, b: Value, c: Value, a_bits: int, first: int) -> Value:
    a_type, b_type = op.types[-2], op.types[-1]
    for i in range(32 // a_bits):
        x = _extract(A, a_type, a, a_bits, i)
        y = _extract(A, b_type, b, 8, first + i)
        c = A.add("u32", c, A.mul("u32", x, y))
    return c


@integer("dp4a")
def dp4a(A: Algebra, op: Opcode, a: Value, b: Value, c: Value) -> Value:
    """9.7.1.23"""
    return _dot(A, op, a, b, c, 8, 0)


@integer("dp2a")
def dp2a(A: Algebra, op: Opcode, a: Value, b: Value, c: Value) -> Value:
    """9.7.1.24"""
    return _dot(A, op, a, b, c, 16, 2 if op.has("hi") else 0)
