"""Kernels whose CTAs run in unison do what they do record by record: random structured kernels with control flow,
shared and global memory, barriers, atomics, shuffles and exits, on the reference engine and on both tiers."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools import native, reference
from ptxtools.diagnostics import Trap
from ptxtools.native.code.encode import Encoded, encode
from ptxtools.native.code.structures import RECORD
from ptxtools.native.loop import driver, worker
from tests.rows import rows

from .harness import Memory, body_kernel, launch_of

WORDS = 512
SHARED = ".shared .align 16 .b8 words[1024];"
_SHARED = {"words": 1024, "quads": 4096, "sums": 16}
#: Registers that statements change; %r10 to %r13 count loops, %r7 and %r8 are addresses of shared memory.
CHANGED = 5


class Writer:
    """Writes a kernel: lanes part and meet; barriers are where all threads of a CTA come."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.labels = self.loops = 0
        self.lines: list[str] = []
        self.leave = self.rng.random() < 0.2  # some threads do, at once

    def register(self) -> str:
        return f"%r{self.rng.randint(1, CHANGED)}"

    def guard(self) -> str:
        return self.rng.choice(["", "", "", "@%p1 ", "@!%p2 "])

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def condition(self, *, alike: bool) -> None:
        """A new %p3: the same in all threads of a CTA, or not."""
        if alike:
            self.lines.append(f"setp.lt.u32 %p3, %n, {self.rng.randint(0, 3)};")
        elif self.rng.random() < 0.4:
            self.lines.append(f"setp.lt.u32 %p3, %t, {self.rng.choice([1, 7, 16, 32, 40, 64])};")
        else:
            self.lines.append(f"and.b32 %r6, {self.register()}, {self.rng.choice([1, 3, 6])}; setp.ne.u32 %p3, %r6, 0;")

    def work(self) -> None:
        text = self.rng.choice(["add.u32", "xor.b32", "mul.lo.u32", "min.s32", "shr.u32", "max.u32"])
        self.lines.append(f"{self.guard()}{text} {self.register()}, {self.register()}, {self.register()};")

    def access(self) -> None:
        """To words that no other thread touches in this phase."""
        rng = self.rng
        self.lines.append(
            rng.choice(
                [
                    f"{self.guard()}ld.global.u32 {self.register()}, [%d1+{4 * rng.randint(0, 9)}];",
                    f"{self.guard()}st.global.u32 [%out], {self.register()};",
                    f"{self.guard()}ld.shared.u32 {self.register()}, [%r7];",
                    f"{self.guard()}st.shared.u32 [%r7], {self.register()};",
                    f"ld.global.u32 {self.register()}, [%in+{4 * rng.randint(0, 9)}];",
                    f"and.b32 %r6, {self.register()}, 127; mad.wide.u32 %d2, %r6, 4, %in; ld.global.u32 %r6, [%d2];"
                    f" add.u32 {self.register()}, %r6, {self.register()};",
                    f"red.shared.add.u32 [sums+{4 * rng.randint(0, 3)}], {self.register()};",
                    f"{self.guard()}ld.global.v2.u32 {{%r6, {self.register()}}}, [%d3];",
                    f"st.local.u32 [mine], {self.register()}; ld.local.u32 {self.register()}, [mine];",
                    f"{self.guard()}ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%d4+{16 * rng.randint(0, 3)}];",
                    f"{self.guard()}st.shared.v4.u32 [%r18], {{%r2, %r3, %r1, {self.register()}}};",
                    "ld.shared.v4.u32 {%r4, %r3, %r2, %r5}, [%r18]; st.shared.v2.u32 [%r18+8], {%r1, %r4};",
                    f"ld.global.v2.u32 {{%r1, %r3}}, [%d5+{8 * rng.randint(0, 3)}]; add.u32 %r2, %r2, %r1;"
                    f" st.global.u32 [%out], {self.register()};",
                    f"ld.global.v2.u32 {{%r2, %r4}}, [%d4+{rng.choice([0, 8, 24])}]; ld.global.u32 %r1, [%d1];"
                    f" xor.b32 %r1, %r1, %r2; st.shared.v2.u32 [%r18], {{%r1, %r1}};",
                ]
            )
        )

    def row(self) -> None:
        """Accesses to two or four words behind each other, with lanes as far apart, in any order."""
        rng = self.rng
        width = rng.choice([2, 4, 4])
        space, address = rng.choice([("shared", "%r18"), ("global", "%d4"), ("global", "%d3")])
        first = 4 * rng.randint(0, 4 - width) if space == "shared" else 4 * rng.randint(0, 5)
        words = rng.sample(range(width), width if rng.random() < 0.7 else width - 1)
        load = space == "global" or rng.random() < 0.5
        for word in words:
            place = f"[{address}+{first + 4 * word}]"
            text = f"ld.{space}.u32 {self.register()}, {place};"
            self.lines.append(self.guard() + (text if load else f"st.{space}.u32 {place}, {self.register()};"))

    def exchange(self) -> None:
        """A barrier, words of other threads, and a barrier."""
        rng = self.rng
        self.lines += ["bar.sync 0;", f"xor.b32 %r6, %t, {rng.choice([1, 16, 31, 32])};", "min.u32 %r6, %r6, %r9;"]
        self.lines += ["shl.b32 %r6, %r6, 2; mov.u32 %r8, words; add.u32 %r8, %r8, %r6;"]
        self.lines += [f"ld.shared.u32 {self.register()}, [%r8];", "bar.sync 0;"]

    def across(self) -> None:
        """An exchange, vote or sum of all lanes of a warp, then work in registers."""
        rng = self.rng
        mode, limits = rng.choice(
            [("bfly", 31), ("down", 31), ("idx", 31), ("up", 0), ("down", 0x1C1F), ("up", 0x1800)]
        )
        amount = rng.choice([0, 1, 4, 8, 16, 31])
        shuffle = f"shfl.sync.{mode}.b32 {self.register()}|%p3, {self.register()}, {amount}, {limits}, -1;"
        self.lines.append(
            rng.choice(
                [
                    shuffle,
                    f"{shuffle} @%p3 add.u32 {self.register()}, {self.register()}, {self.register()};",
                    f"vote.sync.ballot.b32 {self.register()}, %p{rng.choice([1, 2])}, -1;",
                    f"vote.sync.{rng.choice(['all', 'any', 'uni'])}.pred %p3, %p{rng.choice([1, 2])}, -1;"
                    f" selp.b32 {self.register()}, {self.register()}, %t, %p3;",
                    f"redux.sync.{rng.choice(['add.u32', 'min.s32', 'max.u32', 'xor.b32'])} {self.register()},"
                    f" {self.register()}, -1;",
                    f"activemask.b32 %r6; add.u32 {self.register()}, {self.register()}, %r6;",
                ]
            )
        )
        for _ in range(rng.randint(0, 3)):
            self.work()

    def statement(self, depth: int, *, together: bool) -> None:
        """together: all threads of the CTA are here."""
        kind = self.rng.random()
        if depth == 0 or kind < 0.35:
            self.work()
        elif kind < 0.45:
            self.row()
        elif kind < 0.6:
            self.access()
        elif kind < 0.68 and together:
            self.exchange()
        elif kind < 0.72 and together and not self.leave:
            self.across()
        elif kind < 0.88:
            self.branch(depth, together=together)
        else:
            self.loop(depth, together=together)

    def body(self, depth: int, *, together: bool) -> None:
        for _ in range(self.rng.randint(1, 4)):
            self.statement(depth - 1, together=together)

    def branch(self, depth: int, *, together: bool) -> None:
        alike, other, end = self.rng.random() < 0.3, self.label(), self.label()
        self.condition(alike=alike)
        self.lines.append(f"@%p3 bra {other};")
        self.body(depth, together=together and alike)
        if self.rng.random() < 0.6:
            self.lines += [f"bra {end};", f"{other}:"]
            self.body(depth, together=together and alike)
            self.lines.append(f"{end}:")
        else:
            self.lines.append(f"{other}:")

    def loop(self, depth: int, *, together: bool) -> None:
        if self.loops == 4:
            return
        counter, again = f"%r{10 + self.loops}", self.label()
        self.loops += 1
        alike = self.rng.random() < 0.5
        rounds = str(self.rng.randint(1, 6)) if alike else "%r5"
        if not alike:
            self.lines.append("and.b32 %r5, %t, 3; add.u32 %r5, %r5, 1;")
        limit = f"%r{14 + self.loops - 1}"
        self.lines += [f"mov.u32 {limit}, {rounds}; mov.u32 {counter}, 0;", f"{again}:"]
        self.body(depth, together=together and alike)
        self.branch(1, together=False)
        self.lines.append(f"add.u32 {counter}, {counter}, 1; setp.lt.u32 %p4, {counter}, {limit}; @%p4 bra {again};")
        self.loops -= 1

    def kernel(self) -> str:
        rng = self.rng
        self.lines += ["mov.u32 %r9, %ntid.x; sub.u32 %r9, %r9, 1; shl.b32 %r6, %t, 2; mov.u32 %r7, words;"]
        self.lines += ["add.u32 %r7, %r7, %r6; mad.wide.u32 %d1, %t, 4, %in; mad.wide.u32 %d3, %t, 8, %in;"]
        self.lines += ["mov.u32 %r8, quads; mad.lo.u32 %r18, %t, 16, %r8; and.b32 %r6, %t, 63;"]
        self.lines += [f"shr.u32 %r19, %t, {rng.choice([4, 5, 5, 3])}; mad.wide.u32 %d5, %r19, 32, %in;"]
        self.lines += [f"mad.wide.u32 %d4, %r6, {rng.choice([16] * 8 + [8, 4])}, %in;"]
        self.lines += [f"mad.lo.u32 %r{i}, %r0, {i * 7}, {i};" for i in range(1, CHANGED + 1)]
        self.lines += [f"setp.lt.u32 %p{i}, %t, {rng.choice([0, 5, 32, 50, 1000])};" for i in (1, 2)]
        if self.leave:
            self.lines.append(f"setp.gt.u32 %p3, %t, {rng.choice([3, 31, 60])}; @%p3 ret;")
        for _ in range(rng.randint(3, 7)):
            self.statement(3, together=True)
        self.lines += ["bar.sync 0; ld.shared.u32 %r6, [sums]; add.u32 %r1, %r1, %r6;"]
        self.lines += [f"xor.b32 %r1, %r1, %r{i};" for i in range(2, CHANGED + 1)]
        self.lines += ["st.global.u32 [%out], %r1; ret;"]
        declared = "".join(f".shared .align 16 .b8 {n}[{size}];" for n, size in _SHARED.items())
        return body_kernel("\n".join([".local .align 4 .b8 mine[4];", *self.lines]), 4, declared)


