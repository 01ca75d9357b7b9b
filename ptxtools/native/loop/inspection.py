"""What the native engine tells of a grid that is stopped in an event (`machine.launch.Inspector`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.native.code.structures import WARP
from ptxtools.program.program import Op

from . import hangs
from .events import NativeView
from .faults import cta_of, read, warp_field

if TYPE_CHECKING:
    from ptxtools.machine.deadlock import CtaLine, Waiting
    from ptxtools.machine.launch import Dim3

    from .worker import Worker


class Inspection:
    """The workers of a grid; only one runs, and it is stopped."""

    def __init__(self, workers: list[Worker]) -> None:
        self._workers = workers

    def state(self) -> tuple[list[CtaLine], list[Waiting]]:
        return hangs.gathered(self._workers)

    def view(self, cta: Dim3, warp: int, lane: int) -> NativeView | None:
        for worker in self._workers:
            at = hangs.warp_of(worker, cta, warp)
            if at is None or not warp_field(at, "alive") >> lane & 1:
                continue
            assert cta_of(at) == cta
            ((where, _),) = hangs.places(worker, at, 1 << lane).items()
            together = warp_field(at, "group")
            frame = read(at + WARP.offset("frame") + 4 * lane, 4)
            if together >> lane & 1:
                frame = warp_field(at, "group_frame")
            return NativeView(worker, Op("observe.line", where=where), at, at + WARP.size + frame, 1 << lane)
        return None
