"""Cluster launch control: what is undefined behind a request that has failed (9.7.13.17, 9.7.13.18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array
    from ptxtools.program.program import Program

    from .session import Session

#: What initcheck says of the cluster in the answer to such a request.
MESSAGE = "the answer names no cluster: the request has failed"
_NAME = "synccheck"
#: In the state of a CTA: where one of its threads has seen a request fail.
_FAILED = "failed request of a cluster"
_Seen: TypeAlias = "tuple[Program, int, tuple[int, int, int]]"


def used(session: Session, at: View, lanes: Array) -> None:
    """synccheck: lanes make requests, or look at answers. A request must not follow one that a thread of the CTA has
    seen fail."""
    opcode = at.op.opcode
    assert opcode is not None
    if opcode.has("async"):
        seen: _Seen | None = at.cta.state.get(_FAILED)
        if seen is not None:
            program, where, thread = seen
            session.report(
                at, int(lanes[0]), _NAME, "the CTA asks for another cluster, though it has seen a request fail",
                (at.op.where, "request"), kind="launch-control",
                others=(session.site(program, where, at.cta.place, thread),),
                help="no clusterlaunchcontrol.try_cancel behind an answer for which query_cancel.is_canceled is false",
            )  # fmt: skip
        return
    if opcode.has("is_canceled"):
        for lane in failed(at, lanes)[:1].tolist():
            at.cta.state.setdefault(_FAILED, (at.launch.program, at.op.where, at.thread(lane)))


def failed(at: View, lanes: Array) -> Array:
    """Those of the lanes that look at the answer to a request which has failed."""
    _, upper = at.source(1)
    found: Array = lanes[upper[lanes] >> np.uint64(32) == 0]
    return found