def outcome(engine: Any, text: str, threads: int, words: int = WORDS, **options: Any) -> tuple[object, ...]:
    """All memory behind a launch of three CTAs and its count of instructions, or its trap; whether it ran in unison."""
    memory = Memory(8192 + 4 * words)
    out = memory.put(np.zeros(2048, np.uint32))
    source = memory.put(np.arange(words, dtype=np.uint32) * 2654435761)
    launch = launch_of(text, memory, [out, source], block=(threads, 1, 1), grid=(3, 1, 1), **options)
    try:
        ending: object = engine.run(launch).instructions
    except Trap as trap:
        return (str(trap),)
    return ending, memory.bytes.tobytes()


@rows("seed", [*range(120)], share=12)
def test_random_kernels(seed: int) -> None:
    text = Writer(seed).kernel()
    threads = (64, 96, 32, 128, 50, 200)[seed % 6]
    words = 60 if seed % 8 == 0 else WORDS  # in some, accesses leave memory
    expected = outcome(native, text, threads, words, tier="interpreter")
    assert outcome(native, text, threads, words, tier="regions") == expected, text
    by_definition = outcome(reference, text, threads, words)
    assert len(by_definition) == len(expected), text  # which thread's trap comes first is another matter
    assert len(expected) == 1 or by_definition == expected, text


