"""What holds on paths through a function: registers that are read before anything can have written them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxtools.ir.cfg import ControlFlow, control_flow, reverse_postorder
from ptxtools.ir.liveness import solve
from ptxtools.ir.symbols import RegisterKey

from .facts import FunctionFacts, Line


def read_early(facts: FunctionFacts) -> Iterator[tuple[RegisterKey, Line]]:
    """Registers that are read above the first write, and an instruction that reads one although no write can have come
    before. A write under a guard counts as one."""
    early = facts.early
    if not early:
        return
    flow = control_flow(facts.function, facts.names)
    blocks = list(_blocks(flow, facts))
    numbers: dict[RegisterKey, int] = {}
    uses, kills = [], []
    exposures: list[dict[RegisterKey, Line]] = []
    for lines in blocks:
        exposed, written = _summary(facts, lines)
        exposures.append(exposed)
        uses.append(_bits(early.intersection(exposed), numbers))
        kills.append(_bits(early & written, numbers))
    if not blocks:
        return
    successors = flow.successors
    live = solve(successors, uses, kills)[0][0]
    before = _written_before(successors, kills)
    found: dict[RegisterKey, Line] = {}
    for reads, bits in zip(exposures, before, strict=True):
        if bits is not None:
            for key, line in reads.items():
                if key in numbers and not bits >> numbers[key] & 1 and live >> numbers[key] & 1:
                    found.setdefault(key, line)
    yield from ((key, found[key]) for key in numbers if key in found)


def _blocks(flow: ControlFlow, facts: FunctionFacts) -> Iterator[list[Line]]:
    """The lines of each block: both are in source order."""
    start = 0
    for block in flow.blocks:
        end = start + len(block.instructions)
        yield facts.lines[start:end]
        start = end


def _summary(facts: FunctionFacts, lines: list[Line]) -> tuple[dict[RegisterKey, Line], set[RegisterKey]]:
    """Registers that a block reads before it writes them, with the instruction, and those that it writes."""
    exposed: dict[RegisterKey, Line] = {}
    written: set[RegisterKey] = set()
    for line in lines:
        writes = []
        for _, key, write in facts.used(line):
            if key is None:
                continue
            if write:
                writes.append(key)
            elif key not in written and key not in exposed:
                exposed[key] = line
        written.update(writes)
    return exposed, written


def _bits(keys: set[RegisterKey], numbers: dict[RegisterKey, int]) -> int:
    found = 0
    for key in keys:
        found |= 1 << numbers.setdefault(key, len(numbers))
    return found


def _written_before(successors: Sequence[Sequence[int]], kills: Sequence[int]) -> list[int | None]:
    """Registers that some path writes before each block, as bits; None for a block that the entry does not reach."""
    before: list[int | None] = [None] * len(successors)
    before[0] = 0
    order = reverse_postorder(successors)
    changed = True
    while changed:  # once more for each depth of loops
        changed = False
        for block in order:
            known = before[block]
            after = (known or 0) | kills[block]
            for following in successors[block]:
                old = before[following]
                if old is None or after & ~old:
                    before[following] = after | (old or 0)
                    changed = True
    return before
