"""LLVM IR of vectors of one register, and of loops over K: what `fused` is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxtools.native.code.emitter import Emitter, splat, vector

#: Columns of A in a turn of a loop of code that is compiled quickly.
_BRIEF_TURNS = 8


#: Features that the code needs, with AVX-512 and without.
NEEDED = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"}), frozenset({"avx2", "fma"})


def is_wide(code: Emitter) -> bool:
    """Whether vectors are those of AVX-512: 32 registers, and rounding that each instruction says."""
    return NEEDED[0].issubset(code.features)


class Vectors:
    """A function under construction whose vectors have 64 bytes, or 32 if they are not `wide`.

    Types: `word` and `single` (i32, f32), `short`, `bytes`, `doubles`; `lanes`: how many words there are.
    """

    def __init__(self, code: Emitter) -> None:
        self.code, self.wide = code, is_wide(code)
        self.lanes = n = 16 if self.wide else 8
        self.word, self.single, self.short = vector("i32", n), vector("float", n), vector("i16", 2 * n)
        self.bytes, self.doubles = vector("i8", 4 * n), vector("double", n // 2)
        self._turns = _BRIEF_TURNS if code.brief else 1

    def everywhere_in(self, kind: str, expression: str) -> str:
        """An i32 in all elements of a vector of this kind."""
        count, element = kind.strip("<>").split(" x ")
        value = self.code.value(expression)
        if element != "i32":
            value = self.code.value(f"trunc i32 {value} to {element}")
        return self.code.spread(element, value, int(count))

    def here(self) -> str:
        """The label of a block that begins here."""
        label = self.code.label()
        self.code.jump(label)
        self.code.begin(label)
        return label

    def phi(self, kind: str, *ways: tuple[str, str]) -> str:
        return self.code.value(f"phi {kind} " + ", ".join(f"[{value}, %{label}]" for value, label in ways))

    def any(self, flags: str, count: int) -> str:
        """Whether a vector of flags has one."""
        b = self.code
        return b.value(f"icmp ne i{count} {b.value(f'bitcast <{count} x i1> {flags} to i{count}')}, 0")

    def loop(self, kinds: list[str], starts: Sequence[str], step: Callable[[str, list[str]], list[str]]) -> list[str]:
        """for (k = 0; k < %k; k++) with these values carried; unrolled where they are in memory between two turns."""
        b, turns = self.code, self._turns
        body, end = b.label(), b.label()
        before = self.here()
        b.jump(body)
        b.begin(body)
        k, following = b.name(), b.name()
        now, after = [b.name() for _ in kinds], [b.name() for _ in kinds]
        b.line(f"{k} = phi i64 [0, %{before}], [{following}, %{body}]")
        for kind, name, start, new in zip(kinds, now, starts, after, strict=True):
            b.line(f"{name} = phi {kind} [{start}, %{before}], [{new}, %{body}]")
        values = now
        for i in range(turns):
            values = step(b.value(f"add i64 {k}, {i}"), values)
        for kind, name, value in zip(kinds, after, values, strict=True):
            b.line(f"{name} = freeze {kind} {value}")
        b.line(f"{following} = add i64 {k}, {turns}")
        b.branch(b.value(f"icmp ult i64 {following}, %k"), body, end)
        b.begin(end)
        return after

    def saturated(self, operation: str, x: str, y: str) -> str:
        return self.code.apply(f"{operation}.sat", self.bytes, x, y)

    def packed(self, words: Sequence[str]) -> str:
        """The low 8 of 9 bits of four vectors' elements, as bytes."""
        b, short = self.code, self.short
        pairs = [self._pack("packssdw", self.word, short, x, y) for x, y in zip(words[::2], words[1::2], strict=True)]
        low = [b.value(f"and {short} {x}, {splat('i16', 255)}") for x in pairs]
        return self._pack("packuswb", short, self.bytes, *low)

    def _pack(self, operation: str, given: str, result: str, x: str, y: str) -> str:
        """Elements of two vectors with half of the bits each, within 128 bits."""
        name = f"llvm.x86.avx512.{operation}.512" if self.wide else f"llvm.x86.avx2.{operation}"
        return self.code.call(name, result, [(given, x), (given, y)])

    def unpacked(self, given: str, result: str, half: int, low: str, high: str) -> str:
        """Elements of two vectors as elements with twice the bits: a half of them within 128 bits."""
        b, count = self.code, int(given[1:].split()[0])
        each = 4 * count // self.lanes
        order = [
            lane + half * each // 2 + i // 2 + count * (i % 2) for lane in range(0, count, each) for i in range(each)
        ]
        return b.value(f"bitcast {given} {b.shuffle(given, order, low, high)} to {result}")
