"""Asynchronous tcgen05 work of a CTA (9.7.16.6): executed in the order of issue, at once or, in shuffled and late runs,
later. The stores of a warp have a separate queue, which tcgen05.wait::st of that warp empties."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ptxtools.machine.claims import Claim, Span, announce
from ptxtools.machine.events import View, let_others_first, serves

Work = Callable[[], None]

_KEY = "tcgen05 queue"
_STORES = "tcgen05 stores"
_LOADS = "tcgen05 loads"


def issue(
    view: View, work: Callable[[], None], text: str, lane: int = 0, spans: Callable[[], list[Span]] | None = None,
    cells: Callable[[], list[Span]] | None = None, matrices: Callable[[], list[Span]] | None = None,
) -> None:  # fmt: skip
    """Do the work after everything that this CTA has issued before: mma, cp, shift and commit stay in order. spans: the
    memory that it reads and writes, asked for only if somebody listens; cells: tensor memory alone, if that is less
    work; matrices: shared memory alone, if all bytes of it matter."""
    listeners = view.launch.observers
    if matrices is not None and listeners is not None and listeners.hear("matrices"):
        listeners.tell("matrices", view, lane, matrices())
    if spans is not None:
        _tell(view, lane, cells or spans)
        work = _claimed(announce(view, lane, text, spans, (_KEY, view.cta)), work)
    if not view.schedule.delays:
        work()
        return
    queue: deque[Work] = view.cta.state.setdefault(_KEY, deque())
    queue.append(work)
    view.cluster.later(lambda: queue.popleft()(), text)


def _tell(view: View, lane: int, spans: Callable[[], list[Span]]) -> None:
    """Tell who listens what of tensor memory an instruction works on."""
    listeners = view.launch.observers
    if listeners is not None and listeners.hear("tensor"):
        listeners.tell("tensor", view, lane, [span for span in spans() if span.tensor])


def _claimed(claim: Claim | None, work: Work) -> Work:
    """The work, and then the end of its claim."""
    if claim is None:
        return work
    own = claim

    def run() -> None:
        work()
        own.end()

    return run


def store(view: View, work: Work, cells: Callable[[], Span]) -> None:
    """Write tensor memory, after the earlier stores of this warp."""
    _tell(view, view.leader, lambda: [cells()])
    claim = announce(view, view.leader, "tcgen05.st", lambda: [cells()], (_STORES, view.cta, view.warp))
    work = _claimed(claim, work)
    if not view.launch.late:
        work()
        return
    stores = _stores(view)
    stores.append(work)
    view.cluster.later(lambda: _do(stores, work), "tcgen05.st")


def load(view: View, cells: Callable[[], Span]) -> None:
    """Announce that tensor memory is being read; in late runs until the warp's tcgen05.wait::ld."""
    _tell(view, view.leader, lambda: [cells()])
    claim = announce(view, view.leader, "tcgen05.ld", lambda: [cells()])
    if claim is None:
        return
    if not view.launch.late:
        claim.end()
        return
    _loads(view).append(claim)
    view.cta.at_end.append(lambda: claim.abandon("a tcgen05.wait::ld"))


def _stores(view: View) -> deque[Work]:
    stores: deque[Work] = view.cta.state.setdefault(f"{_STORES} {view.warp}", deque())
    return stores


def _loads(view: View) -> list[Claim]:
    loads: list[Claim] = view.cta.state.setdefault(f"{_LOADS} {view.warp}", [])
    return loads


def _do(stores: deque[Work], last: Work | None) -> None:
    """Do the stores up to a given one, or all; nothing if that one is done already."""
    while stores and (last is None or last in stores):
        stores.popleft()()


@serves("tcgen05.wait")
def wait(view: View) -> None:
    """tcgen05.wait::st (9.7.16.8.5). The results of tcgen05.ld are in their registers at once: compilers move uses of
    the registers before tcgen05.wait::ld, because the chips wait for registers anyway."""
    stores, listeners = view.op.opcode is not None and view.op.opcode.has("wait::st"), view.launch.observers
    if (_stores(view) if stores else _loads(view)) and not let_others_first(view, view.mask):
        return
    if listeners is not None:
        listeners.tell("tensor_waited", view, stores)
    if stores:
        _do(_stores(view), None)
    else:
        loads = _loads(view)
        while loads:
            loads.pop(0).end()
