"""Warp-wide operations: shfl, vote, match, redux, activemask, elect (9.7.9.6, 9.7.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir import Instruction
from ptxtools.isa import Opcode
from ptxtools.program.program import Op

from .arithmetic import operands_of
from .redux import float_redux
from .registry import lowers

if TYPE_CHECKING:
    from .function import FunctionLowering


@lowers("shfl", "shfl.sync", "vote", "vote.sync", "match.sync", "redux.sync", "activemask", "elect.sync")
def warp_operation(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """Destinations and sources as in the manual; `.sync` forms wait for the lanes of their member mask first."""
    sync = op.has("sync") or op.name.endswith(".sync")
    after = f.guarded_region() if sync else None
    dst, src, dst_types, src_types = operands_of(f, instruction, op)
    if sync:
        f.synchronise(src[-1])
    if op.family == "redux" and op.type == "f32":
        result = float_redux(f, op, *src)
        if dst[0] is not None:
            f.copy(dst[0], result)
    else:
        f.emit(Op(op.family, op, tuple(dst), tuple(src), tuple(dst_types), tuple(src_types)))
    f.end_region(after)
