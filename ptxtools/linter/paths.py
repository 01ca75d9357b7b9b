"""What holds on paths through a function: registers that are read before anything can have written them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import takewhile

from ptxtools.ir.cfg import ControlFlow, control_flow, reverse_postorder
from ptxtools.ir.dominators import dominators
from ptxtools.ir.liveness import solve
from ptxtools.ir.symbols import RegisterKey

from .facts import FunctionFacts, Line

#: Steps from block to block, for each block of a function, in which ways past writes are looked for.
_EACH = 64


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


def unwritten_on_a_way(
    facts: FunctionFacts, wanted: Callable[[RegisterKey, Line], bool]
) -> Iterator[tuple[RegisterKey, Line, Line]]:
    """Registers that an instruction reads for certain behind a jump, which it follows past all that writes them: the
    register, the instruction, the jump. Nothing before the jump writes it, no round of a loop either. wanted: whether
    it matters that the first instruction of a block that reads a register does."""
    if not {"bra", "brx"} & facts.families:
        return
    flow = control_flow(facts.function, facts.names)
    tree, ways = dominators(flow.successors), _Ways(flow)
    blocks = list(_blocks(flow, facts))
    writers: dict[RegisterKey, set[int]] = {}
    exposures = []
    for number, lines in enumerate(blocks):
        exposed, written = _summary(facts, lines)
        exposures.append(exposed)
        for key in written:
            writers.setdefault(key, set()).add(number)
    seen: set[RegisterKey] = set()
    for number, exposed in enumerate(exposures):
        for key, line in exposed.items():
            writing = writers.get(key, set())
            if (
                key in seen
                or not writing
                or not wanted(key, line)
                or any(tree.dominates(one, number) for one in writing - {number})
            ):
                continue
            if ways.left <= 0:
                return
            jump = _jump_past(ways, blocks, writing, number, line)
            if jump is not None:
                seen.add(key)
                yield key, line, jump


def never_read(facts: FunctionFacts, results: Iterable[tuple[Line, RegisterKey]]) -> Iterator[Line]:
    """Instructions after which nothing reads what they have written to a register, before it is written anew."""
    wanted = {id(line): key for line, key in results}
    keys = set(wanted.values())
    flow = control_flow(facts.function, facts.names)
    blocks = list(_blocks(flow, facts))
    numbers: dict[RegisterKey, int] = {}
    uses, kills = [], []
    for lines in blocks:
        live, written = set[RegisterKey](), set[RegisterKey]()
        for line in reversed(lines):
            _backwards(facts, line, live, written)
        uses.append(_bits(live & keys, numbers))
        kills.append(_bits(written & keys, numbers))
    _, leaving = solve(flow.successors, uses, kills)
    for lines, out in zip(blocks, leaving, strict=True):
        live = {key for key, number in numbers.items() if out >> number & 1}
        for line in reversed(lines):
            key = wanted.get(id(line))
            if key is not None and key not in live:
                yield line
            _backwards(facts, line, live, set())


def _backwards(facts: FunctionFacts, line: Line, live: set[RegisterKey], written: set[RegisterKey]) -> None:
    """Go back over an instruction. written: what certainly is, by instructions behind, too."""
    used = [(key, write) for _, key, write in facts.used(line) if key is not None]
    anew = {key for key, write in used if write} if line.item.guard is None else set()
    live.difference_update(anew)
    written.update(anew)
    live.update(key for key, write in used if not write)


def _jump_past(ways: _Ways, blocks: list[list[Line]], writing: set[int], end: int, read: Line) -> Line | None:
    """A jump, which nothing that writes comes before, and from which one way certainly leads to a read in block `end`
    past all that writes."""
    without = ways.reached([end], ways.predecessors, writing - {end})
    if 0 not in without - writing or any(
        _leaves(line) for line in takewhile(lambda line: line is not read, blocks[end])
    ):
        return None
    behind = ways.reached([to for one in writing for to in ways.successors[one]], ways.successors)
    for place in sorted(without - behind - writing - {end}):
        for to in ways.successors[place] if len(ways.successors[place]) > 1 else ():
            inside = ways.reached([to], ways.successors, {end})
            passed = inside - {end}
            certain = end in inside and passed.isdisjoint(writing) and all(ways.successors[one] for one in passed)
            if certain and not any(_leaves(line) for one in passed for line in blocks[one]):
                return blocks[place][-1]
    return None


def _leaves(line: Line) -> bool:
    return line.plan.family in ("exit", "ret", "trap")


class _Ways:
    """The ways between blocks, of which so many are followed."""

    def __init__(self, flow: ControlFlow) -> None:
        self.successors = flow.successors
        self.predecessors = [block.predecessors for block in flow.blocks]
        self.left = _EACH * len(flow.blocks)

    def reached(self, begin: Iterable[int], edges: Sequence[Sequence[int]], stops: Collection[int] = ()) -> set[int]:
        """The blocks that are reached from some, themselves included, but not through `stops`."""
        found, waiting = set(), list(begin)
        while waiting:
            block = waiting.pop()
            if block not in found:
                found.add(block)
                self.left -= 1
                if block not in stops:
                    waiting += edges[block]
        return found


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
