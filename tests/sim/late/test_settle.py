"""Moves of accumulators that compilers leave before the wait for them."""

from __future__ import annotations

import pytest

from ptxtools.ir import Instruction
from ptxtools.ir.symbols import Names
from ptxtools.program.lowering.settle import settled
from ptxtools.syntax import parse

MMA = "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %d1, %d2, 1, 1, 1, 0, 0;"
OTHER = MMA.replace("%r1, %r2", "%r3, %r4")
COMMIT, WAIT = "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"
WAIT_1 = WAIT.replace(" 0", " 1")
UNPACK, ADD = "mov.b32 {%h1, %h2}, %r1;", "add.s32 %r9, %r9, 1;"


def order(*lines: str) -> list[str]:
    text = ".version 8.0\n.target sm_90a\n.entry k() {\n.reg .b32 %r<16>; .reg .b64 %d<4>; .reg .b16 %h<9>;\n"
    parsed = parse(text + "\n".join(lines) + "\n}\n")
    assert not parsed.diagnostics
    body = parsed.module.items[-1].body
    block = [(item, Names()) for item in body.items if isinstance(item, Instruction)]
    number = {id(item): at for at, (item, _) in enumerate(block)}
    return [lines[number[id(item)]] for item, _ in settled(block)]


def test_a_move_goes_behind_the_wait() -> None:
    assert order(MMA, COMMIT, UNPACK, ADD, WAIT) == [MMA, COMMIT, ADD, WAIT, UNPACK]


def test_a_move_waits_for_its_own_group() -> None:
    assert order(MMA, COMMIT, UNPACK, OTHER, COMMIT, WAIT_1) == [MMA, COMMIT, OTHER, COMMIT, WAIT_1, UNPACK]
    late = "mov.b32 {%h3, %h4}, %r3;"
    assert order(MMA, COMMIT, OTHER, COMMIT, late, WAIT_1, WAIT) == [MMA, COMMIT, OTHER, COMMIT, WAIT_1, WAIT, late]


@pytest.mark.parametrize("between", ["mov.b16 %h3, %h1;", "mov.b16 %h1, 0;", "st.shared.b16 [%r8], %h2;", MMA,
                                     "mov.b32 %r1, 0;"])  # fmt: skip
def test_what_touches_a_moved_register_finds_the_move_done(between: str) -> None:
    assert order(MMA, COMMIT, UNPACK, between, WAIT) == [MMA, COMMIT, UNPACK, between, WAIT]


@pytest.mark.parametrize("lines", [(MMA, COMMIT, WAIT, UNPACK), (UNPACK, MMA, COMMIT, WAIT), (MMA, COMMIT, UNPACK),
                                   (MMA, COMMIT, "add.s32 %r5, %r1, 1;", WAIT), (UNPACK, ADD)])  # fmt: skip
def test_everything_else_stays(lines: tuple[str, ...]) -> None:
    assert order(*lines) == list(lines)
