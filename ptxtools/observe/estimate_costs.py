"""What an instruction costs in the model of time: which pipe it takes, how often, and when its result can be used.

PTX is not what a chip executes. Moves, conversions of addresses and parameters cost nothing, since ptxas makes them
operands; divisions and the like cost as many instructions as a sequence for them has (`_LONG`); all others are one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ptxtools.program.lines import bare_opcode
from ptxtools.program.operations import COUNTS
from ptxtools.records import dataclass

from .classes import matrix_operations

if TYPE_CHECKING:
    from ptxtools.program.program import Program
    from ptxtools.sim.rates import Rates

    from .profile import Row

#: Instructions of the sequences that stand for one of PTX, by its opcode's start: of the order of what ptxas makes.
_LONG = (
    ("div.full", 3), ("div.approx", 2), ("div.rn.f64", 16), ("div.rn", 10), ("div.u64", 70), ("div.s64", 75),
    ("rem.u64", 70), ("rem.s64", 75), ("div.", 20), ("rem.", 20), ("sqrt.rn.f64", 14), ("sqrt.rn", 8),
    ("sqrt.approx", 2), ("rcp.rn.f64", 10), ("rcp.rn", 6), ("mul.lo.u64", 3), ("mul.lo.s64", 3), ("mad.lo.u64", 3),
    ("mad.lo.s64", 3), ("mul.hi.u64", 6), ("mul.hi.s64", 6), ("add.u64", 2), ("add.s64", 2), ("sub.u64", 2),
    ("sub.s64", 2), ("and.b64", 2), ("or.b64", 2), ("xor.b64", 2), ("shl.b64", 2), ("shr.u64", 2), ("shr.s64", 2),
)  # fmt: skip
#: How much faster products are than those of f16, by the type of their elements.
_ELEMENTS = (
    ("f64", 1 / 16), ("tf32", 1 / 2), ("bf16", 1), ("e4m3", 2), ("e5m2", 2), ("s8", 2), ("u8", 2), ("e2m1", 4),
    ("s4", 4), ("u4", 4), ("b1", 8),
)  # fmt: skip
#: What who needs a result waits for, by the start of a class; else for arithmetic.
_GIVES = {"memory": "global memory", "texture": "global memory", "matrix": "matrix products", "warp": "other lanes"}
#: Warps that issue a product together.
_GROUP = 4


@dataclass(frozen=True, slots=True)
class Cost:
    """count: instructions of a warp that are issued; pipe: what they take, "" for nothing; cycles: that an SM's pipe is
    busy for one execution by a warp; latency: cycles until the result can be used; sources, results: registers, each a
    function's number and a slot; waits: the warp waits for asynchronous work, but for so many groups, or -1;
    starts: such work begins there; commits: it becomes a group; fixed: a branch or a barrier, which keeps its place;
    gives: what those wait for who need the result."""

    count: int
    pipe: str
    cycles: float
    latency: float
    sources: tuple[tuple[int, int], ...] = ()
    results: tuple[tuple[int, int], ...] = ()
    waits: int = -1
    starts: bool = False
    commits: bool = False
    fixed: bool = False
    gives: str = "arithmetic"


def costs(program: Program, rows: dict[int, Row], rates: Rates) -> dict[int, Cost]:
    """Of each instruction of a program, by its index (`Op.where`)."""
    sources, results = _registers(program)
    return {
        where: _cost(row, rates, tuple(sources.get(where, ())), tuple(results.get(where, ())))
        for where, row in rows.items()
    }


def _registers(
    program: Program,
) -> tuple[dict[int, dict[tuple[int, int], None]], dict[int, dict[tuple[int, int], None]]]:
    """Registers that each instruction reads and writes: the slots of its operations, where nothing is optimised."""
    sources: dict[int, dict[tuple[int, int], None]] = {}
    results: dict[int, dict[tuple[int, int], None]] = {}
    firsts = {function.first: number for number, function in enumerate(program.functions)}
    number = 0
    for place, block in enumerate(program.blocks):
        number = firsts.get(place, number)
        end = block.terminator
        for op in [*block.ops, *([end.op] if end.op is not None else [])]:
            if op.kind.startswith("observe.") or op.kind in COUNTS:
                continue
            for ref in (*op.src, op.guard):
                if ref is not None:
                    sources.setdefault(op.where, {})[number, ref.slot] = None
            for ref in op.dst:
                if ref is not None:
                    results.setdefault(op.where, {})[number, ref.slot] = None
        for ref in (end.guard, end.index):
            if ref is not None:
                sources.setdefault(end.where, {})[number, ref.slot] = None
    return sources, results


def _cost(row: Row, rates: Rates, sources: tuple[tuple[int, int], ...], results: tuple[tuple[int, int], ...]) -> Cost:
    opcode = bare_opcode(row.text)
    count = next((count for start, count in _LONG if opcode.startswith(start)), 1)
    pipe, latency = _pipe(row, rates)
    cycles = 0.0
    if pipe == "":
        count, latency = 0, 0.0
    elif pipe == "tensor":
        cycles = _product(opcode) / rates.tensor
    elif pipe == "shared":
        cycles = row.shared.passes / row.shared.warps if row.shared is not None and row.shared.warps else 1.0
        latency += cycles - 1
    elif rates.pipe(pipe):
        cycles = count * 32 / rates.pipe(pipe)
        latency += (count - 1) * rates.alu_latency
    else:
        pipe = ""
    waits, starts, commits = _asynchronous(opcode, row.text)
    fixed = waits >= 0 or row.name in ("control", "synchronisation")
    gives = _GIVES.get(row.name.partition(":")[0], "arithmetic")
    if pipe == "shared":
        gives = "shared memory"
    return Cost(count, pipe, cycles, latency, sources, results, waits, starts, commits, fixed, gives)


def _pipe(row: Row, rates: Rates) -> tuple[str, float]:
    """The pipe, and the latency of the result."""
    if row.name == "move" or (row.name.startswith("memory") and row.pipe == "none"):
        return "", 0
    if row.name == "memory: shared" or row.name.startswith("memory: shared") or row.shared is not None:
        return "shared", rates.shared_latency
    if row.memory is not None:
        share = row.memory.dram / row.memory.sectors if row.memory.sectors else 0.0
        return "load/store", rates.l2_latency + share * (rates.dram_latency - rates.l2_latency)
    if row.name.startswith("memory") or row.name in ("warp", "synchronisation"):
        return "load/store", rates.shared_latency
    known = {
        "matrix": ("tensor", rates.tensor_latency), "float64": ("fp64", rates.fp64_latency),
        "half": ("half", rates.alu_latency), "convert": ("convert", rates.special_latency),
        "special function": ("special", rates.special_latency), "texture": ("texture", rates.l2_latency),
        "asynchronous copy": ("load/store", rates.dram_latency),
    }  # fmt: skip
    return known.get(row.name) or (row.pipe if row.pipe in ("fma", "alu", "fp64") else "issue", rates.alu_latency)


def _product(opcode: str) -> float:
    """Multiplications and additions of f16 that take as long as a warp's part of a product."""
    operations = matrix_operations(opcode) / 2
    shape = re.match(r"wgmma\.mma_async.*\.m64n(\d+)k(\d+)\.", opcode)
    if shape is not None:
        operations = 64 * int(shape[1]) * int(shape[2]) / _GROUP
    kind = opcode.split(".")[-2:]
    return operations / next((factor for name, factor in _ELEMENTS if name in kind), 1)


_STARTS = re.compile(r"cp\.(reduce\.)?async|wgmma\.mma_async|tcgen05\.(ld|st)")


def _asynchronous(opcode: str, text: str) -> tuple[int, bool, bool]:
    """Of `Cost`: waits, starts, commits."""
    if opcode.startswith(("cp.async.wait_group", "wgmma.wait_group", "cp.async.bulk.wait_group")):
        number = re.search(r"(\d+)\s*$", text.rstrip("; \t"))
        return (int(number[1]) if number else 0), False, False
    if opcode.startswith(("cp.async.wait_all", "tcgen05.wait")):
        return 0, False, False
    commits = opcode.startswith(("cp.async.commit_group", "wgmma.commit_group", "cp.async.bulk.commit_group"))
    starts = _STARTS.match(opcode) is not None
    return -1, starts and not commits, commits


__all__ = ["Cost", "costs"]
