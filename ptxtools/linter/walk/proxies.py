"""Which stores of a walk the asynchronous proxy may not have seen, since a thread fenced that did not know of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..values import THREADS, WARP, Value
from .barriers import first_of
from .computing import Op
from .shadow import Touch

if TYPE_CHECKING:
    from .memory import Memory

#: Stores that are remembered.
_MOST = 16
_HALVES = (0xFFFFFFFF, 0xFFFFFFFF << WARP)


class Proxies:
    """Ordinary stores to shared memory, and the threads whose part of each no fence.proxy.async has made visible."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        opcodes = [line.item.opcode for line in memory.walker.program.lines]
        self.active = not memory.threads.apart and any(".proxy.async" in opcode for opcode in opcodes)
        self._open: list[tuple[Touch, int, bool]] = []

    def store(self, touch: Touch) -> None:
        """Threads store: what they stored at the same place before does not matter any more."""
        if not self.active:
            return
        place = touch.address
        self._open = [one for one in self._open if one[0].address != place or one[0].mask & ~touch.mask]
        self._open.append((touch, touch.mask, False))
        del self._open[:-_MOST]

    def fence(self, opcode: str, mask: int) -> None:
        """fence.proxy.async of some threads: for what they have stored, and know of; for shared memory, or not."""
        if ".global" in opcode:
            self._open = [(touch, open_, True) for touch, open_, _ in self._open]
            return
        shadow, left = self._memory.shadow, []
        for touch, open_, _ in self._open:
            known = mask
            for half in (0, 1):
                if mask & _HALVES[half]:
                    known |= _HALVES[half] if touch.moment < shadow.lanes[half] else 0
                    known |= _HALVES[1 - half] if touch.moment < shadow.known[1 - half][half] else 0
            for lanes, told in shadow.parts:
                known |= lanes if lanes & mask and touch.moment < told else 0
            if open_ & ~known:
                left.append((touch, open_ & ~known, True))
        self._open = left

    def read(self, op: Op, operand: int, address: Value, size: int, mask: int, kind: str) -> None:
        """Asynchronous work reads shared memory."""
        memory = self._memory
        if not self.active or memory.blind:
            return
        first = min(number for thread, number in enumerate(address.numbers) if mask >> thread & 1)
        for touch, open_, fenced in self._open:
            if touch.address.terms != address.terms or not fenced:
                continue  # where nothing fences, other rules say so
            numbers = touch.address.numbers
            late = sum(
                1 << thread for thread in range(THREADS)
                if open_ >> thread & 1 and first - touch.size < numbers[thread] < first + size
            )  # fmt: skip
            if late:
                name = memory.threads.name(first_of(late))
                message = (
                    f"this may read what was there before the store of {name} in line {{line}}: no fence.proxy.async "
                    "comes from a thread that knows of it"
                )
                memory.walker.report(kind, op.line, operand, message, touch.line)
                return
