"""cvt to and from packed and narrow formats: f16x2, bf16x2, tf32, 8-, 6- and 4-bit floats, ue8m0, s2f6 (9.7.9.21).

In a packed result the first source stands highest. Stochastic rounding: where random bits lie in `rbits` is told by
figures 37 to 40 of the manual; which of them meets which discarded bit for the 8-bit and smaller formats is our reading
(top random bit at the top discarded bit).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.semantics import exact, half
from ptxtools.semantics.algebra import Algebra, Value
from ptxtools.semantics.exact import BF16, F16, F32, FORMATS, TF32, Format
from ptxtools.semantics.types import element_of, unsigned

if TYPE_CHECKING:
    from ptxtools.isa import Opcode


def convert(A: Algebra, op: Opcode, target: str, source: str, *inputs: Value) -> Value:
    """Every cvt that involves a packed or narrow type."""
    to, _ = element_of(target)
    of, _ = element_of(source)
    if op.has("scaled::n1::ue8m0"):
        inputs = _divided(A, of, *inputs)
        of = source = "f32"
    if to == "ue8m0":
        return _to_scales(A, op, of, *inputs)
    if of == "ue8m0":
        low, high = A.unpack("b8", 2, inputs[0])
        return A.pack("b16", [_from_scale(A, low), _from_scale(A, high)])
    if to == "s2f6":
        return _to_fixed(A, op, of, *inputs)
    if to == "tf32":
        return _to_tf32(A, op, inputs[0])
    if source != "f32" and (to == "bf16" or of == "ue5m3"):
        return _scaled_pair(A, op, FORMATS[to], of, *inputs)
    if source not in ("f32", "f16x2", "bf16x2"):
        return _widen_pair(A, op, of, inputs[0])
    form = FORMATS[to]
    if source != "f32":
        return _pack(A, form, [to_format(A, op, form, value) for value in _singles(A, of, inputs[0])])
    return _from_singles(A, op, form, *inputs)


def _singles(A: Algebra, of: str, x: Value) -> tuple[Value, Value]:
    """The upper and the lower half of a pair of f16 or bf16, each as f32."""
    low, high = A.unpack("b16", 2, x)
    return half.to_single(A, of, high), half.to_single(A, of, low)


def to_format(A: Algebra, op: Opcode, form: Format, x: Value, random: Value = None) -> Value:
    """One f32 to a format, with the opcode's rounding, .satfinite, .relu and .pzo."""
    result = _rounded(A, op, form, x, random)
    if not op.has("pzo"):
        return result
    word = "u32" if form is TF32 else "u16"
    is_zero = A.is_zero(word, A.and_with(word, result, form.sign - 1))
    return A.select(word, is_zero, A.const(word, 0), result)


def _rounded(A: Algebra, op: Opcode, form: Format, x: Value, random: Value) -> Value:
    rounding = next(r for r in ("rna", "rn", "rz", "rs") if op.has(r))
    satfinite, relu = op.has("satfinite"), op.has("relu")
    if form is F16 and rounding != "rs" and not satfinite:
        word = A.single_to_half(x, rounding)
        result = A.maximum("s16", word, A.const("s16", 0)) if relu else word
        return A.select("u16", half.is_nan(A, "f16", word), A.const("u16", half.CANONICAL_NAN), result)
    return exact.narrow(A, F32, form, x, rounding, satfinite=satfinite, relu=relu, random=random)


def _pack(A: Algebra, form: Format, values: list[Value]) -> Value:
    """Values, the first highest; 6-bit formats stand in bytes."""
    bits = form.bits if form.bits in (4, 16) else 8
    word = unsigned(max(16, bits * len(values)))
    result: Value = None
    for position, value in enumerate(reversed(values)):
        part = A.shl_by(word, A.resize("u16", word, value), bits * position)
        result = part if result is None else A.or_(word, result, part)
    return result


def _from_singles(A: Algebra, op: Opcode, form: Format, *inputs: Value) -> Value:
    if not op.has("rs"):
        return _pack(A, form, [to_format(A, op, form, value) for value in inputs])
    *values, rbits = inputs
    drop = F32.mantissa - form.mantissa
    randoms = [_random(A, form, rbits, i, drop) for i in range(len(values))]
    return _pack(A, form, [to_format(A, op, form, v, r) for v, r in zip(values, randoms, strict=True)])