@rows("seed", [*range(60)], share=12)
def test_random_kernels_in_short_slices(seed: int) -> None:
    """Warps stop between any two blocks, and go on with what is in their slots."""
    text, threads = Writer(1000 + seed).kernel(), (64, 96, 32, 128, 50, 200)[seed % 6]
    short = (5, 17, 40, 111)[seed % 4]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "WARP_SLICE", short)
        patch.setattr(worker, "CTA_SLICE", (short, 300, 131072)[seed % 3])
        expected = outcome(native, text, threads, tier="interpreter")
        assert outcome(native, text, threads, tier="regions") == expected, text


_HEAD = ".version 8.3\n.target sm_80\n.address_size 64\n"


def checked(text: str, threads: int, checks: str, tier: str) -> tuple[object, ...]:
    """What a launch under checkers leaves and reports; some words are not initialised, and some accesses outside."""
    device = ptxtools.Device(checks=checks, tier=tier, threads=1)
    words = np.arange(2 * threads + 5, dtype=np.uint32) * np.uint32(2654435761)
    out = device.alloc(4 * 3 * threads)
    kernel = ptxtools.loads(_HEAD + text)["k"]
    try:
        result = device.launch(kernel, 3, threads, [out, words])
    except Trap as trap:
        return (str(trap),)
    found = [(one.checker, one.line, one.message, one.details, one.thread, one.count) for one in result.reports]
    return out.download().tobytes(), words.tobytes(), found, result.instructions


