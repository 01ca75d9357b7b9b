"""How a kernel is lowered for a device: in what the programs of devices and of observers differ."""

from __future__ import annotations

from ptxtools.records import dataclass


@dataclass(frozen=True, slots=True)
class Variant:
    """late: copies of single threads, and waiting for asynchronous work, are events, so that work can complete late
    (`Launch.late`); truncates: mad.f32 cuts its product off, as chips of sm_1x do (9.7.3.7); apart: shared and local
    variables have room between them, so that memcheck sees where one is left for the next.

    optimise: False gives each register a slot of its own, and keeps every instruction and branch as written. lines:
    "line" operations stand where instructions of the text begin and end; nothing is optimised then. names: the program
    says where registers lie (`Program.named`). apart_registers: registers share no slots, and no lane runs what its
    branch leaves out, so that observers can tell of each lane which registers it has written; fences: those of tensor
    cores (wgmma.fence, tcgen05.fence), which order nothing here, are operations that observers see; counts: "count"
    operations say how often instructions are reached, and by which lanes (`Program.counters`); groups: where copies are
    not late, "observe.group" stands where single threads put them into groups, or wait for these."""

    late: bool = False
    truncates: bool = False
    apart: bool = False
    optimise: bool = True
    lines: bool = False
    apart_registers: bool = False
    fences: bool = False
    names: bool = False
    counts: bool = False
    groups: bool = False

    @property
    def optimised(self) -> bool:
        """Whether anything is optimised."""
        return self.optimise and not self.lines


#: What runs without checkers and seed on today's devices: the one that is worth storing.
PLAIN = Variant()
