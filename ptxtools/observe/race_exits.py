"""Accesses to shared memory of another CTA that nothing orders before its end: in another schedule it may have exited
(9.7.13.2). A cluster's barrier orders them, with a relaxed arrival too, since no memory is read any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxtools.diagnostics import TrapKind

from .clocks import Known, merged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ptxtools.machine.residents import Cta

    from .clocks import Clocks
    from .race_shadow import Shadow
    from .session import Session


def ended(session: Session, clocks: Clocks, cta: Cta, shadow: Shadow) -> None:
    """A CTA has ended. shadow: of its shared memory."""
    if len(cta.cluster.ctas) == 1 or not session.looks(TrapKind.SYNCCHECK):
        return
    known: Known = {}
    for number in range(clocks.per_cta):
        warp = clocks.warp(cta.cluster.number, cta.rank * clocks.per_cta + number)
        known = merged(merged(known, warp.known), warp.met)
    for where, agent in dict.fromkeys(_late(clocks, cta, shadow, known)):
        program = cta.cluster.schedule.launch.program
        session.report_at(
            program, where, cta.cluster.ctas[int(clocks.cta_of(agent))].place, None, TrapKind.SYNCCHECK,
            f"shared memory of {cta}, which may have exited by then: nothing orders this access before its end",
            (where, "may have ended"), kind="ended", space="shared",
            help="barrier.cluster.arrive and wait in both CTAs before they exit",
        )  # fmt: skip


def _late(clocks: Clocks, cta: Cta, shadow: Shadow, known: Known) -> Iterator[tuple[int, int]]:
    """Lines and warps of accesses of other CTAs that it does not know of."""
    for page in shadow.pages.values():
        readers = np.array(page.readers, np.int64)
        for writes in (page.writes, *filter(None, page.hidden)):
            late = writes["written"] > clocks.known(writes["writer"], known)
            late &= clocks.cta_of(writes["writer"]) != cta.rank
            yield from zip(writes["where"][late].tolist(), writes["writer"][late].tolist(), strict=True)
        for row in np.flatnonzero(clocks.cta_of(readers) != cta.rank).tolist():
            agent = readers[row : row + 1]
            late = page.reads["time"][row] > clocks.known(agent, known)
            yield from ((where, int(agent[0])) for where in np.unique(page.reads["where"][row][late]).tolist())
