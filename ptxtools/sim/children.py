"""What a kernel queues behind itself: grids, copies and fills. Loaded when one does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptxtools.records import dataclass

if TYPE_CHECKING:
    from .kernel import Dim3, Kernel


@dataclass(slots=True)
class Child:
    """A child grid in the queue of its parent. stream: its handle; told: what an observer has noted at its launch."""

    kernel: Kernel
    grid: Dim3
    block: Dim3
    shared: int
    params: bytes
    tail: bool = False
    told: Any = None
    stream: int = 0


@dataclass(slots=True)
class Work:
    """A copy or a fill in the queue: `run` does it. reads, writes: address and size of global memory; then: what an
    observer does when it is done; stream: as for `Child`."""

    run: Callable[[], None]
    tail: bool = False
    reads: tuple[int, int] = (0, 0)
    writes: tuple[int, int] = (0, 0)
    stream: int = 0
    then: Callable[[], None] | None = None


@dataclass(slots=True)
class Prepared:
    """What `GetParameterBufferV2` was told about the grid to come."""

    kernel: Kernel
    grid: Dim3
    block: Dim3
    shared: int