def _random(A: Algebra, form: Format, rbits: Value, index: int, drop: int) -> Value:
    """The random bits for source number `index`, aligned to the `drop` discarded bits."""
    high, low = A.shr_by("u32", rbits, 16), A.and_with("u32", rbits, 0xFFFF)
    if form is F16:
        return A.and_with("u32", low if index else high, 0x1FFF)
    if form is BF16:
        return low if index else high
    if form.bits == 4:
        # a and b take the upper bytes of both halves, e and f the lower ones.
        shift = 0 if index >= 2 else 8
        upper = A.shl_by("u32", A.and_with("u32", A.shr_by("u32", high, shift), 0xFF), 8)
        bits = A.or_("u32", upper, A.and_with("u32", A.shr_by("u32", low, shift), 0xFF))
    else:
        bits = low if index >= 2 else high
    return A.shl_by("u32", bits, drop - 16)


def _widen_pair(A: Algebra, op: Opcode, of: str, x: Value) -> Value:
    """A pair of narrow floats to f16x2."""
    return A.pack("b16", [half.finish(A, op, "f16", value) for value in _halves(A, FORMATS[of], x)])


def _halves(A: Algebra, form: Format, x: Value) -> tuple[Value, Value]:
    """A pair of narrow floats as two f16, the lower one first."""
    if form.bits == 4:
        low, high = A.and_with("u16", x, 15), A.and_with("u16", A.shr_by("u16", x, 4), 15)
    else:
        low, high = A.and_with("u16", x, 0xFF), A.shr_by("u16", x, 8)
        if form.bits == 6:
            low, high = A.and_with("u16", low, 63), A.and_with("u16", high, 63)
    return exact.widen_small(A, form, low), exact.widen_small(A, form, high)


def _scaled_pair(A: Algebra, op: Opcode, form: Format, of: str, x: Value, scales: Value = None) -> Value:
    """A pair of narrow numbers to f16x2 or bf16x2: each times its scale, then rounded. f32 holds every such product
    exactly, or it lies beyond the range of the result, too."""
    if of == "ue5m3":
        parts = [_unsigned(A, byte) for byte in A.unpack("b8", 2, x)]
    elif of == "s2f6":
        steps = A.unpack("s8", 2, x)
        parts = [A.fmul("f32", _integer(A, step), A.real("f32", 2.0**-6)) for step in steps]
    else:
        parts = [half.to_single(A, "f16", part) for part in _halves(A, FORMATS[of], x)]
    if scales is not None:
        factors = (_single_scale(A, byte) for byte in A.unpack("b8", 2, scales))
        parts = [A.fmul("f32", part, factor) for part, factor in zip(parts, factors, strict=True)]
    return A.pack("b16", [to_format(A, op, form, part) for part in parts])


def _unsigned(A: Algebra, byte: Value) -> Value:
    """ue5m3 to f32: 5 bits of exponent above 3 of mantissa, no sign; 0xff is NaN."""
    word = A.resize("u16", "u32", byte)
    normal = A.add("u32", A.shl_by("u32", word, 20), A.const("u32", (127 - 15) << 23))
    small = A.fmul("f32", A.int_to_float("s32", "f32", word), A.real("f32", 2.0**-17))
    value = A.select("u32", A.compare("lt", "u32", word, A.const("u32", 8)), small, normal)
    is_nan = A.compare("eq", "u32", word, A.const("u32", 0xFF))
    return A.select("u32", is_nan, A.const("u32", 0x7FFF_FFFF), value)


def _divided(A: Algebra, of: str, *inputs: Value) -> tuple[Value, ...]:
    """The sources as f32, each divided by the one ue8m0 that stands last."""
    *values, scale = inputs
    factor = _inverse(A, scale)
    singles = values if of == "f32" else _singles(A, of, values[0])
    return tuple(A.fmul("f32", value, factor) for value in singles)


