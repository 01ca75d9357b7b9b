"""Runs that go round by themselves do what their block and its branch do one by one, and charge as much."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtools import native, reference
from ptxtools.diagnostics import Trap
from ptxtools.machine.launch import Launch
from ptxtools.native.code import runs
from ptxtools.native.handlers import rounds
from ptxtools.native.loop import worker
from ptxtools.program import Program
from ptxtools.program.details import Run
from ptxtools.program.program import Block, FunctionCode, Ref, Terminator

from .harness import Memory, results
from .test_runs import COUNT, FLAGS, FRAME, LIMIT, MORE, ONE, OUT, TID, alu, random_op, random_program

#: Rounds of each lane; of the loop outside.
TRIPS, TURN = Ref(1664, "b32"), Ref(1792, "b32")


def random_loop(rng: np.random.Generator, *, alike: bool) -> Program:
    """A block that leads back to itself in one of four ways, as often for each lane or not, in another loop."""
    start, *_, store = random_program(rng).blocks
    start.ops.append(
        alu("mad.lo.u32", (TRIPS,), ("u32", "u32", "u32", "u32"), *((ONE, ONE, ONE) if alike else (TID, ONE, TID)))
    )
    start.ops += [alu("sub.u32", (zero,), ("u32", "u32", "u32"), ONE, ONE) for zero in (COUNT, TURN)]
    again = bool(rng.integers(2))  # the guard's value in lanes that go back
    comparison = "setp.lt.u32" if again else "setp.ge.u32"
    body = [random_op(rng) for _ in range(rng.integers(2, 9))]
    body += [
        alu("add.u32", (COUNT,), ("u32", "u32", "u32"), COUNT, ONE),
        alu(comparison, (MORE,), ("pred", "u32", "u32"), COUNT, TRIPS),
    ]
    to_target = bool(rng.integers(2))
    target, other = (1, 2) if to_target else (2, 1)
    back = Terminator("branch", MORE, to_target != again, target, other)
    around = [
        alu("xor.pred", (FLAGS[0],), ("pred", "pred", "pred"), FLAGS[1], FLAGS[2]),
        alu("sub.u32", (COUNT,), ("u32", "u32", "u32"), COUNT, TID),
        alu("add.u32", (TURN,), ("u32", "u32", "u32"), TURN, ONE),
        alu("setp.lt.u32", (MORE,), ("pred", "u32", "u32"), TURN, LIMIT),
    ]
    blocks = [start, Block(body, back), Block(around, Terminator("branch", MORE, target=1, other=3)), store]
    constants = [(ONE.slot, "b32", 4), (LIMIT.slot, "b32", 11)]
    return Program("k", blocks, [FunctionCode("k", 0, FRAME, 0, constants)], [(-1, 0, "")], frame_bytes=FRAME)


def outcome(program: Program, engine, threads: int, **options) -> tuple[list[int], int]:
    """What is stored, and how many instructions were counted."""
    program.cache.clear()
    memory = Memory()
    out = memory.put(np.zeros(32 * 11, np.uint32))
    constants = program.functions[0].constants
    program.functions[0].constants = [*constants, (OUT.slot, "b64", out)]
    counted = engine.run(Launch(program, memory.space, (1, 1, 1), (threads, 1, 1), **options))
    program.functions[0].constants = constants
    return memory.get(out, np.uint32, 32 * 11).tolist(), counted.instructions


@pytest.mark.share(3)
@pytest.mark.parametrize("seed", range(24))
def test_random_loops(seed, monkeypatch):
    program = random_loop(np.random.default_rng(seed), alike=seed % 3 == 0)
    ways = [op.of(Run).again for op in runs.form_runs(program, everywhere=False)[1]]
    assert len(ways) == 1 and ways[0] is not None
    threads = (32, 32, 11)[seed % 3]
    expected = outcome(program, reference, threads)
    assert outcome(program, native, threads) == expected
    for seed_of_turns in (1, 2):
        assert outcome(program, native, threads, seed=seed_of_turns) == expected
    for slice_ in (1, 9, 100):
        monkeypatch.setattr(worker, "WARP_SLICE", slice_)
        assert outcome(program, native, threads) == expected


def test_a_loop_that_never_ends_ends_by_its_limit():
    body = (
        "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 2; setp.ne.u32 %p1, %r1, 1; @%p1 bra L; st.global.u32 [%out], %r1; ret;"
    )
    with pytest.raises(Trap, match="more than 100000 instructions"):
        results(body, max_instructions=100_000)


def test_warps_share_their_time_though_one_goes_round_for_ever():
    """The first warp leaves its loop when the second, which has a longer one of its own, has told it to."""
    body = """.shared .u32 flag; mov.u32 %r1, 0; setp.gt.u32 %p1, %t, 31; @%p1 bra LATE;
        WAIT: ld.volatile.shared.u32 %r2, [flag]; setp.eq.u32 %p2, %r2, 0; @%p2 bra WAIT; bra END;
        LATE: add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 100000; @%p3 bra LATE;
        mov.u32 %r2, 7; st.volatile.shared.u32 [flag], %r2;
        END: st.global.u32 [%out], %r2; ret;"""
    assert np.array_equal(results(body, 64), np.full(64, 7))


def test_what_is_carried_in_registers():
    """Slots that are read and written whole, as many as there is room for; flags and slots across others are not."""
    keys = [(1024 + 128 * i, "b32") for i in range(64)]
    some = rounds.carried(keys, keys)
    assert some == keys[: len(some)] and 0 < len(some) < 32
    assert rounds.carried(keys[:2], keys[1:]) == keys[1:2]
    assert not rounds.carried([(512, "pred")], [(512, "pred")])
    assert not rounds.carried([(1024, "b32")], [(1024, "b32"), (1024, "b64")])
