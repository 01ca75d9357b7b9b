"""LLVM IR that decodes elements of factors to f32, 16 at a time, by the formats that `semantics.exact` describes."""

from __future__ import annotations

from ptxtools.native.code.emitter import Emitter, splat
from ptxtools.semantics.exact import FORMATS

#: Types with bits of an element. e3m2, e2m3 and e2m1 have bytes, as in tensor memory; 16 of those with ".packed" begin
#: in 16 bytes (9.7.16.10.4.4). Of b1 there are 32 in an element.
TYPES = {
    "f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "e2m1": 8, "e3m2.packed": 8,
    "e2m3.packed": 8, "e2m1.packed": 8, "fp4": 4, "s8": 8, "u8": 8, "b1": 32,
}  # fmt: skip
#: Types of whole numbers, whose exponents nobody needs; bits of the packed ones, and of those in bytes with the shift.
WHOLE = frozenset({"s8", "u8", "b1"})
PACKED = {"e3m2.packed": 6, "e2m3.packed": 6, "e2m1.packed": 4, "fp4": 4}
_IN_BYTES = {"e3m2": (6, 0), "e2m3": (6, 0), "e2m1": (4, 2)}
SINGLE, WORD, SHORT = "<16 x float>", "<16 x i32>", "<16 x i16>"
_F32 = FORMATS["f32"]
#: Bits of f32: everything but the sign, and the exponent.
SIZE, EXPONENT = _F32.sign - 1, (1 << 8) - 1 << _F32.mantissa


def everywhere(number: int) -> str:
    """A number in all 16 lanes."""
    return splat("i32", number)


def decode(code: Emitter, type_name: str, codes: str) -> str:
    """16 elements as f32; NaN stays NaN, and infinity infinity. Elements of b1 stay what they are."""
    bits = TYPES[type_name]
    if type_name == "b1":
        return code.value(f"bitcast {WORD} {codes} to {SINGLE}")
    if type_name in WHOLE:
        extended = code.value(f"{'sext' if type_name == 's8' else 'zext'} <16 x i8> {codes} to {WORD}")
        return code.value(f"sitofp {WORD} {extended} to {SINGLE}")
    if type_name in _IN_BYTES:
        width, shift = _IN_BYTES[type_name]
        number = code.value(f"zext <16 x i8> {codes} to {WORD}")
        number = code.value(f"lshr {WORD} {number}, {everywhere(shift)}")
        number = code.value(f"and {WORD} {number}, {everywhere((1 << width) - 1)}")
        return _decoded(code, type_name, number, width)
    if type_name == "f16" and "f16c" in code.features:
        return code.value(f"fpext <16 x half> {code.value(f'bitcast {SHORT} {codes} to <16 x half>')} to {SINGLE}")
    form = FORMATS[type_name]
    lost = _F32.mantissa - form.mantissa
    if type_name == "tf32":  # the low bits do not count
        kept = code.value(f"and {WORD} {codes}, {everywhere(-(1 << lost))}")
        return code.value(f"bitcast {WORD} {kept} to {SINGLE}")
    number = code.value(f"zext <16 x i{bits}> {codes} to {WORD}")
    if form.bias == _F32.bias:
        moved = code.value(f"shl {WORD} {number}, {everywhere(lost)}")
        return code.value(f"bitcast {WORD} {moved} to {SINGLE}")
    return _decoded(code, type_name, number, bits)


def decode_packed(code: Emitter, type_name: str, chunk: str, first: int) -> str:
    """16 elements of a chunk (<16 x i8>), from the one with this number on, as f32."""
    bits = PACKED[type_name]
    at = [bits * i for i in range(first, first + 16)]
    low, high = (code.shuffle("<16 x i8>", (min(bit // 8 + more, 15) for bit in at), chunk) for more in (0, 1))
    number = code.value(f"zext <16 x i8> {low} to {WORD}")
    if bits == 6:  # they cross bytes
        above = code.value(f"zext <16 x i8> {high} to {WORD}")
        number = code.value(f"or {WORD} {number}, {code.value(f'shl {WORD} {above}, {everywhere(8)}')}")
    shifts = "<" + ", ".join(f"i32 {bit % 8}" for bit in at) + ">"
    number = code.value(f"lshr {WORD} {number}, {shifts}")
    number = code.value(f"and {WORD} {number}, {everywhere((1 << bits) - 1)}")
    return _decoded(code, base_of(type_name), number, bits)


def base_of(type_name: str) -> str:
    """The name of the format."""
    return "e2m1" if type_name == "fp4" else type_name.partition(".")[0]


def _decoded(code: Emitter, type_name: str, number: str, bits: int) -> str:
    """Numbers of so many bits (i32), whose exponents have another bias than those of f32."""
    form = FORMATS[type_name]
    lost = _F32.mantissa - form.mantissa
    sign = code.value(f"and {WORD} {number}, {everywhere(form.sign)}")
    sign = code.value(f"shl {WORD} {sign}, {everywhere(32 - bits)}")
    size = code.value(f"and {WORD} {number}, {everywhere(form.sign - 1)}")
    field = code.value(f"shl {WORD} {size}, {everywhere(lost)}")
    # The exponent's bias differs; subnormal numbers become normal ones.
    factor = splat("float", f"0x{1023 + _F32.bias - form.bias:03X}0000000000000")
    scaled = code.value(f"fmul {SINGLE} {code.value(f'bitcast {WORD} {field} to {SINGLE}')}, {factor}")
    plain = code.value(f"bitcast {SINGLE} {scaled} to {WORD}")
    least = form.infinity if form.infinity is not None else form.nan
    if least is not None:
        finite = code.value(f"icmp ult {WORD} {size}, {everywhere(least)}")
        special = code.value(f"or {WORD} {field}, {everywhere(EXPONENT)}")
        plain = code.value(f"select <16 x i1> {finite}, {WORD} {plain}, {WORD} {special}")
    return code.value(f"bitcast {WORD} {code.value(f'or {WORD} {plain}, {sign}')} to {SINGLE}")