@rows("seed", [*range(120)], share=12)
def test_random_kernels_under_checkers(seed: int) -> None:
    """Looks at accesses and meetings are served in there, or passed over."""
    text, threads = Writer(seed).kernel(), (64, 96, 32, 128, 50, 200)[seed % 6]
    checks = ("memcheck", "initcheck", "synccheck", "memcheck,synccheck")[seed // 6 % 4]
    assert checked(text, threads, checks, "regions") == checked(text, threads, checks, "interpreter"), text


@pytest.mark.parametrize("checks", ["memcheck", "synccheck", "memcheck,synccheck"])
def test_programs_with_events_stay_in_unison(checks: str) -> None:
    device = ptxtools.Device(checks=checks, tier="regions", threads=1)
    text = body_kernel(f"{_STEPS} ret;", 4, SHARED)
    module = ptxtools.loads(_HEAD + text)
    encoded: list[Encoded] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "encode", lambda *a, **k: encoded.append(encode(*a, **k)) or encoded[-1])
        result = device.launch(module["k"], 3, 128, [np.zeros(384, np.uint32), np.zeros(1, np.uint32)])
    assert result.reports == []
    assert [_misses(one) for one in encoded] == [0]


def _misses(encoded: Encoded) -> int:
    """Turns that were passed by; of a program that can run in unison."""
    assert encoded.unison
    found: int = RECORD.read(encoded.code, encoded.unison - ctypes.addressof(encoded.code), "s1")
    return found


def _launched(
    body: str, threads: int = 96, shared: str = SHARED, **options: Any
) -> tuple[tuple[object, ...], list[int]]:
    """What a kernel leaves in unison, which has to be what it leaves record by record; and the turns that
    were passed by of those programs that can."""
    text = body_kernel(body, 4, shared)
    expected = outcome(native, text, threads, tier="interpreter", **options)
    memory = Memory(8192 + 4 * WORDS)
    out = memory.put(np.zeros(2048, np.uint32))
    source = memory.put(np.arange(WORDS, dtype=np.uint32) * 2654435761)
    launch = launch_of(text, memory, [out, source], block=(threads, 1, 1), grid=(3, 1, 1), tier="regions", **options)
    try:
        got: tuple[object, ...] = (native.run(launch).instructions, memory.bytes.tobytes())
    except Trap as trap:
        got = (str(trap),)
    assert got == expected
    encoded = [one for one in launch.program.cache.values() if isinstance(one, Encoded) and one.unison]
    return got, list(map(_misses, encoded))


_STEPS = """shl.b32 %r1, %t, 2; mov.u32 %r2, words; add.u32 %r2, %r2, %r1; st.shared.u32 [%r2], %t; bar.sync 0;
    mov.u32 %r3, 64; AGAIN: setp.ge.u32 %p1, %t, %r3; @%p1 bra OVER; shl.b32 %r4, %r3, 2; add.u32 %r4, %r4, %r2;
    ld.shared.u32 %r5, [%r4]; ld.shared.u32 %r6, [%r2]; add.u32 %r5, %r5, %r6; st.shared.u32 [%r2], %r5;
    OVER: bar.sync 0; shr.u32 %r3, %r3, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra AGAIN;
    ld.shared.u32 %r7, [words]; st.global.u32 [%out], %r7;"""


def test_steps_between_barriers():
    """All in one function, lanes of a warp that part and meet included."""
    (_, memory), misses = _launched(f"{_STEPS} ret;", 128)
    assert misses == [0]
    assert np.frombuffer(memory, np.uint32, 128).tolist() == [sum(range(128))] * 128


