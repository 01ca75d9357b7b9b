"""Launches like an earlier one, with the objects of that one: its request, launch and context.

What programs launch again and again differs in little but its parameters. A launch that has left nothing behind
(`Launch.kept`) waits for the next of its kernel and shape, which gives it other parameters; so nothing is checked,
planned or made once more. A launch that leaves something behind is not used again.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from ptxtools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ptxtools.machine.launch import Launch

    from .context import LaunchContext
    from .device import Device, Plan, Request
    from .kernel import Dim3, Kernel
    from .loadable import Loadable
    from .result import RunResult

#: Kernels and shapes of which a device keeps launches.
_MOST = 256
#: Launches of each that are kept, for threads that launch the same at once.
_AT_ONCE = 8


class Ended(NamedTuple):
    """A launch that another one may follow."""

    plan: Plan
    request: Request
    launch: Launch
    context: LaunchContext


class Again:
    """The launches of a device that others may follow, by what these have to have in common."""

    def __init__(self) -> None:
        self._ended: dict[Hashable, list[Ended]] = {}

    def run(
        self, device: Device, module: Loadable, kernel: Kernel, grid: Dim3, block: Dim3, shared: int, params: bytes
    ) -> RunResult | None:
        """Run a grid whose other options are defaults, to completion, if one like it has been before; else None. Raises
        `Trap`."""
        waiting = self._ended.get((id(module), kernel.name, grid, block, shared, len(params)))
        if not waiting or device.observed:
            return None
        try:
            ended = waiting.pop()
        except IndexError:  # somebody else has just taken the last one
            return None
        plan, request, launch, context = ended
        device.launches += 1
        launch.specials["%gridid"] = device.launches
        launch.params = request.params = params
        launch.memory, launch.device = device.memory_for(plan.image, None), device
        result = device.execute(module, request, launch, context, monotonic())
        if launch.kept is not None:
            launch.device = None
            waiting.append(ended)
        else:
            device.runtime.finish(module, request, None, context, result)
        return result

    def keep(self, module: Loadable, ended: Ended) -> None:
        """Remember a launch, if nothing but its parameters and its number distinguishes it from others."""
        request, launch = ended.request, ended.launch
        bounds = request.kernel.bounds
        if ended.context.child is not None or request.cooperative or bounds.cta_memory or launch.memory.open_host:
            return
        if request.cluster is not None or request.stack is not None:
            return
        launch.device = None  # whose memory is given back with the last name for it
        key = id(module), request.kernel.name, request.grid, request.block, request.shared, len(request.params)
        if key not in self._ended and len(self._ended) >= _MOST:
            self._ended.clear()
        waiting = self._ended.setdefault(key, [])
        if len(waiting) < _AT_ONCE:
            waiting.append(ended)
