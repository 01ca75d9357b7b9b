"""Floating-point part of the LLVM algebra: f32 and f64 as IR arithmetic, and directed rounding.

Directed rounding uses AVX-512 instructions with embedded rounding if the CPU has them, another rounding mode on other
x86 CPUs (see `modes`), and exact algorithms elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ptxtools.semantics import exact
from ptxtools.semantics.algebra import Algebra, Value

from . import modes
from .emitter import Emitter

ELEMENT = {"f32": "float", "f64": "double"}
_CONDITION = {
    "eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "num": "ord",
    "equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "nan": "uno",
}  # fmt: skip
_TO_INTEGRAL = {"rn": "roundeven", "rz": "trunc", "rm": "floor", "rp": "ceil"}

# Operand "rounding" of the AVX-512 intrinsics: _MM_FROUND_NO_EXC with the mode in the low bits.
EMBEDDED_MODE = {"rm": 9, "rp": 10, "rz": 11}
_EMBEDDED_ASSEMBLY = {"rm": "{rd-sae}", "rp": "{ru-sae}", "rz": "{rz-sae}"}
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


class FloatOperations(Algebra):
    """Mixed into LLVMAlgebra, below its conversions."""

    emitter: Emitter
    lanes: int
    _floats: dict[str, str]  # integer value -> the float value with the same bits, if there is one already
    _mode = "rn"  # rounding mode of the arithmetic being emitted

    def vector(self, element: str) -> str:
        raise NotImplementedError

    def splat(self, element: str, literal: str) -> str:
        raise NotImplementedError

    def integer(self, t: str) -> str:
        raise NotImplementedError

    # --- bits to numbers and back -------------------------------------------------------------------------------------

    def _real(self, t: str) -> str:
        return self.vector(ELEMENT[t])

    def _number(self, t: str, value: Value) -> str:
        known = self._floats.get(value)
        return known or self.emitter.value(f"bitcast {self.integer(t)} {value} to {self._real(t)}")

    def _bits(self, t: str, number: str) -> Value:
        value = self.emitter.value(f"bitcast {self._real(t)} {number} to {self.integer(t)}")
        self._floats[value] = number
        return value

    def _arithmetic(self, operation: str, t: str, *operands: Value) -> Value:
        real = self._real(t)
        arguments = [(real, self._number(t, operand)) for operand in operands]
        return self._bits(t, self.emitter.rounded(operation, real, arguments, self._mode))

    def _converted(self, operation: str, source: str, target: str, value: str) -> str:
        """A conversion that rounds, between IR element types."""
        return self.emitter.rounded(operation, self.vector(target), [(self.vector(source), value)], self._mode)

    @contextmanager
    def _rounding(self, mode: str) -> Iterator[None]:
        """Arithmetic inside this context uses another rounding mode of the CPU."""
        self._mode, before = mode, self._mode
        yield
        self._mode = before

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
        return self._arithmetic("sqrt", t, a)

    def fma(self, t: str, a: Value, b: Value, c: Value) -> Value:
        return self._arithmetic("fma", t, a, b, c)

    def product_error(self, a: Value, b: Value, product: Value) -> Value:
        negated = self.xor("u64", product, self.const("u64", 1 << 63))
        return self.fma("f64", a, b, negated)

    def fcompare(self, condition: str, t: str, a: Value, b: Value) -> Value:
        x, y = self._number(t, a), self._number(t, b)
        return self.emitter.value(f"fcmp {_CONDITION[condition]} {self._real(t)} {x}, {y}")

    def integral(self, t: str, rounding: str, a: Value) -> Value:
        suffix = f"v{self.lanes}{t}" if self.lanes else t
        number = (self._real(t), self._number(t, a))
        return self._bits(t, self.emitter.call(f"llvm.{_TO_INTEGRAL[rounding]}.{suffix}", self._real(t), [number]))

    # --- directed rounding --------------------------------------------------------------------------------------------

    def directed(self, operation: str, t: str, rounding: str, *operands: Value) -> Value:
        width = _EMBEDDED_LANES[t]
        if "avx512f" not in self.emitter.features or self.lanes % width or not self.lanes:
            return self._moded(operation, t, rounding, *operands)
        name = _EMBEDDED_NAME[operation].format(_EMBEDDED_SUFFIX[t])
        numbers = [(ELEMENT[t], self._number(t, operand)) for operand in operands]
        return self._bits(t, self._by_parts(name, width, ELEMENT[t], numbers, ("i32", str(EMBEDDED_MODE[rounding]))))

    def keeping_nans(self, operation: str, rounding: str, *operands: Value) -> Value | None:
        """x86 has the same rule, with the addend last. Written as assembly, since LLVM may swap operands and fold
        signs."""
        features = self.emitter.features
        wide = "avx512f" in features
        width, register = (8, "v") if wide else (4, "x")
        missing = "avx" not in features or (operation == "fma" and "fma" not in features)
        if missing or not self.lanes or self.lanes % width:
            return None
        how = f"{_EMBEDDED_ASSEMBLY[rounding]}, " if wide and rounding != "rn" else ""
        constraints = ",".join([f"={register}", *[register] * len(operands)])
        template = f"v{operation}pd {how}{'$1' if operation == 'sqrt' else '$2, $1'}, $0"
        if operation == "fma":  # the form whose first factor comes first
            template, constraints = f"vfmadd231pd {how}$2, $1, $0", f"={register},{register},{register},0"
        elif not wide:  # in the short encoding the assembler would swap operands, too
            template = "{vex3} " + template
        numbers, chunk = [self._number("f64", operand) for operand in operands], f"<{width} x double>"
        parts = []
        for first in range(0, self.lanes, width):
            arguments = [(chunk, self._lanes("double", number, first, width)) for number in numbers]
            parts.append(self.emitter.assembly(template, constraints, chunk, arguments, "rn" if wide else rounding))
        return self._bits("f64", self._concatenate("double", parts, width))

    def _moded(self, operation: str, t: str, rounding: str, *operands: Value) -> Value:
        """In another rounding mode, if the CPU has modes. Rounding twice in one direction equals rounding once."""
        single = operation != "fma" or "fma" in self.emitter.features
        if modes.FEATURE not in self.emitter.features or (t == "f64" and not single):
            return exact.directed(self, operation, t, rounding, *operands)
        with self._rounding(rounding):
            if single:
                return self._arithmetic(operation if operation in ("sqrt", "fma") else f"f{operation}", t, *operands)
            a, b, c = (self.float_to_float("f32", "f64", operand) for operand in operands)
            return self.float_to_float("f64", "f32", self.fadd("f64", self.fmul("f64", a, b), c))

    def fma_to_odd(self, a: Value, b: Value, c: Value) -> Value:
        if "avx512f" not in self.emitter.features or not self.lanes:
            return exact.fma_to_odd(self, a, b, c)
        down = self.directed("fma", "f32", "rm", a, b, c)
        up = self.directed("fma", "f32", "rp", a, b, c)
        # Inexact results are neighbours, one of which is odd; exact ones are equal but for an exact zero's sign.
        odd = self.is_nonzero("u32", self.and_with("u32", down, 1))
        return self.select("u32", odd, down, up)

    def _by_parts(
        self, function: str, width: int, result: str, operands: Sequence[tuple[str, str]], *more: tuple[str, str]
    ) -> str:
        """An intrinsic of `width` lanes over all of them; operands by IR element type, `more`: what each call gets."""
        parts = []
        for first in range(0, self.lanes, width):
            chunks = [(f"<{width} x {element}>", self._lanes(element, v, first, width)) for element, v in operands]
            parts.append(self.emitter.call(function, f"<{width} x {result}>", [*chunks, *more]))
        return self._concatenate(result, parts, width)

    def _lanes(self, element: str, value: str, first: int, count: int) -> str:
        return self.emitter.part(element, self.lanes, value, first, count)

    def _concatenate(self, element: str, parts: list[str], width: int) -> str:
        return self.emitter.concatenate(element, parts, width)