def test_words_anywhere_are_gathered():
    body = """mul.lo.u32 %r1, %t, 37; and.b32 %r1, %r1, 63; mul.wide.u32 %d1, %r1, 4; add.u64 %d1, %d1, %in;
        ld.global.u32 %r2, [%d1]; mul.lo.u32 %r3, %t, 8; mov.u32 %r4, words; add.u32 %r4, %r4, %r3;
        st.shared.u32 [%r4], %r2; bar.sync 0; xor.b32 %r3, %r3, 256; mov.u32 %r4, words; add.u32 %r4, %r4, %r3;
        ld.shared.u32 %r5, [%r4]; st.global.u32 [%out], %r5; ret;"""
    assert _launched(body)[1] == [0]


def _strided(limit: int, width: int, last: int = 0) -> tuple[tuple[object, ...], list[int]]:
    """Threads load `width` words each and store them in another order, those whose numbers are below a limit."""
    body = f"mul.wide.u32 %d1, %t, {4 * width}; add.u64 %d1, %d1, %in;"
    body += f"add.u64 %d1, %d1, {last};"
    for word in range(width):
        body += f"mul.lo.u32 %r7, %t, {width}; add.u32 %r7, %r7, {word}; setp.lt.u32 %p{word + 1}, %r7, {limit};"
        body += f"mov.u32 %r{word + 1}, 7;"
    body += "".join(f"@%p{word + 1} ld.global.u32 %r{word + 1}, [%d1+{4 * word}];" for word in range(width))
    body += f"mul.wide.u32 %d3, %r0, {4 * width - 4}; add.u64 %d2, %out, %d3;"
    for word in reversed(range(width)):
        body += f"@%p{word + 1} st.global.u32 [%d2+{4 * word}], %r{width - word};"
    return _launched(f"{body} ret;")


@pytest.mark.parametrize("limit", [0, 77, 130, 1000])
@pytest.mark.parametrize("width", [2, 4])
def test_words_that_lanes_access_one_after_another_are_rows(width: int, limit: int) -> None:
    (_, memory), misses = _strided(limit, width)
    assert misses == [0]
    words = np.arange(WORDS, dtype=np.uint32) * np.uint32(2654435761)
    numbers = np.arange(96 * width)
    given = np.where(numbers < limit, words[: numbers.size], 7).reshape(96, width)
    want = np.where(numbers < limit, given[:, ::-1].ravel(), 0)
    assert np.array_equal(np.frombuffer(memory, np.uint32, numbers.size), want)


@pytest.mark.parametrize("limit", [60, 1000])
def test_rows_at_the_end_of_memory(limit: int) -> None:
    """Those that are not in it as a whole are accessed word by word, and outside of it is a trap."""
    _strided(limit, 4, 4 * (WORDS - 60))


