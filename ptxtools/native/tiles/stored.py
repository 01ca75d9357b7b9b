"""LLVM IR that loads C and stores D, in vectors of 16 elements, as f32, f16 or s32."""

from __future__ import annotations

from ptxtools.native.code.emitter import ZERO, Emitter
from ptxtools.semantics.tensorcore import LEAST

from .decode import SHORT, SINGLE, SIZE, WORD, decode, everywhere
from .sums import VectorSums

#: How C and D are stored, `%form`: f32; f16, in the low halves of cells of "rows", or two columns to a register of
#: "warp"; whole numbers (s32), whose sums wrap or saturate when C is added to that of the products.
SINGLES, HALVES, WHOLE, SATURATING = range(4)

_ROUND_UP, _REBIAS = 0xFFF, -(112 << 23)


def form_of(dtype: str, *, saturates: bool = False) -> int:
    """The form of C and D of a type."""
    if dtype == "s32":
        return SATURATING if saturates else WHOLE
    return HALVES if dtype == "f16" else SINGLES


class Stored:
    """The vectors of a block of elements, at addresses of D and of C. shift, some: `blocks._BlockOperands`. single:
    they are f32 in any case."""

    def __init__(
        self, k: VectorSums, d: list[str], c: list[str], shift: str = "", some: str = "", *, single: bool = False
    ) -> None:
        self.single = single
        self.sums, self.code, self.shift, self.some = k, k.code, shift, some
        self.results, self.sources = d, c

    def _load(self, place: str) -> str:
        if not self.some:
            return self.code.value(f"load {WORD}, ptr {place}, align 4")
        given = [("ptr", place), ("i32", "4"), ("<16 x i1>", self.some), (WORD, ZERO)]
        return self.code.call("llvm.masked.load.v16i32.p0", WORD, given)

    def _put(self, word: str, place: str) -> None:
        b = self.code
        if not self.some:
            b.line(f"store {WORD} {word}, ptr {place}, align 4")
            return
        b.declare(
            "llvm.masked.store.v16i32.p0", f"declare void @llvm.masked.store.v16i32.p0({WORD}, ptr, i32, <16 x i1>)"
        )
        b.line(f"call void @llvm.masked.store.v16i32.p0({WORD} {word}, ptr {place}, i32 4, <16 x i1> {self.some})")

    def _words(self) -> list[str]:
        """C as it is stored; zeros if it is not added."""
        keep = self.sums.spread("i32", "%keep")
        loaded = [self._load(place) for place in self.sources]
        return [self.code.value(f"and {WORD} {word}, {keep}") for word in loaded]

    def addends(self) -> tuple[list[str], list[str]]:
        """C as f32, zeros for whole numbers; and the biased exponents (i32), that of zero lower than all others."""
        b = self.code
        words = self._words()
        if self.single:
            values, exponents = zip(*map(self._single, words), strict=True)
            return list(values), list(exponents)
        known = b.label()
        cases = [b.label() for _ in range(3)]
        b.line(f"switch i32 %form, label %{cases[2]} [ i32 {SINGLES}, label %{cases[0]} i32 {HALVES}, "
               f"label %{cases[1]} ]")  # fmt: skip
        results: list[list[tuple[str, str]]] = []
        for label, convert in zip(cases, (self._single, self._half, self._whole), strict=True):
            b.begin(label)
            results.append([convert(word) for word in words])
            b.jump(known)
        b.begin(known)
        return self._joined(SINGLE, results, cases, 0), self._joined(WORD, results, cases, 1)

    def _whole(self, _: str) -> tuple[str, str]:
        return ZERO, ZERO

    def _joined(self, kind: str, results: list[list[tuple[str, str]]], cases: list[str], which: int) -> list[str]:
        """The vectors that one of these cases has computed."""
        each = [[one[which] for one in result] for result in results]
        return [
            self.code.value(f"phi {kind} " + ", ".join(f"[{x}, %{y}]" for x, y in zip(one, cases, strict=True)))
            for one in zip(*each, strict=True)
        ]

    def _single(self, word: str) -> tuple[str, str]:
        return self.code.value(f"bitcast {WORD} {word} to {SINGLE}"), self._exponent(word)[0]

    def _exponent(self, word: str) -> tuple[str, str]:
        """The biased exponents of f32, and their sizes, as bits."""
        size = self.code.value(f"and {WORD} {word}, {everywhere(SIZE)}")
        return self.code.value(f"lshr {WORD} {size}, {everywhere(23)}"), size

    def _half(self, word: str) -> tuple[str, str]:
        b = self.code
        if self.shift:
            word = b.value(f"lshr {WORD} {word}, {self.sums.spread('i32', self.shift)}")
        value = decode(b, "f16", b.value(f"trunc {WORD} {word} to {SHORT}"))
        exponent, size = self._exponent(b.value(f"bitcast {SINGLE} {value} to {WORD}"))
        least = b.apply("smax", WORD, exponent, everywhere(LEAST["f16"] + 127))
        zero = b.value(f"icmp eq {WORD} {size}, {ZERO}")
        return value, b.value(f"select <16 x i1> {zero}, {WORD} {ZERO}, {WORD} {least}")

    # --- D ------------------------------------------------------------------------------------------------------------

    def store(self, results: list[str], *, whole: bool = False) -> None:
        """Results as f32; for f16 those of a sum rounded to odd. whole: they may be sums of whole numbers."""
        if self.single:
            self.store_singles(results)
            return
        b = self.code
        done, single, half, number = (b.label() for _ in range(4))
        other = number if whole else half
        b.line(f"switch i32 %form, label %{other} [ i32 {SINGLES}, label %{single} i32 {HALVES}, label %{half} ]")
        b.begin(single)
        self.store_singles(results)
        b.jump(done)
        b.begin(half)
        self.store_halves(results)
        b.jump(done)
        if whole:
            b.begin(number)
            self.store_whole([b.value(f"fptosi {SINGLE} {result} to {WORD}") for result in results])
            b.jump(done)
        b.begin(done)

    def rounded(self, single: str) -> str:
        """A result as f32 or f16 has it, as f32."""
        b = self.code
        half = decode(b, "f16", b.value(f"trunc {WORD} {half_of(b, single)} to {SHORT}"))
        is_half = b.value(f"icmp eq i32 %form, {HALVES}")
        return b.value(f"select i1 {is_half}, {SINGLE} {half}, {SINGLE} {single}")

    def store_singles(self, results: list[str]) -> None:
        for result, place in zip(results, self.results, strict=True):
            self._put(self.code.value(f"bitcast {SINGLE} {result} to {WORD}"), place)

    def store_whole(self, totals: list[str]) -> None:
        """Sums of products (i32), to which C is added."""
        b = self.code
        saturates = b.value(f"icmp eq i32 %form, {SATURATING}")
        for total, word, place in zip(totals, self._words(), self.results, strict=True):
            wrapped = b.value(f"add {WORD} {total}, {word}")
            limited = b.apply("sadd.sat", WORD, total, word)
            result = b.value(f"select i1 {saturates}, {WORD} {limited}, {WORD} {wrapped}")
            self._put(result, place)

    def store_halves(self, results: list[str]) -> None:
        b = self.code
        shift = clear = ""
        if self.shift:
            shift = self.sums.spread("i32", self.shift)
            clear = b.value(f"xor {WORD} {b.value(f'shl {WORD} {everywhere(0xFFFF)}, {shift}')}, {everywhere(-1)}")
        for result, place in zip(results, self.results, strict=True):
            word = half_of(b, result)
            if shift:
                old = b.value(f"and {WORD} {self._load(place)}, {clear}")
                word = b.value(f"or {WORD} {old}, {b.value(f'shl {WORD} {word}, {shift}')}")
            self._put(word, place)


