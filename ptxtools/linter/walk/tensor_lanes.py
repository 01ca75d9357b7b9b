"""Loads and stores of tensor memory in a walk: which lanes a warp reaches, and whom it tells before they are done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..values import WARP, Value
from .barriers import first_of
from .computing import Op

if TYPE_CHECKING:
    from .threads import Threads
    from .walker import Walker

_HALVES = (0xFFFFFFFF, 0xFFFFFFFF << WARP)
#: Bit of an address from which on it says the lane, and lanes of each warp of a warpgroup.
_LANE, _OWN = 16, 32


class TensorLanes:
    """What the warps of a walk have begun with tensor memory: for each half and kind ("ld", "st"), what nothing has
    waited for, and whether tcgen05.fence::before_thread_sync came behind it."""

    def __init__(self, walker: Walker) -> None:
        self._walker = walker
        self._pending: dict[tuple[int, str], tuple[Op, bool]] = {}

    def note(self, op: Op, mask: int) -> None:
        """A tcgen05 instruction of some threads."""
        words = op.opcode.split(".")
        kind = words[1] if len(words) > 1 else ""
        for half in (0, 1):
            if not mask & _HALVES[half]:
                continue
            if kind in ("ld", "st"):
                self._pending[half, kind] = op, False
            elif kind.startswith("wait::"):
                self._pending.pop((half, kind[6:]), None)
            elif kind == "fence::before_thread_sync":
                for one in ("ld", "st"):
                    if (half, one) in self._pending:
                        self._pending[half, one] = self._pending[half, one][0], True

    def tell(self, op: Op, mask: int) -> None:
        """Some threads arrive at an mbarrier or a barrier, behind a fence: whether what they fence is done."""
        for half in (0, 1):
            for kind in ("ld", "st") if mask & _HALVES[half] else ():
                begun, fenced = self._pending.get((half, kind), (op, False))
                if fenced:
                    del self._pending[half, kind]
                    message = (
                        f"this tells others of the tcgen05.{kind} in line {{line}}, which nothing has waited for: "
                        f"tcgen05.wait::{kind} comes before the fence"
                    )
                    self._walker.report(f"tensor {kind}", op.line, None, message, begun.line)

    def look_at_lanes(self, op: Op, operand: int, address: Value, mask: int) -> None:
        """Whether a warp reaches lanes of another warp of its warpgroup; the address is that of an allocation."""
        threads, walker = self._walker.threads, self._walker
        if walker.assumed or threads.apart or any(f".{shape}" in op.opcode for shape in ("16x", "4x")):
            return
        for half in (0, 1):
            here = mask & _HALVES[half]
            if not here:
                continue
            first = first_of(here)
            lane, warp = address.numbers[first] >> _LANE & 0x7F, _warp(threads, first)
            if lane != warp % 4 * _OWN:
                message = (
                    f"warp {warp} accesses lanes of tensor memory from {lane} on: it reaches {warp % 4 * _OWN} to "
                    f"{warp % 4 * _OWN + _OWN - 1} only"
                )
                walker.report("tensor lanes", op.line, operand, message)
                return


def _warp(threads: Threads, thread: int) -> int:
    """The number of a thread's warp in its CTA."""
    special = threads.registers
    x, y, z = [special[name].numbers[thread] for name in ("%tid.x", "%tid.y", "%tid.z")]
    wide, high = [special[name].constant or 0 if name in special else 0 for name in ("%ntid.x", "%ntid.y")]
    return (x + wide * (y + high * z)) // WARP
