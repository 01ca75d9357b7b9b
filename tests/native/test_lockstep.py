"""CTAs that run as a whole (`native.handlers.lockstep`) do what records do: random kernels whose addresses grow evenly
along the axes of their CTAs, with barriers, loops, and threads in a row that do something while others wait."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest

from ptxtools import native
from ptxtools.diagnostics import Trap
from ptxtools.native.code import jit
from ptxtools.native.code.emitter import Emitter
from ptxtools.native.code.encode import Encoded, encode
from ptxtools.native.code.sections import find
from ptxtools.native.code.structures import RECORD
from ptxtools.native.handlers import lockstep
from ptxtools.native.loop import driver
from ptxtools.program.details import Unison
from ptxtools.program.program import Op
from tests.rows import rows

from .harness import Memory, body_kernel, launch_of, short_slices
from .test_unison import checked

SHARED = ".shared .align 16 .b8 words[8192];"
#: Blocks of threads; rows of half a warp, or not.
BLOCKS = [(64, 1, 1), (128, 1, 1), (32, 1, 1), (16, 4, 1), (32, 3, 1), (16, 2, 2), (96, 1, 1), (48, 2, 1), (50, 1, 1),
          (8, 8, 1), (200, 1, 1), (16, 8, 1), (16, 4, 2)]  # fmt: skip
#: Blocks for loops; warps go round in twos, or in fours where their rows are the same.
LOOPING = [*BLOCKS[:7], (16, 8, 1), (16, 16, 1), (16, 4, 2)]
Shape = tuple[int, int, int]


class Writer:
    """Writes a kernel: %r1 to %r4 differ from thread to thread, %r10 to %r12 do not; %r7 and %d1 are addresses of the
    thread's word."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.labels = self.depth = 0
        self.lines: list[str] = []

    def own(self) -> str:
        return f"%r{self.rng.randint(1, 4)}"

    def same(self) -> str:
        return f"%r{self.rng.randint(10, 12)}"

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def condition(self, flag: str) -> str:
        """Threads in a row along x, mostly."""
        rng = self.rng
        relation = rng.choice(["lt", "ge", "eq", "ne", "le", "gt"])
        number = rng.choice(["0", "1", "7", "31", "32", "40", "63", "1000", "-1", self.same(), self.same()])
        return rng.choice(
            [
                f"setp.{relation}.s32 {flag}, %t, {number};",
                f"setp.{relation}.s32 {flag}, %t, {number};",
                f"setp.{relation}.u32 {flag}, %r0, {rng.choice(['40', '100', self.same()])};",
                f"sub.s32 %r6, {self.same()}, %t; setp.{relation}.s32 {flag}, %r6, {rng.choice([0, 5])};",
                f"setp.{relation}.s32 {flag}, %r13, {rng.choice([0, 1, 2])};",
                f"setp.{relation}.s32 {flag}, {self.own()}, 5;",
            ]
        )

    def access(self) -> str:
        rng, shift = self.rng, 4 * self.rng.choice([0, 0, 0, 1, 2, 16, 32])
        guard = rng.choice(["", "", "", "@%p1 ", "@!%p1 "])
        before = f"{self.condition('%p1')} " if guard and rng.random() < 0.7 else ""
        return before + rng.choice(
            [
                f"{guard}st.shared.u32 [%r7+{shift}], {self.own()};",
                f"{guard}ld.shared.u32 {self.own()}, [%r7+{shift}];",
                f"{guard}ld.shared.u32 {self.own()}, [words+{shift}];",
                f"{guard}st.shared.u32 [words+{shift}], {self.own()};",
                f"{guard}ld.global.u32 {self.own()}, [%d1+{shift}];",
                f"{guard}st.global.u32 [%out], {self.own()};",
                f"and.b32 %r6, {self.same()}, 15; shl.b32 %r6, %r6, 2; add.u32 %r6, %r7, %r6;"
                f" {guard}ld.shared.u32 {self.own()}, [%r6];",
                f"and.b32 %r6, {self.same()}, 15; mad.wide.u32 %d2, %r6, 4, %d1;"
                f" {guard}ld.global.u32 {self.own()}, [%d2];",
                f"mad.lo.s32 %r6, %r13, {rng.choice([1, 3, 16])}, %t; mul.wide.s32 %d2, %r6, 4; add.s64 %d2, %in, %d2;"
                f" {guard}ld.global.u32 {self.own()}, [%d2];",
                f"mad.lo.s32 %r6, %r13, %r8, %t; shl.b32 %r6, %r6, 2; cvt.s64.s32 %d2, %r6; add.s64 %d2, %d2, %in;"
                f" {guard}ld.global.u32 {self.own()}, [%d2];",
                f"shl.b32 %r6, %r13, 2; mov.u32 %r9, words; add.u32 %r9, %r9, %r6;"
                f" {guard}{rng.choice([f'ld.shared.u32 {self.own()}, [%r9];', f'st.shared.u32 [%r9], {self.own()};'])}",
            ]
        )  # fmt: skip

    def work(self) -> str:
        rng = self.rng
        text = rng.choice(["add.u32", "xor.b32", "mul.lo.u32", "min.s32", "sub.s32", "max.u32"])
        other = rng.choice([self.own(), self.own(), self.same(), "%t", "%r13", "%r0"])
        if rng.random() < 0.3:
            return f"{rng.choice(['add.u32', 'xor.b32', 'shr.u32', 'max.s32'])} {self.same()}, {self.same()}, 3;"
        if rng.random() < 0.1:
            return f"selp.b32 {self.own()}, {self.own()}, {self.same()}, %p2;"
        return f"{rng.choice(['', '', '', '@%p1 '])}{text} {self.own()}, {self.own()}, {other};"

    def side(self) -> None:
        end = self.label()
        flag = self.rng.choice(["%p3", "%p3", "%p3", "%p1", "%p2", "%p6"])  # the others are from before
        self.lines += [self.condition("%p3"), f"@{self.rng.choice(['', '!'])}{flag} bra {end};"]
        for _ in range(self.rng.choice([1, 2, 6, 8])):  # a few are guarded one by one
            self.lines.append(self.rng.choice([self.work, self.access])())
        self.lines.append(f"{end}:")

    def statement(self) -> None:
        kind = self.rng.random()
        if kind < 0.2:
            self.lines.append(self.work())
        elif kind < 0.5:
            self.lines.append(self.access())
        elif kind < 0.65:
            self.lines.append("bar.sync 0;")
        elif kind < 0.85:
            self.side()
        elif self.depth < 2:
            self.depth += 1
            self.rng.choice([self.alike, self.loop])()
            self.depth -= 1

    def alike(self) -> None:
        other, end = self.label(), self.label()
        flag = self.rng.choice(["%p4", "%p4", "%p6"])
        self.lines += [f"setp.gt.u32 %p4, {self.same()}, {self.rng.choice([0, 3, 20])};", f"@{flag} bra {other};"]
        self.statements(2)
        self.lines += [f"bra {end};", f"{other}:"]
        self.statements(2)
        self.lines.append(f"{end}:")

    def loop(self) -> None:
        counter, again = f"%r{14 + self.depth}", self.label()
        self.lines += [f"mov.u32 {counter}, {self.rng.choice([1, 4, 64])};", f"{again}:"]
        self.statements(3)
        self.lines += ["bar.sync 0;"] * (self.rng.random() < 0.9)
        self.lines.append(f"shr.u32 {counter}, {counter}, 1; setp.ne.u32 %p5, {counter}, 0; @%p5 bra {again};")

    def statements(self, most: int) -> None:
        for _ in range(self.rng.randint(1, most)):
            self.statement()

    def kernel(self) -> str:
        self.lines += ["mov.u32 %r13, %tid.y; mov.u32 %r8, %ntid.x; mad.lo.s32 %r0, %r13, %r8, %t;"]
        self.lines += ["mov.u32 %r6, %tid.z; mov.u32 %r9, %ntid.y; mul.lo.u32 %r9, %r9, %r8;"]
        self.lines += ["mad.lo.u32 %r0, %r6, %r9, %r0; mov.u32 %r6, %ntid.z; mul.lo.u32 %r9, %r9, %r6;"]
        self.lines += ["mad.lo.u32 %r9, %n, %r9, %r0; mul.wide.u32 %d3, %r9, 4; ld.param.u64 %out, [out];"]
        self.lines += ["add.s64 %out, %out, %d3; mad.wide.u32 %d1, %r0, 4, %in;"]
        self.lines += ["shl.b32 %r6, %r0, 2; mov.u32 %r7, words; add.u32 %r7, %r7, %r6;"]
        self.lines += [f"mad.lo.u32 %r{i}, %r9, {i * 7}, {i};" for i in range(1, 5)]
        self.lines += [f"add.u32 %r{10 + i}, %n, {i * 9};" for i in range(3)]
        self.lines += [
            "setp.lt.u32 %p1, %t, 40; setp.lt.u32 %p2, %r13, 1; setp.eq.u32 %p6, %n, 1; st.shared.u32 [%r7], %r2;"
        ]
        self.lines += ["bar.sync 0;"] * (self.rng.random() < 0.8)
        for _ in range(self.rng.randint(2, 6)):
            self.statement()
        ends = [*range(1, 5), *range(10, 13)]
        self.lines += [f"xor.b32 %r1, %r1, %r{i}; mul.lo.u32 %r1, %r1, 31;" for i in ends[1:]]
        self.lines += ["st.global.u32 [%out], %r1; ret;"]
        return body_kernel("\n".join(self.lines), 4, SHARED)


