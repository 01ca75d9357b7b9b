"""Lowering and the analyses on every module of the test data: they finish, and their results hold together."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from ptxtools.diagnostics import PtxError
from ptxtools.ir import Module
from ptxtools.ir.cfg import control_flow
from ptxtools.ir.dominators import dominators
from ptxtools.program import Program, lower
from ptxtools.program.effects import reads, successors, terminator_reads, terminator_writes, writes
from ptxtools.program.lowering import finish
from ptxtools.program.passes.colouring import Frame, ValueTable, assign, bits, block_liveness
from ptxtools.program.program import FRAME_HEADER, SLOT_BYTES, Block
from ptxtools.program.variant import Variant
from ptxtools.syntax import parse
from tests.rows import rows

TESTDATA = Path(__file__).parents[2] / "testdata"
FILES = sorted([*TESTDATA.glob("bench/ptx/*.ptx"), *TESTDATA.glob("cases/*/kernel.ptx")])
NAMES = [str(path.relative_to(TESTDATA)) for path in FILES]


@cache
def module(name: str) -> Module:
    path = TESTDATA / name
    return parse(path.read_text(), name).module


def program(name: str, *, optimise: bool) -> Program | None:
    """None where something is not supported yet: then each diagnostic says so, and where."""
    try:
        kernel = module(name).entries[0].name
        return lower(module(name), kernel, lambda variable: 0x10000, variant=Variant(optimise=optimise))
    except PtxError as error:
        assert all(d.code == "PTX901" and d.span != (0, 0) for d in error.diagnostics)
        return None


@rows("name", NAMES)
def test_control_flow(name: str) -> None:
    for function in module(name).functions:
        flow = control_flow(function, module(name))
        assert not flow.unresolved
        tree = dominators(flow.successors)
        reached = flow.reachable()
        for block in flow.blocks:
            for successor in block.successors:
                assert block.index in flow.blocks[successor].predecessors
            if block.index in reached:
                assert tree.dominates(0, block.index)
                parent = tree.parent[block.index]
                assert all(tree.dominates(parent, p) for p in block.predecessors if p in reached and parent >= 0)


@rows("optimise", [True, False], share=15)
@rows("name", NAMES)
def test_programs_are_well_formed(name: str, optimise: bool) -> None:
    code = program(name, optimise=optimise)
    if code is None:
        return
    count = len(code.blocks)
    starts = [function.first for function in code.functions] + [count]
    for number, function in enumerate(code.functions):
        own = range(starts[number], starts[number + 1])
        fixed = {slot for slot, _, _ in function.constants} | {c.slot for c in function.launch_constants}
        for index in own:
            block = code.blocks[index]
            assert all(s in own for s in successors(block.terminator)), (name, index)
            assert not (block.terminator.kind == "warpsync" and block.ops)
            for op in block.ops:
                assert -1 <= op.where < len(code.lines)
                for ref in (*op.dst, *op.src):
                    if ref is not None and ref.slot < function.frame_bytes and ref.slot >= FRAME_HEADER:
                        assert ref.slot + SLOT_BYTES[ref.type] <= function.frame_bytes
                        assert ref.type == "pred" or ref.slot % 64 == 0
                assert not any(ref is not None and ref.slot in fixed for ref in op.dst), "a constant is written"


# --- slots ------------------------------------------------------------------------------------------------------------


class Before:
    """A function's operations by value number, and its liveness, as they are before slots are given."""

    def __init__(self, blocks: list[Block], values: ValueTable) -> None:
        tables = (values.fixed, values.outgoing, values.constants, values.launch)
        self.numbers = [ref.slot for ref in values.refs]
        self.variables = {n for n in self.numbers if not any(n in table for table in tables)}
        self.live_out = block_liveness(blocks, self.variables)[1]
        self.ops = [[(set(reads(op)), set(writes(op)), op.guard is None) for op in block.ops] for block in blocks]
        self.ends = [(terminator_reads(b.terminator), terminator_writes(b.terminator)) for b in blocks]

    def verify(self, values: ValueTable) -> None:
        """Walk each block backward: what is written must not share a slot with what lives on behind it."""
        slots = dict(zip(self.numbers, (ref.slot for ref in values.refs), strict=True))

        def apart(alive: set[int]) -> None:
            assert len({slots[n] for n in alive & self.variables}) == len(alive & self.variables)

        for number, ops in enumerate(self.ops):
            alive = set(bits(self.live_out[number]))
            end_reads, end_writes = self.ends[number]
            apart(alive | set(end_writes))
            alive = (alive - set(end_writes)) | set(end_reads)
            for read, written, whole in reversed(ops):
                apart(alive | written)
                alive = (alive - written if whole else alive) | read


@pytest.mark.share(10)
@pytest.mark.parametrize("name", NAMES)
def test_values_that_live_together_have_different_slots(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    verified: list[str] = []

    def assign_and_verify(blocks: list[Block], values: ValueTable, *, start: int, share: bool) -> Frame:
        before = Before(blocks, values)
        frame = assign(blocks, values, start=start, share=share)
        before.verify(values)
        verified.append(name)
        return frame

    monkeypatch.setattr(finish, "assign", assign_and_verify)
    assert program(name, optimise=True) is None or verified
