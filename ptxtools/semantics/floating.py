"""Floating-point arithmetic of f32, f64 and f32x2 with exact rounding (9.7.3).

f32 results that are NaN have the canonical pattern 0x7fffffff. f64 keeps payloads: a NaN result is the first NaN
operand, quietened; an invalid operation gives 0xfff8000000000000.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ptxtools.semantics.algebra import Algebra, Value
from ptxtools.semantics.exact import FORMATS, sum_to_odd
from ptxtools.semantics.registry import defines_value
from ptxtools.semantics.types import element_of, unsigned, word_bits

if TYPE_CHECKING:
    from ptxtools.isa import Opcode

floating = partial(defines_value, "floating")

_QUIET = 1 << 51
_ROUNDINGS = ("rn", "rz", "rm", "rp")


def _type(op: Opcode) -> str:
    assert op.type is not None
    return op.type


def rounding_of(op: Opcode) -> str:
    """The opcode's rounding modifier, rn by default."""
    return next((rounding for rounding in _ROUNDINGS if op.has(rounding)), "rn")


def flush(A: Algebra, op: Opcode, t: str, x: Value) -> Value:
    """f32 subnormals become zeros of the same sign under .ftz."""
    return flush_subnormal(A, x) if t == "f32" and op.has("ftz") else x


def flush_subnormal(A: Algebra, x: Value) -> Value:
    """f32 subnormals become zeros of the same sign."""
    tiny = A.is_zero("u32", A.and_with("u32", x, 0x7F80_0000))
    return A.select("u32", tiny, A.and_with("u32", x, 0x8000_0000), x)


def canonical(A: Algebra, x: Value) -> Value:
    """An f32 NaN becomes 0x7fffffff."""
    if A.loose:
        return x
    return A.select("f32", A.fcompare("nan", "f32", x, x), A.const("f32", 0x7FFF_FFFF), x)


def saturate(A: Algebra, t: str, x: Value) -> Value:
    """Clamp to [+0, 1]; NaN and -0 give +0."""
    zero, one = A.const(t, 0), A.real(t, 1.0)
    x = A.select(t, A.fcompare("gt", t, x, zero), x, zero)
    return A.select(t, A.fcompare("lt", t, x, one), x, one)


def propagate(A: Algebra, result: Value, *operands: Value) -> Value:
    """The f64 rule for NaNs, see the module's text."""
    nan = A.const("f64", FORMATS["f64"].nan or 0)
    for operand in reversed(operands):
        quiet = A.or_("u64", operand, A.const("u64", _QUIET))
        nan = A.select("u64", A.fcompare("nan", "f64", operand, operand), quiet, nan)
    return A.select("f64", A.fcompare("nan", "f64", result, result), nan, result)


def finish(A: Algebra, op: Opcode, t: str, result: Value, *operands: Value) -> Value:
    """.ftz, .sat and the NaN rule on a result of `operands`."""
    if t == "f64":
        return propagate(A, result, *operands)
    result = flush(A, op, t, result)
    return saturate(A, t, result) if op.has("sat") else canonical(A, result)


_NEAREST: dict[str, Callable[..., Value]] = {
    "add": lambda A, t, a, b: A.fadd(t, a, b),
    "sub": lambda A, t, a, b: A.fsub(t, a, b),
    "mul": lambda A, t, a, b: A.fmul(t, a, b),
    "div": lambda A, t, a, b: A.fdiv(t, a, b),
    "fma": lambda A, t, a, b, c: A.fma(t, a, b, c),
    "sqrt": lambda A, t, a: A.fsqrt(t, a),
}


def arithmetic(A: Algebra, op: Opcode, t: str, operation: str, *operands: Value) -> Value:
    """One IEEE operation of f32 or f64 with the opcode's modifiers."""
    operands = tuple(flush(A, op, t, operand) for operand in operands)
    rounding = rounding_of(op)
    if t == "f64" and (kept := A.keeping_nans(operation, rounding, *operands)) is not None:
        return kept
    if rounding == "rn":
        result = _NEAREST[operation](A, t, *operands)
    else:
        result = A.directed(operation, t, rounding, *operands)
    return finish(A, op, t, result, *operands)


def _elementwise(A: Algebra, op: Opcode, operation: str, *operands: Value) -> Value:
    t, count = element_of(_type(op))
    if count == 1:
        return arithmetic(A, op, t, operation, *operands)
    return A.elementwise("u64", "u32", lambda B, *parts: arithmetic(B, op, t, operation, *parts), *operands)


@floating("add", "sub", "mul", "fma")
def plain(A: Algebra, op: Opcode, *operands: Value) -> Value:
    """9.7.3.3 to 9.7.3.6"""
    return _elementwise(A, op, op.family, *operands)


@floating("mad")
def mad(A: Algebra, op: Opcode, a: Value, b: Value, c: Value, truncated: bool = False) -> Value:
    """9.7.3.7: fused, except on sm_1x."""
    return _truncated(A, op, a, b, c) if truncated else _elementwise(A, op, "fma", a, b, c)


#: f64 bits that f32 has no place for in its mantissa.
_BEYOND_SINGLE = (1 << FORMATS["f64"].mantissa - FORMATS["f32"].mantissa) - 1


