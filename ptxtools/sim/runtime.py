"""The runtime's part of a device: output, heap, and the grids that kernels launch. System calls come to it."""

from __future__ import annotations

import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import LaunchError, Trap, TrapKind
from ptxtools.program.details import Callee
from ptxtools.records import replace

from .context import LaunchContext
from .heap import Heap
from .program_lines import ProgramLines
from .residency import ctas_per_sm
from .silenced import heard
from .textures.handles import Textures

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptxtools.machine.observers import Watch
    from ptxtools.program.program import Program

    from .device import Device, Request, RunResult
    from .hostmap import HostMap
    from .kernel import Kernel
    from .loadable import Loadable
    from .multimem import Multicasts

#: Bytes for the parameters of grids that are being launched (2,048 of 4 KB, as CUDA's default has it).
_PENDING_BYTES = 8 << 20
_FAMILY = "__cudaCDP2"
#: Functions that get memory from the device's heap, or give it back.
HEAP_CALLS = frozenset({"malloc", "free", _FAMILY + "Malloc", _FAMILY + "Free"})
#: Those whose effects `Runtime.saved` puts back.
_PUT_BACK = frozenset({"malloc", "free", "vprintf", "__assertfail"})


class Runtime:
    """State of a device's runtime between launches. `heap` and `pending` are in device memory once a kernel that
    may use them has been launched."""

    def __init__(self, device: Device) -> None:
        self._device = weakref.ref(device)  # no cycle: a device's memory is given back with the last name for it
        self._heap: Heap | None = None
        self._pending: Heap | None = None
        self._texts: dict[str, int] = {}
        #: By the identity of a module, which stays alive: its kernels by the addresses of their functions; its lines.
        self._kernels: dict[int, tuple[Loadable, dict[int, Kernel], ProgramLines]] = {}
        self.textures = Textures()
        self.state: dict[str, Any] = {}  # what observers keep from launch to launch, under names of their own
        self.grid_before: Any = None  # what they know of the grid beside which the next one may run
        self._multicasts: Multicasts | None = None
        self._lock = threading.Lock()

    @property
    def device(self) -> Device:
        """The device, which outlives its runtime."""
        device = self._device()
        assert device is not None
        return device

    @property
    def heap(self) -> Heap:
        """The heap of `malloc`."""
        if self._heap is None:
            keep_all = "memcheck" in self.device.checks
            self._heap = Heap(self.device.arena, self.device.heap_bytes, keep_all=keep_all)
        return self._heap

    @property
    def used_heap(self) -> Heap | None:
        """The heap, if a kernel could have used it."""
        return self._heap

    @property
    def used_pending(self) -> Heap | None:
        """The memory for parameters of child grids, if a kernel could have used it."""
        return self._pending

    @property
    def pending(self) -> Heap:
        """Memory for the parameters of child grids."""
        if self._pending is None:
            self._pending = Heap(self.device.arena, _PENDING_BYTES)
        return self._pending

    @property
    def multicasts(self) -> Multicasts:
        """The multicast objects of the device set."""
        if self._multicasts is None:
            from .multimem import Multicasts

            self._multicasts = Multicasts()
        return self._multicasts

    def text_address(self, text: str) -> int:
        """Device address of a text of the runtime as a C string."""
        if text not in self._texts:
            data = text.encode() + b"\0"
            address = self.device.arena.allocate(len(data)).address
            self.device.arena.view(address, len(data))[:] = data
            self._texts[text] = address
        return self._texts[text]

    # --- launches -----------------------------------------------------------------------------------------------------

    def context(self, module: Loadable) -> LaunchContext:
        """The context of a launch for system calls."""
        known = self._kernels.get(id(module))
        if known is None:
            contents = module.contents
            kernels = {contents.functions[name]: kernel for name, kernel in contents.kernels.items()}
            known = self._kernels[id(module)] = (module, kernels, ProgramLines(module))
        return LaunchContext(
            places=known[2],
            kernels=known[1],
            program=lambda kernel: self._program(module, kernel),
            occupancy=lambda kernel, threads, shared: self._occupancy(module, kernel, threads, shared),
            watches=self._watches(),
        )

    def _watches(self) -> list[Watch]:
        """New observers for a launch, of those that the device has by name."""
        device = self.device
        if not device.checks:
            return []
        from ptxtools.machine.observers import makers

        return [maker.make(device, names) for maker, names in makers(device.checks).items()]

    def calls(self, program: Program) -> set[str]:
        """Functions of the runtime that a program calls."""
        names: set[str] | None = program.cache.get("system calls")
        if names is None:
            ops = [block.terminator.op for block in program.blocks]
            names = program.cache["system calls"] = {
                op.detail.name for op in ops if op is not None and isinstance(op.detail, Callee)
            }
        return names

    def repeatable(self, program: Program) -> bool:
        """Whether what the system calls of a program change can be put back."""
        return self.calls(program) <= _PUT_BACK

    def saved(self, context: LaunchContext) -> Callable[[], None]:
        """What puts back the state of the heap, but for its memory, and what has been printed, as they are now."""
        heap = None if self._heap is None else self._heap.saved()
        printed = len(context.printed)

        def put_back() -> None:
            if heap is not None:
                heap()
            del context.printed[printed:]

        return put_back

    def prepare(self, program: Program) -> None:
        """Reserve the memory that the program's system calls use: its extent is fixed when the kernel starts."""
        names = self.calls(program)
        if names & HEAP_CALLS:
            _ = self.heap
        if any(name.startswith(_FAMILY) for name in names):
            from .childgrids import error_texts

            _ = self.pending
            for text in error_texts():
                self.text_address(text)

    def overwritten(self, module: Loadable, request: Request) -> tuple[str, ...]:
        """What a grid wrote where nothing is, or nothing any more: a line for each place. Found with or without
        checkers, because it costs a comparison of what lies between allocations."""
        device = self.device
        places = device.arena.overwritten()
        blocks = [] if self._heap is None else self._heap.overwritten()
        if not places and not blocks:
            return ()
        from .allocations import Allocations

        return Allocations(device, device.load(module), request.kernel, request.params).overwritten(places, blocks)

    def checked(self, trap: Trap) -> Trap:
        """A trap under checkers: it is a finding of the checker that looks for its cause, where that is on."""
        checker = trap.cause.checker
        if checker is not None and checker in self.device.checks and trap.kind is TrapKind.TRAP:
            trap.kind = checker
        return trap

    def with_findings(self, trap: Trap, context: LaunchContext) -> Trap:
        """A trap with what was found before it."""
        found = [finding for watch in context.watches for finding in watch.findings]
        trap.findings = tuple(heard(self.device, found, context.places.source)[0]) if found else ()
        if trap.findings:
            from ptxtools.diagnostics.findings import says_again

            before = [str(finding).splitlines()[0] for finding in trap.findings if not says_again(trap, finding)]
            trap.details += tuple(f"reported before: {line}" for line in before[:8])
        trap.args = (trap.describe(),)
        return trap

    def finish(
        self, module: Loadable, request: Request, host: HostMap | None, context: LaunchContext, result: RunResult
    ) -> None:
        """Do what the grid has queued: children with all of theirs, then tail launches; and add up the results."""
        if context.children:
            self._run_children(module, request, host, context, result)
        if context.watches:
            found = [finding for watch in context.watches for finding in watch.end()]
            if found:
                result.reports, result.silenced = heard(self.device, found, context.places.source)
            result.verdict = next((watch.verdict for watch in context.watches if watch.verdict is not None), None)
        if context.printed:
            result.printed = b"".join(context.printed).decode("utf-8", "surrogateescape")

    def _run_children(
        self, module: Loadable, request: Request, host: HostMap | None, context: LaunchContext, result: RunResult
    ) -> None:
        from .children import Work

        deadline = None if request.timeout is None else time.monotonic() + request.timeout - result.seconds
        waiting = context.take_children()
        while waiting:
            work = waiting.pop()
            if isinstance(work, Work):
                work.run()
                if work.then is not None:
                    work.then()
                continue
            child = replace(
                request, kernel=work.kernel, grid=work.grid, block=work.block, params=work.params, shared=work.shared,
                cluster=None, cooperative=False,
                timeout=None if deadline is None else max(deadline - time.monotonic(), 1e-3),
            )  # fmt: skip
            context.child = work
            try:
                more = self.device.grid(module, child, host, context)
            except LaunchError as error:
                raise Trap(f"the launch of a child grid was refused: {error}", kernel=work.kernel.name) from None
                result.seconds += more.seconds
            result.instructions += more.instructions
            waiting += context.take_children()

    def output(self, context: LaunchContext, data: bytes) -> None:
        """Record a kernel's output. What it prints once more when it runs again, in the same order, is known."""
        with self._lock:
            context.printed.append(data)
            if self.device.on_print is not None and len(context.printed) > context.told:
                context.told = len(context.printed)
                self.device.on_print(data.decode("utf-8", "surrogateescape"))

    def _program(self, module: Loadable, kernel: Kernel) -> Program:
        with self._lock:
            return self.device.program(module, kernel)

    def _occupancy(self, module: Loadable, kernel: Kernel, threads: int, shared: int) -> int:
        program = self._program(module, kernel)
        total = program.declared_shared + shared
        if total > self.device.limits.shared_cta:
            return 0
        return ctas_per_sm(threads, program.registers, total, self.device.limits)
