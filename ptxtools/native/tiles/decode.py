"""LLVM IR that decodes elements of factors to f32, 16 at a time, by the formats that `semantics.exact` describes."""

from __future__ import annotations

from ptxtools.native.code.emitter import Emitter, splat
from ptxtools.semantics.exact import FORMATS

#: Types with bits of an element.
TYPES = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8}
SINGLE, WORD, SHORT = "<16 x float>", "<16 x i32>", "<16 x i16>"
_F32 = FORMATS["f32"]
#: Bits of f32: everything but the sign, and the exponent.
SIZE, EXPONENT = _F32.sign - 1, (1 << 8) - 1 << _F32.mantissa


def everywhere(number: int) -> str:
    """A number in all 16 lanes."""
    return splat("i32", number)


def decode(code: Emitter, type_name: str, codes: str) -> str:
    """16 elements as f32; NaN stays NaN, and infinity infinity."""
    form, bits = FORMATS[type_name], TYPES[type_name]
    lost = _F32.mantissa - form.mantissa
    if type_name == "tf32":  # the low bits do not count
        kept = code.value(f"and {WORD} {codes}, {everywhere(-(1 << lost))}")
        return code.value(f"bitcast {WORD} {kept} to {SINGLE}")
    number = code.value(f"zext <16 x i{bits}> {codes} to {WORD}")
    if form.bias == _F32.bias:
        moved = code.value(f"shl {WORD} {number}, {everywhere(lost)}")
        return code.value(f"bitcast {WORD} {moved} to {SINGLE}")
    sign = code.value(f"and {WORD} {number}, {everywhere(form.sign)}")
    sign = code.value(f"shl {WORD} {sign}, {everywhere(32 - bits)}")
    size = code.value(f"and {WORD} {number}, {everywhere(form.sign - 1)}")
    field = code.value(f"shl {WORD} {size}, {everywhere(lost)}")
    # The exponent's bias differs; subnormal numbers become normal ones.
    factor = splat("float", f"0x{1023 + _F32.bias - form.bias:03X}0000000000000")
    scaled = code.value(f"fmul {SINGLE} {code.value(f'bitcast {WORD} {field} to {SINGLE}')}, {factor}")
    plain = code.value(f"bitcast {SINGLE} {scaled} to {WORD}")
    least = form.infinity if form.infinity is not None else form.nan
    finite = code.value(f"icmp ult {WORD} {size}, {everywhere(least or 0)}")
    special = code.value(f"or {WORD} {field}, {everywhere(EXPONENT)}")
    whole = code.value(f"select <16 x i1> {finite}, {WORD} {plain}, {WORD} {special}")
    return code.value(f"bitcast {WORD} {code.value(f'or {WORD} {whole}, {sign}')} to {SINGLE}")
