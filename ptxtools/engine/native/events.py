"""What the native loop leaves to Python: functions by kind of event operation, and what they see of a warp.

Later features register here; the loop itself needs no change. A function is called with the lanes stopped at the
operation; when it returns, they go on behind it. It runs while other workers run: guard shared state with a lock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from ptxtools.engine.native.structures import CTA, WARP
from ptxtools.engine.program import SLOT_BYTES, Op, Ref

if TYPE_CHECKING:
    from ptxtools.engine.grid import Launch
    from ptxtools.engine.native.worker import Worker


class View:
    """The lanes that an event stopped: their operands, local memory and place."""

    def __init__(self, worker: Worker, op: Op, warp: int, frame: int, mask: int) -> None:
        self.worker, self.op, self.warp, self.frame, self.mask = worker, op, warp, frame, mask

    @property
    def launch(self) -> Launch:
        return self.worker.launch

    def lanes(self) -> Iterator[int]:
        """Numbers of the lanes that stopped."""
        return (lane for lane in range(32) if self.mask >> lane & 1)

    def _address(self, ref: Ref, lane: int) -> tuple[int, int]:
        size = SLOT_BYTES[ref.type] // 32 if ref.type != "b128" else 8
        return self.frame + ref.slot + size * lane, size

    def read(self, ref: Ref, lane: int) -> int:
        """A lane's content of a slot, as an unsigned number."""
        if ref.type == "pred":
            return int.from_bytes(ctypes.string_at(self.frame + ref.slot, 4), "little") >> lane & 1
        address, size = self._address(ref, lane)
        low = int.from_bytes(ctypes.string_at(address, size), "little")
        if ref.type == "b128":
            low |= int.from_bytes(ctypes.string_at(address + 256, 8), "little") << 64
        return low

    def write(self, ref: Ref, lane: int, value: int) -> None:
        """Set a lane's content of a slot."""
        if ref.type == "pred":
            mask = int.from_bytes(ctypes.string_at(self.frame + ref.slot, 4), "little")
            mask = mask & ~(1 << lane) | (value & 1) << lane
            ctypes.memmove(self.frame + ref.slot, mask.to_bytes(4, "little"), 4)
            return
        address, size = self._address(ref, lane)
        ctypes.memmove(address, (value & (1 << 8 * size) - 1).to_bytes(size, "little"), size)
        if ref.type == "b128":
            ctypes.memmove(address + 256, (value >> 64 & (1 << 64) - 1).to_bytes(8, "little"), 8)

    def local(self, lane: int, address: int, size: int) -> bytes:
        """Bytes of a lane's local memory; its words lie 128 bytes apart."""
        base = self._pointer(self.warp + WARP.offset("local"))
        first, last = address // 4, (address + size + 3) // 4
        words = b"".join(ctypes.string_at(base + 128 * word + 4 * lane, 4) for word in range(first, last))
        return words[address % 4 : address % 4 + size]

    def shared(self, address: int, size: int) -> bytes:
        """Bytes of the CTA's shared memory."""
        cta = self._pointer(self.warp + WARP.offset("cta"))
        return ctypes.string_at(self._pointer(cta + CTA.offset("shared")) + address, size)

    @staticmethod
    def _pointer(address: int) -> int:
        return int.from_bytes(ctypes.string_at(address, 8), "little")


Handler: TypeAlias = Callable[[View], None]

#: What to call for an event, by the kind of its operation.
HANDLERS: dict[str, Handler] = {}


def register(kind: str) -> Callable[[Handler], Handler]:
    """Let a function serve the events of operations of this kind."""

    def add(function: Handler) -> Handler:
        HANDLERS[kind] = function
        return function

    return add