def _run(text: str, block: Shape, tier: str, words: int = 4096) -> tuple[tuple[object, ...], tuple[bool, int]]:
    """What a launch leaves, or its trap; whether its CTAs could run as a whole, and what their misses were."""
    memory = Memory(8192 + 4 * words)
    out = memory.put(np.zeros(2048, np.uint32))
    source = memory.put(np.arange(words, dtype=np.uint32) * np.uint32(2654435761))
    launch = launch_of(text, memory, [out, source], block=block, grid=(3, 1, 1), tier=tier)
    try:
        result: tuple[object, ...] = native.run(launch).instructions, memory.bytes.tobytes()
    except Trap as trap:
        result = (str(trap),)
    for encoded in [one for one in launch.program.cache.values() if isinstance(one, Encoded) and one.unison]:
        return result, as_a_whole(encoded)
    return result, (False, 0)


def as_a_whole(encoded: Encoded) -> tuple[bool, int]:
    """Whether CTAs of a kernel in unison can run as a whole, and what their misses have been."""
    at = encoded.unison - ctypes.addressof(encoded.code)
    (op,) = [one for one in encoded.whole.ops.values() if one.kind == "unison"]
    return bool(_function(op)), RECORD.read(encoded.code, at, "s9")


def _function(op: Op) -> str:
    detail = op.of(Unison)
    constants = {(slot, storage): value for slot, storage, value in detail.constants}
    return lockstep.function(
        Emitter(jit.host_features()), "k", op, detail.stages, constants, find(detail.stages, constants)
    )


