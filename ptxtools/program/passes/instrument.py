"""Instrument a program for checkers: events before memory accesses and around synchronisation.

Everything else stays as it is, slots included, so that both engines run it; each look leaves the native code, which
makes a checked run slower by orders of magnitude. What serves the events is registered for these kinds:

"check.access"  src = (address, guard or None, and what a plain store stores); `imm`, `space` as in the access; `Look`.
                Where accesses may be skipped, dst[0] = the lanes that make it, which guards the access then, and
                src[2:] what it loads
"check.arrive"  before a barrier or an mbarrier operation: src = (barrier number or address, thread count or None); a
                `Meeting`
"check.leave"   behind it; and behind bar.warp.sync: src[0] is the member mask
"check.fence"   before fence.proxy.async: src = (None, None, guard)

`operations.Operation.seen` says of which operations.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from ptxtools.program.details import Action, Look, Meeting, ThreadCopy
from ptxtools.program.operations import LANE_ACCESS, OPERATIONS, strength
from ptxtools.program.program import Block, FunctionCode, Op, Program, Ref, Terminator
from ptxtools.semantics.types import bits_of

_SLOT = 64  # bytes of the frame for the predicate that says who makes an access


def instrument(program: Program, *, skip: bool = False) -> Program:
    """The program with looks. skip: those at loads, stores and atomics decide which lanes make the access."""
    if skip:
        program = _wider(program)
    made = _Rewriter(program, skip)
    return replace(program, blocks=made.blocks, functions=made.functions, cache={})


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
        return ref if ref is None or ref.slot < frame else Ref(ref.slot + _SLOT, ref.type)

    def op_moved(op: Op) -> Op:
        dst, src = tuple(map(moved, op.dst)), tuple(map(moved, op.src))
        return replace(op, dst=dst, src=src, guard=moved(op.guard))

    end = block.terminator
    held = None if end.op is None else op_moved(end.op)
    end = replace(end, guard=moved(end.guard), index=moved(end.index), op=held)
    return Block([op_moved(op) for op in block.ops], end)


class _Rewriter:
    def __init__(self, program: Program, skip: bool) -> None:
        self.blocks: list[Block] = []
        self._lines, self._skip = program.lines, skip
        self._starts: list[int] = []
        self._number = -1  # of the function that is being rewritten
        firsts = {function.first: number for number, function in enumerate(program.functions)}
        for place, block in enumerate(program.blocks):
            self._number = firsts.get(place, self._number)
            if place in firsts:
                self._allowed = Ref(program.functions[self._number].frame_bytes - _SLOT, "pred")
            self._starts.append(len(self.blocks))
            self._block(block)
        for block in self.blocks:
            self._renumber(block.terminator)
        self.functions = [self._function(function) for function in program.functions]

    def _function(self, function: FunctionCode) -> FunctionCode:
        return replace(function, first=self._starts[function.first])

    def _block(self, block: Block) -> None:
        """The block, cut at each look; targets are numbers of old blocks, or -2 - number for new ones."""
        ops: list[Op] = []
        for op in block.ops:
            looks = _before(op, self._number)
            if self._skip and op.kind in LANE_ACCESS and looks:
                looks, op = self._deciding(looks, op)
            for look in looks:
                ops = self._cut(ops, look)
            ops.append(op)
            leave = _behind(op)
            if leave is not None:
                ops = self._cut(ops, leave)
        self._end(ops, block.terminator)

    def _deciding(self, looks: list[Op], op: Op) -> tuple[list[Op], Op]:
        """Each look lets only those pass that the one before it did, and the access only those of the last."""
        allowed, decided = self._allowed, list[Op]()
        for look in looks:
            if decided:
                look = replace(look, src=(look.src[0], allowed, *look.src[2:]), detail=_unnegated(look.of(Look)))
            # What the access loads is a source: as a destination it would count as written in every lane.
            look = replace(look, src=(*look.src, *op.dst), src_types=(*look.src_types, *op.dst_types))
            decided.append(replace(look, dst=(allowed,), dst_types=("pred",)))
        return decided, replace(op, guard=allowed, negated=False)

    def _cut(self, ops: list[Op], look: Op) -> list[Op]:
        following = -2 - (len(self.blocks) + 1)
        self.blocks.append(Block(ops, Terminator("event", op=look, other=following, where=look.where)))
        return []

    def _end(self, ops: list[Op], end: Terminator) -> None:
        op = end.op
        for look in () if op is None else _before(op, self._number):
            ops = self._cut(ops, look)
        leave = None if op is None else _behind(op)
        if end.kind == "warpsync" and "bar.warp.sync" in self._lines[end.where][2]:
            src = (end.index, None, None)
            leave = Op(
                "check.leave", None, (), src, (), ("b32", "u32", "pred"), detail=Meeting("warp", False), where=end.where
            )
        end = replace(end)
        self.blocks.append(Block(ops, end))
        if leave is not None:
            behind = Terminator("event", op=leave, other=end.other, where=end.where)
            end.other = -2 - len(self.blocks)
            self.blocks.append(Block([], behind))

    def _renumber(self, end: Terminator) -> None:
        end.target, end.other = self._new(end.target), self._new(end.other)
        if end.kind == "switch":
            end.targets = tuple(self._new(target) for target in end.targets)

    def _new(self, number: int) -> int:
        return self._starts[number] if number >= 0 else -2 - number if number <= -2 else -1


def _unnegated(look: Look) -> Look:
    return Look(look.action, look.size, look.strong, False, look.lanes, look.function)


def _before(op: Op, function: int) -> list[Op]:
    row = OPERATIONS[op.kind]
    if row.seen == "access":
        looks = [_access(part, function) for part in _runs(op)]
    elif row.seen == "copy":
        looks = _copy(op, function)
    elif row.seen == "fence":
        looks = [_fence(op)]
    elif row.resumes:
        looks = []  # the look stands before the operation that has left lanes to it
    else:
        looks = [_meeting(op, "check.arrive")]
    return [look for look in looks if look is not None]


def _behind(op: Op) -> Op | None:
    return _meeting(op, "check.leave")


def _fence(op: Op) -> Op | None:
    """The look at a fence between the generic and the asynchronous proxy."""
    if op.opcode is not None and op.opcode.text.startswith("fence.proxy.async"):
        return Op("check.fence", op.opcode, (), (None, None, op.guard), (), ("u32", "u32", "pred"),
                  detail=Meeting("fence", op.negated), where=op.where)  # fmt: skip
    return None


def _runs(op: Op) -> list[Op]:
    """The access; of a store that leaves elements out one for each stretch of memory that it writes."""
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
    strong = bool(strength(op.opcode))
    detail = Look(OPERATIONS[op.kind].access, _size(op), strong, op.negated, _lanes(op), function)
    stored = slice(1, None) if op.kind == "st" else slice(0)
    src = (op.src[0], op.guard, *op.src[stored])
    types = (op.src_types[0], "pred", *op.src_types[stored])
    return Op("check.access", op.opcode, (), src, (), types, imm=op.imm, space=op.space, detail=detail, where=op.where)


def _copy(op: Op, function: int) -> list[Op | None]:
    """The looks at an asynchronous copy of one thread: at what it reads, unless that is decided as it runs; at what it
    writes."""
    made = op.of(ThreadCopy)
    target = Op("check.access", op.opcode, (), (op.src[1], op.guard), (), ("u64", "pred"), space="shared",
                detail=Look("copy", made.size, False, op.negated, 32, function), where=op.where)  # fmt: skip
    if made.rule:
        return [target]
    source = Op("check.access", op.opcode, (), (op.src[0], op.guard), (), (op.src_types[0], "pred"), imm=op.imm,
                space=op.space, detail=Look("read", made.size, False, op.negated, 32, function),
                where=op.where)  # fmt: skip
    return [source, target]


def _size(op: Op) -> int:
    """Bytes of one lane's access; matrices are rows of 16 bytes."""
    if op.kind in ("ldmatrix", "stmatrix"):
        return 16
    types = op.dst_types if op.kind in ("ld", "atom") else op.src_types[1:]
    return sum(max(1, bits_of(t) // 8) for t in types)


def _lanes(op: Op) -> int:
    """Lanes whose addresses count: a row each (9.7.14.5.15)."""
    if op.kind not in ("ldmatrix", "stmatrix") or op.opcode is None:
        return 32
    matrices = next((n for n in (1, 2, 4) if op.opcode.has(f"x{n}")), 4)
    return min(32, matrices * (16 if op.opcode.has("m16n16") else 8))


def _meeting(op: Op, kind: str) -> Op | None:
    """The look at a barrier or an mbarrier operation."""
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
    elif seen == "arrive on mbarrier":
        what = "mbarrier arrive"
    else:
        return None
    src = (number, count, op.guard)
    return Op(kind, op.opcode, (), src, (), (*types, "u32", "pred"), imm=op.imm, space=op.space,
              detail=Meeting(what, op.negated), where=op.where)  # fmt: skip
