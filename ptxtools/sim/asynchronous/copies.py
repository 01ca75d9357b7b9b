"""cp.async and its groups (9.7.9.25.3) where asynchronous work may complete late: else the engines copy at once."""

from __future__ import annotations

import numpy as np

from ptxtools.machine.claims import Span, joined, span_at
from ptxtools.machine.events import View, let_others_first, serves
from ptxtools.program import mbarrier as word
from ptxtools.program.details import Groups, ThreadCopy

from .barriers import Barrier, barrier_at, guarded
from .operands import Array
from .queue import Queue, Step, Work, queue_of, tell_of_groups

_KIND = "cp.async"


def _queue(view: View) -> Queue:
    return queue_of(view, _KIND)


@serves("async.copy")
def copy(view: View) -> None:
    """The copies of all lanes are one piece of work."""
    detail = view.op.of(ThreadCopy)
    size, rule = detail.size, detail.rule
    sources, targets = view.addresses(), view.source(1)
    counts = np.full(32, size, np.int64)
    if rule:
        last = view.source(2)
        counts = np.where(last, 0, size) if rule == "ignore" else np.minimum(last.astype(np.int64), size)
    pairs = []
    space = "" if view.op.space == "generic" else view.op.space
    for lane in view.lanes():
        count = int(counts[lane])
        target = view.memory(int(targets[lane]), size, "shared", lane=lane, align=size)
        source = view.memory(int(sources[lane]), count, space, lane=lane, write=False, align=size) if count else b""
        pairs.append((target, source))

    def run() -> None:
        for target, source in pairs:
            target[:] = bytes(source).ljust(size, b"\0")

    text = f"a cp.async of {size} bytes to shared {int(targets[view.leader]):#x}"
    _queue(view).submit_together(
        view, view.lanes(), [run], text, lambda: [_spans(view, targets, size, sources, counts)]
    )


def _spans(view: View, targets: Array, size: int, sources: Array, counts: Array) -> list[Span]:
    """What the copies of all lanes write, neighbouring ones as one, and read."""
    space = "" if view.op.space == "generic" else view.op.space
    found: list[Span] = []
    for lane in view.lanes():
        found += span_at(view, lane, int(targets[lane]), size, "shared", "write")
    for lane in view.lanes():
        if counts[lane]:
            found += span_at(view, lane, int(sources[lane]), int(counts[lane]), space, "read")
    return joined(found)


@serves("async.copy.group")
def group(view: View) -> None:
    queue, groups = _queue(view), view.op.of(Groups)
    if groups.commit:
        for lane in view.lanes():
            queue.commit((view.warp, lane))
    if groups.pending is None:
        tell_of_groups(view, view.lanes())
        return
    most = max(0, groups.pending)
    left = {lane: queue.unfinished((view.warp, lane), most, read=False) for lane in view.lanes()}
    waiting = let_others_first(view, sum(1 << lane for lane, some in left.items() if some))
    done = [lane for lane, some in left.items() if not some or waiting >> lane & 1]
    for lane in done:
        for work in view.schedule.in_some_order(left[lane]):
            queue.force(work)
    tell_of_groups(view, done)


@serves("async.copy.arrive")
def arrive(view: View) -> None:
    """cp.async.mbarrier.arrive: an arrival when the thread's copies are complete (9.7.13.15.15)."""
    opcode, queue = view.op.opcode, _queue(view)
    assert opcode is not None
    addresses = view.addresses()
    for lane in view.lanes():
        barrier = barrier_at(view, int(addresses[lane]), lane, "" if view.op.space == "generic" else "shared")
        if not opcode.has("noinc"):
            guarded(view, lane, barrier, lambda: barrier.set(word.announce(barrier.word)))  # noqa: B023 - at once
        text = f"the arrival of cp.async copies at the mbarrier at {barrier}"
        before = queue.unfinished((view.warp, lane), 0, read=False) + queue.open_of((view.warp, lane))
        arrival = _arrival(view, lane, queue, barrier, before)
        if before:
            queue.submit_together(view, [lane], [arrival], text, grouped=False)
        else:  # there is nothing to wait for
            arrival()


def _arrival(view: View, lane: int, queue: Queue, barrier: Barrier, before: list[Work]) -> Step:
    """The step that arrives, behind the copies that the thread has begun before."""

    def run() -> None:
        for work in view.schedule.in_some_order(before):
            queue.force(work)
        guarded(view, lane, barrier, barrier.arrive)

    return run
