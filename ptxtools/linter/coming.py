"""Which threads of a whole CTA come to each block of a kernel, as predicates over %tid.x and constants decide it."""

from __future__ import annotations

import re

from ptxtools.ir.cfg import BasicBlock, control_flow
from ptxtools.ir.nodes import Guard, Name, Pair
from ptxtools.isa.types import TYPES
from ptxtools.records import NamedTuple

from .constants import CTA_THREADS, constant, thread_numbers
from .facts import FunctionFacts, Line
from .lanes import only_write
from .values import COMPARE, WARP
from .walk.shapes import declared_shape, most_threads

#: Blocks that are looked at.
_BLOCKS = 4096
_WORD = 0xFFFFFFFF
_NOT_OF_A_CTA = re.compile(r"\.(warp|cluster)")


class Coming(NamedTuple):
    """Threads that come to an instruction, as bits: no others do. exact: all of them do, if a CTA has them; there: they
    do but for the instruction's own guard."""

    threads: int
    exact: bool
    there: bool = False


def coming_to(
    facts: FunctionFacts, family: tuple[str, ...], count: int, first: bool = False
) -> list[tuple[Line, Coming]]:
    """The instructions of some families with the threads of a CTA of `count` that come to them. first: in the first
    rounds of loops, all of which end."""
    flow = control_flow(facts.function, facts.names)
    if len(flow.blocks) > _BLOCKS:
        return []
    lines = {id(line.item): line for line in facts.lines}
    everybody = (1 << count) - 1
    here = [0] * len(flow.blocks)
    exact = [True] * len(flow.blocks)
    here[0] = everybody
    ways = [_ways(facts, block, lines) for block in flow.blocks]
    waiting = [0]
    while waiting:
        block = flow.blocks[waiting.pop()]
        leaves, sure = _leaving(block, ways[block.index], lines, here[block.index])
        if first and any(to <= block.index for to in block.successors):  # sooner or later
            leaves, sure = [(to, here[block.index]) for to in block.successors if to > block.index], True
        for to, mask in leaves:
            known = exact[block.index] and sure and to > block.index
            if mask & ~here[to] or (exact[to] and not known):
                here[to] |= mask
                exact[to] &= known
                waiting.append(to)
    found = []
    for block in flow.blocks:
        left = here[block.index]
        for item in block.instructions:
            line = lines[id(item)]
            guard = holding(facts, line, item.guard) if item.guard is not None else -1
            if line.plan.family in family:
                threads = left if guard is None else left & guard
                known = exact[block.index]
                found.append((line, Coming(threads, known and guard is not None, known)))
    return found


class User(NamedTuple):
    """An instruction at a barrier of the CTA. expected: threads that it names, 0 for all; arrives: it does not wait;
    warps: those that come, as bits; exact: all of these do."""

    line: Line
    expected: int
    arrives: bool
    warps: int
    exact: bool


def barriers_of(facts: FunctionFacts) -> dict[int, list[User]]:
    """The instructions at each barrier by its number, in a kernel whose CTAs have one dimension; empty if some number
    or count is not known, or called functions may come to one."""
    lines = [line for line in facts.of("bar", "barrier") if not _NOT_OF_A_CTA.search(line.item.opcode)]
    named = any(len(line.item.operands) > 1 for line in lines)
    if not named or facts.function.kind != "entry" or {"call", "brx"} & facts.families:
        return {}
    shape = declared_shape(facts.function)
    if "%tid.y" in facts.targets or "%tid.z" in facts.targets or (shape is not None and shape.size != shape.x):
        return {}
    found: dict[int, list[User]] = {}
    for line, coming in coming_to(facts, ("bar", "barrier"), most_threads(facts.function) or CTA_THREADS):
        op = line.plan.op
        if op is None or _NOT_OF_A_CTA.search(line.item.opcode):
            continue
        parts = line.item.operands[1:-1] if op.has("red") else line.item.operands
        number, count = [*(constant(facts, line, part) for part in parts[:2]), 0][:2]
        if number is None or count is None:
            return {}
        warps = sum(1 << warp for warp in range(CTA_THREADS // WARP) if coming.threads >> warp * WARP & _WORD)
        found.setdefault(number, []).append(User(line, count, op.has("arrive"), warps, coming.exact))
    return found


def parts_warps(facts: FunctionFacts, line: Line) -> bool:
    """Whether lanes of one warp may take a guarded jump differently, as far as the kernel tells."""
    guard = line.item.guard
    key = line.registers[guard.name] if guard is not None else None
    if guard is None or key is None or key not in facts.differing:
        return False
    return not alike_in_warps(holding(facts, line, guard))


def _ways(facts: FunctionFacts, block: BasicBlock, lines: dict[int, Line]) -> int | None:
    """The threads in which the guard of a block's last instruction holds; None if nobody knows."""
    last = block.instructions[-1] if block.instructions else None
    if last is None or last.guard is None:
        return -1
    return holding(facts, lines[id(last)], last.guard)


def _leaving(
    block: BasicBlock, holds: int | None, lines: dict[int, Line], here: int
) -> tuple[list[tuple[int, int]], bool]:
    """Where threads go from a block, as (block, threads); and whether it is known of each thread."""
    last = block.instructions[-1] if block.instructions else None
    jumps = last is not None and lines[id(last)].plan.family in ("bra", "brx")
    if last is None or last.guard is None or holds is None or (jumps and len(block.successors) < 2):
        alone = last is None or last.guard is None or (jumps and len(block.successors) < 2)
        return [(to, here) for to in block.successors], alone
    taken = holds if jumps else 0
    return [(to, here & (~holds if to == block.index + 1 else taken)) for to in block.successors], True


def holding(facts: FunctionFacts, line: Line, guard: Guard) -> int | None:
    """The threads in which a guard holds, as bits; None if that depends on more than their numbers."""
    made = only_write(facts, line, guard.name)
    found = test_by_number(facts, made) if made is not None and made.item.guard is None else None
    return None if found is None else ~found if guard.negated else found


def alike_in_warps(holds: int | None) -> bool:
    """Whether what holds in some threads holds in all or none of each warp."""
    return holds is not None and all(holds >> at & _WORD in (0, _WORD) for at in range(0, CTA_THREADS, WARP))


def test_by_number(facts: FunctionFacts, line: Line) -> int | None:
    """The threads in which a comparison of %tid.x, or of what follows from it, with a constant holds; else None."""
    known, key = facts.tests, id(line.item)
    if key not in known:
        known[key] = _test_by_number(facts, line)
    return known[key]


def _test_by_number(facts: FunctionFacts, line: Line) -> int | None:
    op, operands = line.plan.op, line.item.operands
    if op is None or line.plan.family != "setp" or len(operands) != 3 or isinstance(operands[0], Pair):
        return None
    info = TYPES.get(op.type or "")
    compare = next((COMPARE[atom] for atom in op.atoms if atom in COMPARE), None)
    if compare is None or info is None or info.kind not in ("int", "bits") or info.bits < WARP:
        return None
    number = constant(facts, line, operands[2])
    if number is None or number < 0 or not isinstance(operands[1], Name):
        return None
    numbers = thread_numbers(facts, line, operands[1].name)
    if numbers is None or max(numbers) > _WORD >> 1:
        return None  # signed and unsigned differ
    return int("".join(["1" if compare(own, number) else "0" for own in reversed(numbers)]), 2)
