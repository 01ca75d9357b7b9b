"""A program with events for observers: before memory accesses, around synchronisation, at lines, calls and ends.

Everything else stays as it is, slots included, so that both engines run it; each event leaves the native code, which
makes an observed run slower by orders of magnitude. `machine.looks` serves the events of these kinds:

"observe.access"  src = (address, guard or None, and what a plain store stores); `imm`, `space` as in the access;
                  `Look`. Where observers say who may make accesses, dst[0] = the lanes that do, which guards the
                  access then, and src[2:] what it loads
"observe.fetch"   before the source of a cp.async is read: as of an access; src[2] is the size of the
                  source, or the predicate that ignores it, if it has one
"observe.ahead"   before a block of which there are two versions: the first, without looks at some accesses, runs if
                  this one look at all of them says so (`passes.ahead`)
"observe.arrive"  before a barrier or an mbarrier operation: src = (barrier number or address, thread count or None); a
                  `Meeting`
"observe.leave"   behind it; and behind bar.warp.sync: src[0] is the member mask
"observe.fence"   before a fence: src = (address of a tensor map or None, None, guard)
"observe.together"  before an operation of a warp: src = (guard, and its sources)
"observe.control"  before clusterlaunchcontrol.try_cancel and .query_cancel: src = (guard, and its sources)
"observe.branch"  before a branch or an indirect call with .uni: src = (guard, index or address,)
"observe.unwritten", "observe.in_flight"  before operations that touch some registers (`passes.registers`): src =
                  (guard, and its sources); a `Touch`
"observe.line"    where an instruction of the text begins: src[0] is its guard; "observe.retired" where it ends. A
                  program has them if it was lowered with `Variant.lines`
"observe.call", "observe.return"  before a call (src[0]: the address of an indirect one), and before a return
"observe.begin", "observe.exit"   at the kernel's first block, and before an exit

`operations.Operation.seen` says which operations are accesses and barriers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import groupby

from ptxtools.isa import resolve
from ptxtools.program.details import Action, Called, Guard, Look, Meeting, ThreadCopy, Touch
from ptxtools.program.operations import COUNTS, LANE_ACCESS, OPERATIONS, access_bytes, access_lanes
from ptxtools.program.program import Block, FunctionCode, Op, Program, Ref, Slot, Terminator
from ptxtools.records import dataclass, replace
from ptxtools.semantics.types import bits_of

from .ahead import covered
from .registers import IN_FLIGHT, in_flight, results, touch_of, unwritten

#: By kind of event: what finds the registers, function by function, that it is about.
REGISTERS = {"observe.unwritten": unwritten, "observe.in_flight": in_flight}
#: Opcodes that become accesses of each lane.
_TILES = re.compile(r"wmma\.(load|store)\.[\w.:]+")
_SLOT = 64  # bytes of the frame for the predicate that says who makes an access


@dataclass(frozen=True, slots=True)
class Interest:
    """What somebody wants to be told of. events: names of methods of `machine.observers.Observer`; concerned: whether
    an event that stands in the program (an "observe." operation) can matter to it; None: all of them; bounds: of
    accesses it wants to know only whether they are in bounds, so that one look at several will do ("observe.ahead")."""

    events: frozenset[str]
    concerned: Callable[[Op], bool] | None = None
    bounds: bool = False


def instrument(program: Program, interests: Iterable[Interest]) -> Program:
    """The program with the events that matter to anybody."""
    interests = tuple(interests)
    decided = any("permit" in interest.events for interest in interests)
    if decided:
        program = _wider(program)
    made = _Rewriter(program, interests, decided)
    return replace(program, blocks=made.blocks, functions=made.functions, cache={})


def _kinds(events: frozenset[str]) -> frozenset[str]:
    """Kinds of the operations that announce these events of observers."""
    return frozenset(f"observe.{kind}" for kind, wanted in _WANTED.items() if not wanted.isdisjoint(events))


_WANTED = {
    "access": {"permit", "access", "delays"}, "fetch": {"fetched"}, "arrive": {"arrive"}, "leave": {"leave"},
    "fence": {"fence"}, "together": {"together"}, "branch": {"branch"}, "control": {"control"},
    "unwritten": {"unwritten"}, "in_flight": {"in_flight"},
    "line": {"instruction", "retired"}, "retired": {"retired"}, "call": {"called"}, "return": {"returned"},
    "begin": {"cta_begun", "cta_ended", "warp_begun", "warp_ended"}, "exit": {"warp_ended"},
}  # fmt: skip


def _wider(program: Program) -> Program:
    """The program with `_SLOT` bytes more at the end of each frame: what is passed to callees lies behind it."""
    functions = program.functions
    blocks: list[Block] = []
    for number, function in enumerate(functions):
        end = functions[number + 1].first if number + 1 < len(functions) else len(program.blocks)
        blocks += [_moved(block, function.frame_bytes) for block in program.blocks[function.first : end]]
    return replace(
        program, blocks=blocks, frame_bytes=program.frame_bytes + _SLOT * program.max_frames,
        functions=[replace(function, frame_bytes=function.frame_bytes + _SLOT) for function in functions],
    )  # fmt: skip


def _moved(block: Block, frame: int) -> Block:
    def moved(ref: Ref | None) -> Ref | None:
        return ref if ref is None or ref.slot < frame else Ref(Slot(ref.slot + _SLOT), ref.type)

    def op_moved(op: Op) -> Op:
        dst, src = tuple(map(moved, op.dst)), tuple(map(moved, op.src))
        return replace(op, dst=dst, src=src, guard=moved(op.guard))

    end = block.terminator
    held = None if end.op is None else op_moved(end.op)
    end = replace(end, guard=moved(end.guard), index=moved(end.index), op=held)
    return Block([op_moved(op) for op in block.ops], end)


class _Rewriter:
    def __init__(self, program: Program, interests: tuple[Interest, ...], decided: bool) -> None:
        """interests: in the events to insert; decided: events at accesses of lanes decide which lanes make them."""
        self.blocks: list[Block] = []
        self._lines, self._functions, self._decided = program.lines, program.functions, decided
        #: Lanes may stay at a look: it has a block of its own.
        self._delayed = any("delays" in interest.events for interest in interests)
        self._interests = [(_kinds(interest.events), interest.concerned, interest.bounds) for interest in interests]
        kinds = frozenset[str]().union(*(kinds for kinds, *_ in self._interests))
        self._starts: list[int] = []
        self._number = -1  # of the function that is being rewritten
        self._met: set[int] = set()  # lines whose mbarrier operation was there already
        self._registers = {kind: find(program) for kind, find in REGISTERS.items() if kind in kinds}
        self._results = results(program) if self._registers else [{}] * len(program.functions)
        firsts = {function.first: number for number, function in enumerate(program.functions)}
        begin = Op("observe.begin", detail=Guard(False), where=_first_line(program))
        if self._wanted([begin]):  # a block of its own: loops may lead to the kernel's first one
            self._cut([], begin)
        for place, block in enumerate(program.blocks):
            self._number = firsts.get(place, self._number)
            if place in firsts:
                self._allowed = Ref(Slot(program.functions[self._number].frame_bytes - _SLOT), "pred")
            self._starts.append(len(self.blocks))
            self._block(block)
        for block in self.blocks:
            self._renumber(block.terminator)
        self.functions = [self._function(function) for function in program.functions]

    def _function(self, function: FunctionCode) -> FunctionCode:
        return replace(function, first=0 if function.first == 0 else self._starts[function.first])

    def _block(self, block: Block) -> None:
        """The block, cut at each event; targets are numbers of old blocks, or -2 - number for new ones."""
        bounded = self._decided and not self._registers and block.terminator.kind != "event"
        bounded = bounded and not any(op.kind == "mbarrier" for op in block.ops)  # of which `_met` keeps account
        ahead, known = covered(block, self._bounded) if bounded else ([], set[int]())
        for number, look in enumerate(ahead):  # each asks those that the ones before it have not refused
            src = (look.src[0], self._allowed if number else None)
            self._cut([], replace(look, src=src, dst=(self._allowed,), dst_types=("pred",)))
        if ahead:
            choice = Terminator("branch", guard=self._allowed, target=-2 - (len(self.blocks) + 1), where=ahead[0].where)
            self.blocks.append(Block([], choice))
            self._version(block, known)
            choice.other = -2 - len(self.blocks)
        self._version(block, set())

    def _bounded(self, op: Op) -> list[Op]:
        """The looks at an access, if whoever wants them is content with bounds."""
        looks = self._wanted(_before(op, self._number))
        asked = [one for look in looks for one in self._interests if self._wants(look, one)]
        return looks if all(bounds for *_, bounds in asked) else []

    def _version(self, block: Block, known: set[int]) -> None:
        """The block, without looks at the accesses at some places."""
        ops: list[Op] = []
        for place, op in enumerate(block.ops):
            if place in known:
                ops.append(op)
                continue
            if op.kind in MARKS:
                for mark in self._wanted([_mark(op)]):
                    ops = self._cut(ops, mark)
                continue
            if op.kind in COUNTS:
                ops.append(op)
                continue
            ops = self._touches(ops, op, op.kind)
            looks = self._wanted([_together(op), _control(op), *_before(op, self._number)])
            if op.kind == "mbarrier":  # waits look again and again: they come to it once
                looks = [] if op.where in self._met else looks
                self._met.add(op.where)
            if self._decided and op.kind in LANE_ACCESS and looks:
                looks, op = self._deciding(looks, op)
            for look in looks:
                ops = self._cut(ops, look)
            ops.append(op)
            for leave in self._wanted([_behind(op)]):
                ops = self._cut(ops, leave)
        self._end(ops, block.terminator)

    def _wanted(self, looks: Iterable[Op | None]) -> list[Op]:
        return [look for look in looks if look is not None and any(self._wants(look, one) for one in self._interests)]

    @staticmethod
    def _wants(look: Op, interest: tuple[frozenset[str], Callable[[Op], bool] | None, bool]) -> bool:
        kinds, matters, _ = interest
        return look.kind in kinds and (matters is None or matters(look))

    def _deciding(self, looks: list[Op], op: Op) -> tuple[list[Op], Op]:
        """Each look permits only lanes that the one before it permitted, and the access only those of the last look."""
        allowed, decided = self._allowed, list[Op]()
        for look in looks:
            if decided:
                look = replace(look, src=(look.src[0], allowed, *look.src[2:]), detail=_unnegated(look.of(Look)))
            # What the access loads is a source: as a destination it would count as written in every lane.
            look = replace(look, src=(*look.src, *op.dst), src_types=(*look.src_types, *op.dst_types))
            decided.append(replace(look, dst=(allowed,), dst_types=("pred",)))
        return decided, replace(op, guard=allowed, negated=False)

    def _cut(self, ops: list[Op], look: Op) -> list[Op]:
        if ops and self._delayed and look.kind == "observe.access":
            self.blocks.append(Block(ops, Terminator("jump", target=-2 - (len(self.blocks) + 1), where=look.where)))
            ops = []
        following = -2 - (len(self.blocks) + 1)
        self.blocks.append(Block(ops, Terminator("event", op=look, other=following, where=look.where)))
        return []

    def _touches(self, ops: list[Op], what: Op | Terminator, kind: str) -> list[Op]:
        """The looks at registers that an operation, or an end, touches."""
        for look_kind, slots in self._registers.items():
            left = self._results[self._number] if look_kind == "observe.unwritten" else ()
            touch = touch_of(what, kind, slots[self._number], self._number, left)
            if touch is not None and not (look_kind == "observe.in_flight" and kind in IN_FLIGHT):
                ops = self._cut(ops, _look_at_registers(look_kind, what, touch))
        return ops

    def _end(self, ops: list[Op], end: Terminator) -> None:
        op = end.op
        ops = self._touches(ops, end if op is None else op, end.kind if op is None else op.kind)
        if end.kind == "call" and end.callee >= 0:
            for look_kind, slots in self._registers.items():
                if look_kind == "observe.unwritten" and slots[end.callee]:
                    above = self._functions[self._number].frame_bytes
                    touch = Touch("entry", (), tuple(sorted(slots[end.callee])), (), -1, False, end.callee, above)
                    ops = self._cut(ops, _look_at_registers(look_kind, end, touch))
        ending = [_at_uniform(end), _at_ending(end)]
        before = ending if op is None else [_together(op), _control(op), *_before(op, self._number)]
        for look in self._wanted(before):
            ops = self._cut(ops, look)
        leave = self._at_meeting(end) if op is None else _behind(op)
        if end.kind == "warpsync" and "bar.warp.sync" in self._lines[end.where][2]:
            src = (end.index, None, None)
            leave = Op("observe.leave", None, (), src, (), ("b32", "u32", "pred"), detail=Meeting("warp", False),
                       where=end.where)  # fmt: skip
        end = replace(end)
        self.blocks.append(Block(ops, end))
        for look in self._wanted([leave]):
            behind = Terminator("event", op=look, other=end.other, where=end.where)
            end.other = -2 - len(self.blocks)
            self.blocks.append(Block([], behind))

    def _at_meeting(self, end: Terminator) -> Op | None:
        """The event behind where a warp meets for wmma.load and wmma.store, which are ordinary accesses."""
        found = _TILES.search(self._lines[end.where][2]) if end.kind == "warpsync" else None
        if found is None:
            return None
        return Op("observe.together", resolve(found[0]), (), (None,), (), ("pred",), detail=Guard(False),
                  where=end.where)  # fmt: skip

    def _renumber(self, end: Terminator) -> None:
        end.target, end.other = self._new(end.target), self._new(end.other)
        if end.kind == "switch":
            end.targets = tuple(self._new(target) for target in end.targets)

    def _new(self, number: int) -> int:
        return self._starts[number] if number >= 0 else -2 - number if number <= -2 else -1


def _first_line(program: Program) -> int:
    """The first instruction that the kernel still has."""
    block = program.blocks[0]
    return next((op.where for op in block.ops if op.where >= 0), block.terminator.where)


#: Operations that say where lines begin and end, and the events that they become.
MARKS = {"line": "observe.line", "line.end": "observe.retired"}


def _mark(op: Op) -> Op:
    """The event for where an instruction begins or ends."""
    src = (op.guard,) if op.kind == "line" else ()
    return Op(MARKS[op.kind], op.opcode, (), src, (), ("pred",) * len(src), detail=op.detail, where=op.where)


def _at_uniform(end: Terminator) -> Op | None:
    """The event at a branch or an indirect call with .uni."""
    if not end.uniform:
        return None
    by, type_ = (end.guard, "pred") if end.kind == "branch" else (end.index, "b64" if end.kind == "call" else "u32")
    return Op("observe.branch", None, (), (by,), (), (type_,), detail=Guard(end.negated), where=end.where)


def _at_ending(end: Terminator) -> Op | None:
    """The event at a call, or before lanes leave a function or the kernel."""
    if end.kind == "call":
        return Op("observe.call", None, (), (end.index,), (), ("b64",), detail=Called(end.callee, end.targets),
                  where=end.where)  # fmt: skip
    if end.kind in ("ret", "exit"):
        kind = "observe.return" if end.kind == "ret" else "observe.exit"
        return Op(kind, None, (), (end.guard,), (), ("pred",), detail=Guard(end.negated), where=end.where)
    return None


def _together(op: Op) -> Op | None:
    """The event before an operation that the lanes of a warp do together."""
    if op.kind == "activemask" or not (OPERATIONS[op.kind].warp or op.kind == "setmaxnreg"):
        return None
    return _with_sources("observe.together", op)


def _control(op: Op) -> Op | None:
    """The event before cluster launch control."""
    if op.opcode is None or op.opcode.family != "clusterlaunchcontrol":
        return None
    return _with_sources("observe.control", op)


def _with_sources(kind: str, op: Op) -> Op:
    return Op(kind, op.opcode, (), (op.guard, *op.src), (), ("pred", *op.src_types), detail=Guard(op.negated),
              where=op.where)  # fmt: skip


def _look_at_registers(kind: str, what: Op | Terminator, touch: Touch) -> Op:
    if isinstance(what, Terminator):
        guard = what.guard if what.kind in ("ret", "exit", "trap") else None
        return Op(kind, None, (), (guard,), (), ("pred",), detail=touch, where=what.where)
    return Op(kind, what.opcode, (), (what.guard, *what.src), (), ("pred", *what.src_types), imm=what.imm,
              space=what.space, detail=touch, where=what.where)  # fmt: skip


def _unnegated(look: Look) -> Look:
    return Look(look.action, look.size, False, look.lanes, look.function)


def _before(op: Op, function: int) -> list[Op | None]:
    row = OPERATIONS[op.kind]
    if row.seen == "access":
        return [_access(part, function) for part in _runs(op)]
    if row.seen == "copy":
        return _copy(op, function)
    if row.seen == "fence":
        return [_fence(op)]
    if row.resumes:
        return []  # the event stands before the operation that has left lanes to it
    return [_meeting(op, "observe.arrive", op.guard, op.negated)]


def _behind(op: Op) -> Op | None:
    if op.kind == "mbarrier":  # lanes that it leaves to another operation go on behind that one
        return _meeting(op, "observe.leave", op.dst[-1], True)
    return _meeting(op, "observe.leave", op.guard, op.negated)


def _fence(op: Op) -> Op:
    """The event at a fence."""
    address, kind = (op.src[0], op.src_types[0]) if op.src else (None, "u32")
    return Op("observe.fence", op.opcode, (), (address, None, op.guard), (), (kind, "u32", "pred"), imm=op.imm,
              space=op.space, detail=Meeting("fence", op.negated), where=op.where)  # fmt: skip


def _runs(op: Op) -> list[Op]:
    """The access; for a store that leaves out elements, one access for each stretch that it writes."""
    if op.kind != "st" or None not in op.src[1:]:
        return [op]
    runs: list[Op] = []
    for is_written, group in groupby(range(1, len(op.src)), lambda number: op.src[number] is not None):
        places = [0, *group]
        if is_written:
            skipped = sum(bits_of(type_name) // 8 for type_name in op.src_types[1 : places[1]])
            src = tuple(op.src[place] for place in places)
            types = tuple(op.src_types[place] for place in places)
            runs.append(replace(op, src=src, src_types=types, imm=op.imm + skipped))
    return runs


def _access(op: Op, function: int) -> Op | None:
    """The look at a memory access; parameters are not looked at."""
    if op.space == "param":
        return None
    detail = Look(OPERATIONS[op.kind].access, access_bytes(op), op.negated, access_lanes(op), function)
    stored = slice(1, None) if OPERATIONS[op.kind].access == "write" else slice(0)
    src = (op.src[0], op.guard, *op.src[stored])
    types = (op.src_types[0], "pred", *op.src_types[stored])
    return Op(
        "observe.access", op.opcode, (), src, (), types, imm=op.imm, space=op.space, detail=detail, where=op.where
    )


def _copy(op: Op, function: int) -> list[Op | None]:
    """The looks at an asynchronous copy of one thread: at what it may read, at its source, unless that is decided as it
    runs, and at its target."""
    made = op.of(ThreadCopy)
    target = Op("observe.access", op.opcode, (), (op.src[1], op.guard), (), ("u64", "pred"), space="shared",
                detail=Look("copy", made.size, op.negated, 32, function), where=op.where)  # fmt: skip
    source = Op("observe.access", op.opcode, (), (op.src[0], op.guard), (), (op.src_types[0], "pred"), imm=op.imm,
                space=op.space, detail=Look("read", made.size, op.negated, 32, function),
                where=op.where)  # fmt: skip
    fetch = replace(source, kind="observe.fetch", src=(*source.src, *op.src[2:]),
                    src_types=(*source.src_types, *op.src_types[2:]))  # fmt: skip
    return [fetch, target] if made.rule else [fetch, source, target]


def _meeting(op: Op, kind: str, guard: Ref | None, negated: bool) -> Op | None:
    """The look at a barrier or an mbarrier operation; guard, negated: for which lanes."""
    number: Ref | None = op.src[0] if op.src else None
    types = op.src_types[:1] if op.src else ("u32",)
    count: Ref | None = None
    seen = OPERATIONS[op.kind].seen
    if seen == "barrier":
        what, count = ("arrive" if op.of(Action).name == "arrive" else "bar"), op.src[1]
    elif seen == "cluster":
        what, number = f"cluster {op.of(Action).name}", None
    elif seen == "mbarrier":
        what = f"mbarrier {op.of(Action).name}"
        count = op.src[1] if len(op.src) > 1 else None  # arrivals or bytes
    elif seen == "arrive on mbarrier":
        what = "mbarrier arrive"
    else:
        return None
    src = (number, count, guard)
    counted = op.src_types[1] if count is not None and seen == "mbarrier" else "u32"
    return Op(kind, op.opcode, (), src, (), (*types, counted, "pred"), imm=op.imm, space=op.space,
              detail=Meeting(what, negated), where=op.where)  # fmt: skip
