"""cvt and cvt.pack (9.7.9.21, 9.7.9.22)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ptxtools.semantics import exact, floating, half, narrow
from ptxtools.semantics.algebra import Algebra, Value
from ptxtools.semantics.exact import BF16, F16, F32, F64
from ptxtools.semantics.registry import defines_value
from ptxtools.semantics.types import bits_of, is_integer, is_signed, unsigned, word_bits

if TYPE_CHECKING:
    from ptxtools.isa import Opcode

conversion = partial(defines_value, "conversion")

_SCALARS = frozenset({"f16", "bf16", "f32", "f64"})
_HALF_FORMATS = {"f16": F16, "bf16": BF16}


@conversion("cvt")
def cvt(A: Algebra, op: Opcode, *inputs: Value) -> Value:
    """9.7.9.21"""
    target, source = op.types[-2], op.types[-1]
    if is_integer(target):
        if is_integer(source):
            return _int_to_int(A, op, target, source, inputs[0])
        return _float_to_int(A, op, target, source, inputs[0])
    if is_integer(source):
        return _int_to_float(A, op, target, source, inputs[0])
    if target in _SCALARS and source in _SCALARS:
        return _float_to_float(A, op, target, source, inputs[0])
    return narrow.convert(A, op, target, source, *inputs)


def _limits(t: str) -> tuple[int, int]:
    bits = bits_of(t)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed(t) else (0, (1 << bits) - 1)


def _clamp(A: Algebra, word: str, t: str, x: Value) -> Value:
    """An integer of type `word` brought into the range of `t`."""
    low, high = _limits(t)
    least, most = _limits(word)
    if low > least:
        x = A.maximum(word, x, A.const(word, low))
    if high < most:
        x = A.minimum(word, x, A.const(word, high))
    return x


def _fit(A: Algebra, word: str, t: str, x: Value) -> Value:
    """The low bits of a `word` as a value of `t`."""
    return A.adapt(A.resize(word, unsigned(max(16, bits_of(t))), x), f"b{max(16, bits_of(t))}", t)


def _int_to_int(A: Algebra, op: Opcode, target: str, source: str, x: Value) -> Value:
    word = source[0] + str(word_bits(source))
    if op.has("sat"):
        x = _clamp(A, word, target, x)
    return _fit(A, word, target, x)


def _rounding(op: Opcode) -> str | None:
    """rn rz rm rp of an integer rounding modifier (rni, ...), or None."""
    return next((mode[:2] for mode in ("rni", "rzi", "rmi", "rpi") if op.has(mode)), None)


def _single(A: Algebra, op: Opcode, source: str, x: Value) -> tuple[str, Value]:
    """A floating-point source as f32 or f64, flushed under .ftz."""
    if source in ("f32", "f64"):
        return source, floating.flush(A, op, source, x)
    return "f32", _opaque_single(A, source, x)


def _opaque_single(A: Algebra, source: str, x: Value) -> Value:
    """f16 or bf16 to f32 in integer steps: LLVM turns the rounding of an extended half into slow half arithmetic."""
    return exact.half_to_single(A, x) if source == "f16" else half.to_single(A, source, x)


def _float_to_int(A: Algebra, op: Opcode, target: str, source: str, x: Value) -> Value:
    """Clamped with or without .sat; NaN gives 0, or the top bit alone if f64 or 64-bit integers take part."""
    t, x = _single(A, op, source, x)
    rounding = _rounding(op) or "rz"
    if rounding != "rz":
        x = A.integral(t, rounding, x)
    bits = bits_of(target)
    nan = 1 << (bits - 1) if source == "f64" or bits == 64 else 0
    if bits >= 32:
        return A.float_to_int(t, target, x, nan)
    result = _clamp(A, "s32", target, A.float_to_int(t, "s32", x))
    if nan:
        result = A.select("s32", A.fcompare("nan", t, x, x), A.const("s32", nan), result)
    return _fit(A, "s32", target, result)


# --- integer to floating point ----------------------------------------------------------------------------------------


def _int_to_float(A: Algebra, op: Opcode, target: str, source: str, x: Value) -> Value:
    rounding = floating.rounding_of(op)
    word = source if bits_of(source) >= 32 else "s32"
    if word != source:
        x = A.resize(("s" if is_signed(source) else "u") + "16", word, x)
    if target in ("f32", "f64"):
        result = A.int_to_float(word, target, x) if rounding == "rn" else A.directed_float(word, target, rounding, x)
        return _saturate(A, op, target, result)
    if bits_of(word) == 64:
        double = exact.sum_to_odd(A, *exact.integer_halves(A, word, x))
    else:
        double = A.int_to_float(word, "f64", x)
    return _saturate(A, op, target, exact.narrow(A, F64, _HALF_FORMATS[target], double, rounding))


def _saturate(A: Algebra, op: Opcode, t: str, x: Value) -> Value:
    if not op.has("sat"):
        return x
    return floating.saturate(A, t, x) if t in ("f32", "f64") else half.saturate(A, t, x)


# --- between floating-point types -------------------------------------------------------------------------------------


def _float_to_float(A: Algebra, op: Opcode, target: str, source: str, x: Value) -> Value:
    if op.has("satfinite") or op.has("relu") or op.has("pzo"):
        return narrow.to_format(A, op, _HALF_FORMATS[target], x)
    x = floating.flush(A, op, source, x)
    integral = _rounding(op)
    if target == source:
        result = x if integral is None else _to_integral(A, source, integral, x)
    else:
        result = _change_format(A, op, target, source, x)
    result = floating.flush(A, op, target, result)
    if op.has("sat"):
        return _saturate(A, op, target, result)
    return _quiet(A, op, target, source, result, x)


def _to_integral(A: Algebra, t: str, rounding: str, x: Value) -> Value:
    if t in ("f32", "f64"):
        return A.integral(t, rounding, x)
    return half.from_single(A, t, A.integral("f32", rounding, _opaque_single(A, t, x)))


def _change_format(A: Algebra, op: Opcode, target: str, source: str, x: Value) -> Value:
    rounding = floating.rounding_of(op)
    if source == "f64":
        if target != "f32":
            return exact.narrow(A, F64, _HALF_FORMATS[target], x, rounding)
        return A.float_to_float("f64", "f32", x) if rounding == "rn" else A.directed_float("f64", "f32", rounding, x)
    single = x if source == "f32" else half.to_single(A, source, x)
    if target == "f64":
        return A.float_to_float("f32", "f64", single)
    if target == "f32":
        return single
    if target == "f16":
        return A.single_to_half(single, rounding)
    return exact.narrow(A, F32, _HALF_FORMATS[target], single, rounding)


def _quiet(A: Algebra, op: Opcode, target: str, source: str, result: Value, x: Value) -> Value:
    """The NaN rule: canonical, but f64 keeps what it can of the payload."""
    if target == "f32":
        return floating.canonical(A, result)
    if target in _HALF_FORMATS:
        narrowed = target == "bf16" and source != "bf16"  # by `exact.narrow`, whose NaNs are canonical
        return result if narrowed else half.canonical(A, target, result)
    quiet = A.or_("u64", result, A.const("u64", 1 << 51))
    return A.select("u64", A.fcompare("nan", "f64", result, result), quiet, result)


# --- cvt.pack ---------------------------------------------------------------------------------------------------------


@conversion("cvt.pack")
def cvt_pack(A: Algebra, op: Opcode, a: Value, b: Value, c: Value | None = None) -> Value:
    """9.7.9.22: b below a, both saturated; the rest from the low bits of c."""
    target = op.types[0]
    bits = int(target[1:])
    mask = (1 << bits) - 1
    low, high = (-(1 << (bits - 1)), mask >> 1) if target[0] == "s" else (0, mask)
    parts = []
    for value in (b, a):
        value = A.minimum("s32", A.maximum("s32", value, A.const("s32", low)), A.const("s32", high))
        parts.append(A.and_with("u32", value, mask))
    packed = A.or_("u32", parts[0], A.shl_by("u32", parts[1], bits))
    return packed if c is None else A.or_("u32", packed, A.shl_by("u32", c, 2 * bits))