def _agree(seed: int, words: int = 4096) -> bool:
    """Whether a random kernel ran as a whole, as far as is known."""
    text, block = Writer(seed).kernel(), BLOCKS[seed % len(BLOCKS)]
    expected, _ = _run(text, block, "interpreter", words)
    got, (could, missed) = _run(text, block, "regions", words)
    assert got == expected, f"{block}\n{text}"
    return could and not missed


@rows("seed", [*range(120)], share=12)
def test_random_kernels(seed: int) -> None:
    _agree(seed, 40 if seed % 8 == 0 else 4096)  # in some, accesses leave memory


@rows("seed", [*range(80)], share=12)
def test_random_kernels_in_short_slices(seed: int) -> None:
    """Time ends in front of sections, and within them."""
    with short_slices(seed):
        _agree(2000 + seed)


def test_many_random_kernels_run_as_a_whole() -> None:
    assert sum(_agree(seed) for seed in range(4000, 4022)) >= 8


_SUM = """shl.b32 %r1, %t, 2; mov.u32 %r2, words; add.u32 %r2, %r2, %r1; st.shared.u32 [%r2], %t; bar.sync 0;
    mov.u32 %r3, 64; AGAIN: setp.ge.s32 %p1, %t, %r3; @%p1 bra OVER; shl.b32 %r4, %r3, 2; add.u32 %r4, %r4, %r2;
    ld.shared.u32 %r5, [%r4]; ld.shared.u32 %r6, [%r2]; add.u32 %r5, %r5, %r6; st.shared.u32 [%r2], %r5;
    OVER: bar.sync 0; shr.u32 %r3, %r3, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra AGAIN;
    ld.shared.u32 %r7, [words]; st.global.u32 [%out], %r7;"""


