"""Groups of wgmma (9.7.15.7): the products that the four warps of a warpgroup issue, commit and wait for.

A warp that waits for a group also waits until the other three have issued the products of that group, because on the
chips a group completes for the warpgroup as a whole. Late work is executed when its group is waited for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from ptxtools.diagnostics import Cause
from ptxtools.machine.events import View, let_others_first, serves
from ptxtools.machine.issued import WARPS, IssuedProducts
from ptxtools.records import dataclass, field

from .operands import number, place

_KEY = "wgmma"


@dataclass(slots=True, eq=False)
class Warpgroup:
    """The state of a warpgroup: B of some instructions, by number; in late runs the work still to do, by warp, and the
    number of products issued at each commit."""

    matrices: dict[int, Any] = field(default_factory=dict)
    late: list[deque[Callable[[], None]]] = field(default_factory=lambda: [deque() for _ in range(WARPS)])
    executed: list[int] = field(default_factory=lambda: [0] * WARPS)
    groups: list[list[int]] = field(default_factory=lambda: [[] for _ in range(WARPS)])

    def catch_up(self, warp: int, wanted: int) -> None:
        """Do late work, until a given number of products of a warp is executed."""
        while self.late[warp] and self.executed[warp] < wanted:
            self.executed[warp] += 1
            self.late[warp].popleft()()


def warpgroup_of(view: View) -> tuple[Warpgroup, int]:
    """The warpgroup, and the warp's number in it. Raises `Trap` if it lacks warps."""
    key = f"{_KEY} {view.warp // WARPS}"
    state = view.cta.state
    found = state.get(key)
    if found is None:
        x, y, z = view.launch.block
        if x * y * z <= 32 * (view.warp // WARPS * WARPS + WARPS - 1):
            raise view.trap(
                "wgmma requires a whole warpgroup: four warps, the first a multiple of four", cause=Cause.COLLECTIVE
            )
        found = state[key] = Warpgroup()
    return found, view.warp % WARPS


def records(view: View) -> list[IssuedProducts]:
    """The products that the four warps have issued."""
    first = view.warp // WARPS * WARPS
    return [view.issued_by(first + warp) for warp in range(WARPS)]


def _key(view: View) -> tuple[str, int, int]:
    return _KEY, view.cta.rank, view.warp // WARPS


@serves("wgmma.commit_group")
def commit(view: View) -> None:
    """The instructions since the last commit form a group."""
    group, warp = warpgroup_of(view)
    everybody = records(view)
    everybody[warp].commit()
    if view.launch.late:
        group.groups[warp].append(everybody[warp].issued)
    if everybody[warp].watched:
        for record in everybody:
            record.watched = False
        view.cluster.wake(_key(view))
    view.launch.products.take_over_commit(view)


@serves("wgmma.wait_group")
def wait(view: View) -> None:
    """Wait until no more than n groups of the warpgroup are incomplete."""
    group, warp = warpgroup_of(view)
    everybody = records(view)
    allowed = number(view, "n", view.leader)
    done = group.groups[warp]
    if view.launch.late:
        wanted = done[len(done) - allowed - 1] if len(done) > allowed else 0
    else:
        wanted = everybody[warp].wanted(allowed)
    missing = [str(view.warp // WARPS * WARPS + w) for w in range(WARPS) if everybody[w].issued < wanted]
    everybody[warp].waits(bool(missing))
    if missing:
        for record in everybody:
            record.watched = True
        view.wait(_key(view), f"wgmma group: warp {', '.join(missing)} has not issued its part")
        return
    if group.late[warp] and group.executed[warp] < wanted and not let_others_first(view, view.mask):
        return
    everybody[warp].done = wanted
    for one in range(WARPS):
        group.catch_up(one, wanted)
    del done[: max(0, len(done) - allowed)]
    view.launch.products.take_over_wait(view, place(view, "n"))
