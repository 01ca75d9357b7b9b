"""Approximate functions: .approx and .full forms of 9.7.3 and 9.7.4.

PTX instruction = scaling, the bare unit (`interpolator`), scaling back; the .ftz forms are the bare unit. The scalings
are ordinary roundings, as the hardware's instruction sequences have them. tanh and the 16-bit forms are not known bit
for bit: they are computed to better than the manual's bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ptxtools.semantics import half, interpolator
from ptxtools.semantics.algebra import Algebra, Value
from ptxtools.semantics.floating import canonical, flush_subnormal, propagate
from ptxtools.semantics.registry import defines_value

if TYPE_CHECKING:
    from ptxtools.isa import Opcode

approximate = partial(defines_value, "approximate")

_LEAST_NORMAL = 0x0080_0000
_TURNS = 0x3E22_F983  # 1 / (2 pi)
_TWO_LOG2_E = 2.885390081777927


def _magnitude(A: Algebra, x: Value) -> Value:
    return A.and_with("u32", x, 0x7FFF_FFFF)


def _is_tiny(A: Algebra, x: Value) -> Value:
    return A.compare("lt", "u32", _magnitude(A, x), A.const("u32", _LEAST_NORMAL))


def _scale_of(A: Algebra, x: Value) -> Value:
    """The power of two that brings a reciprocal's argument into the unit's range."""
    huge = A.fcompare("gt", "f32", _magnitude(A, x), A.real("f32", 2.0**126))
    scale = A.select("f32", huge, A.real("f32", 0.25), A.real("f32", 1.0))
    return A.select("f32", _is_tiny(A, x), A.real("f32", 2.0**24), scale)


def _rescued(
    A: Algebra, op: Opcode, unit: Callable[[Algebra, Value], Value], x: Value, up: float, down: float
) -> Value:
    """`unit`, with subnormal arguments multiplied by `up` before and by `down` behind."""
    if op.has("ftz"):
        return unit(A, x)
    tiny = _is_tiny(A, x)
    result = unit(A, A.select("f32", tiny, A.fmul("f32", x, A.real("f32", up)), x))
    return canonical(A, A.select("f32", tiny, A.fmul("f32", result, A.real("f32", down)), result))


@approximate("rcp")
def rcp(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.3.13, 9.7.3.14"""
    if op.type == "f64":
        return interpolator.rcp64(A, a)
    if op.has("ftz"):
        return interpolator.rcp(A, a)
    scale = _scale_of(A, a)
    return canonical(A, A.fmul("f32", interpolator.rcp(A, A.fmul("f32", a, scale)), scale))


