"""Asynchronous tcgen05 work of a CTA (9.7.16.6): done in the order of issue, at once or, in shuffled and late runs,
later. Stores of a warp have a queue of their own, which the warp's tcgen05.wait::st empties."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ptxtools.machine.events import View, serves
from ptxtools.sim.checks.asynccheck import Claim, Span, checker_of

Work = Callable[[], None]

_KEY = "tcgen05 queue"
_STORES = "tcgen05 stores"
_LOADS = "tcgen05 loads"


def issue(
    view: View, work: Callable[[], None], text: str, lane: int = 0, spans: Callable[[], list[Span]] | None = None
) -> None:
    """Do the work after all that this CTA has issued before: mma, cp, shift and commit stay in order.

    spans: what it reads and writes, asked for under asynccheck.
    """
    if not view.schedule.delays:
        work()
        return
    check = checker_of(view) if spans is not None else None
    if check is not None and spans is not None:
        work = _claimed(check.begin(view, lane, text, spans(), (_KEY, view.cta)), work)
    queue: deque[Work] = view.cta.state.setdefault(_KEY, deque())
    queue.append(work)
    view.cluster.later(lambda: queue.popleft()(), text)


def _claimed(claim: Claim, work: Work) -> Work:
    def run() -> None:
        work()
        claim.end()

    return run


def store(view: View, work: Work, cells: Span) -> None:
    """Write tensor memory after what this warp has stored before."""
    if not view.launch.late:
        work()
        return
    check = checker_of(view)
    if check is not None:
        work = _claimed(check.begin(view, view.leader, "tcgen05.st", [cells], (_STORES, view.cta, view.warp)), work)
    stores = _stores(view)
    stores.append(work)
    view.cluster.later(lambda: _do(stores, work), "tcgen05.st")


def load(view: View, cells: Span) -> None:
    """Tensor memory is being read until the warp's tcgen05.wait::ld."""
    check = checker_of(view)
    if check is None:
        return
    claim = check.begin(view, view.leader, "tcgen05.ld", [cells])
    view.cta.state.setdefault(f"{_LOADS} {view.warp}", []).append(claim)
    view.cta.at_end.append(lambda: check.forgotten(claim, "a tcgen05.wait::ld"))


def _stores(view: View) -> deque[Work]:
    stores: deque[Work] = view.cta.state.setdefault(f"{_STORES} {view.warp}", deque())
    return stores


def _do(stores: deque[Work], last: Work | None) -> None:
    """Do stores up to one of them, or all; none if that one is done already."""
    while stores and (last is None or last in stores):
        stores.popleft()()


@serves("tcgen05.wait")
def wait(view: View) -> None:
    """tcgen05.wait::st (9.7.16.8.5). What tcgen05.ld reads is in its registers at once: compilers move uses of the
    registers before tcgen05.wait::ld, because the chips wait for registers by themselves."""
    if view.op.opcode is not None and view.op.opcode.has("wait::st"):
        _do(_stores(view), None)
    else:
        for claim in view.cta.state.pop(f"{_LOADS} {view.warp}", ()):
            claim.end()
