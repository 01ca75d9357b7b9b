"""Regions over several blocks: between those lie only looks at accesses, of which observers want to know nothing but
whether they are in bounds.

A look ends a block, so that a program whose accesses are looked at has hardly anything to form runs of. A chain is the
blocks from one to the next with the looks between them passed over, and what it does as operations: the accesses have
the guards again that looks have taken the place of. A region of them finds itself that they are in bounds
(`handlers/region_bounds.py`), and otherwise leaves all to the blocks and their looks, of which it has changed nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.program.details import Ahead, BoundedRun, Look, Run
from ptxtools.program.operations import ACCESS_LOOKS, LANE_ACCESS, weight
from ptxtools.program.program import Op, Program, Ref
from ptxtools.records import NamedTuple, replace

from . import runs
from .keys import RECORD_BYTES, record_count
from .live_words import live_ends
from .refusals import REGION_SPACES, refusal
from .rows import along_rows, behind


class Chained(NamedTuple):
    """A region over blocks. block, start, before: where it begins: a block, and how many of its operations, and of
    their handlers, come before; passed: the blocks behind that one; last: the block at whose terminator it goes on;
    region: its operation; weight, cost: what the terminators that it passes count as, and what they take of a slice;
    highest: number of the last block; looks: what it passes."""

    block: int
    start: int
    before: int
    passed: list[int]
    last: int
    region: Op
    weight: int
    cost: int
    highest: int
    looks: list[Op]


def form(program: Program, bodies: Sequence[Sequence[Op]], *, everywhere: bool, unison: bool = False) -> list[Chained]:
    """The regions over blocks that a program gets. bodies: the operations of its blocks, with runs; unison: as parts of
    it all, so that it matters little whether they are in loops."""
    blocks = program.blocks
    if not any(block.terminator.op is not None and block.terminator.op.kind in ACCESS_LOOKS for block in blocks):
        return []
    if not program.optimised or len(program.functions) != 1 or program.counters:
        return []
    if sum(len(block.ops) for block in blocks) > runs.MOST_OPERATIONS:
        return []
    return _Finder(program, bodies).found(everywhere=everywhere or unison, all_of_them=unison)


class _Chain:
    """blocks: in the order in which they run; ends: how many of the operations `ops` are done behind each; looks: at
    the end of each but the last; spare: the block that runs instead where one look at all accesses fails."""

    def __init__(self, first: int, ops: Sequence[Op]) -> None:
        self.blocks, self.ops, self.ends = [first], list(ops), [len(ops)]
        self.looks: list[list[Op]] = []
        self.spare = -1

    def add(self, block: int, ops: Sequence[Op], looks: list[Op]) -> None:
        self.blocks.append(block)
        self.ops += ops
        self.ends.append(len(self.ops))
        self.looks.append(looks)


class _Finder:
    def __init__(self, program: Program, bodies: Sequence[Sequence[Op]]) -> None:
        self.program, self.bodies, self.known = program, bodies, runs.constants(program)
        self.guarded = False  # accesses may have guards, all of them
        self.loops: set[int] = set()
        self.live, self.rows = live_ends(program), along_rows(program)
        self.entries = [0] * len(program.blocks)
        for block in program.blocks:
            end = block.terminator
            for target in {end.target, end.other, *end.targets}:
                if target >= 0:
                    self.entries[target] += 1

    def found(self, *, everywhere: bool, all_of_them: bool) -> list[Chained]:
        loops, self.guarded = set(runs.loops(self.program.blocks)), all_of_them
        self.loops = loops
        worth = [number for number in range(len(self.bodies)) if everywhere or number in loops]
        covered: set[int] = set()
        result: list[Chained] = []
        budget = runs.MOST_FUSED
        for number in worth:
            if number in covered:
                continue
            chain = self._chain(number)
            if chain.spare >= 0:
                covered |= set(self._chain(chain.spare).blocks)
            region = self._region(chain)
            if region is None:
                continue
            covered |= set(chain.blocks[: chain.blocks.index(region.last) + 1])
            budget -= len(region.region.of(BoundedRun).steps)
            if budget < 0:
                break
            result.append(region)
        return result if all_of_them or any(one.block in loops for one in result) or not loops else []

    def _chain(self, first: int) -> _Chain:
        """All blocks that follow from one on."""
        blocks, number = self.program.blocks, first
        chain = _Chain(first, blocks[first].ops)
        ahead: Ref | None = None
        while True:
            end = blocks[number].terminator
            op, following = end.op, end.other
            if end.kind == "branch" and ahead is not None and end.guard == ahead and not end.negated:
                following, chain.spare, looks, ahead = end.target, end.other, [], None
                ops: Sequence[Op] | None = blocks[following].ops
            elif end.kind != "event" or op is None:
                return chain
            elif op.kind == "observe.ahead":
                if chain.ops or op.space not in REGION_SPACES:
                    return chain
                ahead, looks, ops = op.dst[0], [op], blocks[following].ops
                if ops:
                    return chain
            elif op.kind == "observe.access" and ahead is None:
                looks, ops = [op], _restored(op, blocks[following].ops)
            else:
                return chain
            if ops is None or following <= number or self.entries[following] != 1:
                return chain
            chain.add(following, ops, looks)
            number = following

    def _region(self, chain: _Chain) -> Chained | None:
        """The region that begins in a chain's first block."""
        least, few = 0, self._fewest(chain.blocks[0])
        for start, end in runs.stretches(chain.ops, self.known, guarded=self.guarded, least=few):
            if start > chain.ends[0] or (start == chain.ends[0] and chain.ends[0] > 0):
                return None
            last = max((place for place, at in enumerate(chain.ends) if at <= end), default=0)
            if last and chain.ends[last] > max(start, chain.ends[0]) and start >= least:
                return self._made(chain, start, last)
        return None

    def _made(self, chain: _Chain, start: int, last: int) -> Chained | None:
        first, number = chain.blocks[0], chain.blocks[last]
        before = self._before(first, start)
        ops = chain.ops[start : chain.ends[last]]
        guarded = all(op.guard is not None for op in ops if op.kind in LANE_ACCESS) and not self.guarded
        if before is None or len(ops) < self._fewest(first) or guarded:
            return None
        growing = runs._GrowingRun(self.known)
        if not all(growing.add(op) for op in ops) or not growing.accessed:
            return None
        end = self.program.blocks[number].terminator
        back = None
        taken = end.target == first
        if start == 0 and end.kind == "branch" and end.guard is not None and taken != (end.other == first):
            back = end.guard, taken != end.negated, taken
        rows = behind(chain.ops[:start], self.rows[first])
        region = growing.operation(self.live[number], back, rows, BoundedRun)
        region.imm = 1  # it is a region
        passed = [weight(self.program.blocks[one], one) for one in chain.blocks[:last]]
        looks = [look for some in chain.looks[:last] for look in some]
        return Chained(
            first,
            start,
            before,
            chain.blocks[1 : last + 1],
            number,
            region,
            sum(passed),
            sum(passed) + last,
            max(chain.blocks[: last + 1]),
            looks,
        )

    def _fewest(self, block: int) -> int:
        """Operations of the shortest region that begins in a block: as parts of it all, an access alone will do."""
        return 1 if self.guarded and block not in self.loops else 2

    def _before(self, block: int, start: int) -> int | None:
        """How many handlers a block's first operations have."""
        at = skipped = 0
        for place, op in enumerate(self.bodies[block]):
            if skipped == 0 and at == start:
                return place
            if skipped > 0:
                skipped -= RECORD_BYTES * record_count(op)
            elif op.kind == "run":
                at += len(op.of(Run).steps)
                skipped = op.imm
            else:
                at += 1
        return len(self.bodies[block]) if skipped == 0 and at == start else None


def _restored(look: Op, ops: Sequence[Op]) -> list[Op] | None:
    """The operations behind a look, whose first makes the access without it; None where a region cannot."""
    if not ops or isinstance(look.detail, Ahead):
        return None
    access, detail = ops[0], look.of(Look)
    guard, negated = look.src[1], detail.negated and look.src[1] is not None
    if access.kind not in LANE_ACCESS or (access.space, access.imm, access.src[:1]) != (
        look.space,
        look.imm,
        look.src[:1],
    ):
        return None
    permitted = look.dst[0] if look.dst else guard  # a look that decides nothing leaves the guard as it is
    if access.guard != permitted or access.negated != (negated and not look.dst):
        return None
    if (detail.size, detail.lanes) != (4, 32):
        return None
    plain = replace(access, guard=guard, negated=negated)
    return None if refusal(plain) else [plain, *ops[1:]]
