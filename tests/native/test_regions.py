"""Regions do what their operations do one by one: on random loops with accesses of all shapes, in and out of bounds."""

from __future__ import annotations

import ctypes
import functools
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxtools import native, reference
from ptxtools.diagnostics import Trap
from ptxtools.machine.launch import Launch, no_counts
from ptxtools.machine.measures import Cache
from ptxtools.native.code import jit, library, refusals, runs, tiers
from ptxtools.native.code.structures import RECORD
from ptxtools.native.loop import worker
from ptxtools.program import Program, lower
from ptxtools.program.operations import LANE_ACCESS
from ptxtools.program.passes.measure import measure
from ptxtools.program.program import Terminator
from ptxtools.program.variant import Variant
from tests.program.harness import module_of
from tests.rows import rows

from .harness import BASE, Memory, body_kernel, launch_of, lowered

#: Words at thread %t, as code that makes %r9 of it: those that a region serves first.
SHAPES = {
    "row": "mov.u32 %r9, %t;",
    "point": "mov.u32 %r9, 5;",
    "halves": "shr.u32 %r9, %t, 4;",
    "mirror": "xor.b32 %r9, %t, 15;",
    "swapped": "xor.b32 %r9, %t, 3;",
    "tiles": "shr.u32 %r9, %t, 3; mad.lo.u32 %r9, %r9, -4, %t;",
    "apart": "shl.b32 %r9, %t, 1;",
    "anywhere": "mul.lo.u32 %r9, %t, 37; and.b32 %r9, %r9, 63;",
}
WORDS = 1024


@pytest.fixture(autouse=True)
def _compiled(monkeypatch):
    monkeypatch.setattr(tiers, "AT_ONCE", True)


