"""Runs: neighbouring operations that become one handler, with values in registers between them.

A run is an operation of kind "run": its detail says what each step computes, over numbered operands, and which
operands are in which slots of the frame before and after it. Operations that only map slots to slots can be in it.
Slots that nobody reads after the run are not written at all.

A region is a run that loads and stores, too, where addresses are as they mostly are (`handlers/regions.py`). Behind its
record are those of the same operations without it: a region that meets anything unusual has changed nothing, and goes
on there.

A run that is all of a block whose branch leads back to it goes round by itself (`Again`); the branch behind it only
ends the last round.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxtools.program.details import Detail, Lanes, Measured, Run, SpecialRegister
from ptxtools.program.operations import ACROSS, COUNTS, ENDINGS, LANE_ACCESS, LANEWISE
from ptxtools.program.program import Block, Op, Program, Ref
from ptxtools.records import NamedTuple, dataclass, field, replace

from .keys import RECORD_BYTES, record_count
from .live_words import Key, live_before, live_ends, words_of
from .refusals import REGION_SPACES, refusal
from .rows import along_rows, behind

#: Longest run, and most operations of one program that become part of runs: compiling them takes about 1 ms each.
MOST_STEPS, MOST_FUSED = 48, 400
#: Programs with more operations than this get runs in loops alone, unless those have as many: looking for runs would
#: take longer than they gain.
MOST_OPERATIONS = 4000

#: Bytes of each lane in an access of a region, and the lanes that a measure looks at.
_WORD, _LANES = 4, 32

#: An operand of a step: number or -1, storage class, type.
StepOperand = tuple[int, str, str]
#: How a run goes round: number of the branch's guard, its value in lanes that go back, and whether that is to `target`.
Again = tuple[int, bool, bool]
#: Slots that are the same in all lanes, always, and their numbers where those are known before a launch.
Constants = dict[Key | None, int | None]


class Step(NamedTuple):
    """One operation of a run; a "count", which has neither targets nor sources; or in a region a "measure", whose
    access is the next step that is none. text: its opcode; guard: a number or
    -1; before: numbers of what a guarded step's destinations held before; space, imm: of a load or store, whose address
    is the sum of its first source and imm; words: it finds the word with the number in its first source, behind an
    address that is the same in all lanes."""

    kind: str
    text: str
    detail: Detail | None
    targets: tuple[StepOperand, ...]
    sources: tuple[StepOperand, ...]
    guard: int
    negated: bool
    before: tuple[int, ...]
    space: str = ""
    imm: int = 0
    words: bool = False


def form_runs(
    program: Program, *, everywhere: bool, regions: bool = False, singly: dict[int, Sequence[Op]] | None = None
) -> list[list[Op]]:
    """Operations of each block, with runs in place of their operations: in loops, or `everywhere`. regions: with
    accesses to memory, too. singly: takes the operations of each run that is no region, by the run's identity."""
    bodies = [list(block.ops) for block in program.blocks]
    worth, large = loops(program.blocks), sum(map(len, bodies)) > MOST_OPERATIONS
    if everywhere and not large:
        worth += sorted(set(range(len(bodies))) - set(worth))
    if not worth or not program.optimised or sum(len(bodies[number]) for number in worth) > MOST_OPERATIONS:
        return bodies
    known = constants(program) if regions else None
    rows = along_rows(program) if regions and not large else [-1] * len(bodies)
    live: list[int] | None = None
    budget = MOST_FUSED
    for number in worth:
        ranges = list(stretches(bodies[number], known))
        fused = sum(map(_work, (op for start, end in ranges for op in bodies[number][start:end])))
        if not fused or fused > budget:
            continue
        budget -= fused
        live = live if live is not None else live_ends(program)
        bodies[number] = _replace(
            bodies[number], ranges, live[number], _way_back(program, number), known, rows[number], singly
        )
    return bodies


