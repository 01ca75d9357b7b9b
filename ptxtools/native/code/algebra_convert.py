"""Conversions between numbers in the LLVM algebra: f32 and f64 to integers and back, to one another, and f16.

What CPUs lack is put together from exact steps: 64-bit integers as two f64 of 32 bits each, without AVX-512.
"""

from __future__ import annotations

from ptxtools.semantics import exact
from ptxtools.semantics.algebra import Value
from ptxtools.semantics.types import is_signed, word_bits

from . import modes
from .algebra_float import ELEMENT, EMBEDDED_MODE, FloatOperations

#: Conversions with an embedded rounding mode: feature, intrinsic, lanes.
_EMBEDDED = {
    ("f64", "f32"): ("avx512f", "llvm.x86.avx512.mask.cvtpd2ps.512", 8),
    ("s32", "f32"): ("avx512f", "llvm.x86.avx512.sitofp.round.v16f32.v16i32", 16),
    ("u32", "f32"): ("avx512f", "llvm.x86.avx512.uitofp.round.v16f32.v16i32", 16),
    ("s64", "f32"): ("avx512dq", "llvm.x86.avx512.sitofp.round.v8f32.v8i64", 8),
    ("u64", "f32"): ("avx512dq", "llvm.x86.avx512.uitofp.round.v8f32.v8i64", 8),
    ("s64", "f64"): ("avx512dq", "llvm.x86.avx512.sitofp.round.v8f64.v8i64", 8),
    ("u64", "f64"): ("avx512dq", "llvm.x86.avx512.uitofp.round.v8f64.v8i64", 8),
}

#: Truncation, the best first: feature, intrinsic, lanes, type of its mask if it takes one (and what goes with it).
_TRUNCATIONS = {
    ("f32", "s32"): [
        ("avx512f", "llvm.x86.avx512.mask.cvttps2dq.512", 16, "i16"),
        ("avx", "llvm.x86.avx.cvtt.ps2dq.256", 8, ""),
    ],
    ("f64", "s32"): [
        ("avx512f", "llvm.x86.avx512.mask.cvttpd2dq.512", 8, "i8"),
        ("avx", "llvm.x86.avx.cvtt.pd2dq.256", 4, ""),
    ],
    ("f32", "s64"): [("avx512dq", "llvm.x86.avx512.mask.cvttps2qq.512", 8, "i8")],
    ("f64", "s64"): [("avx512dq", "llvm.x86.avx512.mask.cvttpd2qq.512", 8, "i8")],
    ("f32", "u64"): [("avx512dq", "llvm.x86.avx512.mask.cvttps2uqq.512", 8, "i8")],
}

#: Rounding of vcvtps2ph.
_HALF_MODE = {"rn": 0, "rm": 1, "rp": 2, "rz": 3}


