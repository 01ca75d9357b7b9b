"""The runtime's part of a device: output, heap, and the grids that kernels launch. System calls come to it."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import LaunchError, Trap

from .heap import Heap
from .residency import ctas_per_sm
from .textures.objects import Textures

if TYPE_CHECKING:
    from ptxtools.diagnostics import Source
    from ptxtools.engine.grid import Launch
    from ptxtools.engine.program import Program

    from .device import Device, Request, RunResult
    from .hostmap import HostMap
    from .kernel import Kernel
    from .loadable import Loadable

#: Bytes for the parameters of grids that are being launched (2,048 of 4 KB, as CUDA's default has it).
_PENDING_BYTES = 8 << 20
_FAMILY = "__cudaCDP2"
_HEAP_CALLS = frozenset({"malloc", "free", _FAMILY + "Malloc", _FAMILY + "Free"})


class Runtime:
    """What the runtime of a device keeps between launches. `heap` and `pending` lie in device memory once a kernel that
    may use them has been launched."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._heap: Heap | None = None
        self._pending: Heap | None = None
        self._texts: dict[str, int] = {}
        self.textures = Textures()
        self._lock = threading.Lock()

    @property
    def heap(self) -> Heap:
        """The heap of `malloc`."""
        if self._heap is None:
            self._heap = Heap(self.device.arena, self.device.heap_bytes)
        return self._heap

    @property
    def used_heap(self) -> Heap | None:
        """The heap, if a kernel could have used it."""
        return self._heap

    @property
    def pending(self) -> Heap:
        """Memory for the parameters of child grids."""
        if self._pending is None:
            self._pending = Heap(self.device.arena, _PENDING_BYTES)
        return self._pending

    def text_address(self, text: str) -> int:
        """Device address of a text of the runtime as a C string."""
        if text not in self._texts:
            data = text.encode() + b"\0"
            address = self.device.arena.allocate(len(data)).address
            self.device.arena.view(address, len(data))[:] = data
            self._texts[text] = address
        return self._texts[text]

    # --- launches -----------------------------------------------------------------------------------------------------

    def brought(self, module: Loadable) -> dict[str, Any]:
        """What a launch of a module's kernel brings along for system calls."""
        contents = module.contents
        kernels = {contents.functions[name]: kernel for name, kernel in contents.kernels.items()}
        return {
            "kernels": kernels,
            "program": lambda kernel: self._program(module, kernel),
            "occupancy": lambda kernel, threads, shared: self._occupancy(module, kernel, threads, shared),
            "line_of": _Lines(module),
            "printed": [],
        }

    def prepare(self, program: Program) -> None:
        """Reserve the memory that the program's system calls use: its extent is fixed when the kernel starts."""
        names = program.cache.get("system calls")
        if names is None:
            ops = [block.terminator.op for block in program.blocks]
            names = program.cache["system calls"] = {op.detail for op in ops if op is not None and op.kind == "syscall"}
        if names & _HEAP_CALLS:
            _ = self.heap
        if any(name.startswith(_FAMILY) for name in names):
            from .childgrids import error_texts

            _ = self.pending
            for text in error_texts():
                self.text_address(text)

    def finish(
        self, module: Loadable, request: Request, host: HostMap | None, extra: dict[str, Any], result: RunResult
    ) -> None:
        """Do what the grid has queued: children with all of theirs, then tail launches; and add up the results."""
        deadline = None if request.timeout is None else time.monotonic() + request.timeout - result.seconds
        waiting = _in_order(extra)
        while waiting:
            work = waiting.pop()
            if hasattr(work, "run"):
                work.run()
                continue
            child = replace(
                request, kernel=work.kernel, grid=work.grid, block=work.block, params=work.params, shared=work.shared,
                cluster=None, cooperative=False,
                timeout=None if deadline is None else max(deadline - time.monotonic(), 1e-3),
            )  # fmt: skip
            try:
                more = self.device.grid(module, child, host, extra)
            except LaunchError as error:
                raise Trap(f"the launch of a child grid was refused: {error}", kernel=work.kernel.name) from None
            result.seconds += more.seconds
            result.instructions += more.instructions
            waiting += _in_order(extra)
        result.printed = b"".join(extra["printed"]).decode("utf-8", "surrogateescape")

    def output(self, launch: Launch, data: bytes) -> None:
        """Take what a kernel printed."""
        with self._lock:
            launch.extra["printed"].append(data)
            if self.device.on_print is not None:
                self.device.on_print(data.decode("utf-8", "surrogateescape"))

    def _program(self, module: Loadable, kernel: Kernel) -> Program:
        with self._lock:
            return self.device.program(module, kernel)

    def _occupancy(self, module: Loadable, kernel: Kernel, threads: int, shared: int) -> int:
        program = self._program(module, kernel)
        total = program.static_shared + shared
        if total > self.device.limits.shared_cta:
            return 0
        return ctas_per_sm(threads, program.registers, total, self.device.limits)


class _Lines:
    """PTX line of a place in a program; the text is looked up when the first line is asked for."""

    def __init__(self, module: Loadable) -> None:
        self._module = module
        self._source: Source | None = None
        self._asked = False

    def __call__(self, program: Program, where: int) -> int | None:
        if not self._asked:
            self._asked, self._source = True, self._module.source()
        if self._source is None or not 0 <= where < len(program.lines):
            return None
        return self._source.line_of(program.lines[where][1])


def _in_order(extra: dict[str, Any]) -> list[Any]:
    """The queue of a grid, which is emptied: what comes first stands last."""
    queue = extra.pop("children", [])
    return [work for work in queue if work.tail][::-1] + [work for work in queue if not work.tail][::-1]
