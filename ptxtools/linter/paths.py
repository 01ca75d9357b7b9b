"""What holds on paths through a function: registers that are read before anything can have written them."""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.ir.cfg import ControlFlow, control_flow
from ptxtools.ir.liveness import solve

from .facts import FunctionFacts, Line, RegisterKey, register_key
from .inflight import accessed


def read_early(facts: FunctionFacts) -> Iterator[tuple[RegisterKey, Line]]:
    """Registers of which the first read stands before the first write, and an instruction that reads one although no
    write can have come before. A write under a guard counts as one."""
    early = {
        key for key, item in facts.reads.items() if key in facts.writes and item.span < facts.writes[key].item.span
    }
    if not early:
        return
    flow = control_flow(facts.function, facts.names)
    blocks = list(_blocks(flow, facts))
    numbers: dict[RegisterKey, int] = {}
    uses, kills = [], []
    exposures: list[dict[RegisterKey, Line]] = []
    for lines in blocks:
        exposed, written = _summary(lines)
        exposures.append(exposed)
        uses.append(_bits(exposed, numbers))
        kills.append(_bits(written, numbers))
    if not blocks:
        return
    live = solve(flow.successors, uses, kills)[0][0]
    for key, number in numbers.items():
        if live >> number & 1 and key in early:
            line = _first(flow, key, exposures, kills, 1 << number)
            if line is not None:
                yield key, line


def _blocks(flow: ControlFlow, facts: FunctionFacts) -> Iterator[list[Line]]:
    """The lines of each block: both are in source order."""
    start = 0
    for block in flow.blocks:
        end = start + len(block.instructions)
        yield facts.lines[start:end]
        start = end


def _summary(lines: list[Line]) -> tuple[dict[RegisterKey, Line], set[RegisterKey]]:
    """Registers that a block reads before it writes them, with the instruction, and those that it writes."""
    exposed: dict[RegisterKey, Line] = {}
    written: set[RegisterKey] = set()
    keys: dict[str, RegisterKey | None] = {}
    scope = None
    for line in lines:
        if line.names is not scope:
            scope, keys = line.names, {}
        writes = []
        for name, write in accessed(line):
            key = keys[name] if name in keys else keys.setdefault(name, register_key(name, scope))
            if key is None:
                continue
            if write:
                writes.append(key)
            elif key not in written and key not in exposed:
                exposed[key] = line
        written.update(writes)
    return exposed, written


def _bits(keys: dict[RegisterKey, Line] | set[RegisterKey], numbers: dict[RegisterKey, int]) -> int:
    found = 0
    for key in keys:
        found |= 1 << numbers.setdefault(key, len(numbers))
    return found


def _first(
    flow: ControlFlow, key: RegisterKey, reads: list[dict[RegisterKey, Line]], kills: list[int], bit: int
) -> Line | None:
    """The first read that the entry reaches, and no write of the register does."""
    written = _reached(flow, [s for block, kill in enumerate(kills) if kill & bit for s in flow.successors[block]])
    early = _reached(flow, [0]) - written
    return next((reads[block][key] for block in sorted(early) if key in reads[block]), None)


def _reached(flow: ControlFlow, start: list[int]) -> set[int]:
    seen, waiting = set(start), list(start)
    while waiting:
        fresh = [number for number in flow.successors[waiting.pop()] if number not in seen]
        seen.update(fresh)
        waiting += fresh
    return seen