def _inverse(A: Algebra, scale: Value) -> Value:
    """One divided by a ue8m0, as f32."""
    inverse = A.sub("u16", A.const("u16", 254), scale)
    is_nan = A.compare("eq", "u16", scale, A.const("u16", 0xFF))
    return _single_scale(A, A.select("u16", is_nan, scale, inverse))


def _integer(A: Algebra, x: Value) -> Value:
    return A.int_to_float("s32", "f32", A.resize("s16", "s32", x))


def _to_fixed(A: Algebra, op: Opcode, of: str, *inputs: Value) -> Value:
    """s2f6 is a signed byte that counts 64ths: rounded, saturated; a NaN gives the largest (5.2.3)."""
    scaled = op.has("scaled::n2::ue8m0")
    scales: tuple[Value, ...] = A.unpack("b8", 2, inputs[-1]) if scaled else ()
    values = inputs[:2] if of == "f32" else _singles(A, of, inputs[0])
    parts = []
    for at, value in enumerate(reversed(values)):
        if scaled:
            value = A.fmul("f32", value, _inverse(A, scales[at]))
        steps = A.integral("f32", "rz" if op.has("rz") else "rn", A.fmul("f32", value, A.real("f32", 64.0)))
        word = A.float_to_int("f32", "s32", steps, 127)
        word = A.maximum("s32", word, A.const("s32", 0 if op.has("relu") else -128))
        parts.append(A.resize("s32", "s16", A.minimum("s32", word, A.const("s32", 127))))
    return A.pack("b8", parts)


def _to_tf32(A: Algebra, op: Opcode, x: Value) -> Value:
    """tf32 in a 32-bit register: an f32 whose low 13 bits are zero; NaN is the canonical f32 NaN."""
    word = A.shl_by("u32", to_format(A, op, TF32, x), F32.mantissa - TF32.mantissa)
    return A.select("u32", A.fcompare("nan", "f32", x, x), A.const("u32", 0x7FFF_FFFF), word)


# --- ue8m0: powers of two, 2**(byte - 127); 0xff is NaN ---------------------------------------------------------------


def _to_scales(A: Algebra, op: Opcode, of: str, *inputs: Value) -> Value:
    if of == "bf16":
        inputs = _singles(A, of, inputs[0])
    scales = [A.resize("u32", "u16", _to_scale(A, op, value)) for value in inputs]
    return A.or_("u16", A.shl_by("u16", scales[0], 8), scales[1])


def _to_scale(A: Algebra, op: Opcode, x: Value) -> Value:
    """|x| as a power of two, rounded down (.rz) or up (.rp)."""
    magnitude = A.and_with("u32", x, 0x7FFF_FFFF)
    exponent = A.shr_by("u32", magnitude, 23)
    if op.has("rp"):
        # 2**-127, the least scale, is the f32 subnormal 0x00400000.
        inexact = A.is_nonzero("u32", A.and_with("u32", magnitude, 0x7F_FFFF))
        above = A.and_("pred", inexact, A.compare("gt", "u32", magnitude, A.const("u32", 0x0040_0000)))
        exponent = A.add("u32", exponent, A.resize("pred", "u32", above))
    if op.has("satfinite"):
        exponent = A.minimum("u32", exponent, A.const("u32", 0xFE))
    is_nan = A.compare("gt", "u32", magnitude, A.const("u32", 0x7F80_0000))
    return A.select("u32", is_nan, A.const("u32", 0xFF), exponent)


def _single_scale(A: Algebra, scale: Value) -> Value:
    """ue8m0 to f32."""
    return half.to_single(A, "bf16", _from_scale(A, scale))


def _from_scale(A: Algebra, scale: Value) -> Value:
    """ue8m0 to bf16: the exponent field, but 2**-127 is subnormal."""
    word = A.shl_by("u16", scale, 7)
    word = A.select("u16", A.is_zero("u16", scale), A.const("u16", 0x0040), word)
    is_nan = A.compare("eq", "u16", scale, A.const("u16", 0xFF))
    return A.select("u16", is_nan, A.const("u16", half.CANONICAL_NAN), word)
