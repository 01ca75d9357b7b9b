"""Kernels whose CTAs run in unison: all warps of a CTA in one native function, as long as each warp stays whole.

The handler of a "unison" record is the whole kernel: its blocks, and around them the turns of the warps and their
barrier, which the loop does otherwise (`handlers/unison.py`). Between two blocks everything is as records leave it:
values are in slots, and each lane has its block. So it can stop anywhere, and the records go on there.

A block is a number of parts. Most are runs or regions; an operation that neither can have is a record of its own, which
is called. Those records stand behind the program, each with one behind it that returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate

from ptxtools.program.details import Action, BoundedRun, Run, SpecialRegister, Unison
from ptxtools.program.operations import ACROSS, BLOCK, LANE_ACCESS, OPERATIONS, weight
from ptxtools.program.program import Block, Op, Program, Terminator
from ptxtools.records import NamedTuple

from . import runs
from .chains import Chained
from .keys import RECORD_BYTES, effects_of, record_count
from .live_words import Key, live_before, live_ends
from .refusals import refusal
from .rows import along_rows, behind

#: Longest part, and most operations of a kernel: compiling them takes about 5 ms each.
MOST_STEPS, MOST_FUSED = 320, 480
#: Words of a lane in accesses that parts make if all lanes are there.
_WIDE = (2, 4)
#: A member mask that names all lanes.
_EVERYBODY = 0xFFFF_FFFF
#: Parts, of a hundred, that may call records: with more there is nothing to gain.
MOST_CALLS = 45
#: Special registers that parts read by themselves.
SPECIALS = frozenset(
    {f"%{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"} | {"%laneid", "%warpid"}
)
#: Events whose native services may be asked twice, where nothing is counted.
_SERVED = frozenset(f"observe.{kind}" for kind in ("access", "ahead", "arrive", "leave", "fence", "together", "branch"))
#: Those that need no service if all lanes come (`MeetingFilter.quick`).
_QUICK = frozenset(f"observe.{kind}" for kind in ("arrive", "leave", "fence", "branch"))
#: Operations that may be called as records: they neither wait nor make others wait.
_CALLED = frozenset(
    kind for kind, row in OPERATIONS.items()
    if row.runs == BLOCK and (row.pure or row.access or row.warp or row.seen == "fence")
)  # fmt: skip


class Part(NamedTuple):
    """run: what it does, None for a record that is called; record: where its first operation has a record, and copy:
    where the record is that is called, as bytes from the program's first one; spends: it uses up time of the slice;
    passed: of a run over several blocks, what its ends take of a slice, what they count as, and the last of them.
    whole: what it and the parts behind it, `covers` in all, do where all lanes of the warp run, if that is something
    else; number: the guard's of the branch in `whole`, or -1. rounds: what a record does that goes round by itself; one
    over several blocks is for whole CTAs only, other warps go on in records."""

    run: Run | None
    record: int
    copy: int
    spends: bool = False
    passed: tuple[int, int, int] | None = None
    whole: Run | None = None
    covers: int = 1
    number: int = -1
    rounds: Run | None = None


#: Operations that begin at a record of their own, where that is, and its handler's name.
_Piece = tuple[list[Op], int, str]


class Stage(NamedTuple):
    """One block; of a run over several blocks, the first with what is behind all of them. kind, guard (a slot or -1),
    negated, target, other: of its terminator; weight: what it counts as; start, end: its first and its last record, as
    bytes from the program's first one; number: the guard's in the last part, which has not written it to its slot if
    nobody else reads it, or -1; members: slot of the masks of a "warpsync", -1 where they name all lanes. The kind is
    "served" for an event that may be served in here, "met" for one at which lanes meet, and "records" where lanes go on
    in records."""

    parts: tuple[Part, ...]
    kind: str
    guard: int
    negated: bool
    target: int
    other: int
    weight: int
    start: int
    end: int
    number: int = -1
    members: int = -1


class Copy(NamedTuple):
    """Records that are called: handlers' names and operations; block: whose terminator they read behind them, -1 for
    none."""

    records: list[tuple[str, Op]]
    block: int

    def size(self) -> int:
        """How many records there are, the one that returns included."""
        return sum(record_count(op) for _, op in self.records) + 1


def form(
    program: Program,
    bodies: Sequence[Sequence[tuple[str, Op]]],
    starts: Sequence[int],
    *,
    chained: Sequence[Chained] = (),
    events: bool = False,
) -> tuple[Op, list[Copy]] | None:
    """The kernel as one operation, and the records that it calls, which are to follow the program's; None where that
    does not pay or cannot be. bodies: operations of each block with the names of their handlers; starts: numbers of
    their first records, and of the place behind all; chained: runs over several blocks that it may have; events: the
    native services of events may be called again by records where they refuse."""
    known = runs.constants(program)
    barrier = _only_barrier(program, known)
    if barrier is None or not _fits(program) or not all(_goes_round(one.region.of(Run), barrier) for one in chained):
        return None
    heads, passed = {one.block: one for one in chained}, {block for one in chained for block in one.passed}
    ends = live_ends(program)
    live = [_behind(program, ends, number) for number in range(len(program.blocks))]
    rows = along_rows(program)
    guards = [(end.guard.slot, end.guard.type) if end.guard else None for end in (b.terminator for b in program.blocks)]
    maker = _Maker(known, RECORD_BYTES * starts[-1], guards)
    stages = []
    for number, (block, body) in enumerate(zip(program.blocks, bodies, strict=True)):
        first, ends_at, end, guard = RECORD_BYTES * starts[number], number, block.terminator, -1
        if number in passed:  # warps that have stopped there go on in records
            stages.append(Stage((), "records", -1, False, -1, -1, 0, first, first))
            continue
        chain = heads.get(number)
        if chain is not None:
            before = _before(block.ops[chain.start :], ends[number])
            parts = maker.parts(number, block.ops[: chain.start], body[: chain.before], first, before, rows[number])
            at = first + RECORD_BYTES * sum(record_count(op) for _, op in body[: chain.before])
            part = Part(chain.region.of(Run), at, -1, passed=(chain.cost, chain.weight, chain.highest))
            if part.run is not None and part.run.again is not None:
                part = part._replace(run=None, rounds=part.run, spends=True)
            parts.append(part)
            ends_at, end = chain.last, program.blocks[chain.last].terminator
        else:
            parts = maker.parts(number, block.ops, body, first, live[number], rows[number])
            if end.kind == "branch" and parts and parts[-1].run is not None:
                assert end.guard is not None
                guard = maker.numbers.get((end.guard.slot, end.guard.type), -1)
            if end.kind == "branch" and guard < 0:  # from its slot
                parts = maker.again(number, block.ops, body, first, ends[number], rows[number])
        last = starts[ends_at] + sum(record_count(op) for _, op in bodies[ends_at])
        slot, kind = (end.guard.slot if end.guard is not None else -1), end.kind
        if kind == "event" and events and end.op is not None and end.op.kind in _SERVED:
            kind = "met" if end.op.kind in _QUICK else "served"
        stages.append(
            Stage(tuple(parts), kind, slot, end.negated, end.target, end.other,
                  weight(program.blocks[ends_at], ends_at), first, RECORD_BYTES * last, guard, _members(end, known))
        )  # fmt: skip
    groups = [group for stage in stages for group in grouped(stage.parts)]
    called = sum(group[0].whole is None and group[0].run is None and not group[0].spends for group in groups)
    if 100 * called > MOST_CALLS * len(groups):
        return None
    read = {(slot, storage) for stage in stages for run in runs_of(stage.parts) for _, slot, storage in run.read}
    going = [part.rounds for stage in stages for part in stage.parts if part.rounds is not None]
    read |= {(slot, storage) for run in going for _, slot, storage in run.read}
    constants = sorted((*key, value) for key, value in known.items() if key is not None and key in read)
    return Op("unison", detail=Unison(tuple(stages), barrier, tuple(constants))), maker.copies


def _goes_round(run: Run, barrier: int) -> bool:
    """Whether a run over several blocks is over at its end, or a CTA may go round in it as a whole."""
    if run.again is None:
        return True
    loads = all(step.kind != "st" for step in run.steps) and not finds_addresses(run.steps)
    return barrier < 0 and loads


def runs_of(parts: Iterable[Part]) -> Iterator[Run]:
    """What parts do that call no records."""
    for part in parts:
        yield from (run for run in (part.run, part.whole) if run is not None)


def grouped(parts: Sequence[Part]) -> Iterator[Sequence[Part]]:
    """Parts that are done together if all lanes run, the others one by one."""
    at = 0
    while at < len(parts):
        yield parts[at : at + parts[at].covers]
        at += parts[at].covers


def finds_addresses(steps: Sequence[runs.Step]) -> bool:
    """Whether addresses are made of words that have been loaded, which are rarely in a row."""
    loaded: set[int] = set()
    for step in steps:
        if step.space and step.sources[0][0] in loaded:
            return True
        if step.kind == "ld" or any(number in loaded for number, _, _ in step.sources):
            loaded |= {number for number, _, _ in step.targets}
    return False


def _before(ops: Sequence[Op], live: int) -> int:
    """Words that are read in operations and behind them."""
    for op in reversed(ops):
        live = live_before(op, live)
    return live


def _members(end: Terminator, known: runs.Constants) -> int:
    if end.kind != "warpsync" or end.index is None or known.get((end.index.slot, end.index.type)) == _EVERYBODY:
        return -1
    return end.index.slot


def _behind(program: Program, ends: list[int], number: int) -> int:
    """Words that are read behind a block; behind its branch, whose guard is at hand."""
    end = program.blocks[number].terminator
    if end.kind != "branch":
        return ends[number]
    words = 0
    for target in (end.target, end.other):
        words |= _before(program.blocks[target].ops, ends[target])
    return words


def _only_barrier(program: Program, known: runs.Constants) -> int | None:
    """Number of the barrier that all threads come to; -1 if there is none; None where there are other barriers."""
    numbers: set[int | None] = set()
    for block in program.blocks:
        op = block.terminator.op
        if block.terminator.kind == "barrier":
            assert op is not None
            plain = op.kind == "bar" and op.of(Action).name == "sync" and op.src[1:] in ((), (None,), (None, None))
            ref = op.src[0] if plain else None
            numbers.add(known.get((ref.slot, ref.type)) if ref is not None else None)
    if not numbers:
        return -1
    number = numbers.pop()
    return number if not numbers and number is not None and 0 <= number < 16 else None


def _fits(program: Program) -> bool:
    """Whether a kernel can run in unison, and gains by it: one that loops in single handlers does not."""
    if len(program.functions) != 1 or not program.optimised or program.takes_stack or program.clustered:
        return False
    if program.counters or sum(len(block.ops) for block in program.blocks) > MOST_FUSED:
        return False
    return all(_can_be_called(op) for block in program.blocks for op in block.ops)


def _can_be_called(op: Op) -> bool:
    if op.kind == "sreg":
        name = op.of(SpecialRegister).name
        return not name.startswith(("%clock", "%globaltimer"))
    alone = op.kind in LANE_ACCESS and OPERATIONS[op.kind].access != "atomic"
    return op.kind in _CALLED and not (alone and effects_of(op))


class _Maker:
    """Makes parts. known: slots that are the same in all lanes; at: where the next record to call will be; guards: of
    the branches at the ends of blocks."""

    def __init__(self, known: runs.Constants, at: int, guards: list[Key | None]) -> None:
        self.known, self.at, self.guards = known, at, guards
        self.copies: list[Copy] = []
        #: Of the last part: numbers of slots.
        self.numbers: dict[Key, int] = {}

    def again(
        self, number: int, ops: Sequence[Op], body: Sequence[tuple[str, Op]], record: int, live: int, rows: int
    ) -> list[Part]:
        """As `parts`, in place of the last ones."""
        del self.copies[self._before[0] :]
        self.at = self._before[1]
        return self.parts(number, ops, body, record, live, rows)

    def parts(
        self, number: int, ops: Sequence[Op], body: Sequence[tuple[str, Op]], record: int, live: int, rows: int
    ) -> list[Part]:
        """Parts of block `number`, whose records begin at `record`; live: words that are read behind its operations;
        rows: words that differ along a row of threads."""
        self._before = (len(self.copies), self.at)
        if body and body[0][1].kind == "run" and body[0][1].of(Run).again is not None:  # it is all of its block
            return [self._copy(list(body), record, number)._replace(rounds=body[0][1].of(Run))]
        pieces = list(self._pieces(ops, body, record))
        guard = self.guards[number]
        after = [live]  # what is read behind each piece
        for inside, _, _ in reversed(pieces):
            for op in reversed(inside):
                live = live_before(op, live)
            after.append(live)
        after.reverse()
        rows_at = list(accumulate((inside for inside, _, _ in pieces), lambda so, ops: behind(ops, so), initial=rows))
        parts: list[Part] = []
        at = 0
        while at < len(pieces):
            whole, end = self._across(pieces, at)
            if whole is None:
                at = self._part(parts, pieces, at, len(pieces), after, rows_at)
                continue
            first = len(parts)
            done = whole.operation(after[end], rows=rows_at[at]).of(Run)
            while at < end:
                at = self._part(parts, pieces, at, end, after, rows_at)
            known = whole.numbers.get(guard, -1) if guard is not None else -1
            parts[first] = parts[first]._replace(whole=done, covers=len(parts) - first, number=known)
        return parts

    def _part(
        self, parts: list[Part], pieces: list[_Piece], at: int, most: int, after: list[int], rows: list[int]
    ) -> int:
        """Append the part that begins at a piece and ends before `most`; the number of the first piece behind it."""
        grown, end = self._grow(pieces, at, most)
        if end > at:
            done = grown.operation(after[end], rows=rows[at])
            self.numbers = grown.numbers
            parts.append(Part(done.of(Run), pieces[at][1], -1))
            return end
        (op,), place, name = pieces[at]
        parts.append(self._copy([(name, op)], place, -1))
        return at + 1

    def _across(self, pieces: list[_Piece], at: int) -> tuple[runs._GrowingRun | None, int]:
        """A run that begins with an operation that all lanes have to be there for: one across lanes, or an access to
        several words. And the number of the first piece that is not in it."""
        (first, *others), _, _ = pieces[at]
        if others:
            return None, at
        if first.kind in ACROSS:
            begin = partial(runs._GrowingRun, self.known, across=True)
        elif first.kind in LANE_ACCESS and not refusal(first, _WIDE):
            begin = partial(runs._GrowingRun, self.known, specials=SPECIALS, widths=(1, *_WIDE))
        else:
            return None, at
        run, end, _ = self._longest(pieces, at, len(pieces), begin)
        return (run, end) if end > at and not finds_addresses(run.steps) else (None, at)

    def _copy(self, records: list[tuple[str, Op]], place: int, block: int) -> Part:
        """A part that calls records."""
        self.copies.append(Copy(records, block))
        at, self.at = self.at, self.at + RECORD_BYTES * self.copies[-1].size()
        return Part(None, place, at, block >= 0 or any(op.kind == "atom" for _, op in records))

    def _grow(self, pieces: list[_Piece], at: int, most: int) -> tuple[runs._GrowingRun, int]:
        """A run of pieces from one on, and the number of the first that is not in it."""
        run, end, _ = self._longest(pieces, at, most, lambda: runs._GrowingRun(self.known, specials=SPECIALS))
        return run, end

    def _longest(
        self, pieces: list[_Piece], at: int, most: int, begin: Callable[[], runs._GrowingRun]
    ) -> tuple[runs._GrowingRun, int, int]:
        """As many whole pieces as a run takes; the first that is not in it, and its steps."""
        run, end, steps = begin(), at, 0
        while end < most and steps + len(pieces[end][0]) <= MOST_STEPS:
            if not all(run.add(op) for op in pieces[end][0]):
                run = begin()
                for inside, _, _ in pieces[at:end]:
                    for op in inside:
                        run.add(op)
                break
            steps += len(pieces[end][0])
            end += 1
        return run, end, steps

    def _pieces(
        self, ops: Sequence[Op], body: Sequence[tuple[str, Op]], record: int
    ) -> Iterator[tuple[list[Op], int, str]]:
        """Operations that begin at a record of their own: each with where that is, and its handler's name."""
        at = skipped = 0
        for name, op in body:
            size = RECORD_BYTES * record_count(op)
            if isinstance(op.detail, BoundedRun):
                pass
            elif skipped > 0:  # a region's operations one by one
                skipped -= size
            elif op.kind == "run":
                steps = len(op.of(Run).steps)
                yield list(ops[at : at + steps]), record, ""
                at, skipped = at + steps, op.imm
            else:
                yield [op], record, name
                at += 1
            record += size


__all__ = ["MOST_FUSED", "Block", "Copy", "Part", "Stage", "form"]
