"""A program whose threads can be interrupted at each access, and whose accesses may come late: for `--memory weak`."""

from __future__ import annotations

import random

from ptxtools.program.operations import OPERATIONS, SINGLE_ACCESSES, strength
from ptxtools.program.program import Block, Op, Program, Ref, Terminator
from ptxtools.records import replace

from .machine import element_bytes
from .registry import EXECUTORS

#: How far an operation is moved, in operations.
_FARTHEST = 100
#: Kinds of operations of a thread that the memory model orders: its accesses and fences.
ORDERED = frozenset(kind for kind, row in OPERATIONS.items() if row.seen in ("access", "fence") and not row.warp)


def is_local(op: Op) -> bool:
    """Whether an operation only computes on registers of its thread."""
    return EXECUTORS[op.kind].__module__.rpartition(".")[2] in ("compute", "counts")


def reordered(program: Program, seed: int) -> Program:
    """The program with each operation that is not local at the beginning of a block of its own, and local ones where
    their results are used, so that these do not decide a read before that. An access that acquires nothing may have
    moved behind what does not depend on it, as the seed has it. Views (`weak.py`) do the rest."""
    generator = random.Random(seed)
    pieces = []
    for block in program.blocks:
        ops = list(block.ops)
        for at in range(len(ops) - 1, -1, -1):
            _sink(ops, at, generator)
        pieces.append(_cut(ops))
    firsts = [0]
    for piece in pieces:
        firsts.append(firsts[-1] + len(piece))
    blocks: list[Block] = []
    for number, (block, piece) in enumerate(zip(program.blocks, pieces, strict=True)):
        for at, ops in enumerate(piece):
            last = at == len(piece) - 1
            end = _moved(block.terminator, firsts) if last else Terminator("jump", target=firsts[number] + at + 1)
            blocks.append(Block(ops, end))
    functions = [replace(function, first=firsts[function.first]) for function in program.functions]
    return replace(program, blocks=blocks, functions=functions, cache={})


def _moved(end: Terminator, firsts: list[int]) -> Terminator:
    def at(number: int) -> int:
        return firsts[number] if number >= 0 else number

    # The targets of an indirect call are functions, those of a switch blocks.
    targets = tuple(map(at, end.targets)) if end.kind == "switch" else end.targets
    return replace(end, target=at(end.target), other=at(end.other), targets=targets)


def _cut(ops: list[Op]) -> list[list[Op]]:
    found: list[list[Op]] = [[]]
    for op in ops:
        if not is_local(op):
            found.append([])
        found[-1].append(op)
    return found if found[0] or len(found) == 1 else found[1:]


def _sink(ops: list[Op], at: int, generator: random.Random) -> None:
    op, end = ops[at], min(len(ops), at + _FARTHEST) - 1
    if is_local(op):
        while at < end and _is_independent(op, ops[at + 1]):
            ops[at], ops[at + 1] = ops[at + 1], op
            at += 1
        return
    late = op.kind in SINGLE_ACCESSES and strength(op.opcode) not in ("acquire", "acq_rel")
    if not late or generator.random() < 0.35:
        return
    while at < end and _passes(op, ops[at + 1]) and generator.random() < 0.9:
        ops[at], ops[at + 1] = ops[at + 1], op
        at += 1


def _is_independent(op: Op, other: Op) -> bool:
    """Whether an operation needs no register of the one behind it, nor the converse."""
    if _slots(op.dst) & (_slots(other.dst) | _slots(other.src) | _slots((other.guard,))):
        return False
    return not _slots(other.dst) & (_slots(op.src) | _slots((op.guard,)))


def _passes(op: Op, other: Op) -> bool:
    """Whether an access may take effect after the operation behind it."""
    if not _is_independent(op, other):
        return False
    if is_local(other):
        return True
    order = strength(other.opcode)
    if other.kind not in SINGLE_ACCESSES or order in ("release", "acq_rel"):
        return False
    if order and order == strength(op.opcode) and order in ("volatile", "mmio"):
        return False
    return _are_apart(op, other)


def _slots(refs: tuple[Ref | None, ...]) -> set[tuple[int, str]]:
    return {(ref.slot, ref.type) for ref in refs if ref is not None}


def _are_apart(a: Op, b: Op) -> bool:
    """Whether two accesses share no byte: they have one base, and other offsets."""
    if a.space != b.space or _slots(a.src[:1]) != _slots(b.src[:1]) or a.src_types[:1] != b.src_types[:1]:
        return False
    return a.imm + _bytes(a) <= b.imm or b.imm + _bytes(b) <= a.imm


def _bytes(op: Op) -> int:
    if op.kind == "ld":
        return element_bytes(op.dst_types[0]) * len(op.dst)
    return element_bytes(op.src_types[1]) * (len(op.src) - 1)  # of a cas more than its bytes
