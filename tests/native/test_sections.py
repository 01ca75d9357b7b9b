"""Sections of kernels in unison (`native.code.sections`) do what records do: random kernels whose threads come to all
barriers together, with counters that are the same in all of them, and words that others write between two barriers."""

from __future__ import annotations

import ctypes
import random

import numpy as np

from ptxtools import native
from ptxtools.native.code.encode import Encoded
from ptxtools.native.code.sections import Found, find
from ptxtools.native.code.structures import RECORD
from ptxtools.program.details import Unison
from tests.rows import rows

from .harness import Memory, body_kernel, launch_of, short_slices
from .test_unison import _STEPS, SHARED, checked, outcome

#: Registers of each thread, and those that are mostly the same in all of a CTA.
THREADS, SAME = 4, 3


class Writer:
    """Writes a kernel. together: all threads of the CTA are there."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.labels = self.depth = 0
        self.lines: list[str] = []
        self.wrong = ""  # a statement of its own

    def own(self) -> str:
        return f"%r{self.rng.randint(1, THREADS)}"

    def same(self) -> str:
        return f"%r{self.rng.randint(10, 9 + SAME)}"

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def work(self) -> str:
        text = self.rng.choice(["add.u32", "xor.b32", "mul.lo.u32", "min.s32", "shr.u32", "max.u32"])
        guard = self.rng.choice(["", "", "", "@%p1 "])
        return f"{guard}{text} {self.own()}, {self.own()}, {self.rng.choice([self.own(), self.same(), '%t'])};"

    def level(self) -> str:
        """A register that is the same in all threads, if it was; one of a thread becomes that, or the other way."""
        text = self.rng.choice(["add.u32", "xor.b32", "shr.u32", "and.b32", "max.u32"])
        target = self.same() if self.rng.random() < 0.85 else self.own()
        second = self.rng.choice(
            ["1", "3", self.same(), self.same(), "%n", self.own() if self.rng.random() < 0.2 else "2"]
        )
        return f"{text} {target}, {self.same()}, {second};"

    def access(self) -> str:
        rng, shift = self.rng, 4 * self.rng.choice([0, 0, 0, 1, 2, 16, 32])
        return rng.choice(
            [
                f"st.shared.u32 [%r7+{shift}], {self.own()};",
                f"ld.shared.u32 {self.own()}, [%r7+{shift}];",
                f"ld.shared.u32 {self.own()}, [words+{shift}];",
                f"ld.global.u32 {self.own()}, [%d1+{shift}];",
                f"st.global.u32 [%out+{shift}], {self.own()};",
                f"and.b32 %r6, {self.same()}, 15; shl.b32 %r6, %r6, 2; add.u32 %r6, %r7, %r6;"
                f" ld.shared.u32 {self.own()}, [%r6];",
                f"and.b32 %r6, {self.same()}, 15; mad.wide.u32 %d2, %r6, 4, %d1; ld.global.u32 {self.own()}, [%d2];",
                f"@%p1 st.shared.u32 [%r7], {self.own()};",
                f"setp.ne.u32 %p1, %t, 0; @!%p1 st.shared.u32 [words+{shift}], {self.own()};",
            ]
            + [self.elsewhere()] * (rng.random() < 0.3)
        )  # fmt: skip

    def elsewhere(self) -> str:
        """Accesses of lanes that are not at words in a row."""
        rng = self.rng
        text = rng.choice(["xor.b32 %r6, %t, 3", "mul.lo.u32 %r6, %t, 29", "shr.u32 %r6, %t, 1", "and.b32 %r6, %t, 3"])
        text += "; shl.b32 %r6, %r6, 2; and.b32 %r6, %r6, 252;"
        several = rng.random() < 0.4
        if several:  # neighbouring words with guards, as compilers make of vectors
            text = f"shl.b32 %r6, %t, {rng.choice([4, 4, 3])}; and.b32 %r6, %r6, 1008;"
        guards = [rng.choice(["", "@%p1 ", "@!%p1 "]) for _ in range(4 if several else 1)]
        stores = rng.random() < 0.5
        for number, guard in enumerate(guards):
            place = f"[%r6+{4 * number}]"
            access = f"st.shared.u32 {place}, {self.own()}" if stores else f"ld.shared.u32 {self.own()}, {place}"
            text += f" {guard}{access};" if number else f" mov.u32 %r8, words; add.u32 %r6, %r6, %r8; {guard}{access};"
        return text

    def condition(self, *, alike: bool) -> str:
        if alike:
            return f"and.b32 %r6, {self.same()}, {self.rng.choice([1, 2, 4])}; setp.ne.u32 %p3, %r6, 0;"
        return self.rng.choice(
            [
                f"setp.ge.u32 %p3, %t, {self.same()};",
                f"setp.lt.u32 %p3, %t, {self.rng.choice([16, 32, 40, 64, 200])};",
                f"and.b32 %r6, {self.own()}, {self.rng.choice([1, 64])}; setp.ne.u32 %p3, %r6, 0;",
            ]
        )

    def simple(self) -> None:
        self.lines.append(self.rng.choice([self.work, self.access, self.access, self.level])())

    def side(self) -> None:
        """What only some threads do."""
        end = self.label()
        self.lines += [self.condition(alike=False), f"@{self.rng.choice(['', '!'])}%p3 bra {end};"]
        for _ in range(self.rng.randint(1, 3)):
            self.simple()
        self.lines.append(f"{end}:")

    def statement(self) -> None:
        kind = self.rng.random()
        if kind < 0.45:
            self.simple()
        elif kind < 0.65:
            self.lines.append("bar.sync 0;")
        elif kind < 0.85:
            self.side()
        elif self.depth < 2:
            self.depth += 1
            self.rng.choice([self.alike, self.loop, self.loop])()
            self.depth -= 1

    def alike(self) -> None:
        other, end = self.label(), self.label()
        self.lines += [self.condition(alike=True), f"@%p3 bra {other};"]
        self.statements(3)
        self.lines += [f"bra {end};", f"{other}:"]
        self.statements(2)
        self.lines.append(f"{end}:")

    def loop(self) -> None:
        counter, again = f"%r{15 + self.depth}", self.label()
        self.lines += [f"mov.u32 {counter}, {self.rng.choice([1, 4, 64])};", f"{again}:"]
        self.statements(4)
        if self.rng.random() < 0.9:
            self.lines.append("bar.sync 0;")
        self.lines.append(f"shr.u32 {counter}, {counter}, 1; setp.ne.u32 %p4, {counter}, 0; @%p4 bra {again};")

    def statements(self, most: int) -> None:
        for _ in range(self.rng.randint(1, most)):
            self.statement()

    def kernel(self) -> str:
        self.lines += ["shl.b32 %r6, %t, 2; mov.u32 %r7, words; add.u32 %r7, %r7, %r6; mad.wide.u32 %d1, %t, 4, %in;"]
        self.lines += [f"mad.lo.u32 %r{i}, %r0, {i * 7}, {i};" for i in range(1, THREADS + 1)]
        self.lines += [f"add.u32 %r{10 + i}, %n, {i * 9};" for i in range(SAME)]
        self.lines += ["setp.lt.u32 %p1, %t, 40; st.shared.u32 [%r7], %r2; bar.sync 0;"]
        for _ in range(self.rng.randint(4, 9)):
            self.statement()
        self.lines.insert(self.rng.randrange(len(self.lines) - 2, len(self.lines)), self.wrong)
        ends = [*range(1, THREADS + 1), *range(10, 10 + SAME)]
        self.lines += [f"xor.b32 %r1, %r1, %r{i}; mul.lo.u32 %r1, %r1, 31;" for i in ends[1:]]
        self.lines += ["st.global.u32 [%out], %r1; ret;"]
        return body_kernel("\n".join(self.lines), 4, SHARED)


def _agree(seed: int) -> str:
    text, threads = Writer(seed).kernel(), (64, 96, 32, 128, 50, 200)[seed % 6]
    expected = outcome(native, text, threads, tier="interpreter")
    assert outcome(native, text, threads, tier="regions") == expected, text
    return text


@rows("seed", [*range(120)], share=16)
def test_random_kernels(seed: int) -> None:
    _agree(seed)


@rows("seed", [*range(120)], share=16)
def test_random_kernels_in_short_slices(seed: int) -> None:
    """Warps stop where sections begin, or in general code behind them, with all that was kept as scalars."""
    with short_slices(seed):
        _agree(1000 + seed)


#: What some threads of a kernel do wrong: beyond the buffer, beyond shared memory, and to words that nobody wrote.
_WRONG = (
    "st.global.u32 [%out+65536], %r1;", "ld.global.u32 %r1, [%d1+65536];", "ld.shared.u32 %r1, [%r7+65536];",
    "@%p1 ld.global.u32 %r2, [%d1+65538];", "ld.global.u32 %r1, [%out+4]; st.shared.u32 [%r7], %r1;", "",
)  # fmt: skip
_CHECKS = ("memcheck", "initcheck", "synccheck", "memcheck,initcheck", "memcheck,initcheck,synccheck,leakcheck")


def _checked_alike(seed: int) -> None:
    writer = Writer(seed)
    writer.wrong = writer.rng.choice(_WRONG)
    text, threads = writer.kernel(), (64, 96, 32, 128, 50, 200)[seed % 6]
    checks = _CHECKS[seed // 6 % len(_CHECKS)]
    assert checked(text, threads, checks, "regions") == checked(text, threads, checks, "interpreter"), text


@rows("seed", [*range(200)], share=16)
def test_random_kernels_under_checkers(seed: int) -> None:
    _checked_alike(2000 + seed)


@rows("seed", [*range(120)], share=16)
def test_random_kernels_under_checkers_in_short_slices(seed: int) -> None:
    with short_slices(seed):
        _checked_alike(3000 + seed)


def _found(body: str, threads: int = 128) -> tuple[Found, list[int]]:
    """The sections of a kernel, and the words of its record in which they note that they have missed."""
    memory = Memory(8192)
    values = [memory.put(np.zeros(1024, np.uint32)) for _ in range(2)]
    text = body_kernel(body, 4, SHARED)
    launch = launch_of(text, memory, values, block=(threads, 1, 1), grid=(2, 1, 1), tier="regions")
    native.run(launch)
    (encoded,) = [one for one in launch.program.cache.values() if isinstance(one, Encoded) and one.unison]
    (op,) = [one for one in encoded.whole.ops.values() if one.kind == "unison"]
    detail = op.of(Unison)
    found = find(detail.stages, {(slot, storage) for slot, storage, _ in detail.constants})
    at = encoded.unison - ctypes.addressof(encoded.code)
    return found, [RECORD.read(encoded.code, at, f"s{number}") for number in range(2, 10)]


def test_counters_are_scalars() -> None:
    """A loop whose counter is the same in all threads, with lanes that part and meet in it."""
    found, missed = _found(f"mov.u32 %r9, 77; {_STEPS} ret;")  # a text of its own
    assert found.sections[0].start == 0
    assert len(found.sections) == 3
    assert [len(section.apart) for section in found.sections] == [0, 1, 1]
    assert len(found.same[found.sections[2].start]) == 1
    assert missed == [0] * 8


def test_what_threads_decide_is_no_scalar() -> None:
    """A register that some threads change is one of each thread."""
    body = """mov.u32 %r1, 5; setp.lt.u32 %p1, %t, 40; @%p1 bra OVER; add.u32 %r1, %r1, %n; mul.lo.u32 %r1, %r1, %r1;
    st.global.u32 [%out], %r1; OVER: bar.sync 0; add.u32 %r2, %r1, 1; bar.sync 0; st.global.u32 [%out], %r2; ret;"""
    found, _ = _found(body)
    assert not any(found.same[section.start] for section in found.sections)


def test_barriers_that_some_threads_come_to_end_no_section() -> None:
    body = """setp.lt.u32 %p1, %t, 64; @%p1 bra OVER; st.global.u32 [%out], %t; bar.sync 0; st.global.u32 [%out+4], %t;
    ret; OVER: bar.sync 0; st.global.u32 [%out], %n; ret;"""
    assert _found(body)[0].sections == []