def constants(program: Program) -> Constants:
    """What is known of slots that are filled when a frame is made, and not written later; of several functions' slots,
    nothing."""
    if len(program.functions) != 1:
        return {}
    (function,) = program.functions
    written = {ref.slot for block in program.blocks for op in block.ops for ref in op.dst if ref is not None}
    numbers: Constants = {(slot, kind): value for slot, kind, value in function.constants if slot not in written}
    launched = function.launch_constants
    return numbers | {(one.slot, one.storage): None for one in launched if one.slot not in written}


def _way_back(program: Program, number: int) -> tuple[Ref, bool, bool] | None:
    """If a block's branch leads back to it: guard, its value in lanes that go back, whether that is to `target`."""
    end = program.blocks[number].terminator
    if end.kind != "branch" or end.guard is None or (end.target == number) == (end.other == number):
        return None
    taken = end.target == number
    return end.guard, taken != end.negated, taken


def loops(blocks: list[Block]) -> list[int]:
    """Blocks inside of loops, those of the shortest loops first."""
    back = {
        (number - target, target)
        for number, block in enumerate(blocks)
        if not ENDINGS[block.terminator.kind].returns
        for target in (block.terminator.target, block.terminator.other, *block.terminator.targets)
        if 0 <= target <= number
    }
    span: dict[int, int] = {}
    after = list(range(len(blocks) + 1))  # a block from which on none before the next without a span is without one
    for length, target in sorted(back):
        number = _next(after, target)
        while number <= target + length:
            span[number] = length
            after[number] = number + 1
            number = _next(after, number)
    return sorted(span, key=lambda number: (span[number], number))


def _next(after: list[int], number: int) -> int:
    """Where the way from a number ends in a forest, whose ways become shorter."""
    while after[number] != number:
        after[number] = number = after[after[number]]
    return number


def stretches(
    ops: list[Op], known: Constants | None = None, *, guarded: bool = False, least: int = 2
) -> Iterator[tuple[int, int]]:
    """Ranges of at least so many neighbours that can be one run; known: as of `_GrowingRun`; guarded: all accesses of
    one may have guards."""
    start = 0
    while start < len(ops):
        run = _GrowingRun(known)
        end, work = start, 0
        while end < len(ops) and work + _work(ops[end]) <= MOST_STEPS and run.add(ops[end]):
            work += _work(ops[end])
            end += 1
        while end > start and ops[end - 1].kind == "measure":  # its access is not part of the run
            end -= 1
        accesses = [op for op in ops[start:end] if op.kind in LANE_ACCESS]
        if (
            accesses and not guarded and all(op.guard is not None for op in accesses)
        ):  # mostly for few lanes: one by one
            yield from ((start + a, start + b) for a, b in stretches(ops[start:end]))
        elif work >= least:
            yield start, end
        start = max(end, start + 1)


def _work(op: Op) -> int:
    """What an operation adds to a run's length: those that count do nothing for the kernel."""
    return int(op.kind not in COUNTS)


# --- one run ----------------------------------------------------------------------------------------------------------


_VOTES = ("ballot", "all", "any", "uni")


def _exchange(op: Op, known: Constants) -> Lanes | None:
    """What an operation across lanes does if all lanes run and name each other, where that is known before."""
    assert op.opcode is not None
    numbers = [known.get((ref.slot, ref.type)) if ref is not None else None for ref in op.src[1:]]
    if op.kind not in ACROSS or op.guard is not None:
        return None
    members = numbers[2:] if op.kind == "shfl" else numbers
    if members and members != [0xFFFF_FFFF]:
        return None
    if op.kind == "activemask":
        return Lanes("activemask")
    if op.kind == "redux":
        action = next((name for name in ("add", "and", "or", "xor", "min", "max") if op.opcode.has(name)), "")
        return Lanes(f"{action} {'s' if op.src_types[0].startswith('s') else 'u'}") if action else None
    if op.kind == "vote":
        return Lanes(next(mode for mode in _VOTES if op.opcode.has(mode)))
    amount, limits = numbers[:2]
    if amount is None or limits is None:
        return None
    mode = next(mode for mode in ("up", "down", "bfly", "idx") if op.opcode.has(mode))
    pairs = [_source_lane(mode, lane, amount & 31, limits) for lane in range(_LANES)]
    return Lanes("order", tuple(lane for lane, _ in pairs), tuple(taken for _, taken in pairs))