def test_a_sum_in_steps() -> None:
    """Lanes part and meet between barriers; the counter is a scalar."""
    (_, memory), found = _run(body_kernel(f"{_SUM} mov.u32 %r9, 3; ret;", 4, SHARED), (128, 1, 1), "regions")
    assert found == (True, 0)
    assert isinstance(memory, bytes)
    assert np.frombuffer(memory, np.uint32, 128).tolist() == [sum(range(128))] * 128


@rows("seed", [*range(60)], share=6)
def test_random_kernels_whose_barriers_are_looked_at(seed: int) -> None:
    text, threads = Writer(6000 + seed).kernel(), (64, 96, 32, 128, 50, 200)[seed % 6]
    assert checked(text, threads, "synccheck", "regions") == checked(text, threads, "synccheck", "interpreter"), text


def test_a_sum_whose_barriers_are_looked_at_runs_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """synccheck has nothing to say of whole warps."""
    encoded: list[Encoded] = []
    monkeypatch.setattr(driver, "encode", lambda *a, **k: encoded.append(encode(*a, **k)) or encoded[-1])
    text = body_kernel(f"{_SUM} mov.u32 %r9, 5; ret;", 4, SHARED)
    assert checked(text, 128, "synccheck", "regions")[2] == []
    assert [as_a_whole(one) for one in encoded] == [(True, 0)]


def test_the_last_lane_s_word_stays() -> None:
    """Of lanes that store to one word."""
    body = (
        "mov.u32 %r1, words; st.shared.u32 [%r1], %t; bar.sync 0; ld.shared.u32 %r2, [%r1]; st.global.u32 [%out], %r2;"
    )
    (_, memory), found = _run(body_kernel(f"{body} ret;", 4, SHARED), (64, 1, 1), "regions")
    assert found == (True, 0)
    assert isinstance(memory, bytes)
    assert set(np.frombuffer(memory, np.uint32, 64).tolist()) <= {31, 63}