def half_of(b: Emitter, single: str) -> str:
    """f32 as bits of f16 (i32), to nearest even; every NaN becomes 0x7FFF."""
    bits = b.value(f"bitcast {SINGLE} {single} to {WORD}")
    size = b.value(f"and {WORD} {bits}, {everywhere(SIZE)}")
    sign = b.value(f"lshr {WORD} {b.value(f'xor {WORD} {bits}, {size}')}, {everywhere(16)}")
    even = b.value(f"and {WORD} {b.value(f'lshr {WORD} {size}, {everywhere(13)}')}, {everywhere(1)}")
    moved = b.value(f"add {WORD} {b.value(f'add {WORD} {size}, {even}')}, {everywhere(_REBIAS + _ROUND_UP)}")
    normal = b.value(f"lshr {WORD} {moved}, {everywhere(13)}")
    # Below 2**-14 the last bit of f16 is 2**-24, that of f32 from 1/2 to 1.
    half = b.value(f"fadd {SINGLE} {b.value(f'bitcast {WORD} {size} to {SINGLE}')}, splat (float 0.5)")
    low = b.value(f"sub {WORD} {b.value(f'bitcast {SINGLE} {half} to {WORD}')}, {everywhere(126 << 23)}")
    small = b.value(f"icmp ult {WORD} {size}, {everywhere(113 << 23)}")
    finite = b.value(f"select <16 x i1> {small}, {WORD} {low}, {WORD} {normal}")
    large = b.value(f"icmp ugt {WORD} {size}, {everywhere(0x477F_FFFF)}")
    held = b.value(f"select <16 x i1> {large}, {WORD} {everywhere(0x7C00)}, {WORD} {finite}")
    signed = b.value(f"or {WORD} {held}, {sign}")
    nan = b.value(f"icmp ugt {WORD} {size}, {everywhere(0x7F80_0000)}")
    return b.value(f"select <16 x i1> {nan}, {WORD} {everywhere(0x7FFF)}, {WORD} {signed}")