def _source_lane(mode: str, lane: int, amount: int, limits: int) -> tuple[int, bool]:
    """Whose value a lane gets from shfl, and whether that is as asked (9.7.9.6)."""
    clamp, segment = limits & 31, limits >> 8 & 31
    least = lane & segment
    most = least | clamp & ~segment
    if mode == "up":
        source = lane - amount
        taken = source >= most
    else:
        moved = {"down": lane + amount, "bfly": lane ^ amount, "idx": least | amount & ~segment}
        source = moved[mode]
        taken = source <= most
    return (source, True) if taken else (lane, False)


@dataclass(slots=True)
class _GrowingRun:
    """A growing run. Operands have numbers; `numbers` and `written` have the current one of each slot. read: operands
    whose values come from slots, with their numbers. constants: of the program, None where accesses cannot be part of
    it; specials: special registers that it may read; across: all lanes run it, so that it may have operations across
    them, but no accesses; widths: words of a lane in accesses that it may have, all lanes run it if those are several;
    accessed: kinds and spaces of accesses so far."""

    constants: Constants | None = None
    specials: frozenset[str] = frozenset()
    across: bool = False
    widths: tuple[int, ...] = (1,)
    accessed: set[tuple[str, str]] = field(default_factory=set)
    steps: list[Step] = field(default_factory=list)
    read: list[tuple[int, Ref]] = field(default_factory=list)
    numbers: dict[Key, int] = field(default_factory=dict)
    written: dict[Key, int] = field(default_factory=dict)
    count: int = 0

    def add(self, op: Op) -> bool:
        """Add an operation; False if it cannot be part of this run."""
        fits = op.kind in LANEWISE or op.kind == "count" or self._measures(op) or self._accesses(op)
        if op.kind == "sreg":
            fits = op.of(SpecialRegister).name in self.specials
        exchange = None
        if self.across and op.kind in ACROSS and self.constants is not None:
            exchange = _exchange(op, self.constants)
            if exchange is not None:
                op = replace(op, detail=exchange, src=op.src[:1], src_types=op.src_types[:1])
                fits = True
        if not fits or not self._clean(op):
            return False
        guard = self._source(op.guard) if op.guard is not None else -1
        access = op.kind in LANE_ACCESS or op.kind == "measure"
        types = tuple(ref.type if ref else "" for ref in op.src)
        types = types if access else op.src_types or types
        sources = tuple(
            (self._source(ref), ref.type, t) if ref is not None else (-1, "", t)
            for ref, t in zip(op.src, types, strict=False)
        )
        before: tuple[int, ...] = ()  # lanes without the guard keep the old value
        if guard >= 0:
            before = tuple(self._source(ref) if ref is not None else -1 for ref in op.dst)
        types = tuple(ref.type if ref else "" for ref in op.dst)
        types = types if access else op.dst_types or types
        targets = tuple(self._target(ref, t) for ref, t in zip(op.dst, types, strict=False))
        text = op.opcode.text if op.opcode is not None else ""
        place = (op.space, _signed(op.imm)) if access else ("", 0, self._finds_words(op))
        if access:
            text = ""  # one handler for loads of all types
        if op.kind in LANE_ACCESS:
            self.accessed.add((op.kind, op.space))
        self.steps.append(Step(op.kind, text, op.detail, targets, sources, guard, op.negated, before, *place))
        return True

    def _measures(self, op: Op) -> bool:
        """Whether this measures an access that a region may make."""
        if op.kind != "measure" or self.constants is None or op.space not in REGION_SPACES:
            return False
        detail = op.of(Measured)
        return (detail.size, detail.lanes) == (_WORD, _LANES)

    def _accesses(self, op: Op) -> bool:
        """Whether this is an access that a region makes: no load behind a store that it might see."""
        if self.constants is None or self.across or op.kind not in LANE_ACCESS or refusal(op, self.widths):
            return False
        if len(op.dst) + len(op.src) > 2 and (op.guard is not None or op.src[0] is None):
            return False
        return op.kind == "st" or ("st", op.space) not in self.accessed

    def _finds_words(self, op: Op) -> bool:
        if not self.constants or op.guard is not None or op.opcode is None or len(op.src) != 3:
            return False
        _, size, start = ((ref.slot, ref.type) if ref is not None else None for ref in op.src)
        if op.opcode.text not in ("mad.wide.s32", "mad.wide.u32") or size is None:
            return False
        return self.constants.get(size) == 4 and start in self.constants

    def _clean(self, op: Op) -> bool:
        """Whether no operand overlaps a slot that the run has written as another one."""
        for ref in (*op.src, op.guard, *(op.dst if op.guard is not None else ())):
            if ref is None or (ref.slot, ref.type) in self.written:
                continue
            if any(words_of(ref.slot, ref.type) & words_of(*other) for other in self.written):
                return False
        return True

    def _source(self, ref: Ref) -> int:
        key = (ref.slot, ref.type)
        if key not in self.numbers:
            self.numbers[key] = self.count
            self.read.append((self.count, ref))
            self.count += 1
        return self.numbers[key]

    def _target(self, ref: Ref | None, t: str) -> StepOperand:
        if ref is None:
            return (-1, "", t)
        key = (ref.slot, ref.type)
        words = words_of(*key)
        for known in (self.written, self.numbers):
            for other in [o for o in known if o != key and words_of(*o) & words]:
                del known[other]
        self.numbers[key] = self.written[key] = self.count
        self.count += 1
        return (self.written[key], ref.type, t)

    def operation(
        self, live: int, back: tuple[Ref, bool, bool] | None = None, rows: int = -1, kind: type[Run] = Run
    ) -> Op:
        """The run as one operation; `live`: words that somebody reads later; `back`: how its block leads to itself;
        rows: words that differ along a row of threads."""
        kept = {self.written[key]: key for key in self.written if words_of(*key) & live}
        read = tuple((number, ref.slot, ref.type) for number, ref in self.read)
        again: Again | None = None
        if back is not None and (back[0].slot, "pred") in self.numbers:
            again = (self.numbers[back[0].slot, "pred"], *back[1:])
        points = tuple(number for number, ref in self.read if not words_of(ref.slot, ref.type) & rows)
        points = points if self.accessed else ()
        kept_keys = tuple((n, *key) for n, key in kept.items())
        return Op("run", detail=kind(tuple(self.steps), read, kept_keys, again, points))


