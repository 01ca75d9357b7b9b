"""leakcheck: blocks of the heap that a launch allocates must be freed before it ends. It looks when all is over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxtools.diagnostics import TrapKind
from ptxtools.diagnostics.findings import Finding

if TYPE_CHECKING:
    from ptxtools.sim.device import Device, Grid
    from ptxtools.sim.heap import Block

#: The kind of a report of a block of the heap.
NEVER_FREED = "never-freed"


class LeakCheck:
    """Of one launch (`machine.observers.Watch`). What was in use when it began is not its leak."""

    def __init__(self, device: Device, names: frozenset[str] = frozenset()) -> None:
        self._device = device
        self._before = {leak.address for leak in leaks(device)}
        self.findings: list[Finding] = []

    def begin(self, grid: Grid) -> Sequence[object]:
        return ()

    def end(self) -> list[Finding]:
        return [leak for leak in leaks(self._device) if leak.address not in self._before]


def leaks(device: Device) -> list[Finding]:
    """The blocks of a device's heap that are in use."""
    heap = device.runtime.used_heap
    return [] if heap is None else [_leak(block) for block in heap.live()]


def _leak(block: Block) -> Finding:
    size = f"{block.size:,} byte{'' if block.size == 1 else 's'}"
    message = f"{size} of the heap at {block.address:#x} were never freed; allocated"
    return Finding(
        TrapKind.LEAKCHECK, message, block.kernel, block.cta, block.thread, block.file, block.line,
        source=block.find_source(), kind=NEVER_FREED, address=block.address, space="global",
    )  # fmt: skip
