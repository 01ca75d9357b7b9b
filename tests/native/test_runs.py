"""Runs compute what their operations compute one by one, on random programs."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from ptxtools import isa, native
from ptxtools.machine.launch import Launch
from ptxtools.native.code import runs
from ptxtools.program import Program
from ptxtools.program.details import Run, SpecialRegister
from ptxtools.program.program import Block, FunctionCode, Op, Ref, Terminator
from tests.work import calls

from .harness import Memory, body_kernel, lowered

TID, COUNT, ONE, LIMIT = Ref(512, "b32"), Ref(640, "b32"), Ref(768, "b32"), Ref(896, "b32")
OUT, AT, MORE = Ref(1024, "b64"), Ref(1280, "b64"), Ref(1536, "pred")
FRAME = 4096
#: Slots that random operations use. As in any program, those of different storage classes lie apart.
WORDS = [Ref(2048 + 128 * i, "b32") for i in range(8)]
WIDE = [Ref(3072 + 256 * i, "b64") for i in range(3)]
FLAGS = [Ref(3904 + 4 * i, "pred") for i in range(3)]
#: Lies across a word, which programs do not do: runs must notice.
ASKEW = Ref(2048, "b64")


def alu(text: str, dst: tuple[Ref, ...], types: tuple[str, ...], *src: Ref, **more: object) -> Op:
    return Op("alu", isa.resolve(text), dst, src, types[: len(dst)], types[len(dst) :], where=0, **more)


def random_op(rng: np.random.Generator) -> Op:
    def word() -> Ref:
        return WORDS[rng.integers(len(WORDS))]

    def flag() -> Ref:
        return FLAGS[rng.integers(len(FLAGS))]

    wide = WIDE[rng.integers(len(WIDE))]
    guard = {"guard": flag(), "negated": bool(rng.integers(2))} if rng.integers(4) == 0 else {}
    match rng.integers(8):
        case 0:
            return alu("mul.wide.u32", (wide,), ("u64", "u32", "u32"), word(), word(), **guard)
        case 1:
            return alu("setp.lt.u32", (flag(),), ("pred", "u32", "u32"), word(), word(), **guard)
        case 2:
            return Op("copy", None, (word(),), (word(),), where=0, **guard)
        case 3:
            return Op("unpack", isa.resolve("mov.b64"), (word(), word()), (wide,), ("b32", "b32"), ("b64",), **guard)
        case 4:
            return alu("selp.b32", (word(),), ("b32", "b32", "b32", "pred"), word(), word(), flag(), **guard)
        case 5:
            logic = ("and.pred", "or.pred", "xor.pred")[rng.integers(3)]
            return alu(logic, (flag(),), ("pred", "pred", "pred"), flag(), flag(), **guard)
        case 6:
            return alu("not.pred", (flag(),), ("pred", "pred"), flag(), **guard)
        case _:
            return alu("add.u32", (word(),), ("u32", "u32", "u32"), word(), word(), **guard)


def random_program(rng: np.random.Generator) -> Program:
    """A loop of random blocks, one of which is left out by some lanes; at the end every word and flag is stored."""
    start = [Op("sreg", None, (TID,), (), ("u32",), (), detail=SpecialRegister("%tid.x"))]
    start += [alu("mad.lo.u32", (w,), ("u32", "u32", "u32", "u32"), TID, LIMIT, LIMIT) for w in WORDS]
    start += [alu("setp.lt.u32", (f,), ("pred", "u32", "u32"), TID, LIMIT) for f in FLAGS]
    bodies = [[random_op(rng) for _ in range(rng.integers(2, 9))] for _ in range(3)]
    bodies[2] += [
        alu("add.u32", (COUNT,), ("u32", "u32", "u32"), COUNT, ONE),
        alu("setp.lt.u32", (MORE,), ("pred", "u32", "u32"), COUNT, LIMIT),
    ]
    store = [alu("mad.wide.u32", (AT,), ("u64", "u32", "u32", "u64"), TID, ONE, OUT)]
    for number, word in enumerate(WORDS):
        store.append(_store(word, 128 * number))
    for number, flag in enumerate(FLAGS):
        store.append(alu("selp.b32", (WORDS[0],), ("b32", "b32", "b32", "pred"), ONE, LIMIT, flag))
        store.append(_store(WORDS[0], 128 * (len(WORDS) + number)))
    blocks = [
        Block(start, Terminator("jump", target=1)),
        Block(bodies[0], Terminator("branch", FLAGS[0], target=3, other=2)),
        Block(bodies[1], Terminator("jump", target=3)),
        Block(bodies[2], Terminator("branch", MORE, target=1, other=4)),
        Block(store, Terminator("exit")),
    ]
    constants = [(ONE.slot, "b32", 4), (LIMIT.slot, "b32", 11), (COUNT.slot, "b32", 0)]
    entry = FunctionCode("k", 0, FRAME, 0, constants)
    return Program("k", blocks, [entry], [(-1, 0, "")], frame_bytes=FRAME)


def _store(value: Ref, offset: int) -> Op:
    opcode = isa.resolve("st.global.u32")
    return Op("st", opcode, (), (AT, value), (), ("u64", "u32"), space="global", imm=offset, where=0)


def outcome(program: Program, fused: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    monkeypatch.setattr(runs, "MOST_FUSED", fused)
    program.cache.clear()
    memory = Memory()
    out = memory.put(np.zeros(32 * 11, np.uint32))
    constants = program.functions[0].constants
    program.functions[0].constants = [*constants, (OUT.slot, "b64", out)]
    native.run(Launch(program, memory.space, (1, 1, 1), (32, 1, 1), params=struct.pack("<Q", out)))
    program.functions[0].constants = constants
    return memory.get(out, np.uint32, 32 * 11).tolist()


@pytest.mark.share(3)
@pytest.mark.parametrize("seed", range(25))
def test_random_programs(seed, monkeypatch):
    program = random_program(np.random.default_rng(seed))
    assert outcome(program, 400, monkeypatch) == outcome(program, 0, monkeypatch)


def test_what_nobody_reads_is_not_written():
    """A temporary of a loop stays in registers; what the next round reads does not."""
    a, b, c = WORDS[0], WORDS[2], WORDS[4]
    body = [
        alu("add.u32", (b,), ("u32", "u32", "u32"), a, ONE),
        alu("add.u32", (c,), ("u32", "u32", "u32"), b, ONE),
        alu("add.u32", (a,), ("u32", "u32", "u32"), c, c),
        alu("setp.lt.u32", (MORE,), ("pred", "u32", "u32"), a, LIMIT),
    ]
    blocks = [Block(body, Terminator("branch", MORE, target=0, other=1)), Block([], Terminator("exit"))]
    program = Program("k", blocks, [FunctionCode("k", 0, FRAME, 0, [])], [])
    (run,) = runs.form_runs(program, everywhere=False)[0]
    assert run.kind == "run"
    _, read, kept, _, _ = run.of(Run).values()
    assert [place[1:] for place in kept] == [(a.slot, "b32"), (MORE.slot, "pred")]
    assert [place[1:] for place in read] == [(a.slot, "b32"), (ONE.slot, "b32"), (LIMIT.slot, "b32")]


def test_code_outside_of_loops_is_left_alone_unless_asked_for():
    body = [alu("add.u32", (WORDS[i],), ("u32", "u32", "u32"), ONE, LIMIT) for i in range(3)]
    program = Program("k", [Block(body, Terminator("ret"))], [FunctionCode("k", 0, FRAME, 0, [])], [])
    assert runs.form_runs(program, everywhere=False) == [body]
    ((run,),) = runs.form_runs(program, everywhere=True)
    assert run.kind == "run" and len(run.of(Run).kept) == 3


def test_large_programs_have_runs_in_their_loops(monkeypatch):
    straight = "\n".join(f"xor.b32 %r1, %r1, {n}; mul.lo.u32 %r1, %r1, %t;" for n in range(1, 40))
    loop = "mov.u32 %r2, 0; L: add.u32 %r2, %r2, 1; xor.b32 %r1, %r1, %r2; setp.lt.u32 %p1, %r2, %t; @%p1 bra L;"
    program = lowered(body_kernel(f"mov.u32 %r1, %t; {straight} {loop} {straight} st.global.u32 [%out], %r1; ret;", 4))
    inside = set(runs.loops(program.blocks))

    def fused(most: int) -> set[int]:
        monkeypatch.setattr(runs, "MOST_OPERATIONS", most)
        bodies = runs.form_runs(program, everywhere=True)
        return {number for number, ops in enumerate(bodies) if any(op.kind == "run" for op in ops)}

    assert len(inside) == 1
    assert fused(4000) > inside  # all blocks
    assert fused(20) == inside
    assert fused(2) == set()


def test_a_run_ends_where_a_slot_changes_its_meaning():
    body = [
        alu("add.u32", (WORDS[0],), ("u32", "u32", "u32"), ONE, LIMIT),
        alu("add.u64", (WIDE[1],), ("u64", "u64", "u64"), ASKEW, ASKEW),
        alu("add.u32", (WORDS[4],), ("u32", "u32", "u32"), ONE, LIMIT),
    ]
    program = Program("k", [Block(body, Terminator("ret"))], [FunctionCode("k", 0, FRAME, 0, [])], [])
    (ops,) = runs.form_runs(program, everywhere=True)
    assert [op.kind for op in ops] == ["alu", "run"]


def test_blocks_of_shorter_loops_come_first() -> None:
    ways = {2: 0, 4: 3, 5: 1, 7: 7}
    blocks = [Block([], Terminator("branch", target=ways.get(number, number + 1), other=9)) for number in range(9)]
    assert runs.loops(blocks) == [7, 3, 4, 0, 1, 2, 5]
    assert runs.loops([*blocks, Block([], Terminator("ret", target=0))]) == runs.loops(blocks)


def test_loops_of_many_ways_back_take_linear_work() -> None:
    """Each block goes on, or back to the first one, as `continue` does."""

    def work(count: int) -> int:
        blocks = [Block([], Terminator("branch", target=0, other=number + 1)) for number in range(count)]
        return calls(lambda: runs.loops(blocks))

    assert work(4000) < 5 * work(1000)
