"""The mbarriers that asynchronous copies and stores signal as they complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.program.details import SourceNames

from .barriers import Barrier, barrier_at
from .operands import Operands, targets

if TYPE_CHECKING:
    from ptxtools.machine.events import View


def barrier_of_target(rank: int, barrier: Barrier, pair: bool) -> Barrier:
    """The barrier of a multicast for a target CTA: its own, or with .cta_group::2 that of the CTA of its pair whose
    rank has the parity of the given barrier's CTA."""
    ctas = barrier.cta.cluster.ctas
    return Barrier(ctas[rank & ~1 | barrier.cta.rank & 1 if pair else rank], barrier.offset)


def signalled(view: View, lane: int) -> list[Barrier]:
    """Those of a lane's operation; none for what bulk groups count, and for other work. Raises `Trap`."""
    if not isinstance(view.op.detail, SourceNames):
        return []
    operands, opcode = Operands(view), view.op.opcode
    if not operands.has("mbar"):
        return []
    barrier = barrier_at(view, operands.one("mbar", lane), lane, operands.spaces["mbar"])
    if not operands.has("ctaMask"):
        return [barrier]
    pair = opcode is not None and opcode.has("cta_group::2")
    return [barrier_of_target(cta.rank, barrier, pair) for cta in targets(view, operands, lane, barrier.cta)]
