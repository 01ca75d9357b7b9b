"""Programs built by hand: what the loop does with records, whatever lowering makes of PTX."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from ptxtools import isa, native
from ptxtools.diagnostics import Trap
from ptxtools.machine.launch import Launch
from ptxtools.native.code import keys, layouts, structures
from ptxtools.native.loop import events
from ptxtools.program import Program
from ptxtools.program.details import Callee, SpecialRegister
from ptxtools.program.program import Block, FunctionCode, LaunchConstant, Op, Ref, Terminator

from .harness import BASE, Memory

TID, OUT, VALUE, FLAG = Ref(512, "b32"), Ref(640, "b64"), Ref(896, "b32"), Ref(1024, "pred")
WIDE, FOUR = Ref(1088, "b64"), Ref(1344, "b32")
FRAME = 1536


def program(blocks: list[Block], **more: object) -> Program:
    """An entry whose constants are the output's address in OUT (a launch constant) and 4 in FOUR."""
    entry = FunctionCode("k", 0, FRAME, 0, [(FOUR.slot, "b32", 4)], [LaunchConstant(OUT.slot, "b64", "param", "u64")])
    return Program("k", blocks, [entry], [(-1, 0, "first"), (-1, 6, "second")], frame_bytes=FRAME, **more)


def alu(text: str, dst: Ref, types: tuple[str, ...], *src: Ref, **more: object) -> Op:
    return Op("alu", isa.resolve(text), (dst,), src, types[:1], types[1:], where=0, **more)


def store(value: Ref) -> list[Op]:
    """out[tid] = value."""
    return [
        alu("mad.wide.u32", WIDE, ("u64", "u32", "u32", "u64"), TID, FOUR, OUT),
        Op("st", isa.resolve("st.global.u32"), (), (WIDE, value), (), ("u64", "u32"), space="global", where=1),
    ]


READ_TID = Op("sreg", None, (TID,), (), ("u32",), (), detail=SpecialRegister("%tid.x"))


def launch(p: Program, count: int = 32, **more: object) -> np.ndarray:
    memory = Memory()
    out = memory.put(np.zeros(count, np.uint32))
    options = {"grid": (1, 1, 1), "block": (count, 1, 1), "params": struct.pack("<Q", out), **more}
    native.run(Launch(program=p, memory=memory.space, **options))
    return memory.get(out, np.uint32, count)


def test_one_block():
    assert launch(program([Block([READ_TID, *store(TID)], Terminator("exit"))])).tolist() == list(range(32))


def test_a_guarded_operation_changes_only_its_lanes():
    ops = [
        READ_TID,
        alu("add.u32", VALUE, ("u32", "u32", "u32"), TID, FOUR),
        alu("setp.lt.u32", FLAG, ("pred", "u32", "u32"), TID, FOUR),
        alu("add.u32", VALUE, ("u32", "u32", "u32"), VALUE, VALUE, guard=FLAG),
        alu("sub.u32", VALUE, ("u32", "u32", "u32"), VALUE, FOUR, guard=FLAG, negated=True),
        *store(VALUE),
    ]
    expected = [2 * (i + 4) if i < 4 else i for i in range(32)]
    assert launch(program([Block(ops, Terminator("exit"))])).tolist() == expected


def test_the_same_slot_at_several_operands_shares_a_handler_with_different_ones():
    ops = [
        READ_TID,
        alu("add.u32", VALUE, ("u32", "u32", "u32"), TID, TID),
        alu("add.u32", VALUE, ("u32", "u32", "u32"), VALUE, VALUE),
        alu("add.u32", VALUE, ("u32", "u32", "u32"), FOUR, VALUE),
        *store(VALUE),
    ]
    assert len({keys.key_of(op) for op in ops[1:4]}) == 1
    assert launch(program([Block(ops, Terminator("exit"))])).tolist() == [4 * i + 4 for i in range(32)]


def test_a_branch_either_way_and_a_guarded_exit():
    blocks = [
        Block(
            [READ_TID, alu("setp.lt.u32", FLAG, ("pred", "u32", "u32"), TID, FOUR)],
            Terminator("branch", FLAG, False, target=2, other=1),
        ),
        Block([*store(FOUR)], Terminator("exit", FLAG, True, other=2)),
        Block([*store(TID)], Terminator("jump", target=3)),
        Block([], Terminator("exit")),
    ]
    assert launch(program(blocks)).tolist() == [0, 1, 2, 3] + [4] * 28


