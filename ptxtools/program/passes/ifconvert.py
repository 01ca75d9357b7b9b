"""Small branches become guarded operations, so that a warp whose lanes disagree stays together.

If the one or two sides of a branch are short, without control flow and warp-wide operations, the branch is replaced by
the operations of its sides under its predicate. An operation without effects whose result the other side does not need
runs without a guard. Loads, stores and atomics stay guarded, at their lines: a lane that would not have reached them
accesses nothing.
"""

from __future__ import annotations

from ptxtools.isa import resolve
from ptxtools.program.details import Counted
from ptxtools.program.effects import predecessors, writes
from ptxtools.program.operations import LANE_ACCESS, PURE
from ptxtools.program.program import Block, Op, Ref, Terminator
from ptxtools.records import dataclass, replace

from .blocks import tidy
from .colouring import Summary, ValueTable, block_liveness

#: Work that both sides together may take. A branch costs as much as a few operations; long sides are better skipped
#: by warps that agree.
LIMIT = 8
_SLOW = frozenset({"div", "rem", "sqrt", "rsqrt", "rcp", "sin", "cos", "lg2", "ex2", "tanh"})


@dataclass(slots=True)
class Side:
    """Operations of one side, run by lanes for which the guard is true (or false: `negated`)."""

    block: int
    negated: bool


def if_convert(blocks: list[Block], values: ValueTable) -> list[Block]:
    """Convert until nothing more fits. Returns the remaining blocks, renumbered."""
    summaries: dict[int, Summary] = {}
    while True:
        incoming = predecessors(blocks)
        chosen = _choose(blocks, incoming)
        if not chosen:
            return blocks
        known = values.constants.keys() | values.launch.keys()
        variables = {number for number in range(len(values.refs)) if number not in known}
        live_in, _ = block_liveness(blocks, variables, summaries)
        for number, sides, join in chosen:
            _convert(blocks, values, number, sides, join, live_in)
        blocks = tidy(blocks, values.constants)


def _choose(blocks: list[Block], incoming: list[list[int]]) -> list[tuple[int, list[Side], int]]:
    """Branches that can be converted at the same time: no two share a block."""
    touched: set[int] = set()
    chosen: list[tuple[int, list[Side], int]] = []
    for number in range(len(blocks) - 1, -1, -1):
        found = _sides(blocks, incoming, number)
        if found is not None:
            involved = {number, found[1], *(side.block for side in found[0])}
            if not involved & touched:
                touched |= involved
                chosen.append((number, *found))
    return chosen


def _sides(blocks: list[Block], incoming: list[list[int]], number: int) -> tuple[list[Side], int] | None:
    """The sides of a branch that can be converted, in the order in which they will run, and where they meet."""
    end = blocks[number].terminator
    if end.kind != "branch" or end.guard is None or end.uniform:  # which lanes of a warp take together anyway
        return None
    taken, other = end.target, end.other
    if taken == other:
        return None

    def fits(side: int) -> bool:
        block = blocks[side]
        return block.terminator.kind == "jump" and incoming[side] == [number] and side != number

    sides: list[Side]
    if fits(other) and blocks[other].terminator.target == taken:
        sides, join = [Side(other, not end.negated)], taken
    elif fits(taken) and blocks[taken].terminator.target == other:
        sides, join = [Side(taken, end.negated)], other
    elif fits(taken) and fits(other) and blocks[taken].terminator.target == blocks[other].terminator.target:
        sides, join = [Side(other, not end.negated), Side(taken, end.negated)], blocks[taken].terminator.target
    else:
        return None
    cost = 0
    for side in sides:
        for op in blocks[side.block].ops:
            cost += _cost(op)
            if end.guard.slot in writes(op):
                return None
    return (sides, join) if cost <= LIMIT and join not in [side.block for side in sides] else None


def _cost(op: Op) -> int:
    if op.kind == "count":  # of a guard: all lanes that come to it have to be known
        return 0 if op.of(Counted).what == "reached" else LIMIT + 1
    extra = 1 if op.guard is not None else 0
    if op.kind in LANE_ACCESS:
        return 3 + extra
    if op.kind not in PURE:
        return LIMIT + 1
    opcode = op.opcode
    if opcode is not None and (opcode.family in _SLOW or "f64" in opcode.types):
        return 4 + extra
    return 1 + extra


def _convert(
    blocks: list[Block], values: ValueTable, number: int, sides: list[Side], join: int, live_in: list[int]
) -> None:
    block = blocks[number]
    guard = block.terminator.guard
    assert guard is not None
    ops = block.ops
    for place, side in enumerate(sides):
        needed = live_in[sides[1].block] if place == 0 and len(sides) == 2 else live_in[join]
        guards = _Guards(values, guard, side.negated, ops)
        for op in blocks[side.block].ops:
            free = op.guard is None and op.kind in PURE and not any(needed >> value & 1 for value in writes(op))
            if not free:
                op = guards.apply(op)
            ops.append(op)
            guards.forget(op)
        blocks[side.block].ops = []
    block.terminator = Terminator("jump", target=join, where=block.terminator.where)


class _Guards:
    """Guards of one side's operations: the branch's predicate, combined with a guard that was there before."""

    def __init__(self, values: ValueTable, guard: Ref, negated: bool, ops: list[Op]) -> None:
        self.values, self.guard, self.negated, self.ops = values, guard, negated, ops
        self.joined: dict[tuple[int, bool], Ref] = {}

    def apply(self, op: Op) -> Op:
        if op.guard is None:
            return replace(op, guard=self.guard, negated=self.negated)
        key = (op.guard.slot, op.negated)
        both = self.joined.get(key)
        if both is None:
            outer = self._plain(self.guard, self.negated, op.where)
            inner = self._plain(op.guard, op.negated, op.where)
            both = self.joined[key] = self._make("and.pred", (outer, inner), op.where)
        return replace(op, guard=both, negated=False)

    def forget(self, op: Op) -> None:
        """After a write to a predicate, its combinations are computed again."""
        written = writes(op)
        for key in [key for key in self.joined if key[0] in written]:
            del self.joined[key]

    def _plain(self, predicate: Ref, negated: bool, where: int) -> Ref:
        return self._make("not.pred", (predicate,), where) if negated else predicate

    def _make(self, text: str, sources: tuple[Ref, ...], where: int) -> Ref:
        ref = self.values.new("pred")
        types = ("pred",) * len(sources)
        self.ops.append(Op("alu", resolve(text), (ref,), sources, ("pred",), types, where=where))
        return ref
