"""The data that a launch provides to the services of its kernels, and their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.program.program import Program

    from .checks.findings import Finding
    from .checks.session import Session
    from .kernel import Dim3, Kernel
    from .places import Places

#: Handles of streams and events that kernels create follow this one.
_FIRST_HANDLE = 0x100


@dataclass(slots=True)
class Child:
    """A child grid in the queue of its parent."""

    kernel: Kernel
    grid: Dim3
    block: Dim3
    shared: int
    params: bytes
    tail: bool = False


@dataclass(slots=True)
class Work:
    """A copy or a fill in the queue: `run` does it."""

    run: Callable[[], None]
    tail: bool = False


@dataclass(slots=True)
class Prepared:
    """What `GetParameterBufferV2` was told about the grid to come."""

    kernel: Kernel
    grid: Dim3
    block: Dim3
    shared: int


@dataclass(slots=True)
class LaunchContext:
    """One for a launch and all child grids that it leads to, which run one after another.

    kernels: by the addresses of their functions; program: lowers one of them; occupancy: CTAs of a kernel on an SM, for
    threads and bytes of shared memory; blocks_before: blocks of the heap in use when the launch began. Of the grid that
    runs: checks, its checkers, if any look; children: what it has queued. Of the whole launch: printed; reports: what
    checkers found in grids that have ended; known: findings by key, so that one is told once; errors: the last error of
    each thread; prepared: grids to come, by the addresses of their parameters; handle: the last one given out.
    """

    places: Places
    kernels: dict[int, Kernel]
    program: Callable[[Kernel], Program]
    occupancy: Callable[[Kernel, int, int], int]
    blocks_before: frozenset[int] = frozenset()
    checks: Session | None = None
    children: list[Child | Work] = field(default_factory=list)
    printed: list[bytes] = field(default_factory=list)
    reports: list[Finding] = field(default_factory=list)
    known: dict[Any, Finding] = field(default_factory=dict)
    errors: dict[Any, int] = field(default_factory=dict)
    prepared: dict[int, Prepared] = field(default_factory=dict)
    handle: int = _FIRST_HANDLE

    def collect(self) -> None:
        """Collect the findings of the checkers of a grid that has ended."""
        if self.checks is not None:
            self.reports += self.checks.findings
            self.checks = None

    def take_children(self) -> list[Child | Work]:
        """The queue of a grid, which is emptied: what comes first stands last; tail launches come after all others."""
        queue, self.children = self.children, []
        return [work for work in queue if work.tail][::-1] + [work for work in queue if not work.tail][::-1]


def context_of(view: View) -> LaunchContext:
    """The context of the launch that an event belongs to."""
    context: LaunchContext = view.launch.context
    return context
