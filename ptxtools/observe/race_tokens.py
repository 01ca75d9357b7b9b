"""Whether the result of an mbarrier's wait only decides whether to wait once more for the same phase.

Libraries try once, keep the result, and wait in a loop if it was false. Who comes behind that has waited, whichever it
was; so it is the same for other schedules, if nothing but registers is touched between the two waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.program import effects
from ptxtools.program.details import Action
from ptxtools.program.passes.colouring import bits, block_liveness

from .race_waits import Walk, is_wait, waits_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ptxtools.program.program import Op, Program

#: What a failure and a success know of slots.
_Known = dict[int, int]
#: Empty blocks that are passed, at most; and the place where a success goes on.
_MOST, _GOAL = 64, -1
#: Blocks that are looked at for one wait, by all ways.
_BLOCKS = 1000


class Token(Walk):
    """One wait, and the ways from it. again: lines of waits to which a failure only leads back."""

    def __init__(self, program: Program, where: int, again: Iterable[int]) -> None:
        super().__init__(program, where)
        self._again = frozenset(again)
        self._wait: Op | None = None
        self._left = _BLOCKS

    def only_waits(self) -> bool:
        """Whether a failure waits for the same phase, and then does what a success does."""
        for number, place, op in waits_of(self._program):
            if op.where == self._where and op.dst[0] is not None:
                slot, self._wait = op.dst[0].slot, op
                if not self._both(number, place, {slot: 0}, {slot: 1}, {slot}):
                    return False
        return True

    def _both(self, number: int, place: int, failed: _Known, done: _Known, differ: set[int]) -> bool:
        """Follow both while they go the same way. differ: slots that depend on the result."""
        block = self.entered(number)
        if block is None:
            return False
        for op in block.ops[place:]:
            if is_wait(op) and op.where == self._where:
                return True  # the part that waits for what the first part has not done
            depends = any(ref is not None and ref.slot in differ for ref in op.src)
            if not (self.step(number, op, failed) and self.step(number, op, done)):
                return False
            for ref in op.dst:
                if ref is not None:
                    (differ.add if depends else differ.discard)(ref.slot)
        end, over = block.terminator, place > len(block.ops)
        if end.kind == "event" and end.op is not None and not over and not end.op.kind.startswith("observe."):
            return is_wait(end.op) and end.op.where == self._where
        if end.kind in ("trap", "exit") and end.guard is None:
            return True
        if end.kind not in ("jump", "branch", "event", "brkpt"):
            return False
        guard = end.guard
        if end.kind == "branch" and guard is not None and guard.slot in differ:
            values = failed.get(guard.slot), done.get(guard.slot)
            if None in values or bool(values[0]) == bool(values[1]):
                return False
            ways = [end.target if bool(value) != end.negated else end.other for value in values]
            return self._one(ways[0], failed, ways[1], set(differ))
        return all(
            self._both(following, 0, dict(failed), dict(done), set(differ)) for following in effects.successors(end)
        )

    def _one(self, number: int, known: _Known, goal: int, differ: set[int]) -> bool:
        """A failure goes its own way: it must wait for the same phase, and come to where a success goes on."""
        goal = self._skipped(goal)
        found = self._to(number, 0, known, differ, goal)
        if found is None:
            return False
        for block in self._program.blocks:
            for op in block.ops:
                differ |= {slot for slot in effects.writes(op) if op.where == found}
        for after, place, op in waits_of(self._program):
            if op.where == found:
                slots: list[int] = [ref.slot for ref in op.dst if ref is not None]
                differ.update(slots)
                done = dict.fromkeys(slots[1:], 0) | dict.fromkeys(slots[:1], 1)  # nothing is left to another part
                if self._to(after, place, done, differ, goal) != _GOAL:
                    return False
        entering, _ = block_liveness(self._program.blocks, differ)
        return differ.isdisjoint(bits(entering[goal]))

    def _to(self, number: int, place: int, known: _Known, differ: set[int], goal: int) -> int | None:
        """Follow one way to a wait for the same phase, whose line is the result, or to a block (`_GOAL`). None: it
        leads elsewhere, or does something. differ: slots that are written on it are added."""
        while True:
            number = self._skipped(number)
            if number == goal and not place:
                return _GOAL
            block = self.entered(number)
            if block is None:
                return None
            end, over = block.terminator, place > len(block.ops)
            ops = block.ops[place:] if end.kind != "event" or end.op is None or over else [*block.ops[place:], end.op]
            for op in ops:
                if op.kind.startswith("observe."):
                    continue
                if is_wait(op) and op.where in self._again and self._same(op, differ):
                    return op.where
                if not self.step(number, op, known):
                    return None
                differ |= {ref.slot for ref in op.dst if ref is not None}
            value = known.get(end.guard.slot) if end.kind == "branch" and end.guard is not None else None
            following = effects.successors(end)
            if value is not None:
                following = [end.target if bool(value) != end.negated else end.other]
            if end.kind not in ("jump", "branch", "event") or len(following) != 1:
                return None
            number, place = following[0], 0

    def _skipped(self, number: int) -> int:
        """The block that one leads to which is empty."""
        for _ in range(_MOST):
            block = self._program.blocks[number]
            if block.ops or block.terminator.kind != "jump":
                break
            number = block.terminator.target
        return number

    def _same(self, op: Op, differ: set[int]) -> bool:
        """Whether a wait is for the same phase, and learns as much."""
        first = self._wait
        if first is None or first.opcode is None or op.opcode is None:
            return False
        by = [one.of(Action).name.partition("_wait")[2] for one in (first, op)]  # a parity or a state
        places = [(one.src[:2], one.imm, one.space, how) for one, how in zip((first, op), by, strict=True)]
        sorts = [[one.opcode.has(word) for word in ("relaxed", "cta")] for one in (first, op) if one.opcode is not None]
        changed = any(ref is not None and ref.slot in differ for ref in op.src[:2])
        return places[0] == places[1] and sorts[0] == sorts[1] and not changed
