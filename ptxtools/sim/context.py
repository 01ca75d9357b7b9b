"""The data that a launch provides to the services of its kernels, and their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptxtools.records import dataclass, field

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Watch
    from ptxtools.program.program import Program

    from .children import Child, Prepared, Work
    from .kernel import Kernel
    from .program_lines import ProgramLines

#: Handles of streams and events that kernels create follow this one.
_FIRST_HANDLE = 0x100


@dataclass(slots=True)
class LaunchContext:
    """One for a launch and all child grids that it leads to, which run one after another.

    kernels: by the addresses of their functions; program: lowers one of them; occupancy: CTAs of a kernel on an SM, for
    threads and bytes of shared memory; watches: its observers that the device has by name. Of the grid that runs:
    child: what it was in its parent's queue; children: what it has queued. Of the whole launch: printed; errors: the
    last error of each thread; prepared: grids to come, by the addresses of their parameters; handle: the last one given
    out; told: pieces of `printed` that the host knows of; waits: whether a stream waits for an event.
    """

    places: ProgramLines
    kernels: dict[int, Kernel]
    program: Callable[[Kernel], Program]
    occupancy: Callable[[Kernel, int, int], int]
    watches: list[Watch] = field(default_factory=list)
    child: Child | None = None
    children: list[Child | Work] = field(default_factory=list)
    printed: list[bytes] = field(default_factory=list)
    errors: dict[Any, int] = field(default_factory=dict)
    prepared: dict[int, Prepared] = field(default_factory=dict)
    handle: int = _FIRST_HANDLE
    told: int = 0
    waits: bool = False

    def take_children(self) -> list[Child | Work]:
        """The queue of a grid, which is emptied: what comes first stands last; tail launches come after all others."""
        queue, self.children = self.children, []
        return [work for work in queue if work.tail][::-1] + [work for work in queue if not work.tail][::-1]


def context_of(view: View) -> LaunchContext:
    """The context of the launch that an event belongs to."""
    context: LaunchContext = view.launch.context
    return context