def test_code_that_falls_through_to_a_lower_block():
    blocks = [
        Block([READ_TID], Terminator("jump", target=3)),
        Block([*store(VALUE)], Terminator("exit")),
        Block([], Terminator("trap")),
        Block([alu("add.u32", VALUE, ("u32", "u32", "u32"), TID, FOUR)], Terminator("jump", target=1)),
    ]
    assert launch(program(blocks)).tolist() == [i + 4 for i in range(32)]


def test_a_partial_last_warp():
    assert launch(program([Block([READ_TID, *store(TID)], Terminator("exit"))]), 77).tolist() == list(range(77))


def test_more_operands_than_a_record_holds():
    names = [Ref(1536 + 64 * i, "b16") for i in range(12)]
    wide = Ref(2304, "b64")
    read = Op("ld", isa.resolve("ld.global.u8"), tuple(names), (OUT,), ("u8",) * 12, ("u64",), space="global")
    assert keys.record_count(read) == 2
    read.dst, read.dst_types = tuple(names[:8]), ("u8",) * 8
    copies = [Op("copy", None, (names[8 + i],), (names[i],)) for i in range(4)]
    pack = Op("pack", isa.resolve("mov.b64"), (wide,), tuple(names[8:12]), ("b64",), ("b16",) * 4)
    low = alu("cvt.u32.u64", VALUE, ("u32", "u64"), wide)
    p = program([Block([READ_TID, read, *copies, pack, low, *store(VALUE)], Terminator("exit"))])
    p.functions[0].frame_bytes = p.frame_bytes = 2560
    memory = Memory()
    out = memory.put(np.arange(1, 129, dtype=np.uint8))
    native.run(Launch(p, memory.space, (1, 1, 1), (1, 1, 1), params=struct.pack("<Q", out)))
    assert memory.get(out, np.uint32, 1)[0] == 0x20001


def test_an_event_calls_python_and_goes_on(monkeypatch):
    seen = []

    def serve(view: events.View) -> None:
        ref, result = view.op.src[0], view.op.dst[0]
        for lane in view.lanes():
            seen.append((lane, view.read(ref, lane)))
            view.write(result, lane, 1000 + view.read(ref, lane))

    monkeypatch.setitem(events.HANDLERS, "test", serve)
    event = Op("test", None, (VALUE,), (TID,), ("u32",), ("u32",), where=1)
    blocks = [
        Block(
            [READ_TID, alu("setp.lt.u32", FLAG, ("pred", "u32", "u32"), TID, FOUR)],
            Terminator("branch", FLAG, target=1, other=2),
        ),
        Block([], Terminator("event", op=event, other=3)),
        Block([alu("add.u32", VALUE, ("u32", "u32", "u32"), TID, FOUR)], Terminator("jump", target=3)),
        Block([*store(VALUE)], Terminator("exit")),
    ]
    assert launch(program(blocks)).tolist() == [1000, 1001, 1002, 1003] + [i + 4 for i in range(4, 32)]
    assert seen == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_an_event_that_nobody_serves_is_a_trap():
    event = Op("unserved", None, (), (), (), (), detail=Callee("vprintf"), where=1)
    with pytest.raises(Trap, match="vprintf is not supported yet") as caught:
        launch(program([Block([], Terminator("event", op=event, other=1)), Block([], Terminator("exit"))]))
    assert caught.value.where == 1


def test_a_second_launch_reuses_what_the_first_prepared():
    p = program([Block([READ_TID, *store(TID)], Terminator("exit"))])
    launch(p)
    (encoded,) = p.cache.values()
    assert launch(p, 64).tolist() == list(range(64))
    assert list(p.cache.values()) == [encoded]


def test_no_threads_and_no_ctas_do_nothing():
    p = program([Block([], Terminator("trap"))])
    assert native.run(Launch(p, Memory().space, (0, 1, 1), (32, 1, 1), params=bytes(8))).instructions == 0


def test_structures_keep_their_offsets_apart():
    for structure in structures.STRUCTURES.values():
        ends = 0
        for offset, type_ in sorted(structure.fields.values()):
            assert offset >= ends, structure.name
            ends = offset + layouts.size_of(type_)
        assert ends <= structure.size


def test_the_arena_starts_where_it_says():
    """Device addresses are not host addresses: the first byte of memory is at BASE."""
    memory = Memory()
    assert memory.space.base == BASE != memory.space.host
