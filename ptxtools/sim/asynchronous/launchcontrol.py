"""clusterlaunchcontrol.try_cancel: take a cluster that has not been started from the launch (9.7.13.17)."""

from __future__ import annotations

import struct

import numpy as np

from ptxtools.machine.claims import Span, announce
from ptxtools.machine.events import View, serves
from ptxtools.machine.residents import Cta
from ptxtools.program.details import Multicast
from ptxtools.program.program import OFFSET_MASK
from ptxtools.sim.asynchronous.barriers import Barrier, barrier_at
from ptxtools.sim.asynchronous.bulk import signal
from ptxtools.sim.asynchronous.operands import bytes_of

_RESPONSE = struct.Struct("<4I")


@serves("clusterlaunchcontrol.try_cancel")
def try_cancel(view: View) -> None:
    """Each lane makes a request; the response is written, and told to the mbarrier, when it is complete."""
    responses, barriers = view.source(0), view.source(1)
    space = "" if view.op.space == "generic" else view.op.space
    for lane in view.lanes():
        place = int(responses[lane])
        view.memory(place, _RESPONSE.size, space, lane=lane, align=_RESPONSE.size)
        barrier = barrier_at(view, int(barriers[lane]), lane, space)
        first = view.schedule.cancel()
        data = _RESPONSE.pack(*first, 1) if first is not None else bytes(_RESPONSE.size)
        ctas = (
            view.cluster.ctas
            if view.op.of(Multicast).everyone
            else (view.shared_owner(place & 0xFFFF_FFFF, lane=lane),)
        )
        for cta in ctas:
            _respond(view, lane, cta, place & OFFSET_MASK, data, Barrier(cta, barrier.offset))


def _respond(view: View, lane: int, cta: Cta, offset: int, data: bytes, barrier: Barrier) -> None:
    text = f"response of a clusterlaunchcontrol.try_cancel for the mbarrier at {barrier}"
    claim = announce(view, lane, f"the {text}", lambda: [Span(cta, offset, offset + len(data), "write")])

    def complete() -> None:
        bytes_of(cta, offset, len(data))[:] = np.frombuffer(data, np.uint8)
        signal(view, lane, barrier, len(data))()
        if claim is not None:
            claim.end()

    view.cluster.later(complete, text)
