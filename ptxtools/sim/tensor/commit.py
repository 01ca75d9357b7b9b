"""tcgen05.commit: signal mbarriers when all previously issued work is done (9.7.16.12.1)."""

from __future__ import annotations

from ptxtools.diagnostics import Cause
from ptxtools.machine.events import View, serves
from ptxtools.program.details import NamedOperands
from ptxtools.program.program import OFFSET_MASK

from ..asynchronous.barriers import Barrier, barrier_at, guarded
from .memory import partners
from .operands import has, number
from .queue import issue


@serves("tcgen05.commit")
def commit(view: View) -> None:
    """One arrival when the work has completed: at one mbarrier, or at the same offset in each CTA of a mask."""
    op = view.op.opcode
    assert op is not None
    for lane in view.lanes():
        partners(view, int(op.mods["cta_group"][-1]), "tcgen05.commit", lane)
        _issue(view, lane, _barriers(view, lane))


def _barriers(view: View, lane: int) -> list[Barrier]:
    space = view.op.of(NamedOperands).spaces["mbar"]
    address = number(view, "mbar", lane)
    if not has(view, "ctaMask"):
        return [barrier_at(view, address, lane, "" if space == "generic" else space)]
    mask = number(view, "ctaMask", lane) & 0xFFFF
    ctas = view.cluster.ctas
    if mask >> len(ctas):
        raise view.trap(
            f"tcgen05.commit: ctaMask {mask:#x} includes CTAs beyond the {len(ctas)} of the cluster",
            lane,
            cause=Cause.OUT_OF_BOUNDS,
        )
    return [Barrier(cta, address & OFFSET_MASK) for cta in ctas if mask >> cta.rank & 1]


def _issue(view: View, lane: int, barriers: list[Barrier]) -> None:
    def work() -> None:
        for barrier in barriers:
            if view.launch.observers is not None:
                view.launch.observers.tell("signalled", view, barrier.cta, barrier.offset)
            guarded(view, lane, barrier, barrier.arrive)

    issue(view, work, "tcgen05.commit")
