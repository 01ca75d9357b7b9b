"""leakcheck: blocks of the heap that a launch allocates must be freed before it ends, columns of tensor memory before
their CTA does, and the permit to allocate some given back; mbarriers are invalidated before their memory is reused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ptxtools.diagnostics import TrapKind
from ptxtools.diagnostics.findings import Finding
from ptxtools.machine.observers import Alone

from .sharing import independent

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.residents import Cta
    from ptxtools.program.program import Program
    from ptxtools.sim.device import Device, Grid
    from ptxtools.sim.heap import Block
    from ptxtools.sim.program_lines import ProgramLines

#: The kind of a report of a block of the heap.
NEVER_FREED = "never-freed"
_HELP = {
    "tensor-memory": "tcgen05.dealloc of what tcgen05.alloc wrote, by a whole warp, before the CTA ends",
    "alloc-permit": "tcgen05.relinquish_alloc_permit behind the last tcgen05.alloc",
    "mbarrier": "mbarrier.inval before its memory is used for something else",
}


class LeakCheck:
    """Of one launch (`machine.observers.Watch`). What was in use when it began is not its leak."""

    verdict = None
    deciders = decisive = ()

    def __init__(self, device: Device, names: frozenset[str] = frozenset()) -> None:
        self._device = device
        self._before = {leak.address for leak in leaks(device)}
        self.findings: list[Finding] = []
        self._places: ProgramLines | None = None  # not the context, which holds this
        self.shared = False

    @staticmethod
    def shares(program: Program) -> bool:
        """Whether workers may share a grid (`machine.observers.Alone`)."""
        return program.found(independent)

    def begin(self, grid: Grid) -> Sequence[object]:
        self._places, self.shared = grid.context.places, grid.shared
        return (self,)

    def saved(self) -> Callable[[], None]:
        """What puts back what has been found. What the heap holds is the heap's (`sim.heap.Heap.saved`)."""
        known = [(finding, finding.count) for finding in self.findings]

        def put_back() -> None:
            self.findings = [finding for finding, _ in known]
            for finding, count in known:
                finding.count = count

        return put_back

    def leaked(self, at: View, cta: Cta, kind: str, message: str) -> None:
        """A CTA has not given something back."""
        assert self._places is not None
        if self.shared:
            raise Alone
        program, where, places = at.launch.program, at.op.where, self._places
        same = (program.kernel, kind, at.text)
        known = next((one for one in self.findings if (one.kernel, one.kind, one.text) == same), None)
        if known is not None:
            known.count += 1
            return
        self.findings.append(
            Finding(
                TrapKind.LEAKCHECK, message, program.kernel, cta.place, at.thread(at.leader),
                *places.line_of(program, where), at.text, source=places.source_of(program, where),
                kind=kind, space="shared" if kind == "mbarrier" else "tensor", help=_HELP[kind],
            )
        )  # fmt: skip

    def end(self) -> list[Finding]:
        return self.findings + [leak for leak in leaks(self._device) if leak.address not in self._before]


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
