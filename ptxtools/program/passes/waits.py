"""Whether CTAs of a kernel can wait for each other.

Beside clusters and what the device does for a kernel, a CTA can only wait for another by going round a loop until it
reads that the other one has written something. A loop whose branches depend on nothing that is read in it goes round as
often as it would if nobody else were there. What was read before the loop does not change any more.
"""

from __future__ import annotations

from ptxtools.program.effects import successors
from ptxtools.program.operations import BLOCK, OPERATIONS
from ptxtools.program.program import SLOT_BYTES, Block, Op, Program, Ref

#: Ends of blocks at which a CTA waits for no other one.
_PLAIN = frozenset({"jump", "branch", "switch", "exit", "trap", "barrier", "warpsync"})
#: Those that decide where lanes go on.
_CHOICES = frozenset({"branch", "switch", "exit", "trap"})
#: Memory that no other CTA writes while this one runs.
_OWN, _CONSTANT = frozenset({"shared", "local"}), frozenset({"const", "param"})
#: Operations from which on it is not asked: CTAs of such kernels run for long.
_MOST = 4000


def independent(program: Program) -> bool:
    """Whether it is certain that no CTA waits for another one, if each is a cluster of its own."""
    return program.found(_independent)


def _independent(program: Program) -> bool:
    blocks = program.blocks
    if len(program.functions) != 1 or sum(len(block.ops) for block in blocks) > _MOST:
        return False
    if not all(_is_plain(block) for block in blocks):
        return False
    return not any(_may_wait(blocks, loop) for loop in _loops(blocks))


def _is_plain(block: Block) -> bool:
    end = block.terminator
    if end.kind not in _PLAIN or (end.op is not None and end.op.kind != "bar"):
        return False
    return all(OPERATIONS[op.kind].runs == BLOCK for op in block.ops)


def _may_wait(blocks: list[Block], loop: range) -> bool:
    """Whether where lanes go in a loop may depend on what others write meanwhile."""
    if not any(_hears(op) for number in loop for op in blocks[number].ops):
        return False
    inside = dict.fromkeys(loop, 0)  # what depends on reads of the loop at the start of each block, in words of 4 bytes
    waiting = list(loop)
    while waiting:
        number = waiting.pop()
        block = blocks[number]
        found = inside[number]
        for op in block.ops:
            found = _through(found, op)
        end = block.terminator
        if end.kind in _CHOICES and _meets(found, [ref for ref in (end.guard, end.index) if ref is not None]):
            return True
        if end.op is not None:
            found = _through(found, end.op)
        for following in successors(end):
            if following in inside and found & ~inside[following]:
                inside[following] |= found
                waiting.append(following)
    return False


def _hears(op: Op) -> bool:
    """Whether an operation may read what another CTA has written."""
    row = OPERATIONS[op.kind]
    return (bool(row.access) or op.kind == "mbarrier") and op.space not in _OWN | _CONSTANT


def _is_read(op: Op) -> bool:
    """Whether what an operation reads may come from others, be it by way of this CTA's own memory."""
    return bool(OPERATIONS[op.kind].access or op.kind == "mbarrier") and op.space not in _CONSTANT


def _through(found: int, op: Op) -> int:
    """What depends on reads behind an operation."""
    given = [ref for ref in op.src if ref is not None] + ([] if op.guard is None else [op.guard])
    depends = _is_read(op) or _meets(found, given)
    for ref in op.dst:
        if ref is not None and depends:
            found |= _words(ref)
        elif ref is not None and op.guard is None:
            found &= ~_words(ref)
    return found


def _meets(found: int, refs: list[Ref]) -> bool:
    return any(found & _words(ref) for ref in refs)


def _words(ref: Ref) -> int:
    """The words of a slot, as bits."""
    return (1 << SLOT_BYTES[ref.type] // 4) - 1 << ref.slot // 4


def _loops(blocks: list[Block]) -> list[range]:
    """Stretches of blocks outside of which nothing comes twice: what lies between a way back and where it leads."""
    back = [(to, number) for number, block in enumerate(blocks) for to in successors(block.terminator) if to <= number]
    found: list[range] = []
    for first, last in sorted(back):
        if found and first < found[-1].stop:
            found[-1] = range(found[-1].start, max(found[-1].stop, last + 1))
        else:
            found.append(range(first, last + 1))
    return found
