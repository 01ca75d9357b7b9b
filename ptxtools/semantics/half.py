"""Half precision (9.7.4) and mixed precision (9.7.5): f16 and bf16, alone and in pairs.

Arithmetic runs in f32. Rounding its results again is harmless for sums and products, whose f32 has more than twice the
bits; fused operations are rounded to odd first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ptxtools.semantics import exact, floating
from ptxtools.semantics.algebra import Algebra, Value
from ptxtools.semantics.registry import defines_value
from ptxtools.semantics.types import element_of

if TYPE_CHECKING:
    from ptxtools.isa import Opcode

half = partial(defines_value, "half")
mixed = partial(defines_value, "mixed")

CANONICAL_NAN = 0x7FFF
#: What tensor copies write for elements outside of a tensor (5.5.3.3), every 16 bits of them; seen on chips.
OOB_NAN = 0x7FF7
_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80}
_ONE = {"f16": 0x3C00, "bf16": 0x3F80}
_LEAST_NORMAL = {"f16": 0x0400, "bf16": 0x0080}


def to_single(A: Algebra, t: str, x: Value) -> Value:
    """f16 or bf16 to f32, exact."""
    return A.half_to_single(x) if t == "f16" else A.shl_by("u32", A.resize("u16", "u32", x), 16)


def from_single(A: Algebra, t: str, x: Value) -> Value:
    """f32 to f16 or bf16, to nearest even; NaNs keep being NaNs of any kind."""
    return A.single_to_half(x) if t == "f16" else exact.narrow(A, exact.F32, exact.BF16, x, "rn")


def is_nan(A: Algebra, t: str, x: Value) -> Value:
    """Predicate: an f16 or bf16 NaN."""
    return A.compare("gt", "u16", A.and_with("u16", x, 0x7FFF), A.const("u16", _INFINITY[t]))


def flush(A: Algebra, op: Opcode, t: str, x: Value) -> Value:
    """Subnormals become zeros of the same sign under .ftz."""
    if not op.has("ftz"):
        return x
    tiny = A.compare("lt", "u16", A.and_with("u16", x, 0x7FFF), A.const("u16", _LEAST_NORMAL[t]))
    return A.select("u16", tiny, A.and_with("u16", x, 0x8000), x)


def finish(A: Algebra, op: Opcode, t: str, x: Value) -> Value:
    """.ftz, .sat, .relu and the canonical NaN on a result."""
    x = flush(A, op, t, x)
    if op.has("sat"):
        return saturate(A, t, x)
    if op.has("relu"):
        positive = A.maximum("s16", x, A.const("s16", 0))
        return A.select("u16", is_nan(A, t, x), A.const("u16", CANONICAL_NAN), positive)
    return canonical(A, t, x)


def saturate(A: Algebra, t: str, x: Value) -> Value:
    """Clamp to [+0, 1]; NaN and -0 give +0."""
    zero = A.const("s16", 0)
    clamped = A.minimum("s16", A.maximum("s16", x, zero), A.const("s16", _ONE[t]))
    return A.select("u16", is_nan(A, t, x), zero, clamped)


def canonical(A: Algebra, t: str, x: Value) -> Value:
    """A NaN becomes 0x7fff."""
    return A.select("u16", is_nan(A, t, x), A.const("u16", CANONICAL_NAN), x)


def elementwise(A: Algebra, op: Opcode, body: Callable[..., Value], *inputs: Value) -> Value:
    """`body(B, element_type, *elements)` for each half of packed operands, or once."""
    assert op.type is not None
    t, count = element_of(op.type)
    if count == 1:
        return body(A, t, *inputs)
    return A.elementwise("u32", "u16", lambda B, *parts: body(B, t, *parts), *inputs)


def _arithmetic(A: Algebra, op: Opcode, single: Callable[..., Value], *inputs: Value) -> Value:
    def body(B: Algebra, t: str, *parts: Value) -> Value:
        wide = [to_single(B, t, flush(B, op, t, part)) for part in parts]
        return finish(B, op, t, from_single(B, t, single(B, *wide)))

    return elementwise(A, op, body, *inputs)


@half("add")
def add(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.4.1"""
    return _arithmetic(A, op, lambda B, x, y: B.fadd("f32", x, y), a, b)