class Conversions(FloatOperations):
    """Mixed into LLVMAlgebra."""

    # --- to integers --------------------------------------------------------------------------------------------------

    def float_to_int(self, source: str, target: str, a: Value, nan: int = 0) -> Value:
        """Out-of-range results are not used; LLVM's saturating intrinsics would go lane by lane."""
        features, bits = self.emitter.features, word_bits(target)
        for feature, name, width, mask in _TRUNCATIONS.get((source, target), ()):
            if feature in features and self.lanes and not self.lanes % width:
                return self._truncate(source, target, a, nan, name, width, mask)
        low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if is_signed(target) else (0, 1 << bits)
        least = self.real(source, float(low))
        number = self.select(source, self.fcompare("gt", source, a, least), a, least)  # NaN is the least, too
        if bits == 64 and self.lanes and "avx" in features and "avx512dq" not in features:
            result = self._long(source, target, number)
        else:
            kind = "si" if is_signed(target) else "ui"
            real = self._number(source, number)
            result = self.emitter.value(f"fpto{kind} {self._real(source)} {real} to {self.integer(target)}")
        above = self.fcompare("ge", source, a, self.real(source, float(high)))
        result = self.select(target, above, self.const(target, high - 1), result)
        return result if nan == low % (1 << bits) else self._unless_nan(source, target, a, result, nan)

    def _unless_nan(self, source: str, target: str, a: Value, result: Value, nan: int) -> Value:
        return self.select(target, self.fcompare("num", source, a, a), result, self.const(target, nan))

    def _truncate(self, source: str, target: str, a: Value, nan: int, name: str, width: int, mask: str) -> Value:
        """By the CPU's instruction, which returns the least signed or the greatest unsigned integer if out of range."""
        least, most = 1 << (word_bits(target) - 1), (1 << (word_bits(target) - 1)) - 1
        limited = a
        if (source, target) == ("f64", "s32"):  # the greatest integer is an f64; a NaN stays
            limit = self.real("f64", float(most))
            limited = self.select("f64", self.fcompare("lt", "f64", limit, a), limit, a)
        element = f"i{word_bits(target)}"
        more = [(f"<{width} x {element}>", "zeroinitializer"), (mask, "-1"), ("i32", "8")] if mask else []
        whole = self._by_parts(name, width, element, [(ELEMENT[source], self._number(source, limited))], *more)
        if not is_signed(target):
            inside = self.fcompare("ge", source, a, self.const(source, 0))
            whole = self.select(target, inside, whole, self.const(target, 0))
            return whole if nan == 0 else self._unless_nan(source, target, a, whole, nan)
        if limited is a:
            above = self.fcompare("ge", source, a, self.real(source, float(most + 1)))
            if mask:
                whole = self.select(target, above, self.const(target, most), whole)
            else:  # the complement of the result: quicker than a selection
                ones = self.emitter.value(f"sext {self.vector('i1')} {above} to {self.integer(target)}")
                whole = self.xor(target, whole, ones)
        return whole if nan == least else self._unless_nan(source, target, a, whole, nan)

    def _long(self, source: str, target: str, a: Value) -> Value:
        """A number in the range of a 64-bit integer, in halves: each is the low bits of its sum with 2**52 or more."""
        whole = self.integral("f64", "rz", self.float_to_float(source, "f64", a))
        high = self.integral("f64", "rm", self.fmul("f64", whole, self.real("f64", 2.0**-32)))
        low = self.fsub("f64", whole, self.fmul("f64", high, self.real("f64", 2.0**32)))
        high = self.fadd("f64", high, self.real("f64", 2.0**52 + (2.0**51 if is_signed(target) else 0)))
        low = self.fadd("f64", low, self.real("f64", 2.0**52))
        return self.or_("u64", self.shl_by("u64", high, 32), self.and_with("u64", low, 0xFFFF_FFFF))

    # --- from integers ------------------------------------------------------------------------------------------------

    def int_to_float(self, source: str, target: str, a: Value) -> Value:
        sign = "s" if is_signed(source) else "u"
        return self._bits(target, self._converted(f"{sign}itofp", f"i{word_bits(source)}", ELEMENT[target], a))

    def _small(self, a: Value) -> Value:
        """An integer below 2**24 as f32."""
        return self.int_to_float("s32", "f32", a)

    def _integer_parts(self, t: str, a: Value) -> tuple[Value, Value]:
        """Two f64 whose sum is a 64-bit integer: its halves become mantissas of 2**84 and 2**52."""
        bias = 1 << 63 if is_signed(t) else 0
        high = self.xor("u64", self.shr_by("u64", a, 32), self.const("u64", 0x4530_0000 << 32 | bias >> 32))
        low = self.or_("u64", self.and_with("u64", a, 0xFFFF_FFFF), self.const("u64", 0x4330_0000 << 32))
        return self.fsub("f64", high, self.real("f64", float((1 << 84) + bias + (1 << 52)))), low

    # --- between floats -----------------------------------------------------------------------------------------------

    def float_to_float(self, source: str, target: str, a: Value) -> Value:
        if source == target:
            return a
        number = self._number(source, a)
        if target == "f32":
            return self._bits(target, self._converted("fptrunc", "double", "float", number))
        return self._bits(target, self.emitter.value(f"fpext {self._real(source)} {number} to {self._real(target)}"))

    def half_to_single(self, a: Value) -> Value:
        if "f16c" not in self.emitter.features:
            return exact.half_to_single(self, a)
        half = self.emitter.value(f"bitcast {self.integer('u16')} {a} to {self.vector('half')}")
        return self._bits("f32", self.emitter.value(f"fpext {self.vector('half')} {half} to {self._real('f32')}"))

    def single_to_half(self, a: Value, rounding: str = "rn") -> Value:
        features = self.emitter.features
        if "f16c" in features and not self.lanes and rounding == "rn":
            half = self._converted("fptrunc", "float", "half", self._number("f32", a))
            return self.emitter.value(f"bitcast half {half} to i16")
        if "f16c" not in features or not self.lanes or self.lanes % 8:
            return exact.narrow(self, exact.F32, exact.F16, a, rounding)
        single, mode = [("float", self._number("f32", a))], ("i32", str(_HALF_MODE[rounding]))
        if "avx512f" not in features or self.lanes % 16:
            return self._by_parts("llvm.x86.vcvtps2ph.256", 8, "i16", single, mode)
        masked = [mode, ("<16 x i16>", "zeroinitializer"), ("i16", "-1")]
        return self._by_parts("llvm.x86.avx512.mask.vcvtps2ph.512", 16, "i16", single, *masked)

    # --- directed rounding --------------------------------------------------------------------------------------------

    def directed_float(self, source: str, target: str, rounding: str, a: Value) -> Value:
        feature, name, width = _EMBEDDED.get((source, target), ("", "", 1))
        if feature not in self.emitter.features or self.lanes % width or not self.lanes:
            return self._in_mode(source, target, rounding, a)
        element = ELEMENT.get(source) or f"i{word_bits(source)}"
        value = self._number(source, a) if source == "f64" else a
        masked = [(f"<{width} x {ELEMENT[target]}>", "zeroinitializer"), ("i8", "-1")] if source == "f64" else []
        mode = ("i32", str(EMBEDDED_MODE[rounding]))
        return self._bits(target, self._by_parts(name, width, ELEMENT[target], [(element, value)], *masked, mode))

    def _in_mode(self, source: str, target: str, rounding: str, a: Value) -> Value:
        """In another rounding mode, if the CPU has modes."""
        if modes.FEATURE not in self.emitter.features:
            return exact.directed_float(self, source, target, rounding, a)
        if (word_bits(source), target) == (32, "f64"):
            return self.int_to_float(source, target, a)
        with self._rounding(rounding):
            if source == "f64":
                return self.float_to_float(source, target, a)
            if source == "s32":
                return self.int_to_float(source, target, a)
            if source == "u32":
                scaled = self.fmul("f32", self._small(self.shr_by("u32", a, 16)), self.real("f32", 65536.0))
                return self.fadd("f32", scaled, self._small(self.and_with("u32", a, 0xFFFF)))
            double = self.fadd("f64", *self._integer_parts(source, a))
            if rounding == "rm":  # the parts of 0 are of opposite signs
                double = self.select("u64", self.is_zero("u64", a), self.const("u64", 0), double)
            return self.float_to_float("f64", target, double)
