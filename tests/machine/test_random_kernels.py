"""Random kernels full of copies, guards, small branches and loops: optimised and plain code leave the same memory."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from ptxtools.native.code import jit, library, tiers
from tests.native.harness import results as native_results
from tests.program.harness import results
from tests.rows import rows

REGISTERS = 6
OPERATIONS = ("add.u32", "sub.u32", "xor.b32", "and.b32", "or.b32", "mul.lo.u32", "shl.b32", "shr.u32", "min.s32")


class Writer:
    """Writes a body: %r1 to %r6 and %p1 to %p4 are changed everywhere, %r10 and up count loops."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.labels = 0
        self.loops = 0
        self.chains = 0
        self.lines: list[str] = []

    def register(self) -> str:
        return f"%r{self.rng.randint(1, REGISTERS)}"

    def predicate(self) -> str:
        return f"%p{self.rng.randint(1, 4)}"

    def value(self) -> str:
        return self.register() if self.rng.random() < 0.7 else str(self.rng.choice([0, 1, 2, 3, 5, 31, 4096]))

    def guard(self) -> str:
        if self.rng.random() < 0.75:
            return ""
        return f"@{self.rng.choice(['', '!'])}{self.predicate()} "

    def operation(self) -> None:
        rng = self.rng
        kind = rng.random()
        if kind < 0.45:
            text = f"{rng.choice(OPERATIONS)} {self.register()}, {self.register()}, {self.value()};"
        elif kind < 0.65:
            text = f"mov.u32 {self.register()}, {self.value()};"
        elif kind < 0.8:
            test = rng.choice(["eq", "ne", "lt", "ge"])
            text = f"setp.{test}.u32 {self.predicate()}, {self.register()}, {self.value()};"
        elif kind < 0.88:
            text = (
                f"{rng.choice(['and', 'or', 'xor'])}.pred {self.predicate()}, {self.predicate()}, {self.predicate()};"
            )
        elif kind < 0.92:
            text = rng.choice(
                [
                    f"not.pred {self.predicate()}, {self.predicate()};",
                    f"mov.pred {self.predicate()}, {rng.randint(0, 1)};",
                ]
            )
        elif kind < 0.96:
            text = f"selp.u32 {self.register()}, {self.value()}, {self.value()}, {self.predicate()};"
        else:
            text = f"st.global.u32 [%out+{4 * 64 * rng.randint(1, 2)}], {self.register()};"
        self.lines.append(self.guard() + text)

    def chain(self) -> None:
        """Values that one operation makes and one reads: what fusion looks for."""
        rng, first, second = self.rng, *(f"%x{2 * self.chains + i}" for i in range(2))
        self.chains += 1
        a, b, c = self.register(), self.register(), self.value()
        logic = [rng.choice(["and", "or", "xor"]) for _ in range(3)]
        mask = rng.choice([1, 2, 16, 24])
        self.lines += rng.choice(
            [
                [f"{logic[0]}.b32 {first}, {a}, {b};", f"{logic[1]}.b32 {second}, {first}, {c};",
                 f"{logic[2]}.b32 {self.register()}, {second}, {self.value()};"],
                [f"not.b32 {first}, {a};", f"{logic[0]}.b32 {second}, {b}, {c};",
                 f"{logic[1]}.b32 {self.register()}, {first}, {second};"],
                [f"and.b32 {first}, {a}, {mask};",
                 f"setp.{rng.choice(['eq', 'ne'])}.u32 {self.predicate()}, {first}, {rng.choice([0, mask])};"],
                [f"mul.lo.u32 {first}, {a}, {b};", f"{self.guard()}add.u32 {self.register()}, {c}, {first};"],
                [f"shl.b32 {first}, {a}, {rng.choice([1, 4, 31])};", f"add.s32 {self.register()}, {first}, {b};"],
            ]
        )  # fmt: skip

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def block(self, depth: int) -> None:
        for _ in range(self.rng.randint(1, 4)):
            self.rng.choice([self.operation, self.operation, self.chain])()
        if depth and self.rng.random() < 0.8:
            self.rng.choice([self.one_sided, self.two_sided, self.loop, self.early_exit])(depth - 1)
            self.block(depth - 1)

    def one_sided(self, depth: int) -> None:
        end = self.label()
        self.lines.append(f"@{self.rng.choice(['', '!'])}{self.predicate()} bra {end};")
        self.block(depth)
        self.lines.append(f"{end}:")

    def two_sided(self, depth: int) -> None:
        other, end = self.label(), self.label()
        self.lines.append(f"@{self.predicate()} bra {other};")
        self.block(depth)
        self.lines += [f"bra.uni {end};", f"{other}:"]
        self.block(depth)
        self.lines.append(f"{end}:")

    def loop(self, depth: int) -> None:
        head, self.loops = self.label(), self.loops + 1
        counter = f"%r{9 + self.loops % 10}"
        limit = "%t" if self.rng.random() < 0.4 else str(self.rng.randint(1, 4))
        self.lines += [f"mov.u32 {counter}, 0;", f"{head}:"]
        self.block(min(depth, 1) if self.loops < 3 else 0)
        self.lines += [
            f"add.u32 {counter}, {counter}, 1;",
            f"setp.lt.u32 %p5, {counter}, {limit};",
            f"@%p5 bra {head};",
        ]

    def early_exit(self, depth: int) -> None:
        if self.rng.random() < 0.3:
            self.lines.append(f"@{self.predicate()} ret;")

    def body(self) -> str:
        start = [".reg .b32 %x<1000>;"]
        start += [f"mad.lo.u32 %r{i}, %t, {i * 7}, {i};" for i in range(1, REGISTERS + 1)]
        start += [f"setp.lt.u32 %p{i}, %r{i}, {i * 40};" for i in range(1, 5)]
        start.append("st.global.u32 [%out+768], %r6;")
        self.block(4)
        last = [f"xor.b32 %r1, %r1, %r{i}; mul.lo.u32 %r1, %r1, 31;" for i in range(2, REGISTERS + 1)]
        last += [f"selp.u32 %r2, {1 << i}, 0, %p{i}; add.u32 %r1, %r1, %r2;" for i in range(1, 5)]
        return "\n".join([*start, *self.lines, *last, "st.global.u32 [%out], %r1; ret;"])


@rows("seed", [*range(60), 3169, 5277], share=8)
def test_optimised_and_plain_agree(seed: int) -> None:
    body = Writer(seed).body()
    plain = results(body, 4 * 64, block=(40, 1, 1), optimise=False)
    quick = results(body, 4 * 64, block=(40, 1, 1), optimise=True)
    assert np.array_equal(plain, quick), body
    assert plain.any()


@rows("seed", range(200, 260), share=20)
def test_quick_code_agrees(seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Handlers that were compiled quickly do what others do."""
    monkeypatch.setattr(tiers, "QUICK", True)
    monkeypatch.setattr(library, "_full", library.Level(jit.FULL, tmp_path))  # which has nothing
    body = Writer(seed).body()
    expected = results(body, 4 * 64, block=(40, 1, 1))
    assert np.array_equal(native_results(body, 4 * 64, block=(40, 1, 1)), expected), body


@rows("seed", range(100, 160), share=20)
def test_tiers_agree(seed: int) -> None:
    """What the native engine leaves on either tier is what the reference engine does."""
    body = Writer(seed).body()
    expected = results(body, 4 * 64, block=(40, 1, 1))
    for tier in ("interpreter", "regions"):
        assert np.array_equal(native_results(body, 4 * 64, block=(40, 1, 1), tier=tier), expected), (tier, body)
