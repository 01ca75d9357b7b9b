"""Garbage collection while a tree is built.

A tree of nodes has no cycles, so collecting garbage in it is useless, and costs a third of the time to build it.
"""

from __future__ import annotations

import gc
from types import TracebackType

#: After as many new objects a full collection is due, as the collector's own counters would have it.
_MOST_UNSEEN = 1_000_000
#: More objects than interpreters set aside (`gc.freeze`) at their start: then somebody else has done so.
_FEW_FROZEN = 1_000


class CollectorOff:
    """`with CollectorOff():` no collections inside, and what was made meanwhile counts as old already."""

    __slots__ = ("_enabled",)
    _unseen = 0

    def __enter__(self) -> None:
        self._enabled = gc.isenabled()
        gc.disable()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._enabled:
            _grow_old()
            gc.enable()


def _grow_old() -> None:
    """Move young objects to the oldest generation without looking at them; now and then look at all."""
    CollectorOff._unseen += gc.get_count()[0]
    if CollectorOff._unseen > _MOST_UNSEEN:
        CollectorOff._unseen = 0
        gc.collect()
    elif gc.get_freeze_count() < _FEW_FROZEN:
        gc.freeze()
        gc.unfreeze()
