"""Answers of cluster launch control whose cluster something may use although the request has failed (9.7.13.18)."""

from __future__ import annotations

from typing import TypeAlias

from ptxtools.program.effects import reads, writes
from ptxtools.program.operations import LANEWISE, PURE
from ptxtools.program.program import Block, Op, Program, Terminator

#: Slots that come from such an answer: the lines of the instructions that have taken them from it.
_Taken: TypeAlias = dict[int, frozenset[int]]


def takes_cluster(op: Op) -> bool:
    """Whether an operation takes the first CTA of a cluster from an answer."""
    opcode = op.opcode
    return opcode is not None and opcode.family == "clusterlaunchcontrol" and _asks(op) == "first"


def unchecked(program: Program) -> frozenset[int]:
    """Lines of instructions that take a cluster from an answer, of which something is used where `is_canceled` of
    the answer is false."""
    found: frozenset[int] | None = program.cache.get("unchecked answers")
    if found is None:
        found = program.cache["unchecked answers"] = frozenset(_used(program)) if _any(program) else frozenset()
    return found


def _any(program: Program) -> bool:
    return any(takes_cluster(op) for op in program.operations())


def _asks(op: Op) -> str:
    """What a query asks an answer for; "" for a request."""
    assert op.opcode is not None
    text = op.opcode.text
    return "cancelled" if "is_canceled" in text else "first" if "get_first_ctaid" in text else ""


def _used(program: Program) -> set[int]:
    """Follow what is taken on the ways of a failure: branches and guards whose predicate is false there are known."""
    false, used = _false(program), set[int]()
    taken: list[_Taken] = [{} for _ in program.blocks]
    waiting = list(range(len(program.blocks)))
    while waiting:
        place = waiting.pop()
        block = program.blocks[place]
        after = _through(block, dict(taken[place]), false, used)
        for number in _next(block.terminator, false):
            more = {slot: lines | taken[number].get(slot, lines) for slot, lines in after.items()}
            if more.items() - taken[number].items():
                taken[number] |= more
                waiting.append(number)
    return used


def _through(block: Block, taken: _Taken, false: set[int], used: set[int]) -> _Taken:
    """What is taken at the end of a block. used: is added to."""
    for op in [*block.ops, *([] if block.terminator.op is None else [block.terminator.op])]:
        if op.guard is not None and op.guard.slot in false and not op.negated:
            continue
        sources = set(reads(op))
        if op.opcode is not None and op.opcode.family == "selp" and op.src[2] is not None and op.src[2].slot in false:
            sources = {op.src[1].slot} if op.src[1] is not None else set()
        lines = frozenset[int]().union(*(taken.get(slot, ()) for slot in sources))
        if takes_cluster(op):
            lines = frozenset({op.where})
        elif op.kind not in PURE and op.kind not in LANEWISE:
            used |= lines
            lines = frozenset()
        for slot in writes(op):
            if lines:
                taken[slot] = lines
            elif op.guard is None:
                taken.pop(slot, None)
    end = block.terminator
    for ref in (end.guard, end.index):
        if ref is not None:
            used |= taken.get(ref.slot, frozenset())
    return taken


def _next(end: Terminator, false: set[int]) -> list[int]:
    """Blocks that may follow where a request has failed."""
    ways = [end.target, end.other, *end.targets]
    if end.kind == "branch" and end.guard is not None and end.guard.slot in false:
        ways = [end.target if end.negated else end.other]
    return [number for number in ways if number >= 0]


def _false(program: Program) -> set[int]:
    """Slots that are zero where a request has failed: `is_canceled`, and what is made of it."""
    zero: set[int] = {slot for function in program.functions for slot, _, value in function.constants if value == 0}
    found, size = set[int](), -1
    while len(found) != size:
        size = len(found)
        for op in program.operations():
            if _is_zero(op, found, zero):
                found.update(writes(op))
    return found


def _is_zero(op: Op, found: set[int], zero: set[int]) -> bool:
    opcode, slots = op.opcode, [ref.slot for ref in op.src if ref is not None]
    if op.kind == "unpack" and opcode is not None and opcode.family == "clusterlaunchcontrol":
        return _asks(op) == "cancelled"
    if not slots or found.isdisjoint(slots) or op.kind not in LANEWISE:
        return False
    if op.kind == "copy":
        return True
    if opcode is None or op.kind != "alu":
        return False
    if opcode.family == "and":
        return True
    if opcode.family in ("shr", "shl", "cvt"):
        return slots[0] in found
    if opcode.family == "setp":
        return opcode.has("ne") and len(slots) == 2 and slots[0] in found and slots[1] in zero
    return opcode.family == "or" and found.issuperset(slots)
