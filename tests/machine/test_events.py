"""Functions that serve operations, on both engines: operands, memory, waiting, time."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest

from ptxtools import isa
from ptxtools.diagnostics import Trap
from ptxtools.machine import events
from ptxtools.machine.launch import Launch
from ptxtools.program.details import SpecialRegister
from ptxtools.program.program import LOCAL_WINDOW, SHARED_WINDOW, Block, FunctionCode, Op, Program, Ref, Terminator

from .harness import Memory, both, go

OUT, PLACE, FOUR = Ref(512, "b64"), Ref(768, "b64"), Ref(1024, "b64")
TID, VALUE, WIDE, FLAG = Ref(1280, "b32"), Ref(1408, "b32"), Ref(1536, "b64"), Ref(1792, "pred")
BIG = Ref(1856, "b128")


def kernel(*ops: Op) -> Program:
    """Each operation as an event, VALUE to the output at the end."""
    first = [
        Op("ld", isa.resolve("ld.param.u64"), (OUT,), (None,), ("u64",), ("u64",), space="param"),
        Op("sreg", None, (TID,), (), ("u32",), (), detail=SpecialRegister("%tid.x")),
    ]
    blocks = [Block(first, Terminator("jump", target=1))]
    for number, op in enumerate(ops):
        blocks.append(Block([], Terminator("event", op=op, other=2 + number)))
    types = ("u32", "u32", "u64")
    mad = Op("alu", isa.resolve("mad.wide.u32"), (PLACE,), (TID, Ref(2432, "b32"), OUT), ("u64",), types)
    store = Op("st", isa.resolve("st.global.u32"), (), (PLACE, VALUE), (), ("u64", "u32"), space="global")
    blocks.append(Block([mad, store], Terminator("exit")))
    code = FunctionCode("k", 0, 3072, 64, [(2432, "b32", 4)])
    return Program("k", blocks, [code], [(-1, 0, "event")], 256, 16, 1, 3072, 64)


@pytest.fixture
def serve(monkeypatch):
    def register(function: Callable[[events.View], None], kind: str = "test") -> None:
        monkeypatch.setitem(events.HANDLERS, kind, function)

    return register


def run(engine: str, program: Program, threads: int = 32, **options) -> list[int]:
    memory = Memory()
    count = threads * int(np.prod(options.get("grid", (1, 1, 1))))
    out = memory.put(np.zeros(count, np.uint32))
    options = {"grid": (1, 1, 1), **options}
    go(engine, Launch(program, memory.space, block=(threads, 1, 1), params=struct.pack("<Q", out), **options))
    return memory.get(out, np.uint32, count).tolist()


TEST = Op("test", None, (VALUE,), (TID,), ("u32",), ("u32",), where=0)


@both
def test_operands_and_results(engine, serve):
    serve(lambda view: view.result(0, view.source(0) * np.uint32(3)))
    assert run(engine, kernel(TEST), 77) == [3 * (i % 77) for i in range(77)]


@both
def test_results_of_every_storage_class(engine, serve):
    def function(view: events.View) -> None:
        view.set_values(FLAG, np.arange(32) % 2 == 1)
        view.set_values(WIDE, np.arange(32, dtype=np.uint64) << np.uint64(32))
        view.set_values(BIG, (np.arange(32, dtype=np.uint64), np.full(32, 7, np.uint64)))
        view.write(BIG, 3, 5 << 64 | 9)
        assert view.read(BIG, 3) == 5 << 64 | 9
        view.write(FLAG, 2, 1)
        low, high = view.values(BIG)
        wide = view.values(WIDE) >> np.uint64(32)
        total = view.values(FLAG) + 2 * low + 100 * high + wide
        view.result(0, total.astype(np.uint32))

    serve(function)
    expected = [i % 2 + 3 * i + 700 for i in range(32)]
    expected[2] += 1
    expected[3] = 1 + 2 * 9 + 500 + 3
    assert run(engine, kernel(TEST)) == expected


@both
def test_memory_of_every_space(engine, serve):
    def function(view: events.View) -> None:
        view.memory(16, 4, "shared")[:] = b"abcd"
        assert bytes(view.memory(SHARED_WINDOW + 16, 4)) == b"abcd"
        for lane in view.lanes():
            view.put(LOCAL_WINDOW + 6, bytes([lane, 1, 2, 3, 4]), lane=lane)
            assert view.fetch(7, 4, "local", lane=lane) == bytes([1, 2, 3, 4])
        out = int(view.values(OUT)[0])
        assert bytes(view.memory(0, 8, "param", write=False)) == struct.pack("<Q", out)
        view.memory(out + 4, 4)[:] = b"\x07\0\0\0"
        view.result(0, np.array([view.fetch(6, 1, "local", lane=i)[0] for i in range(32)], np.uint32))

    serve(function)
    assert run(engine, kernel(TEST)) == list(range(32))


@both
@pytest.mark.parametrize(
    ("address", "space", "align", "text"),
    [
        (250, "shared", 1, "shared write of 8 bytes at 0xfa is out of bounds"),
        (4, "shared", 8, "address 0x4 is not aligned to 8 bytes"),
        (0, "", 1, "global write of 8 bytes at 0x0 is out of bounds"),
        (60, "local", 1, "local write of 8 bytes at 0x3c is out of bounds"),
        (0, "param", 1, "kernel parameters cannot be written"),
        (1 << 24, "shared::cluster", 1, "shared memory address 0x1000000 belongs to no CTA of the cluster"),
    ],
)
def test_faults_are_traps_of_the_lane(engine, serve, address, space, align, text):
    def function(view: events.View) -> None:
        view.put(address, bytes(8), space, lane=5, align=align)

    serve(function)
    with pytest.raises(Trap) as failure:
        run(engine, kernel(TEST))
    assert failure.value.reason == text
    assert failure.value.thread == (5, 0, 0)


@both
def test_lanes_wait_until_they_are_woken(engine, serve):
    """The second warp opens what the first waits for; each lane is tried again once."""
    tries: list[tuple[int, int]] = []

    def function(view: events.View) -> None:
        tries.append((view.warp, view.mask))
        if view.warp == 1:
            view.cta.state["open"] = True
            view.cluster.wake("door")
        elif not view.cta.state.get("open"):
            view.wait("door", "the door", lanes=0xFFFF, note="hello")
        elif view.mask & 1:
            assert view.woken(0).note == "hello"
            assert not view.expired(0)
        view.result(0, np.full(32, len(tries), np.uint32), view.mask)

    serve(function)
    result = run(engine, kernel(TEST), 64)
    assert tries[0] == (0, 0xFFFFFFFF)
    assert (0, 0xFFFF) in tries[1:]
    assert result[:16] == [3] * 16
    assert result[16:32] == [1] * 16


@both
def test_waiting_for_nothing_is_a_deadlock(engine, serve):
    serve(lambda view: view.wait("never", "a letter"))
    with pytest.raises(Trap) as failure:
        run(engine, kernel(TEST))
    assert failure.value.kind == "deadlock"
    assert "a letter" in "\n".join(failure.value.details)


@both
def test_time_jumps_to_a_limit(engine, serve):
    def function(view: events.View) -> None:
        if not view.expired(view.leader):
            view.cta.state["begin"] = view.now
            view.wait("never", "nothing", limit=5000)
        else:
            view.result(0, np.full(32, view.now - view.cta.state["begin"] >= 5000, np.uint32))

    serve(function)
    assert run(engine, kernel(TEST)) == [1] * 32


@both
def test_looking_again_and_again_at_the_same_is_a_deadlock(engine, serve):
    serve(lambda view: view.wait("never", "a letter", limit=100))
    with pytest.raises(Trap) as failure:
        run(engine, kernel(TEST))
    assert failure.value.kind == "deadlock"


@both
def test_pending_work_is_done_when_nobody_can_move(engine, serve):
    def function(view: events.View) -> None:
        state = view.cta.state
        if "begun" not in state:
            state["begun"] = True

            def finish() -> None:
                state["done"] = True
                view.cluster.wake("work")

            view.cluster.after(100_000, finish, "a long copy")
        if not state.get("done"):
            view.wait("work", "a long copy")
        view.result(0, np.full(32, 9, np.uint32))

    serve(function)
    assert run(engine, kernel(TEST), 64) == [9] * 64


@both
def test_a_cta_tells_when_it_ends(engine, serve):
    ended: list[int] = []

    def function(view: events.View) -> None:
        number = view.cta.number
        if not view.cta.at_end:
            view.cta.at_end.append(lambda: ended.append(number))

    serve(function)
    run(engine, kernel(TEST), grid=(5, 1, 1), resident=2)
    assert sorted(ended) == [0, 1, 2, 3, 4]


@both
def test_a_service_is_found_by_name(engine, monkeypatch):
    def load(kind: str) -> None:
        monkeypatch.setitem(events.HANDLERS, kind, lambda view: view.result(0, np.full(32, 4, np.uint32)))

    monkeypatch.delitem(events.HANDLERS, "test", raising=False)
    assert run(engine, kernel(TEST), services=load) == [4] * 32


@both
def test_what_nobody_serves_is_a_trap(engine):
    unknown = Op("unheard_of", None, (), (), (), (), where=0)
    with pytest.raises(Trap, match="unheard_of is not supported yet"):
        run(engine, kernel(unknown))


@both
def test_work_that_is_pending_when_a_cta_ends_is_done(engine, serve):
    done: list[int] = []

    def function(view: events.View) -> None:
        number = view.cta.number
        view.cluster.after(10**9, lambda: done.append(number), "a copy to global memory")

    serve(function)
    run(engine, kernel(TEST), grid=(4, 1, 1), resident=1)
    assert done == [0, 1, 2, 3]
