"""Global memory that a walk discards: until something is stored there, nobody knows what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts import Line
from ..values import Terms
from .computing import Op
from .shadow import Touch

if TYPE_CHECKING:
    from .memory import Memory
    from .walker import Group

#: Bytes that an instruction discards (9.7.9.17).
_LINE = 128


class Discards:
    """The bytes that have been discarded, with the instruction. Only where the walk has all threads of a CTA: others
    might store there."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._lost: dict[Terms, dict[int, Line]] = {}

    def discard(self, group: Group, op: Op, mask: int) -> None:
        """discard.L2"""
        memory = self.memory
        place = memory.place_of(group, op, 0, "global" if ".global" in op.opcode else "")
        if place is None or place.space != "global":
            return
        memory.touch(group, op, 0, place, _LINE, mask, "stores", False)
        if memory.threads.whole and not memory.threads.apart:
            lost = self._lost.setdefault(place.address.terms, {})
            for thread, first in enumerate(place.address.numbers):
                if mask >> thread & 1:
                    lost.update(dict.fromkeys(range(first, first + _LINE), op.line))

    def lose(self) -> None:
        """Something may be stored anywhere."""
        self._lost.clear()

    def note(self, touch: Touch) -> None:
        """Threads access global memory at a known place."""
        lost = self._lost.get(touch.address.terms) if self._lost else None
        if not lost:
            return
        for thread, first in enumerate(touch.address.numbers):
            if not touch.mask >> thread & 1:
                continue
            for byte in range(first, first + touch.size):
                discarded = lost.pop(byte, None)
                if discarded is not None and touch.kind != "stores":
                    name = self.memory.threads.name(thread)
                    message = f"{name} reads what line {{line}} discards, and nothing has stored it since"
                    line = touch.line
                    self.memory.walker.report("discarded", line, touch.operand, message, discarded, sure=False)
                    lost.clear()
                    return