class Writer:
    """Writes a loop: %d1 to %d3 are addresses in global memory, %r10 and %r11 in shared, %r1 to %r5 values."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.regular = seed % 3 != 0
        shapes = list(SHAPES)[:-2] if self.regular else list(SHAPES)
        self.shape = {name: self.rng.choice(shapes) for name in ("%d1", "%d2", "%r10")}

    def guard(self) -> str:
        return self.rng.choice(["", "", "", "@%p1 ", "@!%p2 "])

    def value(self) -> str:
        return f"%r{self.rng.randint(1, 5)}"

    def load(self) -> str:
        place = self.rng.choice(["%d1", "%d2", "%r10", "%r11"])
        space = "shared" if place[1] == "r" else "global"
        imm = 4 * self.rng.randint(0, 20)
        return f"{self.guard()}ld.{space}.u32 {self.value()}, [{place}+{imm}];"

    def work(self) -> str:
        text = self.rng.choice(["add.u32", "xor.b32", "mul.lo.u32", "min.s32"])
        return f"{self.guard()}{text} {self.value()}, {self.value()}, {self.value()};"

    def grow(self, place: str) -> str:
        step = self.rng.choice(["4", "64", "%d5", "-4", "8" if self.regular else "%d6"])
        return f"add.s64 {place}, {place}, {step};"

    def body(self) -> str:
        rng, lines = self.rng, []
        for place, shape in self.shape.items():
            lines.append(SHAPES[shape])
            if place[1] == "d":
                lines.append(f"mul.wide.u32 {place}, %r9, 4; add.u64 {place}, {place}, %in;")
            else:
                lines.append(f"shl.b32 {place}, %r9, 2;")
        lines += ["mov.u64 %d5, 128; and.b32 %r8, %t, 4; cvt.u64.u32 %d6, %r8;"]  # alike in all lanes, and not
        lines += ["mov.u32 %r7, tile; shl.b32 %r11, %t, 2; add.u32 %r11, %r11, %r7;"]
        lines += ["st.shared.u32 [%r11], %t; st.shared.u32 [%r11+128], %r11;"]
        lines += [SHAPES[rng.choice(["row", "mirror", "apart"])], "mul.wide.u32 %d3, %r9, 4; add.u64 %d3, %d3, %out;"]
        lines += [SHAPES[rng.choice(list(SHAPES))], "mov.u32 %r13, %r9;"]
        lines += [SHAPES[rng.choice(["row", "mirror", "apart"])], "add.u32 %r14, %r9, 30;"]
        lines += [f"mad.lo.u32 %r{i}, %t, {i * 7}, {i};" for i in range(1, 6)]
        lines += [f"setp.lt.u32 %p{i}, %r{i}, {rng.choice([0, 50, 90, 1000])};" for i in (1, 2)]
        rounds = rng.choice(["9", "9", "%t"])
        lines += ["mov.u32 %r12, 0;", "AGAIN:"]
        inside = [self.load() for _ in range(rng.randint(1, 5))] + [self.work() for _ in range(rng.randint(1, 4))]
        rng.shuffle(inside)
        if rng.random() < 0.4:
            inside.append(f"{self.guard()}ld.shared.u32 {self.value()}, [tile+{rng.choice([0, 20, 508, 512])}];")
        if rng.random() < 0.2:
            inside.append(
                f"setp.eq.u32 %p4, %t, {rng.choice([0, 7, 17])}; @%p4 st.shared.u32 [tile+24], {self.value()};"
            )
        sign = rng.choice("su")
        if rng.random() < 0.5:
            inside.append(f"mad.wide.{sign}32 %d7, %r13, 4, %in; {self.guard()}ld.global.u32 {self.value()}, [%d7+8];")
        if rng.random() < 0.5:
            inside.append(f"{rng.choice(['add', 'sub'])}.u32 %r13, %r13, {rng.choice([1, 3, 16])};")
        if rng.random() < 0.3:
            inside.append(f"mad.wide.{sign}32 %d8, %r14, 4, %in; {self.guard()}st.global.u32 [%d8], {self.value()};")
        lines += [*inside, *(self.grow(place) for place in ("%d1", "%d2") if rng.random() < 0.7)]
        if rng.random() < 0.5:
            lines.append(f"{self.guard()}st.shared.u32 [%r11], {self.value()};")
        if rng.random() < 0.4:
            lines.append(f"{self.guard()}st.global.u32 [%d3+8192], {self.value()};")
        elif rng.random() < 0.5:
            lines.append(f"{self.guard()}st.global.u32 [%out], {self.value()}; add.u64 %out, %out, 128;")
        lines += [f"add.u32 %r12, %r12, 1; setp.lt.u32 %p3, %r12, {rounds}; @%p3 bra AGAIN;"]
        lines += [f"st.global.u32 [%out+{128 * i}], %r{i};" for i in range(1, 6)]
        lines += ["sub.u64 %d1, %d1, %in; cvt.u32.u64 %r1, %d1; st.global.u32 [%out+768], %r1; ret;"]
        return "\n".join(lines)


def outcome(
    engine: Any, body: str, words: int = WORDS, threads: int = 32, *, counted: bool = False, **options: Any
) -> tuple[object, ...]:
    """All memory behind a launch, and its count of instructions or its trap; counted: and what is counted and measured
    of each instruction. The input is at the end of memory."""
    memory = Memory(16384 + 4 * words)
    out = memory.put(np.zeros(4096, np.uint32))
    source = memory.put(np.arange(words, dtype=np.uint32) * 2654435761)
    text = body_kernel(body, 4, ".shared .align 16 .b8 tile[512];")
    launch = launch_of(text, memory, [out, source], block=(threads, 1, 1), **options)
    if counted:
        launch.program = _counting(text)
        launch.counts, launch.cache = no_counts(launch.program), Cache(1 << 12)
    try:
        ending: object = engine.run(launch).instructions
    except Trap as trap:
        return (str(trap),)
    rows = (
        [(c.what, c.where, *row) for c, row in zip(launch.program.counters, launch.counts.tolist(), strict=True)]
        if counted
        else []
    )
    return ending, memory.bytes.tobytes(), rows


@functools.lru_cache(1)
def _counting(text: str) -> Program:
    module = module_of(text)
    return measure(lower(module, module.entries[0].name, lambda name: BASE, variant=Variant(counts=True)))


@rows("seed", [*range(60)], share=6)
def test_random_loops(seed: int) -> None:
    body = Writer(seed).body()
    words = 120 if seed % 5 == 0 else WORDS  # in some, loops leave memory
    threads = (32, 32, 32, 21, 9)[seed % 5]
    expected = outcome(reference, body, words, threads)
    assert outcome(native, body, words, threads) == expected, body
    assert outcome(native, body, words, threads, seed=1) == expected, body
    assert outcome(native, body, words, threads, tier="interpreter") == expected, body


@rows("seed", [*range(60)], share=6)
def test_what_is_counted_in_random_loops(seed: int) -> None:
    """Instructions, lanes, sectors and passes over banks, in regions and on their way out, are those of one by one."""
    body = Writer(seed).body()
    words = 120 if seed % 5 == 0 else WORDS
    threads = (32, 32, 32, 21, 9)[seed % 5]
    expected = outcome(reference, body, words, threads, counted=True)
    assert outcome(native, body, words, threads, counted=True) == expected, body


def _launch(shape: str, **options: Any) -> list[tuple[int, int]]:
    """Of each region of a kernel that was launched: misses that it has not made up for, and bytes behind it."""
    body = f"""{SHAPES[shape]} mul.wide.u32 %d1, %r9, 4; add.u64 %d1, %d1, %in; mov.u32 %r1, 0; mov.u32 %r2, 0;
        AGAIN: ld.global.u32 %r3, [%d1]; add.u32 %r1, %r1, %r3; add.s64 %d1, %d1, 4;
        add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 40; @%p1 bra AGAIN;
        st.global.u32 [%out], %r1; ret;"""
    memory = Memory()
    out = memory.put(np.zeros(32, np.uint32))
    source = np.arange(200, dtype=np.uint32)
    launch: Launch = launch_of(body_kernel(body, 4), memory, [out, memory.put(source)], **options)
    launch.program.cache.clear()
    native.run(launch)
    (encoded,) = launch.program.cache.values()
    word = {"row": lambda t: t, "point": lambda t: 5, "apart": lambda t: 2 * t}[shape]
    assert memory.get(out, np.uint32, 32).tolist() == [int(source[word(t) : word(t) + 40].sum()) for t in range(32)]
    return [
        (RECORD.read(encoded.code, 64 * at, "s1"), op.imm)
        for at, op in enumerate(encoded.operations)
        if op is not None and op.kind == "run" and op.imm
    ]


def test_usual_shapes_are_served():
    for shape in ("row", "point"):
        assert [misses for misses, _ in _launch(shape)] == [0, 0]  # the second is what the kernel in unison calls


def test_addresses_without_a_register_are_served():
    """A word for all lanes, and one that a single lane writes."""
    body = """mov.u32 %r1, 0; mov.u32 %r2, 0; setp.eq.u32 %p2, %t, 7; @%p2 st.shared.u32 [tile+8], %t;
        AGAIN: ld.shared.u32 %r3, [tile+8]; add.u32 %r1, %r1, %r3; @%p2 st.shared.u32 [tile+12], %r1;
        add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 40; @%p1 bra AGAIN;
        ld.shared.u32 %r4, [tile+12]; add.u32 %r1, %r1, %r4; st.global.u32 [%out], %r1; ret;"""
    memory = Memory()
    out = memory.put(np.zeros(32, np.uint32))
    launch = launch_of(body_kernel(body, 4, ".shared .align 16 .b8 tile[16];"), memory, [out, out])
    native.run(launch)
    assert memory.get(out, np.uint32, 32).tolist() == [560] * 32
    (encoded,) = launch.program.cache.values()
    op, _ = [op for op in encoded.operations if op is not None and op.kind == "run" and op.imm]
    (places,) = encoded.regions.places.values()
    assert [step.kind for step in op.detail.steps if step.space] == ["ld", "st"]
    assert [RECORD.read(encoded.code, 64 * at, "s1") for at in places] == [0, 0]


def test_unusual_shapes_are_left_alone():
    """Where addresses grow from round to round; others are gathered."""
    regions = _launch("apart")
    assert sum(misses for misses, _ in regions) > 0
    assert [bytes_ for _, bytes_ in regions] == [64 * 2] * 2  # the load, and a run of the rest


def test_compiled_once_it_pays(monkeypatch):
    """A program runs without its regions, and with them once they are there."""
    monkeypatch.setattr(tiers, "AT_ONCE", False)
    monkeypatch.setattr(tiers, "PAYS", 7000)  # one launch has 5,000
    monkeypatch.setattr(tiers.library, "at_hand", lambda ops: False)
    memory = Memory()
    out = memory.put(np.zeros(32, np.uint32))
    body = "AGAIN: ld.global.u32 %r1, [%in]; add.u32 %r2, %r2, %r1; setp.lt.u32 %p1, %r2, 39; @%p1 bra AGAIN;"
    launch = launch_of(
        body_kernel(f"{body} st.global.u32 [%out], %r2; ret;", 4), memory, [out, memory.put(np.ones(1, np.uint32))]
    )
    launch.program.cache.clear()  # another test may have the same text
    handlers, counts = [], []
    for _ in range(3):
        counts.append(native.run(launch).instructions)
        tiers.settle()
        (encoded,) = launch.program.cache.values()
        ((place, _),) = encoded.regions.places.values()
        handlers.append(RECORD.read(encoded.code, 64 * place, "handler"))
        assert memory.get(out, np.uint32, 32).tolist() == [39] * 32
    assert handlers[0] != handlers[1] == handlers[2]
    assert len(set(counts)) == 1


def test_handlers_that_were_compiled_quickly_are_replaced(monkeypatch, tmp_path):
    """A program begins with them, records call better ones once that pays, and another process begins with those."""
    for name, value in (("QUICK", True), ("AT_ONCE", False), ("PAYS", 7000)):
        monkeypatch.setattr(tiers, name, value)
    body = """AGAIN: ld.global.u32 %r1, [%in]; add.u32 %r2, %r2, %r1; setp.lt.u32 %p1, %r2, 39; @%p1 bra AGAIN;
        bar.sync 0; st.global.u32 [%out], %r2; ret;"""
    levels = jit.QUICK, jit.FULL
    found, detours = [], []
    for _ in range(2):
        quick, full = (library.Level(level, tmp_path) for level in levels)
        monkeypatch.setattr(library, "_quick", quick)
        monkeypatch.setattr(library, "_full", full)
        memory = Memory()
        out = memory.put(np.zeros(32, np.uint32))
        launch = launch_of(body_kernel(body, 4), memory, [out, memory.put(np.ones(1, np.uint32))])
        launch.program.cache.clear()
        for _ in range(3):
            native.run(launch)
            tiers.settle()
            (encoded,) = launch.program.cache.values()
            ends = [at for at, op in enumerate(encoded.operations) if isinstance(op, Terminator)]
            own = range(0, 64 * (1 + max(ends)), 64)  # behind those, operations of runs that are not compiled yet
            handlers = {RECORD.read(encoded.code, at, "handler") for at in own}
            begin = {tiers.PASS} if encoded.regions.ops else set()
            found.append(
                (
                    handlers <= {*quick.addresses.values(), 0},
                    handlers <= {*full.addresses.values(), *(quick.addresses.get(name, 0) for name in begin), 0},
                )
            )
            detours.append(quick.addresses.get(tiers.DETOUR) in handlers)
            assert memory.get(out, np.uint32, 32).tolist() == [39] * 32
    assert detours == [True] + 5 * [False]  # `add` and `setp` are one handler later
    assert found == [(True, False), (False, True), (False, True), *[(False, True)] * 3]


def test_hot_code_comes_before_the_loop_that_goes_with_it(monkeypatch, tmp_path):
    """Where no process has compiled either well, regions run with the loop of quick code until it is there."""
    for name, value in (("QUICK", True), ("AT_ONCE", False), ("PAYS", 7000)):
        monkeypatch.setattr(tiers, name, value)
    for name, level in (("_quick", jit.QUICK), ("_full", jit.FULL)):
        monkeypatch.setattr(library, name, library.Level(level, tmp_path))
    monkeypatch.setattr(library, "_products", {})
    memory = Memory()
    out = memory.put(np.zeros(32, np.uint32))
    body = """AGAIN: ld.global.u32 %r1, [%in]; add.u32 %r2, %r2, %r1; setp.lt.u32 %p1, %r2, 39; @%p1 bra AGAIN;
        add.u32 %r2, %r2, %t; st.global.u32 [%out], %r2; ret;"""
    launch = launch_of(body_kernel(body, 4), memory, [out, memory.put(np.ones(1, np.uint32))])
    launch.program.cache.clear()
    place, calls = tiers.Regions._place, []

    def noted(self, addresses):
        place(self, addresses)
        (encoded,) = launch.program.cache.values()
        if self is encoded.regions and addresses:
            ((at, _),) = self.places.values()
            before = library.BASE not in library._full.addresses
            calls.append((before, RECORD.read(encoded.code, 64 * at, "handler")))
            memory.bytes[:128] = 0  # the output
            native.run(launch)
            assert memory.get(out, np.uint32, 32).tolist() == [39 + lane for lane in range(32)]

    monkeypatch.setattr(tiers.Regions, "_place", noted)
    for _ in range(2):
        native.run(launch)
    tiers.settle()
    assert [before for before, _ in calls] == [True, False] and calls[0][1] != calls[1][1]
    (name,) = launch.program.cache.popitem()[1].regions.ops
    assert [handler for _, handler in calls] == [library._products[name], library._full.addresses[name]]


def test_what_cannot_be_compiled_costs_no_result(monkeypatch):
    """A defect of the compiler is told once; the run and later ones go on record by record."""
    monkeypatch.setattr(tiers, "AT_ONCE", False)
    monkeypatch.setattr(tiers, "PAYS", 1000)
    monkeypatch.setattr(tiers, "_failures", set())
    monkeypatch.setattr(tiers.library, "at_hand", lambda ops: False)
    addresses = tiers.library.addresses

    def failing(ops):
        if threading.current_thread() is threading.main_thread():
            return addresses(ops)
        raise RuntimeError("expected type\n%r1 = ?")

    monkeypatch.setattr(tiers.library, "addresses", failing)
    memory = Memory()
    out = memory.put(np.zeros(32, np.uint32))
    body = "AGAIN: ld.global.u32 %r1, [%in]; add.u32 %r2, %r2, %r1; setp.lt.u32 %p1, %r2, 39; @%p1 bra AGAIN;"
    launch = launch_of(
        body_kernel(f"{body} st.global.u32 [%out], %r2; ret;", 4), memory, [out, memory.put(np.ones(1, np.uint32))]
    )
    launch.program.cache.clear()
    with pytest.warns(RuntimeWarning, match=r"could not be compiled \(RuntimeError: expected type\)") as told:
        for _ in range(3):
            native.run(launch)
            tiers.settle()
            assert memory.get(out, np.uint32, 32).tolist() == [39] * 32
    assert len(told) == 1


def test_the_end_of_the_process_waits_for_what_a_worker_began(monkeypatch):
    """Python ends below threads that are daemons; LLVM does not survive that."""
    monkeypatch.setattr(tiers, "AT_ONCE", False)
    monkeypatch.setattr(tiers.library, "at_hand", lambda ops: False)
    found = []
    regions = tiers.Regions((ctypes.c_char * 64)(), {"x": None}, {})  # type: ignore[dict-item]
    monkeypatch.setattr(regions, "_fill", lambda: found.append(threading.current_thread().daemon))
    worker = threading.Thread(target=regions.ran, args=(tiers.PAYS + 1,), daemon=True)
    worker.start()
    worker.join()
    tiers.settle()
    assert found == [False]


def test_tiers_that_are_pinned(monkeypatch):
    """Regions never, those of loops when that pays, or all of them at once, those outside of loops, too."""
    monkeypatch.setattr(tiers, "AT_ONCE", False)
    monkeypatch.setattr(tiers.library, "at_hand", lambda ops: False)
    body = """ld.global.u32 %r1, [%in]; add.u32 %r1, %r1, %t; AGAIN: ld.global.u32 %r3, [%in+4];
        add.u32 %r1, %r1, %r3; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 40; @%p1 bra AGAIN;
        st.global.u32 [%out], %r1; ret;"""
    memory = Memory()
    out, source = memory.put(np.zeros(32, np.uint32)), memory.put(np.array([7, 2] + [0] * 40, np.uint32))
    empty = tiers.first_code({})[0][tiers.PASS]
    found, counts = {}, set()
    for tier in ("interpreter", "auto", "regions"):
        launch = launch_of(body_kernel(body, 4), memory, [out, source], tier=tier)
        launch.program.cache.clear()
        counts.add(native.run(launch).instructions)
        assert memory.get(out, np.uint32, 32).tolist() == [87 + t for t in range(32)]
        memory.bytes[out - BASE :][:128] = 0
        (encoded,) = launch.program.cache.values()
        places = [at for each in encoded.regions.places.values() for at in each]
        found[tier] = [RECORD.read(encoded.code, 64 * at, "handler") != empty for at in places]
    assert found == {
        "interpreter": [],
        "auto": [False] * 2,
        "regions": [True] * 3,
    }  # one twice: kernels in unison call it
    assert len(counts) == 1


def test_the_end_of_memory():
    """Regions do not look beyond it, even where a vector would; nor at addresses that are not aligned."""
    for beyond in (-4, 0, 2, 4):
        body = f"""mul.wide.u32 %d1, %t, 4; add.u64 %d1, %d1, %in; add.u64 %d1, %d1, {4 * (WORDS - 32) + beyond};
            mov.u32 %r2, 0; AGAIN: ld.global.u32 %r3, [%d1]; add.u32 %r1, %r1, %r3;
            add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 3; @%p1 bra AGAIN;
            st.global.u32 [%out], %r1; ret;"""
        expected = outcome(reference, body)
        assert outcome(native, body) == expected
        assert ("trap" in str(expected[0])) == (beyond > 0)


def test_slices_end_as_they_would(monkeypatch):
    body = Writer(1).body()
    expected = outcome(reference, body)
    for slice_ in (1, 9, 100):
        monkeypatch.setattr(worker, "WARP_SLICE", slice_)
        assert outcome(native, body) == expected


@pytest.mark.parametrize("access", ["ld.volatile.global.u32", "ld.acquire.gpu.global.u32", "ld.relaxed.gpu.global.u32"])
def test_accesses_that_others_wait_for_stay_outside(access):
    body = f"AGAIN: {access} %r1, [%in]; add.u32 %r2, %r2, %r1; setp.lt.u32 %p1, %r2, 9; @%p1 bra AGAIN; ret;"
    formed = runs.form_runs(lowered(body_kernel(body, 4)), everywhere=False, regions=True)
    assert [op.kind for op in formed[1]][:1] == ["ld"]


def test_why_accesses_stay_outside():
    """The reasons that `bench/regions.py` lists."""
    wanted = {
        "ld.global.u32 %r1, [%in]": "",
        "st.shared.f32 [%r2+4], %f1": "",
        "ld.global.v2.u32 {%r1, %r2}, [%in]": "2 elements",
        "ld.global.u64 %d1, [%in]": "64 bits",
        "ld.global.u8 %r1, [%in]": "8 bits",
        "ld.u32 %r1, [%in]": "generic memory",
        "ld.acquire.gpu.global.u32 %r1, [%in]": "acquire",
        "st.release.gpu.global.u32 [%out], %r1": "release",
        "ld.volatile.global.u32 %r1, [%in]": "poll",
        "atom.global.add.u32 %r1, [%in], 1": "atomic",
        "st.shared.u32 [s], %r1": "",
    }
    body = "".join(f"{access}; " for access in wanted)
    ops = lowered(body_kernel(f"{body} ret;", 4, ".shared .b32 s[4];"), optimise=False).operations()
    found = [refusals.refusal(op) for op in ops if op.kind in LANE_ACCESS and op.space != "param"]
    assert found == list(wanted.values())


def test_no_load_moves_over_a_store():
    """A load behind a store to the same space begins another region."""
    body = """AGAIN: ld.global.u32 %r1, [%in]; st.global.u32 [%out], %r1; ld.global.u32 %r2, [%in];
        ld.shared.u32 %r4, [%r5]; add.u32 %r3, %r2, %r4; setp.lt.u32 %p1, %r3, 9; @%p1 bra AGAIN; ret;"""
    formed = runs.form_runs(lowered(body_kernel(body, 4, ".shared .b32 s[4];")), everywhere=False, regions=True)
    assert [[step.kind for step in op.detail.steps][:2] for op in formed[1] if op.kind == "run" and op.imm] == [
        ["ld", "st"],
        ["ld", "ld"],
    ]


def _new_process(monkeypatch: pytest.MonkeyPatch, folder: Path) -> tuple[library.Level, library.Level]:
    """Only what is on disk is compiled."""
    quick, full = (library.Level(level, folder) for level in (jit.QUICK, jit.FULL))
    for name, value in (("_quick", quick), ("_full", full), ("_products", {})):
        monkeypatch.setattr(library, name, value)
    return quick, full


def _anew(body: str) -> tuple[Launch, Memory, int]:
    """A launch of a kernel that has not run, with an output of 32 words."""
    memory = Memory()
    out = memory.put(np.zeros(32, np.uint32))
    launch = launch_of(body_kernel(body, 4), memory, [out, out])
    launch.program.cache.clear()
    return launch, memory, out


def test_runs_that_are_not_compiled_are_compiled_quickly_first(monkeypatch, tmp_path):
    """Once it pays, code for a run takes the place of its operations; a process that finds such code begins with it."""
    for name, value in (("QUICK", True), ("AT_ONCE", False), ("PAYS_QUICKLY", 3000)):
        monkeypatch.setattr(tiers, name, value)
    body = """AGAIN: add.u32 %r2, %r2, 3; xor.b32 %r3, %r3, %r2; setp.lt.u32 %p1, %r2, 300; @%p1 bra AGAIN;
        st.global.u32 [%out], %r3; ret;"""
    found = []
    for _ in range(2):
        quick, _ = _new_process(monkeypatch, tmp_path)
        launch, memory, out = _anew(body)
        for _ in range(2):
            native.run(launch)
            tiers.settle()
            (encoded,) = launch.program.cache.values()
            ends = [at for at, op in enumerate(encoded.operations) if isinstance(op, Terminator)]
            own = range(0, 64 * (1 + max(ends)), 64)
            handlers = {RECORD.read(encoded.code, at, "handler") for at in own}
            found.append((quick.addresses[tiers.DETOUR] in handlers, encoded.runs.filled))
            assert handlers <= {*quick.addresses.values(), 0}
        results = memory.get(out, np.uint32, 32).tolist()
        assert len(set(results)) == 1 and results[0] == functools.reduce(lambda a, b: a ^ b, range(3, 303, 3))
    assert found == [(False, True)] * 4


def test_products_that_were_compiled_quickly_are_compiled_well_first(monkeypatch, tmp_path):
    """Once it pays; a process that finds such code begins with it. Other handlers stay as they are."""
    for name, value in (("QUICK", True), ("AT_ONCE", False)):
        monkeypatch.setattr(tiers, name, value)
    body = """mov.b32 %r1, 0x3c004000; mov.b32 %r4, 0; mov.f32 %f1, 0f3F800000; mov.f32 %f2, %f1; mov.f32 %f3, %f1;
        mov.f32 %f4, %f1;
        AGAIN: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
            {%f1, %f2, %f3, %f4}, {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%f1, %f2, %f3, %f4};
        add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 99; @%p1 bra AGAIN;
        st.global.f32 [%out], %f1; ret;"""
    for pays in (3000, 1 << 60):
        quick, full = _new_process(monkeypatch, tmp_path)
        monkeypatch.setattr(tiers, "PAYS_FOR_PRODUCTS", pays)
        launch, memory, out = _anew(body)
        for _ in range(2):
            native.run(launch)
            tiers._wait()
            (encoded,) = (one for one in launch.program.cache.values() if hasattr(one, "products"))
            (name,) = encoded.products.ops
            places = encoded.products.places[name]
            handlers = {RECORD.read(encoded.code, RECORD.size * at, "handler") for at in places}
            assert handlers == {library._products[name]} and library._products[name] != quick.addresses[name]
            assert memory.get(out, np.float32, 32).tolist() == [1 + 99 * 16 * 2.5] * 32
        assert not full.addresses and list(library._products) == [name]
