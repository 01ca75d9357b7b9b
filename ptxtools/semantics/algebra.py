"""The value algebra: instructions' meanings are written in it, and each back end implements it.

A *value* is the content of one operand in every lane; only the algebra looks inside. Every number is an integer of its
type's width: 16 bits for 8- and 16-bit types (8-bit ones sign- or zero-extended by their type), 32, 64, and a pair
(low, high) of 64-bit values for 128-bit types. Floating-point values are their bit patterns. A predicate is one bit.

`t` is always a PTX type without the dot. Its width selects the operation's width, its sign the signed or unsigned
operation: `A.shr("s32", a, n)` copies the sign. Bitwise operations, `select` and `const` take "pred" as well.
Nothing traps and nothing depends on lanes that a mask switches off.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ptxtools.semantics.types import bits_of, is_signed, unsigned, word_bits

Value: TypeAlias = Any

STORAGE_BITS = {"pred": 1, "b16": 16, "b32": 32, "b64": 64, "b128": 128}


class Algebra(ABC):
    """Operations on lane values; see the module's text for what `t` and values are."""

    #: f32 NaNs are left as they are: whoever computes makes them canonical before anybody sees their bits.
    loose = False

    # --- constants, selection -----------------------------------------------------------------------------------------

    @abstractmethod
    def const(self, t: str, value: int) -> Value:
        """The same bit pattern in every lane; negative numbers wrap."""

    def real(self, t: str, value: float) -> Value:
        """A floating-point constant of type f32 or f64."""
        code, integer = ("<f", "<I") if t == "f32" else ("<d", "<Q")
        return self.const(t, struct.unpack(integer, struct.pack(code, value))[0])

    @abstractmethod
    def select(self, t: str, p: Value, a: Value, b: Value) -> Value:
        """`a` where `p`, else `b`."""

    @abstractmethod
    def table(self, t: str, name: str, entries: Sequence[int], index: Value) -> Value:
        """entries[index] for a u32 index below len(entries); `name` is unique among tables."""

    def tables(self, name: str, entries: Sequence[Sequence[int]], index: Value) -> list[Value]:
        """The same of two tables of u32."""
        return [self.table("u32", f"{name}_{place}", table, index) for place, table in enumerate(entries)]

    def once(self, name: str, body: Callable[[Algebra, Value], Value], a: Value) -> Value:
        """body(self, a), of u32; `name` is unique among such bodies, which depend on nothing else."""
        return body(self, a)

    # --- integers -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def add(self, t: str, a: Value, b: Value) -> Value: ...

    @abstractmethod
    def sub(self, t: str, a: Value, b: Value) -> Value: ...

    @abstractmethod
    def mul(self, t: str, a: Value, b: Value) -> Value:
        """Low half of the product."""

    @abstractmethod
    def mul_high(self, t: str, a: Value, b: Value) -> Value:
        """High half of the double-width product."""

    @abstractmethod
    def div(self, t: str, a: Value, b: Value) -> Value:
        """Quotient truncated toward zero; `b` is not zero. MIN / -1 wraps to MIN."""

    @abstractmethod
    def rem(self, t: str, a: Value, b: Value) -> Value:
        """Remainder with the dividend's sign; `b` is not zero. MIN % -1 is 0."""

    @abstractmethod
    def add_saturating(self, t: str, a: Value, b: Value) -> Value: ...

    @abstractmethod
    def sub_saturating(self, t: str, a: Value, b: Value) -> Value: ...

    @abstractmethod
    def minimum(self, t: str, a: Value, b: Value) -> Value: ...

    @abstractmethod
    def maximum(self, t: str, a: Value, b: Value) -> Value: ...

    @abstractmethod
    def and_(self, t: str, a: Value, b: Value) -> Value: ...

    @abstractmethod
    def or_(self, t: str, a: Value, b: Value) -> Value: ...

    @abstractmethod
    def xor(self, t: str, a: Value, b: Value) -> Value: ...

    @abstractmethod
    def not_(self, t: str, a: Value) -> Value: ...

    @abstractmethod
    def shl(self, t: str, a: Value, n: Value) -> Value:
        """Shift left; the count has type `t` and lies in 0 <= n < width."""

    @abstractmethod
    def shr(self, t: str, a: Value, n: Value) -> Value:
        """Shift right, arithmetic for signed types; the count has type `t` and lies in 0 <= n < width."""

    @abstractmethod
    def funnel_left(self, t: str, high: Value, low: Value, n: Value) -> Value:
        """High word of (high:low) << n, 0 <= n < width."""

    @abstractmethod
    def compare(self, condition: str, t: str, a: Value, b: Value) -> Value:
        """Predicate of two integers; condition eq ne lt le gt ge."""

    @abstractmethod
    def popcount(self, t: str, a: Value) -> Value: ...

    @abstractmethod
    def leading_zeros(self, t: str, a: Value) -> Value:
        """Number of zero bits above the highest one; the width for zero."""

    @abstractmethod
    def reverse_bits(self, t: str, a: Value) -> Value: ...

    @abstractmethod
    def resize(self, source: str, target: str, a: Value) -> Value:
        """An integer of type `source` in `target`'s width: truncated, or extended by the source's sign.

        Predicates extend to 0 and 1.
        """

    # --- f32 and f64, round to nearest even; a NaN result may have any payload ----------------------------------------

    @abstractmethod
    def fadd(self, t: str, a: Value, b: Value) -> Value: ...

    @abstractmethod
    def fsub(self, t: str, a: Value, b: Value) -> Value: ...

    @abstractmethod
    def fmul(self, t: str, a: Value, b: Value) -> Value: ...

    @abstractmethod
    def fdiv(self, t: str, a: Value, b: Value) -> Value: ...

    @abstractmethod
    def fsqrt(self, t: str, a: Value) -> Value: ...

    @abstractmethod
    def fma(self, t: str, a: Value, b: Value, c: Value) -> Value:
        """a*b + c with one rounding."""

    @abstractmethod
    def product_error(self, a: Value, b: Value, product: Value) -> Value:
        """a*b - product exactly, for f64 operands with magnitudes in 2**-400 to 2**400, product = fmul(a, b)."""

    @abstractmethod
    def fcompare(self, condition: str, t: str, a: Value, b: Value) -> Value:
        """PTX's comparisons: eq ne lt le gt ge (false with a NaN), equ neu ltu leu gtu geu (true), num, nan."""

    @abstractmethod
    def integral(self, t: str, rounding: str, a: Value) -> Value:
        """Round to an integer in the same format; rounding rn rz rm rp."""

    @abstractmethod
    def float_to_int(self, source: str, target: str, a: Value, nan: int = 0) -> Value:
        """Truncate f32 or f64 to a 32- or 64-bit integer, clamped to its range; NaN gives `nan`."""

    @abstractmethod
    def int_to_float(self, source: str, target: str, a: Value) -> Value:
        """A 32- or 64-bit integer to f32 or f64, to nearest even."""

    @abstractmethod
    def float_to_float(self, source: str, target: str, a: Value) -> Value:
        """Between f32 and f64, to nearest even."""

    @abstractmethod
    def half_to_single(self, a: Value) -> Value:
        """f16 to f32, exact."""

    @abstractmethod
    def single_to_half(self, a: Value, rounding: str = "rn") -> Value:
        """f32 to f16; rounding rn rz rm rp. A NaN result may have any payload."""

    @abstractmethod
    def directed(self, operation: str, t: str, rounding: str, *operands: Value) -> Value:
        """add sub mul fma div sqrt of f32 or f64 rounded rz, rm or rp."""

    def keeping_nans(self, operation: str, rounding: str, *operands: Value) -> Value | None:
        """add sub mul fma div sqrt of f64 whose NaNs are those of floating.propagate, if the machine makes them so."""
        return None

    @abstractmethod
    def directed_float(self, source: str, target: str, rounding: str, a: Value) -> Value:
        """An f64 as f32, or a 32- or 64-bit integer as f32 or f64, rounded rz, rm or rp. A NaN result is any NaN."""

    @abstractmethod
    def fma_to_odd(self, a: Value, b: Value, c: Value) -> Value:
        """f32 a*b + c rounded to odd: rounding the result again, to at most 22 bits, rounds the true value once."""

    @abstractmethod
    def context(self, name: str) -> Value:
        """A u64 that the running engine supplies: "const_base", "const_size" and windows (see movement.py)."""

    # --- derived ------------------------------------------------------------------------------------------------------

    def neg(self, t: str, a: Value) -> Value:
        """Two's complement."""
        return self.sub(t, self.const(t, 0), a)

    def is_zero(self, t: str, a: Value) -> Value:
        """Predicate a == 0."""
        return self.compare("eq", t, a, self.const(t, 0))

    def is_nonzero(self, t: str, a: Value) -> Value:
        """Predicate a != 0."""
        return self.compare("ne", t, a, self.const(t, 0))

    def is_negative(self, t: str, a: Value) -> Value:
        """Predicate: the top bit is set (integer or floating-point)."""
        signed = f"s{word_bits(t)}"
        return self.compare("lt", signed, a, self.const(signed, 0))

    def shl_by(self, t: str, a: Value, n: int) -> Value:
        """Shift left by a constant."""
        return self.shl(t, a, self.const(t, n)) if n else a

    def shr_by(self, t: str, a: Value, n: int) -> Value:
        """Shift right by a constant, arithmetic for signed types."""
        return self.shr(t, a, self.const(t, n)) if n else a

    def and_with(self, t: str, a: Value, mask: int) -> Value:
        """Bitwise and with a constant."""
        return self.and_(t, a, self.const(t, mask))

    def split(self, a: Value) -> tuple[Value, Value]:
        """The (low, high) 64-bit halves of a 128-bit value."""
        low, high = a
        return low, high

    def join(self, low: Value, high: Value) -> Value:
        """A 128-bit value from its 64-bit halves."""
        return (low, high)

    def elementwise(self, word: str, element: str, body: Callable[..., Value], *operands: Value) -> Value:
        """Apply `body(B, *parts)` to each element of packed operands, B being the algebra of the parts.

        `word` and `element` are unsigned types of 16 to 64 bits; `body` returns one element of the same width.
        """
        count = bits_of(word) // bits_of(element)
        parts = zip(*(self.unpack(element, count, operand) for operand in operands), strict=True)
        return self.pack(element, [body(self, *part) for part in parts])

    def bytes_of(self, a: Value, b: Value, order: Sequence[int]) -> Value:
        """The u32 of four bytes of two u32, lowest first: numbers 0 to 3 are those of `a`, 4 to 7 those of `b`."""
        result: Value = None
        for place, number in enumerate(order):
            source, up = (b if number & 4 else a), 8 * (place - (number & 3))
            part = self.shl_by("u32", source, up) if up >= 0 else self.shr_by("u32", source, -up)
            part = self.and_with("u32", part, 0xFF << 8 * place)
            result = part if result is None else self.or_("u32", result, part)
        return result

    # --- slots and operands (9.4) -------------------------------------------------------------------------------------

    def adapt(self, value: Value, storage: str, t: str) -> Value:
        """A register's content ("b16", "b32", "b64", "b128", "pred") as an operand of type `t`: its low bits."""
        if storage == "pred" or t == "pred":
            return value
        have, want = STORAGE_BITS[storage], word_bits(t)
        value = self._fit(value, have, want, "u")
        return self._narrow(t, value) if bits_of(t) < 16 else value

    def widen(self, value: Value, t: str, storage: str) -> Value:
        """A result of type `t` as a register's content; signed types extend their sign, others zeros."""
        if storage == "pred" or t == "pred":
            return value
        if bits_of(t) < 16:
            value = self._narrow(t, value)
        return self._fit(value, word_bits(t), STORAGE_BITS[storage], "s" if is_signed(t) else "u")

    def _fit(self, value: Value, have: int, want: int, sign: str) -> Value:
        if have == want:
            return value
        if have == 128:
            return self._fit(self.split(value)[0], 64, want, sign)
        if want == 128:
            low = self._fit(value, have, 64, sign)
            high = self.shr_by("s64", low, 63) if sign == "s" else self.const("u64", 0)
            return self.join(low, high)
        return self.resize(f"{sign}{have}", f"{sign}{want}", value)

    def _narrow(self, t: str, value: Value) -> Value:
        """Extend a type of fewer than 16 bits inside its 16-bit word."""
        bits = bits_of(t)
        if is_signed(t):
            return self.shr_by("s16", self.shl_by("s16", value, 16 - bits), 16 - bits)
        return self.and_with("u16", value, (1 << bits) - 1)

    def pack(self, element: str, values: Sequence[Value]) -> Value:
        """Elements to one value, the first in the lowest bits (9.7.9.4): 2 to 16 elements, 16 to 128 bits in all."""
        bits = bits_of(element)
        total = bits * len(values)
        if total == 128:
            half = len(values) // 2
            if bits == 64:
                return self.join(values[0], values[1])
            return self.join(self.pack(element, values[:half]), self.pack(element, values[half:]))
        word = unsigned(total)
        source = unsigned(word_bits(element))
        result: Value = None
        for position, value in enumerate(values):
            if bits < 16:
                value = self.and_with("u16", value, (1 << bits) - 1)
            part = self.shl_by(word, self.resize(source, word, value), bits * position)
            result = part if result is None else self.or_(word, result, part)
        return result

    def unpack(self, element: str, count: int, value: Value) -> tuple[Value, ...]:
        """The inverse of `pack`."""
        bits = bits_of(element)
        total = bits * count
        if total == 128:
            low, high = self.split(value)
            if bits == 64:
                return (low, high)
            return self.unpack(element, count // 2, low) + self.unpack(element, count // 2, high)
        word, target = unsigned(total), unsigned(word_bits(element))
        parts = [self.resize(word, target, self.shr_by(word, value, bits * i)) for i in range(count)]
        return tuple(self._narrow(element, part) for part in parts) if bits < 16 else tuple(parts)