@pytest.mark.parametrize("order", [(0, 16, 20, 24, 28, 4, 8, 12), (16, 20, 24, 28, 0, 4, 8, 12), (0, 4, 0, 8, 12, 16)])
def test_rows_that_share_words_are_stored_in_order(order: tuple[int, ...]) -> None:
    """What is four words behind a lane is the next one's."""
    body = "mul.wide.u32 %d3, %r0, 12; add.u64 %d2, %out, %d3; and.b32 %r6, %t, 31; setp.lt.u32 %p1, %r6, 31;"
    for number, place in enumerate(order):
        body += f"mad.lo.u32 %r1, %r0, 10, {number}; @%p1 st.global.u32 [%d2+{place}], %r1;"
    (_, memory), misses = _launched(f"{body} ret;")
    assert misses == [0]
    want = np.zeros(4 * 288 + 8, np.uint32)
    for number, place in enumerate(order):
        threads = np.arange(288)[np.arange(288) % 32 < 31]
        want[4 * threads + place // 4] = 10 * threads + number
    assert np.array_equal(np.frombuffer(memory, np.uint32, 4 * 288), want[: 4 * 288])


@pytest.mark.parametrize(("mask", "more"), [(7, 0), (7, 4), (15, 0), (0, 28), (0, 32), (3, 16), (3, 20)])
def test_words_at_the_end_of_shared_memory(mask: int, more: int) -> None:
    """Half a warp would go beyond it, and none of its lanes does; or some do, which is a trap."""
    body = f"""shl.b32 %r1, %t, 2; mov.u32 %r2, words; add.u32 %r1, %r1, %r2; setp.lt.u32 %p1, %t, 8; mov.u32 %r5, 1;
        @%p1 st.shared.u32 [%r1], %t; bar.sync 0; and.b32 %r3, %t, {mask}; shl.b32 %r3, %r3, 2; add.u32 %r3, %r3, %r2;
        setp.ne.u32 %p2, %t, 40; ld.shared.u32 %r4, [%r3+{more}]; @%p2 ld.shared.u32 %r5, [%r3+{more}];
        mad.lo.u32 %r4, %r4, 256, %r5; st.global.u32 [%out], %r4; ret;"""
    outcome_, misses = _launched(body, shared=".shared .align 4 .b8 words[32];")
    inside = 4 * mask + more + 4 <= 32
    assert (len(outcome_) == 2) == inside
    if inside:
        assert misses == [0]
        word = (np.arange(96) & mask) + more // 4
        want = word * 256 + np.where(np.arange(96) == 40, 1, word)
        assert np.array_equal(np.frombuffer(outcome_[1], np.uint32, 96), want)


def test_lanes_that_come_to_a_barrier_one_by_one_leave():
    body = f"""and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, 0; @%p1 bra EVEN;
        FEW: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 5; @%p2 bra FEW; bar.sync 0; bra ON;
        EVEN: bar.sync 0; mov.u32 %r2, 9; ON: {_STEPS} add.u32 %r7, %r7, %r2; st.global.u32 [%out], %r7; ret;"""
    _launched(body, 128)


@pytest.mark.parametrize(
    "ending",
    [
        "ld.global.u32 %r1, [%in+1000000]; st.global.u32 [%out], %r1; ret;",
        "setp.eq.u32 %p3, %t, 40; @%p3 trap; ret;",
        "setp.lt.u32 %p3, %t, 40; @%p3 bra WAIT; bar.warp.sync -1; ret; WAIT: bar.sync 0; bra WAIT;",
        "FOREVER: add.u32 %r1, %r1, 1; setp.eq.u32 %p3, %t, 99; @%p3 bra OUT; bra FOREVER;"
        " OUT: bar.sync 0; bra FOREVER;",
    ],
    ids=["bounds", "trap", "deadlock", "limit"],
)  # fmt: skip
def test_traps_and_hangs_are_told_as_ever(ending: str) -> None:
    (told, *_), _ = _launched(f"{_STEPS} {ending}", 128, max_instructions=200_000)
    assert isinstance(told, str)


@pytest.mark.parametrize(
    "mask",
    ["mov.u32 %r9, 0x7fffffff;", "setp.eq.u32 %p3, %t, 70; selp.b32 %r9, 0xff00, -1, %p3;"],
    ids=["same", "apart"],
)
@pytest.mark.parametrize("operation", [
    "shfl.sync.idx.b32 %r1, %t, 0, 31, %r9;", "vote.sync.any.pred %p1, %p2, %r9;", "bar.warp.sync %r9;",
])  # fmt: skip
def test_lanes_outside_of_their_own_member_mask_trap(operation: str, mask: str) -> None:
    (told, *_), _ = _launched(f"{_STEPS} {mask} {operation} st.global.u32 [%out], %r1; ret;", 96)
    assert "not in its own member mask" in str(told)


def test_slices_end_where_they_do():
    """Warps and CTAs take turns in the same order: what is drawn from a counter shows it."""
    body = """mov.u32 %r1, 0; AGAIN: atom.global.add.u32 %r2, [%in], 1; mad.lo.u32 %r3, %r3, 31, %r2; and.b32 %r4, %t,
    3; setp.eq.u32 %p1, %r4, 0; @%p1 bra EVEN; add.u32 %r3, %r3, 7; bra ON; EVEN: xor.b32 %r3, %r3, %r2; ON: xor.b32
    %r3, %r3, 5; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 1500; @%p2 bra AGAIN; bar.sync 0; st.global.u32 [%out],
    %r3; ret;"""
    _launched(body, 96)


def test_slices_end_while_lanes_wait_for_others() -> None:
    """Some lanes are in a long loop, in two ways; the others of their warps wait at two blocks."""
    body = """and.b32 %r4, %t, 7; setp.eq.u32 %p1, %r4, 7; @%p1 bra OUT; and.b32 %r5, %t, 1; setp.eq.u32 %p1, %r5, 0;
    @%p1 bra ON; mov.u32 %r1, 0; AGAIN: atom.global.add.u32 %r2, [%in], 1; mad.lo.u32 %r3, %r3, 31, %r2; xor.b32 %r6,
    %r1, %t; and.b32 %r6, %r6, 2; setp.eq.u32 %p2, %r6, 0; @%p2 bra EVEN; add.u32 %r3, %r3, 7; bra NEXT; EVEN: xor.b32
    %r3, %r3, %r2; NEXT: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 3000; @%p2 bra AGAIN; ON: add.u32 %r3, %r3, 1;
    OUT: add.u32 %r3, %r3, %r4; bar.sync 0; st.global.u32 [%out], %r3; ret;"""
    _launched(body, 96)


_QUADS = """mov.u32 %r1, %tid.x; mov.u32 %r2, words; mad.lo.u32 %r2, %r1, 16, %r2; mad.wide.u32 %d1, %r1, 8, %in;
    ld.global.v2.u32 {%r3, %r4}, [%d1]; add.u32 %r5, %r3, %r4; st.shared.v4.u32 [%r2], {%r5, %r3, %r4, %r1};
    bar.sync 0;"""


@pytest.mark.parametrize(
    ("ending", "same"),
    [
        ("ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2];", True),
        ("shr.u32 %r6, %r1, 4; mov.u32 %r2, words; mad.lo.u32 %r2, %r6, 16, %r2; "
         "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2];", True),
        ("mov.u32 %r2, words; mad.lo.u32 %r2, %r1, 8, %r2; ld.shared.v2.u32 {%r3, %r4}, [%r2+504];", True),
        ("mov.u32 %r2, words; mad.lo.u32 %r2, %r1, 8, %r2; ld.shared.v2.u32 {%r3, %r4}, [%r2+520];", False),
        ("ld.shared.v2.u32 {%r3, %r4}, [%r2+4];", False),
        ("xor.b32 %r6, %r1, 1; mov.u32 %r2, words; mad.lo.u32 %r2, %r6, 16, %r2; "
         "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2];", True),
    ],
    ids=["rows", "points", "last", "bounds", "alignment", "apart"],
)  # fmt: skip
def test_accesses_of_several_words(ending: str, same: bool) -> None:
    tail = "mad.lo.u32 %r3, %r3, 7, %r4; mad.lo.u32 %r3, %r3, 7, %r5; st.global.u32 [%out], %r3; ret;"
    got, passed = _launched(f"{_QUADS} mov.u32 %r5, 1; {ending} {tail}", 64)
    assert (len(got) == 2) == same
    assert not same or passed == [0]


@pytest.mark.parametrize("threads", [64, 50], ids=["whole", "part"])
def test_exchanges_of_whole_warps_and_of_others(threads: int) -> None:
    body = """shfl.sync.down.b32 %r1|%p1, %t, 5, 31, -1; selp.u32 %r2, 100, 200, %p1; add.u32 %r1, %r1, %r2;
    setp.lt.u32 %p2, %t, 40; vote.sync.ballot.b32 %r3, %p2, -1; xor.b32 %r1, %r1, %r3; shfl.sync.idx.b32 %r4, %r1, 3,
    0x181f, -1; redux.sync.add.u32 %r5, %r4, -1; vote.sync.all.pred %p3, %p2, -1; selp.u32 %r6, 3, 5, %p3; mad.lo.u32
    %r1, %r5, %r6, %r4; st.global.u32 [%out], %r1; ret;"""
    (_, memory), passed = _launched(body, threads)
    assert passed == [0]
    out = np.frombuffer(memory, np.uint32)  # type: ignore[arg-type]
    assert len(np.unique(out[out != 0])) > 8


def test_workers_share_all_ctas() -> None:
    """Workers claim several CTAs at once: none is lost, or runs twice."""
    text = body_kernel("mad.wide.u32 %d1, %n, 4, %in; red.global.add.u32 [%d1], 1; ret;", 4)
    memory = Memory()
    counts = memory.put(np.zeros(3001, np.uint32))
    for _ in range(4):
        native.run(
            launch_of(text, memory, [counts, counts], block=(1, 1, 1), grid=(3001, 1, 1), threads=3, resident=64)
        )
    assert memory.get(counts, np.uint32, 3001).tolist() == [4] * 3001
