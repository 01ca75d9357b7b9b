"""Loops of a function: the blocks between a label and the branches back to it."""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.ir.cfg import ControlFlow, control_flow
from ptxtools.ir.dominators import dominators
from ptxtools.ir.nodes import Name
from ptxtools.ir.symbols import RegisterKey
from ptxtools.records import NamedTuple

from .facts import FunctionFacts, Line


class Loop(NamedTuple):
    """lines: in source order, those of inner loops included; innermost: it has no inner loop; written: the registers
    that it writes."""

    lines: list[Line]
    innermost: bool
    written: frozenset[RegisterKey]

    def invariant(self, line: Line, name: str) -> bool:
        """Whether a name is a register that holds the same in all rounds, as nothing in the loop writes it."""
        key = line.registers[name]
        return key is not None and key not in self.written


def loops_of(facts: FunctionFacts) -> list[Loop]:
    """The loops that control enters only at their head, those with one head as one. Empty without a branch."""
    if not {"bra", "brx"} & facts.families:
        return []
    flow = control_flow(facts.function, facts.names)
    bodies = _bodies(flow)
    if not bodies:
        return []
    starts = [0]
    for block in flow.blocks:
        starts.append(starts[-1] + len(block.instructions))
    found = []
    for head, body in bodies.items():
        lines = [line for block in sorted(body) for line in facts.lines[starts[block] : starts[block + 1]]]
        innermost = not any(block in bodies for block in body if block != head)
        found.append(Loop(lines, innermost, frozenset(_written(facts, lines))))
    return found


def _bodies(flow: ControlFlow) -> dict[int, set[int]]:
    """The blocks of each loop by its head."""
    tree = dominators(flow.successors)
    bodies: dict[int, set[int]] = {}
    for block in flow.blocks:
        for head in block.successors:
            if head <= block.index and tree.dominates(head, block.index):
                body = bodies.setdefault(head, {head})
                waiting = [block.index]
                while waiting:
                    at = waiting.pop()
                    if at not in body:
                        body.add(at)
                        waiting += flow.blocks[at].predecessors
    return bodies


def _written(facts: FunctionFacts, lines: list[Line]) -> Iterator[RegisterKey]:
    for line in lines:
        into = line.item.operands[0] if line.item.operands else None
        if line.plan.positional and type(into) is Name:  # the common case
            key = line.registers[into.name]
            if key is not None and line.plan.writes and line.plan.writes[0]:
                yield key
            continue
        yield from [key for _, key, write in facts.used(line) if write and key is not None]


def innermost_loop_of(facts: FunctionFacts) -> dict[int, Loop]:
    """The smallest loop that each instruction is in, by the identity of the instruction."""
    found: dict[int, Loop] = {}
    for loop in facts.loops:
        for line in loop.lines:
            known = found.get(id(line.item))
            if known is None or len(loop.lines) < len(known.lines):
                found[id(line.item)] = loop
    return found
