"""Which registers and branches may differ between the threads of a warp or a CTA.

A register is divergent when its value comes from something that differs between threads, or when it is written where
only some of the threads may be: between a divergent branch and the block where its paths meet again. The answer is
safe: "uniform" is certain, "divergent" means "perhaps".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .cfg import ControlFlow
from .dominators import post_dominators
from .liveness import Access, Liveness, liveness
from .nodes import Address, Instruction, Name, Operand, Vector
from .symbols import Names

Level = Literal["warp", "cta"]

#: Special registers that differ between threads of a warp; those of the second set only between warps of a CTA.
_PER_LANE = ("%tid", "%laneid", "%lanemask", "%clock", "%globaltimer", "%pm")
_PER_WARP = ("%warpid",)
#: Instructions whose result every participating lane of a warp shares.
_WARP_RESULT = frozenset({"vote", "redux", "activemask", "match"})
_DIVERGENT = frozenset({"atom", "shfl", "elect", "call", "tex", "tld4", "suld", "ldmatrix", "mbarrier"})


@dataclass(slots=True)
class Step:
    """One operation for the analysis: value numbers read and written, and whether its result differs by itself."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    source: bool


@dataclass(slots=True)
class Uniformity:
    """registers: bit set of divergent ones; branches: blocks whose end is a divergent branch; blocks: those that only
    some of the threads may be in."""

    registers: int
    branches: set[int]
    blocks: set[int]


def propagate(
    successors: Sequence[Sequence[int]], steps: Sequence[Sequence[Step]], conditions: Sequence[Sequence[int]]
) -> Uniformity:
    """Spread divergence along values and branches until nothing changes.

    conditions: for each block the values that decide between its successors, and whether threads leave there.
    """
    parent = post_dominators(successors).parent
    divergent = 0
    branches: set[int] = set()
    inside: set[int] = set()
    changed = True
    while changed:
        changed = False
        for block, own in enumerate(steps):
            partial = block in inside
            for step in own:
                if step.source or partial or any(divergent >> value & 1 for value in step.reads):
                    for value in step.writes:
                        if not divergent >> value & 1:
                            divergent |= 1 << value
                            changed = True
        for block, values in enumerate(conditions):
            if block not in branches and any(divergent >> value & 1 for value in values):
                branches.add(block)
                inside |= _between(successors, block, parent[block])
                changed = True
    return Uniformity(divergent, branches, inside)


def _between(successors: Sequence[Sequence[int]], branch: int, join: int) -> set[int]:
    """Blocks on paths from a branch to the block where all its paths meet, which is left out."""
    seen: set[int] = set()
    waiting = list(successors[branch])
    while waiting:
        block = waiting.pop()
        if block != join and block not in seen:
            seen.add(block)
            waiting.extend(successors[block])
    return seen


def uniformity(flow: ControlFlow, live: Liveness | None = None, *, level: Level = "warp") -> Uniformity:
    """Analyse a function. Threads that leave early (guarded `exit`, `ret`) count as divergent control when their guard
    is; parameters of an entry are uniform, those of a `.func` are not."""
    live = live or liveness(flow)
    entry = flow.function.kind == "entry"
    parameters = frozenset(id(p) for p in flow.function.params) if entry else frozenset()
    steps: list[list[Step]] = []
    conditions: list[tuple[int, ...]] = []
    for block, accesses in zip(flow.blocks, live.accesses, strict=True):
        own = []
        for instruction, names, item in zip(block.instructions, block.scopes, accesses, strict=True):
            own.append(Step(item.reads, item.writes, _differs(instruction, names, parameters, level)))
        steps.append(own)
        conditions.append(_condition(block.instructions, accesses))
    return propagate(flow.successors, steps, conditions)


def _condition(instructions: list[Instruction], accesses: list[Access]) -> tuple[int, ...]:
    if instructions and instructions[-1].opcode.split(".", 1)[0] in ("bra", "brx", "ret", "exit"):
        return accesses[-1].reads
    return ()


def _differs(instruction: Instruction, names: Names, parameters: frozenset[int], level: Level) -> bool:
    """Whether an instruction's result may differ between threads although its inputs do not."""
    family = instruction.opcode.split(".", 1)[0]
    if family in ("ld", "ldu"):
        return not _uniform_load(instruction, names, parameters)
    if family in _DIVERGENT:
        return True
    if family in _WARP_RESULT:
        return level == "cta" or family == "match"
    watched = _PER_LANE if level == "warp" else _PER_LANE + _PER_WARP
    return any(name.startswith(watched) for operand in instruction.operands[1:] for name in _plain_names(operand))


def _uniform_load(instruction: Instruction, names: Names, parameters: frozenset[int]) -> bool:
    """Loads of kernel parameters and constants: the same address gives the same value to all threads.

    A `.param` variable that is no kernel parameter holds arguments or results of a call.
    """
    parts = instruction.opcode.split(".")
    if "const" in parts:
        return True
    if "param" not in parts and "param::entry" not in parts:
        return False
    base = next((o.base for o in instruction.operands if isinstance(o, Address)), None)
    if not isinstance(base, Name):
        return False
    return id(names.lookup(base.name)) in parameters


def _plain_names(operand: Operand) -> list[str]:
    if isinstance(operand, Name):
        return [operand.name]
    if isinstance(operand, Vector):
        return [item.name for item in operand.items if isinstance(item, Name)]
    return []
