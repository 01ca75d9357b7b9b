"""Whether all threads of a CTA come to the same barriers: code that each takes its own way through is not known to meet
at one instruction, since a barrier counts arrivals wherever they are."""

from __future__ import annotations

from ptxtools.ir.cfg import ControlFlow, control_flow
from ptxtools.ir.dominators import dominators

from .facts import FunctionFacts
from .uniform import differing_registers

#: Where barriers may be that are not seen, or are for nobody knows whom.
_UNKNOWN = frozenset({"call", "brx"})
_ENDS = frozenset({"ret", "exit", "trap"})
_BARRIERS = frozenset({"bar", "barrier"})
#: Blocks that are looked at.
_BLOCKS = 4096


def parted(facts: FunctionFacts) -> bool:
    """Whether threads of one CTA may come to different barriers of it: one stands on a way that some of them take."""
    if not _UNKNOWN.isdisjoint(facts.families) or facts.function.kind != "entry":
        return True
    flow = control_flow(facts.function, facts.names)
    if len(flow.blocks) > _BLOCKS:
        return True
    lines = {id(line.item): line for line in facts.lines}
    differing = differing_registers(facts, of_cta=True)
    meeting = _meeting(flow)
    waits = {b.index for b in flow.blocks if any(lines[id(item)].plan.family in _BARRIERS for item in b.instructions)}
    for block in flow.blocks:
        last = block.instructions[-1] if block.instructions else None
        if last is None or last.guard is None:
            continue
        key = lines[id(last)].registers[last.guard.name]
        if (key is None or key in differing) and not waits.isdisjoint(_until(flow, block.index, meeting)):
            return True
    return any(
        line.plan.family in _BARRIERS and guard is not None and line.registers[guard.name] in {None, *differing}
        for line in facts.lines
        if (guard := line.item.guard) is not None
    )


def _meeting(flow: ControlFlow) -> list[int]:
    """For each block the first one that all ways from it to the end pass; the number of blocks stands for the end."""
    end = len(flow.blocks)
    back: list[list[int]] = [[] for _ in range(end + 1)]
    for block in flow.blocks:
        for to in block.successors:
            back[to].append(block.index)
        leaves = block.instructions and block.instructions[-1].opcode.partition(".")[0] in _ENDS
        if not block.successors or leaves:
            back[end].append(block.index)
    return dominators(back, end).parent


def _until(flow: ControlFlow, start: int, meeting: list[int]) -> set[int]:
    """The blocks on the ways from a block to where they meet."""
    seen, waiting = {meeting[start]}, [*flow.blocks[start].successors]
    while waiting:
        block = waiting.pop()
        if block not in seen:
            seen.add(block)
            waiting += flow.blocks[block].successors
    return seen - {meeting[start]}
