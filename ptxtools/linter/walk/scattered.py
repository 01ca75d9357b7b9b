"""Accesses of a walk at indices that are data: which elements of a variable they reach is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..values import WARP, Value
from .computing import Op, of_data
from .shadow import Touch

if TYPE_CHECKING:
    from .memory import Memory

#: Accesses that are remembered.
_MOST = 8
_HALVES = (0xFFFFFFFF, 0xFFFFFFFF << WARP)


class Scattered:
    """Accesses of shared variables at such indices. They may meet whatever the threads of other warps access at places
    of their own: a table that all fill, or counters that all clear, must be complete before."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._known: list[Touch] = []

    def note(self, op: Op, operand: int, address: Value, size: int, mask: int, kind: str, strong: bool) -> None:
        """An access at an address that is not known."""
        shadow = self.memory.shadow
        base = tuple([term for term in address.terms if term[0][0] != "#"])
        fixed = len(base) == 1 and base[0][0][0] == "&" and isinstance(address.each, int)
        if self.memory.blind or self.memory.threads.apart or not fixed or not of_data(address):
            return
        now = shadow.now
        touch = Touch(op.line, operand, "shared", Value(base, address.each), size, mask, now, kind, strong, None, False)
        for before in shadow.at("shared", base):
            if not isinstance(before.address.each, int) and self._meet(before, touch):
                break
        self._known = [*self._known[-_MOST:], touch]

    def look(self, touch: Touch) -> None:
        """An access at a place that is known, behind others at places that are not."""
        if isinstance(touch.address.each, int) or self.memory.blind:
            return
        for before in self._known:
            if before.address.terms == touch.address.terms and self._meet(before, touch):
                return

    def _meet(self, before: Touch, after: Touch) -> bool:
        """Whether two accesses of different warps race, as nothing has ordered them."""
        if before.kind == after.kind == "reads" or before.flight or after.flight or (before.strong and after.strong):
            return False
        known = self.memory.shadow.known
        for half in (0, 1):
            apart = after.mask & _HALVES[half] and before.mask & _HALVES[1 - half]
            if apart and before.moment >= known[1 - half][half]:
                self.memory.tell_scattered(before, after, half)
                return True
        return False
