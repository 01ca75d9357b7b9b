"""A program with operations that measure accesses: sectors of global memory, passes over the banks of shared memory.

They stand before the access, in its block, and read its address and its guard; everything else stays as it is.
"""

from __future__ import annotations

from ptxtools.program.details import Measured, ThreadCopy
from ptxtools.program.operations import OPERATIONS, access_bytes, access_lanes
from ptxtools.program.program import COUNTER_BYTES, Block, Counter, Op, Program, Ref
from ptxtools.records import replace

#: Spaces that accesses of each space may be measured in; constants and parameters have caches of their own.
_SPACES = {"global": ("global",), "shared": ("shared",), "cluster": ("shared",), "generic": ("global", "shared")}


def measure(program: Program) -> Program:
    """The program with measures before the accesses of its blocks."""
    counters = list(program.counters)
    firsts = {function.first: number for number, function in enumerate(program.functions)}
    blocks, function = [], -1
    for place, block in enumerate(program.blocks):
        function = firsts.get(place, function)
        ops: list[Op] = []
        for op in block.ops:
            ops += _measures(op, counters, function)
            ops.append(op)
        blocks.append(Block(ops, block.terminator))
    return replace(program, blocks=blocks, counters=counters, cache={})


def _measures(op: Op, counters: list[Counter], function: int) -> list[Op]:
    seen = OPERATIONS[op.kind].seen
    if seen == "access":
        size, lanes = access_bytes(op), access_lanes(op)
        writes = OPERATIONS[op.kind].access != "read"
        return [
            _measure(op, space, size, lanes, writes, op.src[0], op.src_types[0], op.imm, counters, function)
            for space in _SPACES.get(op.space, ())
        ]
    if seen == "copy":
        made = op.of(ThreadCopy)
        found = [_measure(op, "shared", made.size, 32, True, op.src[1], "u64", 0, counters, function)]
        if not made.rule:  # else the instruction decides as it runs how much it reads
            found.append(
                _measure(op, "global", made.size, 32, False, op.src[0], op.src_types[0], op.imm, counters, function)
            )
        return found
    return []


def _measure(
    op: Op, space: str, size: int, lanes: int, writes: bool, address: Ref | None, type_: str, imm: int,
    counters: list[Counter], function: int,
) -> Op:  # fmt: skip
    detail = Measured(space, size, lanes, writes, COUNTER_BYTES * len(counters))
    counters.append(Counter(op.where, space, function, size, writes))
    return Op("measure", None, (), (address,), (), (type_,), op.guard, op.negated, imm, op.space, detail, op.where)
