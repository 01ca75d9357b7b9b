"""The value algebra as LLVM IR: 32-lane vector code, or scalar code with `lanes=0`.

Values are SSA names (or constant expressions) of `<32 x iN>`, predicates of `<32 x i1>`. No intrinsic of one CPU is
used unless the emitter's features allow it, and none without a generic form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxtools.program.program import WINDOWS
from ptxtools.semantics.algebra import Algebra, Value
from ptxtools.semantics.types import bits_of, is_signed, word_bits

from .algebra_convert import Conversions
from .emitter import ZERO, Emitter, splat


class LLVMAlgebra(Conversions):
    """Emits each operation into `emitter`; `context` supplies engine values by name (Algebra.context)."""

    def __init__(self, emitter: Emitter, lanes: int = 32, context: Callable[[str], str] | None = None) -> None:
        self.emitter = emitter
        self.lanes = lanes
        self._context = context
        self._floats: dict[str, str] = {}

    # --- types and constants ------------------------------------------------------------------------------------------

    def vector(self, element: str) -> str:
        """The IR type of one value with this element type."""
        return f"<{self.lanes} x {element}>" if self.lanes else element

    def integer(self, t: str) -> str:
        """The IR type of values of PTX type `t`."""
        return self.vector(f"i{word_bits(t)}")

    def splat(self, element: str, literal: str) -> str:
        """A constant with the same element everywhere."""
        if not self.lanes:
            return literal
        return ZERO if literal in ("0", "false") else splat(element, literal)

    def broadcast(self, element: str, scalar: str) -> str:
        """A run-time scalar in every lane."""
        if not self.lanes:
            return scalar
        return self.emitter.spread(element, scalar, self.lanes)

    def const(self, t: str, value: int) -> Value:
        if t == "pred":
            return self.splat("i1", "true" if value else "false")
        bits = word_bits(t)
        if bits == 128:
            return (self.const("u64", value & (1 << 64) - 1), self.const("u64", value >> 64))
        return self.splat(f"i{bits}", str(value & (1 << bits) - 1))

    def elementwise(self, word: str, element: str, body: Callable[..., Value], *operands: Value) -> Value:
        """The elements as lanes of a longer vector: taking words apart then needs no instruction."""
        if not self.lanes or word_bits(element) != bits_of(element):
            return super().elementwise(word, element, body, *operands)
        parts = LLVMAlgebra(self.emitter, self.lanes * (bits_of(word) // bits_of(element)), self._context)
        whole, split = self.integer(word), parts.integer(element)
        values = [self.emitter.value(f"bitcast {whole} {operand} to {split}") for operand in operands]
        return self.emitter.value(f"bitcast {split} {body(parts, *values)} to {whole}")

    def bytes_of(self, a: Value, b: Value, order: Sequence[int]) -> Value:
        """One shuffle, which LLVM would have to find in masks and shifts."""
        if not self.lanes:
            return super().bytes_of(a, b, order)
        kind, whole = f"<{4 * self.lanes} x i8>", self.vector("i32")
        first, second = (self.emitter.value(f"bitcast {whole} {operand} to {kind}") for operand in (a, b))
        count = 4 * self.lanes
        places = [count * (number >> 2) + lane + (number & 3) for lane in range(0, count, 4) for number in order]
        shuffled = self.emitter.shuffle(kind, places, first, second)
        return self.emitter.value(f"bitcast {kind} {shuffled} to {whole}")

    def context(self, name: str) -> Value:
        window = WINDOWS.get(name)
        if window is not None:
            return self.const("u64", window)
        if self._context is None:
            raise LookupError(f"this algebra has no context value {name!r}")
        return self.broadcast("i64", self._context(name))

    def once(self, name: str, body: Callable[[Algebra, Value], Value], a: Value) -> Value:
        """Code that is compiled quickly calls a function for this."""
        if not (self.emitter.brief and self.lanes):
            return super().once(name, body, a)
        kind = self.vector("i32")
        symbol = self.emitter.inner_function(f"{name}.{self.lanes}", kind, lambda x: str(body(self, x)))
        return self.emitter.value(f"call {kind} {symbol}({kind} {a})")

    def table(self, t: str, name: str, entries: Sequence[int], index: Value) -> Value:
        element = f"i{word_bits(t)}"
        symbol = self.emitter.constant_table(name, element, entries)
        if not self.lanes:
            wide = self.emitter.value(f"zext i32 {index} to i64")
            address = self.emitter.value(f"getelementptr inbounds {element}, ptr {symbol}, i64 {wide}")
            return self.emitter.value(f"load {element}, ptr {address}, align {word_bits(t) // 8}")
        short = element == "i32" and self.lanes % 16 == 0 and len(entries) <= 128 and not self.emitter.brief
        if short and "avx512f" in self.emitter.features:
            return self._permuted(symbol, len(entries), index)
        places = f"{self.vector('i32')} {index}"
        if not self.emitter.brief:
            places = f"{self.vector('i64')} {self.emitter.value(f'zext {places} to ' + self.vector('i64'))}"
        pointers = self.vector("ptr")
        addresses = self.emitter.value(f"getelementptr inbounds {element}, ptr {symbol}, {places}")
        everyone, nothing = self.splat("i1", "true"), "poison"
        suffix = f"v{self.lanes}{element}"
        arguments = [
            (pointers, addresses),
            (self.vector("i1"), everyone),
            (self.vector(element), nothing),
        ]
        return self.emitter.call(f"llvm.masked.gather.{suffix}.v{self.lanes}p0", self.vector(element), arguments)

    def tables(self, name: str, entries: Sequence[Sequence[int]], index: Value) -> list[Value]:
        """Without permutations of two registers, entries of both tables are one word of 64 bits, each loaded by itself:
        half of the time of two gathers."""
        if not (self.emitter.unmasked and self.lanes and self.lanes % 8 == 0):
            return super().tables(name, entries, index)
        e = self.emitter
        symbol = e.constant_table(f"{name}_both", "i64", [low | high << 32 for low, high in zip(*entries, strict=True)])
        found: list[list[str]] = [[], []]
        for first in range(0, self.lanes, 8):
            pairs = e.value(f"bitcast <8 x i32> {self._lanes('i32', index, first, 8)} to <4 x i64>")
            words = ["poison", "poison"]  # of lanes 0, 1, 4 and 5; of the others
            for place in range(4):
                two = e.value(f"extractelement <4 x i64> {pairs}, i32 {place}")
                for side, one in enumerate((e.value(f"and i64 {two}, {0xFFFF_FFFF}"), e.value(f"lshr i64 {two}, 32"))):
                    word = e.value(f"load i64, ptr {e.value(f'getelementptr i64, ptr {symbol}, i64 {one}')}, align 8")
                    row, at = place % 2, 2 * (place // 2) + side
                    words[row] = e.value(f"insertelement <4 x i64> {words[row]}, i64 {word}, i32 {at}")
            low, high = (e.value(f"bitcast <4 x i64> {row} to <8 x i32>") for row in words)
            for half, parts in enumerate(found):
                order = [half + i + j for i in (0, 4) for j in (0, 2, 8, 10)]
                parts.append(e.shuffle("<8 x i32>", order, low, high))
        return [self._concatenate("i32", parts, 8) for parts in found]

    def _permuted(self, symbol: str, count: int, index: Value) -> Value:
        """entries[index] of a short table by permutations of registers: a gather takes five times as long."""
        shape, permute = "<16 x i32>", "llvm.x86.avx512.vpermi2var.d.512"
        rows = []
        for first in range(0, count, 16):
            place = self.emitter.value(f"getelementptr i32, ptr {symbol}, i64 {first}")
            rows.append(self.emitter.value(f"load {shape}, ptr {place}, align 64"))
        rows += rows[:1] * (len(rows) % 2)
        splits = range(5, (count - 1).bit_length())
        bits = [self.is_nonzero("u32", self.and_with("u32", index, 1 << bit)) for bit in splits]
        found = []
        for low, high in zip(rows[::2], rows[1::2], strict=True):
            parts = []
            for lane in range(0, self.lanes, 16):
                chosen = self._lanes("i32", index, lane, 16)
                parts.append(self.emitter.call(permute, shape, [(shape, low), (shape, chosen), (shape, high)]))
            found.append(self._concatenate("i32", parts, 16))
        for bit in bits:
            found = [
                self.select("u32", bit, found[min(i + 1, len(found) - 1)], found[i]) for i in range(0, len(found), 2)
            ]
        return found[0]

    # --- plain instructions -------------------------------------------------------------------------------------------

    def _binary(self, instruction: str, t: str, a: Value, b: Value) -> Value:
        return self.emitter.value(f"{instruction} {self.integer(t)} {a}, {b}")

    def _intrinsic(self, name: str, t: str, *operands: Value, tail: Sequence[tuple[str, str]] = ()) -> Value:
        vector = self.integer(t)
        suffix = f"v{self.lanes}i{word_bits(t)}" if self.lanes else f"i{word_bits(t)}"
        arguments = [(vector, operand) for operand in operands]
        return self.emitter.call(f"llvm.{name}.{suffix}", vector, [*arguments, *tail])

    def select(self, t: str, p: Value, a: Value, b: Value) -> Value:
        if t != "pred" and word_bits(t) == 128:
            return tuple(self.select("u64", p, x, y) for x, y in zip(a, b, strict=True))
        vector = self.integer(t)
        return self.emitter.value(f"select {self.vector('i1')} {p}, {vector} {a}, {vector} {b}")

    def add(self, t: str, a: Value, b: Value) -> Value:
        return self._binary("add", t, a, b)

    def sub(self, t: str, a: Value, b: Value) -> Value:
        return self._binary("sub", t, a, b)

    def mul(self, t: str, a: Value, b: Value) -> Value:
        return self._binary("mul", t, a, b)

    def mul_high(self, t: str, a: Value, b: Value) -> Value:
        bits = word_bits(t)
        if bits == 64 and self.lanes:
            return self._mul_high_64(t, a, b)
        extend = "sext" if is_signed(t) else "zext"
        narrow, wide = self.vector(f"i{bits}"), self.vector(f"i{2 * bits}")
        x = self.emitter.value(f"{extend} {narrow} {a} to {wide}")
        y = self.emitter.value(f"{extend} {narrow} {b} to {wide}")
        product = self.emitter.value(f"mul {wide} {x}, {y}")
        high = self.emitter.value(f"lshr {wide} {product}, {self.splat(f'i{2 * bits}', str(bits))}")
        return self.emitter.value(f"trunc {wide} {high} to {narrow}")

    def _mul_high_64(self, t: str, a: Value, b: Value) -> Value:
        """From four 32x32-bit products: a vector of i128 would be taken apart lane by lane."""
        mask = 0xFFFFFFFF
        a_low, b_low = self.and_with("u64", a, mask), self.and_with("u64", b, mask)
        a_high, b_high = self.shr_by("u64", a, 32), self.shr_by("u64", b, 32)
        middle = self.add("u64", self.mul("u64", a_high, b_low), self.shr_by("u64", self.mul("u64", a_low, b_low), 32))
        cross = self.add("u64", self.mul("u64", a_low, b_high), self.and_with("u64", middle, mask))
        high = self.add("u64", self.mul("u64", a_high, b_high), self.shr_by("u64", middle, 32))
        high = self.add("u64", high, self.shr_by("u64", cross, 32))
        if is_signed(t):
            high = self.sub("u64", high, self.and_("u64", self.shr_by("s64", a, 63), b))
            high = self.sub("u64", high, self.and_("u64", self.shr_by("s64", b, 63), a))
        return high

    def div(self, t: str, a: Value, b: Value) -> Value:
        if word_bits(t) <= 32 and self.lanes:
            return self._small_quotient(t, a, b)
        if self.lanes and "avx512dq" in self.emitter.features:
            return self._large_quotient(t, a, b)
        if not is_signed(t):
            return self._binary("udiv", t, a, b)
        return self._binary("sdiv", t, a, self._divisor(t, a, b))

    def rem(self, t: str, a: Value, b: Value) -> Value:
        if word_bits(t) <= 32 and self.lanes:
            return self.sub(t, a, self.mul(t, self._small_quotient(t, a, b), b))
        if self.lanes and "avx512dq" in self.emitter.features:
            return self.sub(t, a, self.mul(t, self._large_quotient(t, a, b), b))
        if not is_signed(t):
            return self._binary("urem", t, a, b)
        quotient = self._binary("sdiv", t, a, self._divisor(t, a, b))
        return self.sub(t, a, self.mul(t, quotient, self._divisor(t, a, b)))

    def _divisor(self, t: str, a: Value, b: Value) -> Value:
        """`b`, but 1 instead of -1 for the one quotient that overflows (where the machine instruction would fault)."""
        least = self.compare("eq", t, a, self.const(t, 1 << (word_bits(t) - 1)))
        overflows = self.and_("pred", least, self.compare("eq", t, b, self.const(t, -1)))
        return self.select(t, overflows, self.const(t, 1), b)

    def _small_quotient(self, t: str, a: Value, b: Value) -> Value:
        """32-bit integers divide exactly in f64: the error of a quotient is less than its distance to an integer."""
        sign = "s" if is_signed(t) else "u"
        if t == "s32":
            b = self._divisor(t, a, b)
        element, double = f"i{word_bits(t)}", self.vector("double")
        x, y = (self._converted(f"{sign}itofp", element, "double", value) for value in (a, b))
        quotient = self.emitter.rounded("fdiv", double, [(double, x), (double, y)], "rn")
        whole = self.emitter.value(f"fpto{sign}i {double} {quotient} to {self.vector('i32')}")
        return self.resize("u32", t, whole)

    def _large_quotient(self, t: str, a: Value, b: Value) -> Value:
        """64-bit integers by the reciprocal in f64: a first quotient, one for the remainder, and one correction if
        needed."""
        if not is_signed(t):
            return self._unsigned_quotient(a, b)
        negative = self.xor("pred", self.is_negative(t, a), self.is_negative(t, b))
        quotient = self._unsigned_quotient(self._magnitude(a), self._magnitude(b))
        return self.select(t, negative, self.neg(t, quotient), quotient)

    def _magnitude(self, a: Value) -> Value:
        return self.select("s64", self.is_negative("s64", a), self.neg("s64", a), a)

    def _unsigned_quotient(self, a: Value, b: Value) -> Value:
        reciprocal = self.fdiv("f64", self.real("f64", 1.0), self.int_to_float("u64", "f64", b))
        first = self._whole(self.fmul("f64", self.int_to_float("u64", "f64", a), reciprocal))
        # |a - first * b| < b + 2**13, which fits a signed number while b < 2**62.
        rest = self.sub("s64", a, self.mul("u64", first, b))
        second = self.integral("f64", "rm", self.fmul("f64", self.int_to_float("s64", "f64", rest), reciprocal))
        second = self.float_to_int("f64", "s64", second)
        rest = self.sub("s64", rest, self.mul("s64", second, b))
        quotient = self.add("u64", first, second)
        short = self.resize("pred", "u64", self.compare("ge", "s64", rest, b))
        beyond = self.resize("pred", "u64", self.is_negative("s64", rest))
        quotient = self.sub("u64", self.add("u64", quotient, short), beyond)
        return self.select("u64", self.compare("lt", "u64", b, self.const("u64", 1 << 62)), quotient, self._few(a, b))

    def _whole(self, number: Value) -> Value:
        """A nonnegative f64 as u64; a number that rounding made 2**64 becomes the one below."""
        most = self.real("f64", float((1 << 64) - (1 << 11)))
        limited = self.select("f64", self.fcompare("lt", "f64", number, most), number, most)
        whole = f"fptoui {self._real('f64')} {self._number('f64', limited)} to {self.integer('u64')}"
        return self.emitter.value(whole)

    def _few(self, a: Value, b: Value) -> Value:
        """The quotient by b >= 2**62, at most 3."""
        quotient, going = self.const("u64", 0), self.splat("i1", "true")
        for _ in range(3):
            going = self.and_("pred", going, self.compare("ge", "u64", a, b))
            quotient = self.add("u64", quotient, self.resize("pred", "u64", going))
            a = self.sub("u64", a, b)
        return quotient

    def add_saturating(self, t: str, a: Value, b: Value) -> Value:
        return self._intrinsic("sadd.sat" if is_signed(t) else "uadd.sat", t, a, b)

    def sub_saturating(self, t: str, a: Value, b: Value) -> Value:
        return self._intrinsic("ssub.sat" if is_signed(t) else "usub.sat", t, a, b)

    def minimum(self, t: str, a: Value, b: Value) -> Value:
        return self._intrinsic("smin" if is_signed(t) else "umin", t, a, b)

    def maximum(self, t: str, a: Value, b: Value) -> Value:
        return self._intrinsic("smax" if is_signed(t) else "umax", t, a, b)

    def and_(self, t: str, a: Value, b: Value) -> Value:
        return self._binary("and", t, a, b)

    def or_(self, t: str, a: Value, b: Value) -> Value:
        return self._binary("or", t, a, b)

    def xor(self, t: str, a: Value, b: Value) -> Value:
        return self._binary("xor", t, a, b)

    def not_(self, t: str, a: Value) -> Value:
        return self._binary("xor", t, a, self.const(t, 1 if t == "pred" else -1))

    def shl(self, t: str, a: Value, n: Value) -> Value:
        return self._binary("shl", t, a, n)

    def shr(self, t: str, a: Value, n: Value) -> Value:
        return self._binary("ashr" if is_signed(t) else "lshr", t, a, n)

    def funnel_left(self, t: str, high: Value, low: Value, n: Value) -> Value:
        return self._intrinsic("fshl", t, high, low, n)

    def compare(self, condition: str, t: str, a: Value, b: Value) -> Value:
        sign = "" if condition in ("eq", "ne") else ("s" if is_signed(t) else "u")
        return self.emitter.value(f"icmp {sign}{condition} {self.integer(t)} {a}, {b}")

    def popcount(self, t: str, a: Value) -> Value:
        return self._intrinsic("ctpop", t, a)

    def leading_zeros(self, t: str, a: Value) -> Value:
        return self._intrinsic("ctlz", t, a, tail=[("i1", "false")])

    def reverse_bits(self, t: str, a: Value) -> Value:
        return self._intrinsic("bitreverse", t, a)

    def resize(self, source: str, target: str, a: Value) -> Value:
        have, want = word_bits(source), word_bits(target)
        if have == want:
            return a
        if want < have:
            instruction = "trunc"
        else:
            instruction = "sext" if source != "pred" and is_signed(source) else "zext"
        return self.emitter.value(f"{instruction} {self.vector(f'i{have}')} {a} to {self.vector(f'i{want}')}")