@pytest.mark.parametrize("body", [
    "mul.wide.u32 %d2, %t, 4; add.u64 %d2, %d2, %in; ld.global.u32 %r1, [%d2+16300]; st.global.u32 [%out], %r1; ret;",
    "mul.wide.u32 %d2, %t, 4; add.u64 %d2, %d2, %in; ld.global.u32 %r1, [%d2+2]; st.global.u32 [%out], %r1; ret;",
    "shl.b32 %r1, %t, 2; sub.u32 %r1, %r1, 8; mov.u32 %r2, words; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %t; ret;",
    "mul.lo.u32 %r1, %t, 0x4000000; mul.wide.s32 %d2, %r1, 64; add.u64 %d2, %d2, %in; ld.global.u32 %r1, [%d2]; ret;",
    "setp.lt.s32 %p1, %t, 60; mul.wide.u32 %d2, %t, 4; add.u64 %d2, %d2, %in; @%p1 ld.global.u32 %r1, [%d2+16200];"
    " st.global.u32 [%out], %r1; ret;",
], ids=["beyond", "odd", "before", "wrapped", "some beyond"])  # fmt: skip
def test_accesses_that_trap(body: str) -> None:
    text = body_kernel(body, 4, SHARED)
    expected, _ = _run(text, (64, 1, 1), "interpreter")
    got, _ = _run(text, (64, 1, 1), "regions")
    assert got == expected
    assert len(got) == 1


_LONG = "add.u32 %r1, %r1, %t; xor.b32 %r1, %r1, 7; st.global.u32 [%out], %r1;" * 6


RELATIONS = ("lt", "le", "gt", "ge", "eq", "ne")
NUMBERS = [-1, 0, 1, 31, 32, 40, 63, 64, 1000]


@rows("number, relation", [(number, relation) for number in NUMBERS for relation in RELATIONS], share=12)
def test_threads_in_a_row_part_and_meet(number: int, relation: str) -> None:
    """Those on one side of a number; before, behind and between other work."""
    for negated in ("", "!"):
        for operands in (f"%t, {number}", f"{number}, %t", "%t, %r3"):
            body = f"""mov.u32 %r1, 5; mov.u32 %r2, 9; add.s32 %r3, %n, {number}; st.shared.u32 [%r7], %t;
                bar.sync 0;
                setp.{relation}.s32 %p3, {operands}; @{negated}%p3 bra END; ld.shared.u32 %r2, [%r7]; {_LONG}
                END: xor.b32 %r1, %r1, %r2; bar.sync 0; st.global.u32 [%out], %r1; ret;"""
            text = body_kernel(f"mov.u32 %r7, words; mad.lo.u32 %r7, %t, 4, %r7; {body}", 4, SHARED)
            expected, _ = _run(text, (96, 1, 1), "interpreter")
            got, (could, missed) = _run(text, (96, 1, 1), "regions")
            assert got == expected, (relation, negated, operands)
            assert could
            assert not missed or (relation, negated) in (("eq", ""), ("ne", "!"))  # all threads but one