def _truncated(A: Algebra, op: Opcode, a: Value, b: Value, c: Value) -> Value:
    """mad.f32 of sm_1x: the product is cut off to 23 bits of mantissa and keeps its exponent, however large or small;
    the sum is rounded. With an addend of zero it is mul and add."""
    a, b, c = (flush(A, op, "f32", operand) for operand in (a, b, c))
    x, y, z = (A.float_to_float("f32", "f64", operand) for operand in (a, b, c))
    product = A.and_with("u64", A.fmul("f64", x, y), ~_BEYOND_SINGLE & (1 << 64) - 1)
    fused = A.float_to_float("f64", "f32", sum_to_odd(A, product, z))
    apart = A.fadd("f32", flush(A, op, "f32", A.fmul("f32", a, b)), c)
    zero = A.is_zero("u32", A.and_with("u32", c, 0x7FFF_FFFF))
    return finish(A, op, "f32", A.select("f32", zero, apart, fused), a, b, c)


@floating("div", "sqrt")
def rounded(A: Algebra, op: Opcode, *operands: Value) -> Value:
    """9.7.3.8 and 9.7.3.15, with a rounding modifier."""
    return arithmetic(A, op, _type(op), op.family, *operands)


@floating("rcp")
def rcp(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.3.13"""
    t = _type(op)
    return arithmetic(A, op, t, "div", A.real(t, 1.0), a)


@floating("abs")
def absolute(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.3.9"""
    t = _type(op)
    result = A.and_with(t, a, FORMATS[t].sign - 1)
    return result if t == "f64" else canonical(A, flush(A, op, t, result))


@floating("neg")
def neg(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.3.10"""
    t = _type(op)
    result = A.xor(t, a, A.const(t, FORMATS[t].sign))
    return result if t == "f64" else canonical(A, flush(A, op, t, result))


#: Their f32 results depend on no NaN's bits.
_ARITHMETIC = frozenset({"add", "sub", "mul", "fma", "mad", "neg", "abs"})
_ROUNDED = frozenset({"div", "sqrt", "rcp"})


def takes_any_nan(op: Opcode) -> bool:
    """Whether an operation takes f32 operands to an f32 result by arithmetic alone: which NaN an operand is makes no
    difference, but for which one the result is."""
    if op.text.rpartition(".")[2] != "f32" or op.text.count(".f32") > 1 or op.has("sat"):
        return False
    return op.family in _ARITHMETIC or (op.family in _ROUNDED and any(map(op.has, _ROUNDINGS)))


@floating("copysign")
def copysign(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.3.2: the sign of `a` on the value of `b`."""
    t = _type(op)
    sign = FORMATS[t].sign
    return A.or_(t, A.and_with(t, a, sign), A.and_with(t, b, sign - 1))


@floating("testp")
def testp(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.3.1: zeros count as normal."""
    u = unsigned(word_bits(_type(op)))
    form = FORMATS[_type(op)]
    assert form.infinity is not None
    magnitude = A.and_with(u, a, form.sign - 1)
    infinity, least_normal = A.const(u, form.infinity), A.const(u, 1 << form.mantissa)
    if op.has("finite"):
        return A.compare("lt", u, magnitude, infinity)
    if op.has("infinite"):
        return A.compare("eq", u, magnitude, infinity)
    if op.has("number"):
        return A.compare("le", u, magnitude, infinity)
    if op.has("notanumber"):
        return A.compare("gt", u, magnitude, infinity)
    nonzero = A.is_nonzero(u, magnitude)
    subnormal = A.and_("pred", nonzero, A.compare("lt", u, magnitude, least_normal))
    if op.has("subnormal"):
        return subnormal
    finite = A.compare("lt", u, magnitude, infinity)
    return A.and_("pred", finite, A.not_("pred", subnormal))


def _smaller(A: Algebra, op: Opcode, t: str, a: Value, b: Value, largest: bool) -> Value:
    """min or max of two numbers: -0 below +0; one NaN gives the other operand, or NaN under .NaN."""
    result = A.select(t, A.fcompare("gt" if largest else "lt", t, a, b), a, b)
    equal = A.fcompare("eq", t, a, b)
    result = A.select(t, equal, A.and_(t, a, b) if largest else A.or_(t, a, b), result)
    a_nan, b_nan = A.fcompare("nan", t, a, a), A.fcompare("nan", t, b, b)
    result = A.select(t, b_nan, a, result)  # a NaN in `a` alone has selected `b` already
    if t == "f64":
        return propagate(A, result, a, b)
    bad = A.or_("pred", a_nan, b_nan) if op.has("NaN") else A.and_("pred", a_nan, b_nan)
    return A.select(t, bad, A.const(t, 0x7FFF_FFFF), result)


def _extreme(A: Algebra, op: Opcode, largest: bool, *operands: Value) -> Value:
    t = _type(op)
    sign = FORMATS[t].sign
    values = [flush(A, op, t, operand) for operand in operands]
    flipped = A.and_with(t, A.xor(t, values[0], values[1]), sign)
    if op.has("abs"):
        values = [A.and_with(t, value, sign - 1) for value in values]
    result = values[0]
    for value in values[1:]:
        result = _smaller(A, op, t, result, value, largest)
    if not op.has("xorsign"):
        return result
    signed = A.or_(t, A.and_with(t, result, sign - 1), flipped)
    return A.select(t, A.fcompare("nan", t, result, result), result, signed)


@floating("min")
def minimum(A: Algebra, op: Opcode, *operands: Value) -> Value:
    """9.7.3.11, two or three inputs."""
    return _extreme(A, op, False, *operands)


@floating("max")
def maximum(A: Algebra, op: Opcode, *operands: Value) -> Value:
    """9.7.3.12, two or three inputs."""
    return _extreme(A, op, True, *operands)