@half("sub")
def sub(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.4.2"""
    return _arithmetic(A, op, lambda B, x, y: B.fsub("f32", x, y), a, b)


@half("mul")
def mul(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    """9.7.4.3"""
    return _arithmetic(A, op, lambda B, x, y: B.fmul("f32", x, y), a, b)


@half("fma")
def fma(A: Algebra, op: Opcode, a: Value, b: Value, c: Value) -> Value:
    """9.7.4.4; with .oob, a factor that is the OOB-NaN of tensor copies, of either sign, makes the result +0."""
    if not op.has("oob"):
        return _arithmetic(A, op, lambda B, x, y, z: B.fma_to_odd(x, y, z), a, b, c)

    def body(B: Algebra, t: str, x: Value, y: Value, z: Value) -> Value:
        wide = [to_single(B, t, part) for part in (x, y, z)]
        result = finish(B, op, t, from_single(B, t, B.fma_to_odd(*wide)))
        marker = B.const("u16", OOB_NAN)
        found = [B.compare("eq", "u16", B.and_with("u16", part, 0x7FFF), marker) for part in (x, y)]
        outside = B.or_("pred", *found)
        return B.select("u16", outside, B.const("u16", 0), result)

    return elementwise(A, op, body, a, b, c)


@half("neg")
def neg(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.4.5"""

    def body(B: Algebra, t: str, x: Value) -> Value:
        return finish(B, op, t, B.xor("u16", x, B.const("u16", 0x8000)))

    return elementwise(A, op, body, a)


@half("abs")
def absolute(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.4.6"""
    return elementwise(A, op, lambda B, t, x: finish(B, op, t, B.and_with("u16", x, 0x7FFF)), a)


def _ordered(A: Algebra, x: Value) -> Value:
    """f16 or bf16 bits as an s16 that orders like the number, -0 below +0."""
    return A.xor("u16", x, A.and_with("u16", A.shr_by("s16", x, 15), 0x7FFF))


def extreme(A: Algebra, t: str, x: Value, y: Value, *, largest: bool, nan: bool) -> Value:
    """min or max of two f16 or bf16; one NaN gives the other operand, or NaN if `nan`."""
    first = A.compare("ge" if largest else "le", "s16", _ordered(A, x), _ordered(A, y))
    x_nan, y_nan = is_nan(A, t, x), is_nan(A, t, y)
    result = A.select("u16", first, x, y)
    result = A.select("u16", x_nan, y, A.select("u16", y_nan, x, result))
    bad = A.or_("pred", x_nan, y_nan) if nan else A.and_("pred", x_nan, y_nan)
    return A.select("u16", bad, A.const("u16", CANONICAL_NAN), result)


def _extremes(A: Algebra, op: Opcode, largest: bool, *inputs: Value) -> Value:
    def body(B: Algebra, t: str, *parts: Value) -> Value:
        values = [flush(B, op, t, part) for part in parts]
        sign = B.const("u16", 0)
        if op.has("xorsign"):
            sign = B.and_with("u16", B.xor("u16", values[0], values[1]), 0x8000)
        if op.has("abs"):
            values = [B.and_with("u16", value, 0x7FFF) for value in values]
        result = values[0]
        for value in values[1:]:
            result = extreme(B, t, result, value, largest=largest, nan=op.has("NaN"))
        if not op.has("xorsign"):
            return result
        signed = B.or_("u16", B.and_with("u16", result, 0x7FFF), sign)
        return B.select("u16", is_nan(B, t, result), result, signed)

    return elementwise(A, op, body, *inputs)


@half("min")
def minimum(A: Algebra, op: Opcode, *inputs: Value) -> Value:
    """9.7.4.7"""
    return _extremes(A, op, False, *inputs)


@half("max")
def maximum(A: Algebra, op: Opcode, *inputs: Value) -> Value:
    """9.7.4.8"""
    return _extremes(A, op, True, *inputs)


# --- mixed precision (9.7.5): types are (f32, f16 or bf16), the last source is f32 ------------------------------------


@mixed("add", "sub", "fma", "mul")
def mixed_arithmetic(A: Algebra, op: Opcode, *inputs: Value) -> Value:
    """9.7.5: the half operands are converted, then the f32 operation runs."""
    if "f32x2" in op.types:
        return _mixed_pairs(A, op, *inputs)
    t = op.types[-1]
    wide = [to_single(A, t, value) for value in inputs[:-1]]
    return floating.arithmetic(A, op, "f32", op.family, *wide, inputs[-1])


def _mixed_pairs(A: Algebra, op: Opcode, *inputs: Value) -> Value:
    """Both elements: f32 with a first operand of 16 bits, or a result of bf16, which is cut off twice as it is once."""
    result, first, *_ = op.types
    columns = [A.unpack("b16" if t != "f32x2" else "b32", 2, x) for t, x in zip(op.types[1:], inputs, strict=True)]
    if first != "f32x2":
        columns[0] = tuple(to_single(A, element_of(first)[0], part) for part in columns[0])
    values = [floating.arithmetic(A, op, "f32", op.family, *parts) for parts in zip(*columns, strict=True)]
    if result == "f32x2":
        return A.pack("b32", values)
    return A.pack("b16", [exact.narrow(A, exact.F32, exact.BF16, value, "rz") for value in values])