def loop_kernel(seed: int) -> str:
    """A kernel with one loop that all warps go round in as often, before its stores."""
    rng = random.Random(seed)
    kind = rng.choice(["u32", "s32"])
    up = rng.random() < 0.7
    first, last = (rng.choice([0, 3]), rng.choice([0, 1, 4, 5, 12, 40])) if up else (rng.choice([1, 9, 30]), 2)
    test = rng.choice(["lt", "le"] if up else ["gt", "ge"])
    lines = ["mov.u32 %r1, 7; mul.lo.u32 %r2, %r0, 5; mov.f32 %f1, 0f00000000; mov.u32 %r9, 3; shl.b32 %r8, %n, 1;"]
    lines += [f"mov.u32 %r5, {first}; add.u32 %r6, %n, {last}; mul.wide.u32 %d1, %t, 4; add.s64 %d1, %in, %d1;"]
    lines += [f"mul.lo.u32 %r7, %r13, {rng.choice([4, 64, 12])}; mul.wide.u32 %d2, %r7, 4; add.s64 %d2, %in, %d2;"]
    lines += [f"mov.u64 %d4, {rng.choice([4, 64, 256, 0, 8])}; mul.wide.u32 %d6, %n, 8; mov.u32 %r4, %t; AGAIN:"]
    steps = [
        "ld.global.u32 %r3, [%d1]; add.u32 %r1, %r1, %r3;",
        "ld.global.u32 %r3, [%d2+4]; xor.b32 %r1, %r1, %r3;",
        "ld.global.f32 %f2, [%d1+8]; ld.global.f32 %f3, [%d2]; fma.rn.f32 %f1, %f2, %f3, %f1;",
        "add.u32 %r2, %r2, %r5;",
        "add.u32 %r4, %r4, %r9; mad.lo.u32 %r1, %r4, 3, %r1;",
        "mad.wide.s32 %d5, %r5, 4, %in; ld.global.u32 %r3, [%d5]; add.u32 %r2, %r2, %r3;",
        "mad.lo.s32 %r10, %r5, 16, %t; mul.wide.s32 %d5, %r10, 4; add.s64 %d5, %in, %d5; ld.global.u32 %r11, [%d5];"
        " add.u32 %r2, %r2, %r11;",
        "mov.u32 %r12, %r5;",
        "add.f32 %f1, %f1, %f1; mul.f32 %f4, %f1, 0f3F000000;",
    ]
    lines += rng.sample(steps, rng.randint(2, 6))
    lines += ["add.s64 %d1, %d1, %d4; add.s64 %d2, %d2, %d6;" if rng.random() < 0.8 else "add.s64 %d1, %d1, 4;"]
    lines += [f"add.s32 %r5, %r5, {1 if up else -1}; setp.{test}.{kind} %p1, %r5, %r6; @%p1 bra AGAIN;"]
    lines += ["xor.b32 %r1, %r1, %r2; add.u32 %r1, %r1, %r5; xor.b32 %r1, %r1, %r4; mov.b32 %r3, %f1;"]
    lines += ["xor.b32 %r1, %r1, %r3; cvt.u32.u64 %r3, %d1; add.u32 %r1, %r1, %r3;"]
    lines += [
        rng.choice(["st.global.u32 [%out], %r1;", "st.global.u32 [%d3], %r1;", "@%p2 st.global.u32 [%out], %r1;"])
    ]
    head = """mov.u32 %r13, %tid.y; mov.u32 %r8, %ntid.x; mad.lo.s32 %r0, %r13, %r8, %t; mov.u32 %r10, 0;
        mov.u32 %r11, 0; mov.u32 %r12, 0; mul.wide.u32 %d3, %r0, 4; add.s64 %d3, %in, %d3; setp.lt.u32 %p2, %t, 20;"""
    return body_kernel("\n".join([head, *lines, "ret;"]), 4)


def _loops_agree(seed: int) -> bool:
    text, block = loop_kernel(seed), LOOPING[seed % len(LOOPING)]
    words = 100 if seed % 9 == 0 else 4096
    expected, _ = _run(text, block, "interpreter", words)
    got, (could, missed) = _run(text, block, "regions", words)
    assert got == expected, f"{block}\n{text}"
    return could and not missed


@rows("seed", [*range(120)], share=24)
def test_loops_that_all_warps_go_round_in(seed: int) -> None:
    _loops_agree(seed)


@rows("seed", [*range(60)], share=12)
def test_such_loops_in_short_slices(seed: int) -> None:
    with short_slices(seed):
        _loops_agree(3000 + seed)


def test_addresses_that_are_odd_in_rounds_between() -> None:
    """Those of the first round and of the last one are multiples of a word."""
    text = body_kernel("""mov.u32 %r5, 0; mov.u32 %r1, 7; mad.wide.u32 %d2, %t, 4, %in; AGAIN: ld.global.u32 %r3, [%d2];
        add.u32 %r1, %r1, %r3; add.s64 %d2, %d2, 2; add.s32 %r5, %r5, 1; setp.lt.s32 %p1, %r5, 9; @%p1 bra AGAIN;
        st.global.u32 [%out], %r1; ret;""", 4)  # fmt: skip
    got, (could, missed) = _run(text, (64, 1, 1), "regions")
    assert got == _run(text, (64, 1, 1), "interpreter")[0]
    assert could
    assert missed


