"""Whether the result of an mbarrier's wait only decides whether to wait again.

`test_wait` and `try_wait` (9.7.13.15.16) say whether a phase is complete, which depends on the schedule. Where a loop
comes back to the same wait whenever it failed, and does nothing else, who leaves it has waited, in every schedule.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.program import effects
from ptxtools.program.details import Action
from ptxtools.program.operations import OPERATIONS, PURE
from ptxtools.program.passes.colouring import bits, block_liveness
from ptxtools.program.program import SLOT_BYTES, Block, Op, Program, Ref

#: Blocks that a failed wait may pass before it comes back.
_MOST = 64
_COMPARE = {"eq": int.__eq__, "ne": int.__ne__}
_LOGIC = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}


def deciding(program: Program) -> list[int]:
    """Lines of the waits whose failure a program uses for anything but waiting again, or for the same phase in another
    place."""
    from .race_tokens import Token

    found = {op.where for _, _, op in waits_of(program)}
    again = {where for where in found if Walk(program, where).returns()}
    return [where for where in sorted(found - again) if not Token(program, where, again).only_waits()]


def ignored(program: Program) -> frozenset[int]:
    """Lines of waits whose result nobody looks at: they wait for nothing in some schedule."""
    found = {op.where for op in program.operations() if is_wait(op)}
    slots: set[int] = {op.dst[0].slot for _, _, op in waits_of(program) if op.dst[0] is not None}
    _, leaving = block_liveness(program.blocks, slots)
    for number, place, op in waits_of(program):
        block, live = program.blocks[number], set(bits(leaving[number]))
        if place <= len(block.ops):
            live -= set(effects.terminator_writes(block.terminator))
            live |= slots.intersection(effects.terminator_reads(block.terminator))
        for later in reversed(block.ops[place:]):
            live -= set(effects.writes(later)) if later.guard is None else set()
            live |= slots.intersection(effects.reads(later))
        if op.dst[0] is not None and op.dst[0].slot in live:
            found.discard(op.where)
    return frozenset(found)


def hasty(program: Program) -> frozenset[int]:
    """Lines of waits behind which things go on although the phase is not complete, before anybody has waited for it:
    what they do then is seen only where work ends late."""
    return ignored(program).union(deciding(program))


def waits_of(program: Program) -> Iterator[tuple[int, int, Op]]:
    """Waits with a result: block, position behind them in it, operation."""
    for number, block in enumerate(program.blocks):
        for place, op in enumerate(block.ops):
            if is_wait(op) and op.dst[0] is not None:
                yield number, place + 1, op
        end = block.terminator.op
        if end is not None and is_wait(end) and end.dst and end.dst[0] is not None:
            yield number, len(block.ops) + 1, end


def is_wait(op: Op) -> bool:
    return OPERATIONS[op.kind].seen == "mbarrier" and "_wait" in op.of(Action).name


class Walk:
    """The ways from a failed wait, with the values that are known on them."""

    def __init__(self, program: Program, where: int) -> None:
        self._program, self._where = program, where
        self._written: set[int] = set()  # slots
        self._constants: dict[int, dict[int, int]] = {}
        self._left = _MOST

    def returns(self) -> bool:
        """Whether all ways lead back to the wait, and change nothing that is needed then."""
        for number, place, op in waits_of(self._program):
            if op.where == self._where:
                known: dict[int, int] = {} if op.dst[0] is None else {op.dst[0].slot: 0}
                if not self._from(number, place, known):
                    return False
        return not self._needed()

    def _needed(self) -> bool:
        """Whether something that was written on the way is read behind the wait."""
        if not self._written:
            return False
        entering, _ = block_liveness(self._program.blocks, self._written)
        return any(
            not self._written.isdisjoint(bits(entering[number]))
            for number, _, op in waits_of(self._program)
            if op.where == self._where
        )

    def _from(self, number: int, place: int, known: dict[int, int]) -> bool:
        block = self.entered(number)
        if block is None:
            return False
        for op in block.ops[place:]:
            if is_wait(op) and op.where == self._where:
                return True
            if not self.step(number, op, known):
                return False
        return self._end(number, block, known, over=place > len(block.ops))

    def entered(self, number: int) -> Block | None:
        """A block that a way comes to; None: they have come to too many."""
        self._left -= 1
        return self._program.blocks[number] if self._left >= 0 else None

    def step(self, number: int, op: Op, known: dict[int, int]) -> bool:
        """Follow one operation; False: it does something."""
        if op.kind == "mbarrier.yield":
            return True
        if op.kind not in PURE or op.guard is not None:
            return False
        values = [self._value(number, ref, known) for ref in op.src]
        value = None if None in values else _result(op, [one for one in values if one is not None])
        for ref in op.dst:
            if ref is None:
                continue
            for slot in [slot for slot in known if ref.slot <= slot < ref.slot + SLOT_BYTES[ref.type]]:
                del known[slot]
            if op.where != self._where:
                self._written.add(ref.slot)
        if value is not None and op.dst[0] is not None:
            known[op.dst[0].slot] = value
        return True

    def _end(self, number: int, block: Block, known: dict[int, int], *, over: bool) -> bool:
        end = block.terminator
        if end.kind == "event" and end.op is not None and not over:
            if is_wait(end.op) and end.op.where == self._where:
                return True
            if not end.op.kind.startswith("observe.") and end.op.kind != "nanosleep":
                return False
        elif end.kind == "branch" and end.guard is not None:
            guard = known.get(end.guard.slot)
            if guard is not None:
                return self._from(end.target if bool(guard) != end.negated else end.other, 0, known)
            if end.where != self._where:
                return False
            return all(self._from(following, 0, dict(known)) for following in effects.successors(end))
        elif end.kind not in ("jump", "branch", "event"):
            return False
        following = effects.successors(end)
        return len(following) == 1 and self._from(following[0], 0, known)

    def _value(self, number: int, ref: Ref | None, known: dict[int, int]) -> int | None:
        if ref is None:
            return None
        if ref.slot in known:
            return known[ref.slot]
        function = max(n for n, one in enumerate(self._program.functions) if one.first <= number)
        if function not in self._constants:
            constants = self._program.functions[function].constants
            self._constants[function] = {slot: value for slot, _, value in constants}
        return self._constants[function].get(ref.slot)


def _result(op: Op, values: list[int]) -> int | None:
    """What an operation makes of known values; None: it is not one of those that compilers put behind a wait."""
    if op.kind == "copy":
        return values[0]
    if op.kind != "alu" or op.opcode is None:
        return None
    family, pred = op.opcode.family, op.dst_types[:1] == ("pred",)
    if family == "mov":
        return values[0]
    if family == "selp" and len(values) == 3:
        return values[0] if values[2] else values[1]
    if family == "setp" and len(op.dst) == 1 and len(values) == 2:
        compare = next((function for word, function in _COMPARE.items() if op.opcode.has(word)), None)
        return None if compare is None else int(compare(values[0], values[1]))
    if family == "not" and pred:
        return 1 - (values[0] & 1)
    logic = _LOGIC.get(family)
    return None if logic is None or len(values) != 2 else int(logic(values[0], values[1]))