@approximate("sqrt")
def sqrt(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.3.15"""
    return _rescued(A, op, interpolator.sqrt, a, 2.0**24, 2.0**-12)


@approximate("rsqrt")
def rsqrt(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.3.16, 9.7.3.17"""
    if op.type == "f64":
        return interpolator.rsqrt64(A, a) if op.has("ftz") else _rsqrt_double(A, a)
    return _rescued(A, op, interpolator.rsqrt, a, 2.0**24, 2.0**12)


def _rsqrt_double(A: Algebra, a: Value) -> Value:
    """A seed and one step of third order."""
    magnitude = A.and_with("u64", a, (1 << 63) - 1)
    subnormal = A.compare("lt", "u64", magnitude, A.const("u64", 1 << 52))
    x = A.select("f64", subnormal, A.fmul("f64", a, A.real("f64", 2.0**54)), a)
    seed = interpolator.rsqrt64(A, x)
    square = A.fmul("f64", seed, seed)
    delta = A.fma("f64", A.xor("u64", x, A.const("u64", 1 << 63)), square, A.real("f64", 1.0))
    correction = A.fma("f64", delta, A.real("f64", 0.375), A.real("f64", 0.5))
    result = A.fma("f64", correction, A.fmul("f64", seed, delta), seed)
    result = A.select("f64", subnormal, A.fmul("f64", result, A.real("f64", 2.0**27)), result)
    infinity = A.const("u64", 0x7FF0_0000_0000_0000)
    sign = A.and_with("u64", a, 1 << 63)
    result = A.select("f64", A.is_zero("u64", magnitude), A.or_("u64", sign, infinity), result)
    result = A.select("f64", A.compare("eq", "u64", a, infinity), A.const("u64", 0), result)
    negative = A.fcompare("lt", "f64", a, A.const("u64", 0))
    result = A.select("f64", negative, A.const("u64", 0xFFF8_0000_0000_0000), result)
    result = A.select("f64", A.fcompare("nan", "f64", a, a), a, result)
    return propagate(A, result, a)


def _turns(A: Algebra, a: Value) -> tuple[Value, Value]:
    """The argument in turns, rounded toward zero; whether it was infinite or NaN."""
    infinite = A.compare("ge", "u32", _magnitude(A, a), A.const("u32", interpolator.INFINITY))
    return A.directed("mul", "f32", "rz", a, A.const("f32", _TURNS)), infinite


@approximate("sin")
def sin(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.3.18"""
    return interpolator.sin(A, *_turns(A, a))


@approximate("cos")
def cos(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.3.19"""
    return interpolator.cos(A, *_turns(A, a))


@approximate("lg2")
def lg2(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.3.20"""
    if op.has("ftz"):
        return interpolator.lg2(A, a)
    tiny = _is_tiny(A, a)
    result = interpolator.lg2(A, A.select("f32", tiny, A.fmul("f32", a, A.real("f32", 2.0**24)), a))
    return canonical(A, A.select("f32", tiny, A.fsub("f32", result, A.real("f32", 24.0)), result))


def _ex2_single(A: Algebra, a: Value) -> Value:
    """2**a with subnormal results: the square of 2**(a/2) below -126."""
    low = A.fcompare("lt", "f32", a, A.real("f32", -126.0))
    result = interpolator.ex2(A, A.select("f32", low, A.fmul("f32", a, A.real("f32", 0.5)), a))
    return A.select("f32", low, A.fmul("f32", result, result), result)


@approximate("ex2")
def ex2(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.3.21; 9.7.4.10 for the 16-bit types, within the manual's bound."""
    if op.type == "f32":
        return interpolator.ex2(A, a) if op.has("ftz") else _ex2_single(A, a)

    def body(B: Algebra, t: str, x: Value) -> Value:
        single = _ex2_single(B, half.to_single(B, t, half.flush(B, op, t, x)))
        return half.finish(B, op, t, half.from_single(B, t, single))

    return half.elementwise(A, op, body, a)


@approximate("div")
def div(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.3.8: a times the reciprocal of b, both scaled first where the form asks for it."""
    ftz, full = op.has("ftz"), op.has("full")
    if ftz:
        a, b = flush_subnormal(A, a), flush_subnormal(A, b)
    if full:
        scale = _scale_of(A, b) if not ftz else _scale_down(A, b)
    elif not ftz:
        scale = A.select("f32", _is_tiny(A, b), A.real("f32", 2.0**24), A.real("f32", 1.0))
    else:
        return canonical(A, flush_subnormal(A, A.fmul("f32", a, interpolator.rcp(A, b))))
    a, b = A.fmul("f32", a, scale), A.fmul("f32", b, scale)
    if not ftz:
        return canonical(A, A.fmul("f32", interpolator.rcp(A, b), a))
    a, b = flush_subnormal(A, a), flush_subnormal(A, b)
    return canonical(A, flush_subnormal(A, A.fmul("f32", interpolator.rcp(A, b), a)))


def _scale_down(A: Algebra, b: Value) -> Value:
    huge = A.fcompare("gt", "f32", _magnitude(A, b), A.real("f32", 2.0**126))
    return A.select("f32", huge, A.real("f32", 0.25), A.real("f32", 1.0))


# --- tanh: odd polynomial near zero, 1 - 2 / (1 + e**2x) elsewhere ----------------------------------------------------

_TANH_SERIES = (-0.0053974, 0.0206390, -0.0537397, 0.1333145, -0.3333332)
_TANH_SPLIT = 0.55


def _tanh_single(A: Algebra, x: Value) -> Value:
    magnitude = _magnitude(A, x)
    square = A.fmul("f32", x, x)
    series = A.real("f32", _TANH_SERIES[0])
    for coefficient in _TANH_SERIES[1:]:
        series = A.fma("f32", series, square, A.real("f32", coefficient))
    near = A.fma("f32", A.fmul("f32", series, square), x, x)
    power = interpolator.ex2(A, A.fmul("f32", magnitude, A.real("f32", _TWO_LOG2_E)))
    one = A.real("f32", 1.0)
    quotient = A.fdiv("f32", A.real("f32", 2.0), A.fadd("f32", power, one))
    far = A.or_("u32", A.fsub("f32", one, quotient), A.and_with("u32", x, 0x8000_0000))
    small = A.fcompare("lt", "f32", magnitude, A.real("f32", _TANH_SPLIT))
    return canonical(A, A.select("f32", A.fcompare("nan", "f32", x, x), x, A.select("f32", small, near, far)))


@approximate("tanh")
def tanh(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.3.22, 9.7.4.9: within the manual's bounds, not bit for bit."""
    if op.type == "f32":
        return _tanh_single(A, a)

    def body(B: Algebra, t: str, x: Value) -> Value:
        return half.finish(B, op, t, half.from_single(B, t, _tanh_single(B, half.to_single(B, t, x))))

    return half.elementwise(A, op, body, a)