@pytest.mark.parametrize("how", [
    "sub.s32 %r6, 19, %r5; mul.lo.s32 %r6, %r5, %r6; mul.lo.s32 %r6, %r6, 1000;",
    "and.b32 %r6, %r5, 8; shl.b32 %r6, %r6, 12;",
    "mul.lo.s32 %r6, %r5, 0x8000000; mul.lo.s32 %r6, %r6, 19;",
    "mul.lo.s32 %r6, %r5, %r5; sub.s32 %r6, 361, %r6; mul.lo.s32 %r6, %r6, 100; shr.s32 %r7, %r5, 3;"
    " mul.lo.s32 %r6, %r6, %r7;",
], ids=["parabola", "bits", "wrapped", "products"])  # fmt: skip
def test_addresses_that_are_elsewhere_in_rounds_between(how: str) -> None:
    """Those of the first round and of the last one, 0, are in bounds."""
    text = body_kernel(f"""mov.u32 %r5, 0; mov.u32 %r1, 7; AGAIN: {how} mad.wide.s32 %d2, %r6, 4, %in;
        ld.global.u32 %r3, [%in]; ld.global.u32 %r4, [%d2]; add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4;
        add.s32 %r5, %r5, 1; setp.le.s32 %p1, %r5, 19; @%p1 bra AGAIN; st.global.u32 [%out], %r1; ret;""",
        4)  # fmt: skip
    got, _ = _run(text, (64, 1, 1), "regions")
    assert got == _run(text, (64, 1, 1), "interpreter")[0]
    assert len(got) == 1


@pytest.mark.parametrize("guard", ["setp.eq.s32 %p2, %t, %r5;", "setp.ge.s32 %p2, %t, %r5;"])
def test_lanes_that_load_in_rounds_between(guard: str) -> None:
    """Nobody does in the last round, and it is in bounds in the first; in between, it is not."""
    text = body_kernel(f"""mov.u32 %r5, -1; mov.u32 %r1, 7; mov.u32 %r3, 1; mad.wide.u32 %d2, %t, 4, %in;
        AGAIN: {guard} ld.global.u32 %r4, [%in]; @%p2 ld.global.u32 %r3, [%d2]; add.u32 %r1, %r1, %r3;
        add.u32 %r1, %r1, %r4; add.s64 %d2, %d2, 800; add.s32 %r5, %r5, 1; setp.lt.s32 %p1, %r5, 70;
        @%p1 bra AGAIN; st.global.u32 [%out], %r1; ret;""", 4)  # fmt: skip
    got, (could, missed) = _run(text, (64, 1, 1), "regions")
    assert got == _run(text, (64, 1, 1), "interpreter")[0]
    assert len(got) == 1
    assert could
    assert missed


def test_many_of_them_run_as_a_whole() -> None:
    assert sum(_loops_agree(seed) for seed in range(4000, 4020)) >= 5