def _signed(value: int) -> int:
    """The constant of an access, as 64 bits are read."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _replace(
    ops: list[Op],
    ranges: list[tuple[int, int]],
    live: int,
    back: tuple[Ref, bool, bool] | None,
    known: Constants | None = None,
    rows: int = -1,
    singly: dict[int, Sequence[Op]] | None = None,
) -> list[Op]:
    """The operations of a block with runs inserted; `live`: words that are read after it; `back`: how it leads to
    itself; known: as of `_GrowingRun`; rows: as of its `operation`, in front of all; singly: as of `form_runs`."""
    result: list[Op] = []
    at = len(ops)
    for start, end in reversed(ranges):
        for op in reversed(ops[end:at]):
            live = live_before(op, live)
            result.append(op)
        region = any(op.kind in LANE_ACCESS for op in ops[start:end])
        run = _GrowingRun(known if region else None)
        for op in ops[start:end]:
            run.add(op)
        whole = run.operation(live, back if end - start == len(ops) else None, behind(ops[:start], rows))
        if region:  # in front of its operations one by one; imm: how many bytes those are
            single = _replace(ops[start:end], list(stretches(ops[start:end])), live, None, singly=singly)
            whole.imm = RECORD_BYTES * sum(map(record_count, single))
            result.extend(reversed(single))
        elif singly is not None:
            singly[id(whole)] = ops[start:end]
        result.append(whole)
        for op in reversed(ops[start:end]):
            live = live_before(op, live)
        at = start
    result.extend(reversed(ops[:at]))
    result.reverse()
    return result
