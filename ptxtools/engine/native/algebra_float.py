"""Floating-point part of the LLVM algebra: f32 and f64 as IR arithmetic, directed rounding, f16 conversions.

Static rounding modes of LLVM's constrained intrinsics are ignored by its x86 back end, so directed rounding uses the
AVX-512 instructions with embedded rounding where there are any, and exact algorithms elsewhere.
"""

from __future__ import annotations

from ptxtools.engine.native.emitter import Emitter
from ptxtools.semantics import exact
from ptxtools.semantics.algebra import Algebra, Value
from ptxtools.semantics.types import is_signed, word_bits

_ELEMENT = {"f32": "float", "f64": "double"}
_CONDITION = {
    "eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "num": "ord",
    "equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "nan": "uno",
}  # fmt: skip
_TO_INTEGRAL = {"rn": "roundeven", "rz": "trunc", "rm": "floor", "rp": "ceil"}

# Operand "rounding" of the AVX-512 intrinsics: _MM_FROUND_NO_EXC with the mode in the low bits.
_EMBEDDED_MODE = {"rm": 9, "rp": 10, "rz": 11}
_EMBEDDED_NAME = {
    "add": "llvm.x86.avx512.add.{}.512",
    "sub": "llvm.x86.avx512.sub.{}.512",
    "mul": "llvm.x86.avx512.mul.{}.512",
    "div": "llvm.x86.avx512.div.{}.512",
    "fma": "llvm.x86.avx512.vfmadd.{}.512",
    "sqrt": "llvm.x86.avx512.sqrt.{}.512",
}
_EMBEDDED_LANES = {"f32": 16, "f64": 8}
_EMBEDDED_SUFFIX = {"f32": "ps", "f64": "pd"}

#: Conversions with an embedded rounding mode: feature, intrinsic, lanes.
_EMBEDDED_CONVERSIONS = {
    ("f64", "f32"): ("avx512f", "llvm.x86.avx512.mask.cvtpd2ps.512", 8),
    ("s32", "f32"): ("avx512f", "llvm.x86.avx512.sitofp.round.v16f32.v16i32", 16),
    ("u32", "f32"): ("avx512f", "llvm.x86.avx512.uitofp.round.v16f32.v16i32", 16),
    ("s64", "f32"): ("avx512dq", "llvm.x86.avx512.sitofp.round.v8f32.v8i64", 8),
    ("u64", "f32"): ("avx512dq", "llvm.x86.avx512.uitofp.round.v8f32.v8i64", 8),
    ("s64", "f64"): ("avx512dq", "llvm.x86.avx512.sitofp.round.v8f64.v8i64", 8),
    ("u64", "f64"): ("avx512dq", "llvm.x86.avx512.uitofp.round.v8f64.v8i64", 8),
}

#: Truncation: feature, intrinsic, lanes, types of its operand, result and mask.
_TRUNCATIONS = {
    ("f32", "s32"): ("avx512f", "llvm.x86.avx512.mask.cvttps2dq.512", 16, "<16 x float>", "<16 x i32>", "i16"),
    ("f64", "s32"): ("avx512f", "llvm.x86.avx512.mask.cvttpd2dq.512", 8, "<8 x double>", "<8 x i32>", "i8"),
    ("f32", "s64"): ("avx512dq", "llvm.x86.avx512.mask.cvttps2qq.512", 8, "<8 x float>", "<8 x i64>", "i8"),
    ("f64", "s64"): ("avx512dq", "llvm.x86.avx512.mask.cvttpd2qq.512", 8, "<8 x double>", "<8 x i64>", "i8"),
    ("f32", "u64"): ("avx512dq", "llvm.x86.avx512.mask.cvttps2uqq.512", 8, "<8 x float>", "<8 x i64>", "i8"),
}