@pytest.mark.parametrize("block", [(16, 8, 1), (16, 4, 1), (32, 4, 1), (16, 4, 2), (16, 16, 1), (16, 12, 1)])
def test_rows_that_are_alike(block: Shape) -> None:
    """Products of what all threads of a column load, and all of a row, between stores to the same words."""
    steps = "".join(
        f"ld.shared.u32 %r4, [%r2+{64 * k}]; ld.shared.u32 %r5, [%r3+{4 * k}]; mad.lo.u32 %r6, %r4, %r5, %r6;"
        for k in range(8)
    )
    body = f"""mov.u32 %r13, %tid.y; mov.u32 %r8, %ntid.x; mad.lo.s32 %r9, %r13, %r8, %t; mov.u32 %r1, words;
        mov.u32 %r7, %tid.z; mov.u32 %r10, %ntid.y; mul.lo.u32 %r10, %r10, %r8; mad.lo.u32 %r9, %r7, %r10, %r9;
        mad.lo.u32 %r7, %r9, 4, %r1; mad.lo.u32 %r2, %t, 4, %r1; mad.lo.u32 %r3, %r13, 64, %r1; mov.u32 %r6, 0;
        mul.lo.u32 %r11, %r9, 2654435; add.u32 %r11, %r11, %n; st.shared.u32 [%r7], %r11; bar.sync 0; {steps}
        bar.sync 0; st.shared.u32 [%r7], %r6; bar.sync 0; {steps} ld.shared.u32 %r4, [%r2];
        st.shared.u32 [%r7+4096], %r6; ld.shared.u32 %r5, [%r2];
        xor.b32 %r4, %r4, %r5; add.u32 %r6, %r6, %r4; ld.param.u64 %out, [out];
        mov.u32 %r12, %ntid.z; mul.lo.u32 %r12, %r12, %r10; mad.lo.u32 %r9, %n, %r12, %r9; mul.wide.u32 %d1, %r9, 4;
        add.u64 %out, %out, %d1; st.global.u32 [%out], %r6; ret;"""
    text = body_kernel(body, 4, SHARED)
    expected, _ = _run(text, block, "interpreter")
    got, found = _run(text, block, "regions")
    assert got == expected
    assert found == (True, 0)


_PLACES = """mov.u32 %r1, %ctaid.y; mov.u32 %r2, %nctaid.x; mad.lo.u32 %r3, %r1, %r2, %n; mov.u32 %r4, %ctaid.z;
    mov.u32 %r5, %nctaid.y; mul.lo.u32 %r5, %r5, %r2; mad.lo.u32 %r3, %r4, %r5, %r3; mov.u32 %r6, %smid;
    shl.b32 %r7, %t, 2; mov.u32 %r8, words; add.u32 %r7, %r7, %r8; ld.shared.u32 %r9, [%r7]; st.shared.u32 [%r7], %r3;
    bar.sync 0; ld.shared.u32 %r10, [%r7]; ld.param.u64 %out, [out]; mov.u32 %r11, %ntid.x;
    mad.lo.u32 %r11, %r3, %r11, %t; mul.wide.u32 %d1, %r11, 4; add.u64 %out, %out, %d1;
    mad.lo.u32 %r10, %r10, 100, %r9; mad.lo.u32 %r10, %r4, 7, %r10; mad.lo.u32 %r10, %r1, 9, %r10;
    SMID st.global.u32 [%out], %r10; ret;"""


@pytest.mark.parametrize("grid", [(40, 1, 1), (7, 3, 2), (1, 9, 4), (1, 1, 30)])
@pytest.mark.parametrize("more", [
    "",
    "add.u32 %r10, %r10, %r6;",
    "and.b32 %r1, %t, 5; setp.eq.u32 %p1, %r1, 4; @%p1 bra ODD; mul.lo.u32 %r10, %r10, %r7; xor.b32 %r10, %r10, 5;"
    " mul.lo.u32 %r10, %r10, %r7; xor.b32 %r10, %r10, 7; mul.lo.u32 %r10, %r10, %r7; add.u32 %r10, %r10, 3; ODD:",
], ids=["whole", "smid", "parting"])  # fmt: skip
@pytest.mark.parametrize("workers", [1, 2])
def test_ctas_follow_each_other(grid: Shape, more: str, workers: int) -> None:
    """Each is where it should be, and has empty memory."""
    text = body_kernel(_PLACES.replace("SMID", more), 4, SHARED)
    found = []
    for tier in ("interpreter", "regions"):
        memory = Memory(1 << 16)
        out = memory.put(np.zeros(64 * 42, np.uint32))
        launch = launch_of(text, memory, [out, out], block=(64, 1, 1), grid=grid, tier=tier, threads=workers)
        found.append((native.run(launch).instructions, memory.get(out, np.uint32, 64 * 42).tolist()))
    assert found[0] == found[1]
    assert len(set(found[0][1])) > 20