class FloatOperations(Algebra):
    """Mixed into LLVMAlgebra."""

    emitter: Emitter
    lanes: int
    _floats: dict[str, str]  # integer value -> the same bits as a float value, where that exists already

    def vector(self, element: str) -> str:
        raise NotImplementedError

    def splat(self, element: str, literal: str) -> str:
        raise NotImplementedError

    def integer(self, t: str) -> str:
        raise NotImplementedError

    # --- bits to numbers and back -------------------------------------------------------------------------------------

    def _real(self, t: str) -> str:
        return self.vector(_ELEMENT[t])

    def _number(self, t: str, value: Value) -> str:
        known = self._floats.get(value)
        return known or self.emitter.value(f"bitcast {self.integer(t)} {value} to {self._real(t)}")

    def _bits(self, t: str, number: str) -> Value:
        value = self.emitter.value(f"bitcast {self._real(t)} {number} to {self.integer(t)}")
        self._floats[value] = number
        return value

    def _suffix(self, t: str) -> str:
        return f"v{self.lanes}{t}" if self.lanes else t

    def _arithmetic(self, instruction: str, t: str, *operands: Value) -> Value:
        numbers = ", ".join([self._number(t, operand) for operand in operands])
        return self._bits(t, self.emitter.value(f"{instruction} {self._real(t)} {numbers}"))

    def _function(self, name: str, t: str, *operands: Value) -> Value:
        real = self._real(t)
        arguments = [(real, self._number(t, operand)) for operand in operands]
        return self._bits(t, self.emitter.call(f"llvm.{name}.{self._suffix(t)}", real, arguments))

    # --- arithmetic ---------------------------------------------------------------------------------------------------

    def fadd(self, t: str, a: Value, b: Value) -> Value:
        return self._arithmetic("fadd", t, a, b)

    def fsub(self, t: str, a: Value, b: Value) -> Value:
        return self._arithmetic("fsub", t, a, b)

    def fmul(self, t: str, a: Value, b: Value) -> Value:
        return self._arithmetic("fmul", t, a, b)

    def fdiv(self, t: str, a: Value, b: Value) -> Value:
        return self._arithmetic("fdiv", t, a, b)

    def fsqrt(self, t: str, a: Value) -> Value:
        return self._function("sqrt", t, a)

    def fma(self, t: str, a: Value, b: Value, c: Value) -> Value:
        return self._function("fma", t, a, b, c)

    def product_error(self, a: Value, b: Value, product: Value) -> Value:
        negated = self.xor("u64", product, self.const("u64", 1 << 63))
        return self.fma("f64", a, b, negated)

    def fcompare(self, condition: str, t: str, a: Value, b: Value) -> Value:
        x, y = self._number(t, a), self._number(t, b)
        return self.emitter.value(f"fcmp {_CONDITION[condition]} {self._real(t)} {x}, {y}")

    def integral(self, t: str, rounding: str, a: Value) -> Value:
        return self._function(_TO_INTEGRAL[rounding], t, a)

    # --- conversions --------------------------------------------------------------------------------------------------

    def float_to_int(self, source: str, target: str, a: Value, nan: int = 0) -> Value:
        """What the instruction gives out of range is not used; LLVM's saturating intrinsics would go lane by lane."""
        if (source, target) in _TRUNCATIONS and _TRUNCATIONS[source, target][0] in self.emitter.features and self.lanes:
            return self._truncate(source, target, a, nan)
        bits, signed = word_bits(target), is_signed(target)
        low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
        sign, number = "s" if signed else "u", self._number(source, a)
        result = self.emitter.value(f"fpto{sign}i {self._real(source)} {number} to {self.integer(target)}")
        above = self.fcompare("ge", source, a, self.real(source, float(high)))
        result = self.select(target, above, self.const(target, high - 1), result)
        if not signed:  # NaN, too
            inside = self.fcompare("ge", source, a, self.const(source, 0))
            result = self.select(target, inside, result, self.const(target, 0))
            if nan == 0:
                return result
        else:
            below = self.fcompare("lt", source, a, self.real(source, float(low)))
            result = self.select(target, below, self.const(target, low), result)
        return self.select(target, self.fcompare("nan", source, a, a), self.const(target, nan), result)

    def _truncate(self, source: str, target: str, a: Value, nan: int) -> Value:
        """By the CPU's instruction: out of range it gives the least signed integer, or the greatest unsigned one."""
        _, name, width, operand, result, mask = _TRUNCATIONS[source, target]
        least, most = 1 << (word_bits(target) - 1), (1 << (word_bits(target) - 1)) - 1
        number = self._number(source, a)
        if target == "s32" and source == "f64":  # the greatest integer is an f64; a NaN stays
            limit = self.splat("double", str(float(most)))
            over = self.emitter.value(f"fcmp olt {self._real(source)} {limit}, {number}")
            number = self.emitter.value(
                f"select {self.vector('i1')} {over}, {self._real(source)} {limit}, {self._real(source)} {number}"
            )
        parts = []
        for first in range(0, self.lanes, width):
            chunk = self._lanes(_ELEMENT[source], number, first, width)
            arguments = [(operand, chunk), (result, "zeroinitializer"), (mask, "-1"), ("i32", "8")]
            parts.append(self.emitter.call(name, result, arguments))
        whole = self._concatenate(f"i{word_bits(target)}", parts, width)
        if not is_signed(target):
            inside = self.fcompare("ge", source, a, self.const(source, 0))
            whole = self.select(target, inside, whole, self.const(target, 0))
            missing = self.fcompare("nan", source, a, a)
            return whole if nan == 0 else self.select(target, missing, self.const(target, nan), whole)
        if target != "s32" or source != "f64":
            above = self.fcompare("ge", source, a, self.real(source, float(most + 1)))
            whole = self.select(target, above, self.const(target, most), whole)
        if nan == least:
            return whole
        return self.select(target, self.fcompare("nan", source, a, a), self.const(target, nan), whole)

    def int_to_float(self, source: str, target: str, a: Value) -> Value:
        sign = "s" if is_signed(source) else "u"
        return self._bits(target, self.emitter.value(f"{sign}itofp {self.integer(source)} {a} to {self._real(target)}"))

    def float_to_float(self, source: str, target: str, a: Value) -> Value:
        if source == target:
            return a
        instruction = "fpext" if target == "f64" else "fptrunc"
        number = self._number(source, a)
        return self._bits(
            target, self.emitter.value(f"{instruction} {self._real(source)} {number} to {self._real(target)}")
        )

    def half_to_single(self, a: Value) -> Value:
        if "f16c" not in self.emitter.features:
            return exact.half_to_single(self, a)
        half = self.emitter.value(f"bitcast {self.integer('u16')} {a} to {self.vector('half')}")
        return self._bits("f32", self.emitter.value(f"fpext {self.vector('half')} {half} to {self._real('f32')}"))

    def single_to_half(self, a: Value) -> Value:
        if "f16c" not in self.emitter.features:
            return exact.narrow(self, exact.F32, exact.F16, a, "rn")
        half = self.emitter.value(f"fptrunc {self._real('f32')} {self._number('f32', a)} to {self.vector('half')}")
        return self.emitter.value(f"bitcast {self.vector('half')} {half} to {self.integer('u16')}")

    # --- directed rounding --------------------------------------------------------------------------------------------

    def directed(self, operation: str, t: str, rounding: str, *operands: Value) -> Value:
        width = _EMBEDDED_LANES[t]
        if "avx512f" not in self.emitter.features or self.lanes % width or not self.lanes:
            return exact.directed(self, operation, t, rounding, *operands)
        chunk = f"<{width} x {_ELEMENT[t]}>"
        name = _EMBEDDED_NAME[operation].format(_EMBEDDED_SUFFIX[t])
        numbers = [self._number(t, operand) for operand in operands]
        parts = []
        for first in range(0, self.lanes, width):
            arguments = [(chunk, self._lanes(_ELEMENT[t], number, first, width)) for number in numbers]
            arguments.append(("i32", str(_EMBEDDED_MODE[rounding])))
            parts.append(self.emitter.call(name, chunk, arguments))
        return self._bits(t, self._concatenate(_ELEMENT[t], parts, width))

    def directed_float(self, source: str, target: str, rounding: str, a: Value) -> Value:
        feature, name, width = _EMBEDDED_CONVERSIONS.get((source, target), ("", "", 1))
        if feature not in self.emitter.features or self.lanes % width or not self.lanes:
            return exact.directed_float(self, source, target, rounding, a)
        element = _ELEMENT.get(source) or f"i{word_bits(source)}"
        value = self._number(source, a) if source == "f64" else a
        result = f"<{width} x {_ELEMENT[target]}>"
        masked = [(result, "zeroinitializer"), ("i8", "-1")] if source == "f64" else []
        parts = []
        for first in range(0, self.lanes, width):
            operand = (f"<{width} x {element}>", self._lanes(element, value, first, width))
            parts.append(self.emitter.call(name, result, [operand, *masked, ("i32", str(_EMBEDDED_MODE[rounding]))]))
        return self._bits(target, self._concatenate(_ELEMENT[target], parts, width))

    def fma_to_odd(self, a: Value, b: Value, c: Value) -> Value:
        if "avx512f" not in self.emitter.features or not self.lanes:
            return exact.fma_to_odd(self, a, b, c)
        down = self.directed("fma", "f32", "rm", a, b, c)
        up = self.directed("fma", "f32", "rp", a, b, c)
        # Inexact results are neighbours, one of which is odd; exact ones are equal but for an exact zero's sign.
        odd = self.is_nonzero("u32", self.and_with("u32", down, 1))
        return self.select("u32", odd, down, up)

    def _lanes(self, element: str, value: str, first: int, count: int) -> str:
        vector = self.vector(element)
        indices = ", ".join(f"i32 {first + i}" for i in range(count))
        return self.emitter.value(f"shufflevector {vector} {value}, {vector} poison, <{count} x i32> <{indices}>")

    def _concatenate(self, element: str, parts: list[str], width: int) -> str:
        while len(parts) > 1:
            indices = ", ".join(f"i32 {i}" for i in range(2 * width))
            shape, mask = f"<{width} x {element}>", f"<{2 * width} x i32> <{indices}>"
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self.emitter.value(f"shufflevector {shape} {a}, {shape} {b}, {mask}") for a, b in pairs]
            width *= 2
        return parts[0]
