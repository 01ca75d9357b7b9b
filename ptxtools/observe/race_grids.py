"""racecheck between a grid and the one before it, which has let it begin early (griddepcontrol, 9.7.13.13).

Once all CTAs of a grid have executed griddepcontrol.launch_dependents, or have ended, the next grid may run beside it.
Then only griddepcontrol.wait orders the two. What threads do before they wait, or learn from one that has waited, comes
in no order with

- any write of the grid before,
- the reads that follow griddepcontrol.launch_dependents in a warp of it.

A child grid comes behind what the thread that launches it knows then, and runs beside the rest of its parent; a tail
launch comes behind all of it. Children of one parent run beside one another, unless they are in one stream (the null
stream is one for each CTA), or streams wait for events.

Launches run one after the other here, each to its end, so a race changes no value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxtools.diagnostics.findings import Site
from ptxtools.machine.exploring import RACING
from ptxtools.program.program import LANES
from ptxtools.sim.childgrids import FIRE_AND_FORGET

from .clocks import GPU, NAMES, Known, Warp
from .race_accesses import Strength, granules, scalars_of
from .race_shadow import PAGE

if TYPE_CHECKING:
    from ptxtools.isa.opcode import Opcode
    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access
    from ptxtools.program.program import Program
    from ptxtools.sim.children import Child, Work
    from ptxtools.sim.device import Device, Grid
    from ptxtools.sim.program_lines import ProgramLines

    from .clocks import Array, Clocks
    from .race_shadow import Page, Shadow
    from .session import Session

#: Who has waited knows this: as of a cluster that no grid has.
WAITED: Known = {-1: np.ones(1, np.int64)}
_DONE = {"read": "read", "write": "written", "atomic": "changed by an atomic"}


def action_of(opcode: Opcode | None) -> str:
    """ "wait" or "launch_dependents" of griddepcontrol; "" of others."""
    return "" if opcode is None or opcode.family != "griddepcontrol" else opcode.mods["action"]


def lets_begin(program: Program) -> bool:
    """Whether a kernel has griddepcontrol.launch_dependents."""
    return any(op.kind == "fence" and action_of(op.opcode) == "launch_dependents" for op in program.operations())


class Before:
    """The accesses to global memory of a grid that has let the next one begin. began: of each warp the time at which it
    did, where: the line of it."""

    def __init__(
        self, program: Program, places: ProgramLines, block: tuple[int, int, int], clocks: Clocks, shadow: Shadow,
        began: dict[int, int], where: int,
    ) -> None:  # fmt: skip
        self._program, self._places, self._clocks, self._shadow = program, places, clocks, shadow
        self._block, self._began, self._where = block, began, where
        self._waited = WAITED

    def look(
        self, session: Session, at: View, access: Access, warp: Warp, lanes: Array, places: Array,
        rows: Array | None, strength: Strength,
    ) -> None:  # fmt: skip
        """A warp accesses global memory; it may run beside that grid unless it has waited."""
        if warp.known.keys() & self._waited.keys():
            return
        size = access.size
        if access.action != "write" and strength.scope >= GPU and self._told(places, size, strength.unit):
            warp.take(self._waited, lanes)
            return
        for number, page, inside, bytes_ in self._shadow.pieces(places, size):
            racing = self._writes(page, inside, granules(rows, bytes_, page.grain), strength)
            found = self._of_write(page, int(inside[racing.argmax()])) if racing.any() else None
            if found is None and access.writes:
                racing, row = self._reads(page, inside, strength)
                found = self._of_read(page, int(inside[racing.argmax()]), row) if racing.any() else None
            if found is not None:
                one = int(racing.argmax())
                lane = int(lanes[bytes_[one] // size])
                self._report(session, at, access, number * PAGE + int(inside[one]) * page.grain, lane, *found)
                return

    def _told(self, places: Array, size: int, unit: int) -> bool:
        """Whether a strong read finds what that grid has released there."""
        if not self._shadow.messages:
            return False
        messages = (one for extent in scalars_of(places, size, unit) for one in self._shadow.told(extent))
        return any(one.told is not None and one.scope >= GPU for one in messages)

    def _late(self, agents: Array, times: Array) -> Array:
        """Which writes of warps, at these times, may come at the same time: all of them."""
        return np.asarray(times > 0)

    def _begun(self, agent: int) -> int:
        """Time of a warp behind which its reads may come at the same time."""
        return self._began.get(agent, 1 << 62)

    def _writes(self, page: Page, inside: Array, values: Array | None, strength: Strength) -> Array:
        writes = page.writes
        racing = self._late(writes["writer"][inside], writes["written"][inside])
        racing &= ~strength.fits(writes["scope"][inside], writes["unit"][inside], GPU)
        if values is not None:  # to write the same value again harms nobody
            racing &= writes["value"][inside] != values
        return np.asarray(racing)

    def _reads(self, page: Page, inside: Array, strength: Strength) -> tuple[Array, int]:
        for row, agent in enumerate(page.readers):
            behind = page.reads["time"][row, inside] > self._begun(agent)
            scopes, units = page.reads["scope"][row, inside], page.reads["unit"][row, inside]
            racing = behind & ~strength.fits(scopes, units, GPU)
            if racing.any():
                return np.asarray(racing), row
        return np.zeros(len(inside), np.bool_), -1

    @staticmethod
    def _of_write(page: Page, granule: int) -> tuple[str, int, int, int]:
        writes = page.writes
        action = "atomic" if writes["sort"][granule] else "write"
        return action, int(writes["writer"][granule]), int(writes["lane"][granule]), int(writes["where"][granule])

    @staticmethod
    def _of_read(page: Page, granule: int, row: int) -> tuple[str, int, int, int]:
        readers = int(page.reads["lanes"][row, granule])
        lane = (readers & -readers).bit_length() - 1
        return "read", page.readers[row], lane, int(page.reads["where"][row, granule])

    def _site(self, where: int, thread: tuple[int, int, int] | None) -> Site:
        file, line = self._places.line_of(self._program, where)
        text = self._program.lines[where][2] if 0 <= where < len(self._program.lines) else ""
        return Site(file, line, text, None, thread, self._places.source_of(self._program, where))

    def _report(
        self, session: Session, at: View, access: Access, place: int, lane: int, action: str, agent: int, other: int,
        where: int,
    ) -> None:  # fmt: skip
        x, y, _ = self._block
        linear = LANES * (agent % self._clocks.per_cta) + max(0, other)
        thread = linear % x, linear // x % y, linear // (x * y)
        site = self._site(where, thread)
        line = f" at {site.file}:{site.line}" if site.line is not None else ""
        whose, missing, help_ = self._words(self._site(self._where, None).line)
        session.report_at(
            at.launch.program, at.op.where, at.cta.place, at.thread(at.leader if lane < 0 else lane), "racecheck",
            f"race on global byte {place:#x}: {access.action} here, {_DONE[action]} by thread "
            f"({','.join(map(str, thread))}) of {whose}, of kernel {self._program.kernel}{line}, {missing}",
            ("grids", at.op.where, where, access.action, action), kind="grids", others=(site,), address=place,
            space="global", allocation=session.allocations.around(place),
            help=f"{help_}; or a release and an acquire with scope .{NAMES[GPU]} or wider",
        )  # fmt: skip

    def _words(self, began: int | None) -> tuple[str, str, str]:
        """Whose access the other one is, what there is not, and what would order them."""
        help_ = f"griddepcontrol.wait before this: line {began} of the grid before lets this one begin early"
        return "the grid before", "with no griddepcontrol.wait between", help_


class Sibling(Before):
    """The accesses of another child of the same parent. number: that of it among them; child: how it was launched, by
    the CTA at `cta`."""

    def __init__(
        self, launch: Launch, places: ProgramLines, clocks: Clocks, shadow: Shadow, number: int, child: Child | Work,
        cta: tuple[int, int, int],
    ) -> None:  # fmt: skip
        super().__init__(launch.program, places, launch.block, clocks, shadow, {}, -1)
        self._waited = {-2 - number: np.ones(1, np.int64)}
        self._child, self._cta = child, cta

    def beside(self, child: Child | Work, cta: tuple[int, int, int]) -> bool:
        """Whether nothing orders it with a later child that a CTA launches."""
        streams = {self._child.stream, child.stream}
        return len(streams) > 1 or FIRE_AND_FORGET in streams or (0 in streams and cta != self._cta)

    def _begun(self, agent: int) -> int:
        return 0

    def _words(self, began: int | None) -> tuple[str, str, str]:
        return "another child of the same grid", "which no stream orders with this one", "launch both into one stream"


class Parent(Before):
    """The accesses of a grid that has launched another one. told: what the thread that did so knew then; cta: where it
    is; siblings: the children of this grid that have ended."""

    def __init__(
        self, program: Program, places: ProgramLines, block: tuple[int, int, int], clocks: Clocks, shadow: Shadow,
        told: Known, where: int, cta: tuple[int, int, int], siblings: list[Sibling],
    ) -> None:  # fmt: skip
        super().__init__(program, places, block, clocks, shadow, {}, where)
        self._known, self._cta, self._siblings = told, cta, siblings
        self.queues = False  # no grid, but a copy or a fill

    def beside(self, grid: Grid) -> list[Sibling]:
        """Its earlier children that run beside this one."""
        child = grid.context.child
        if child is None or grid.context.waits:
            return []
        return [sibling for sibling in self._siblings if sibling.beside(child, self._cta)]

    def ended(self, launch: Launch, clocks: Clocks, shadow: Shadow, child: Child) -> None:
        """A child of it has ended."""
        number = len(self._siblings)
        self._siblings.append(Sibling(launch, self._places, clocks, shadow, number, child, self._cta))

    def before(self, work: Work, *, waits: bool) -> list[Before]:
        """What runs beside work that the same thread has queued, and is done now. waits: streams wait for events."""
        found: list[Before] = [] if work.tail else [self]
        return found if waits else [*found, *(one for one in self._siblings if one.beside(work, self._cta))]

    def done(self, launch: Launch, shadow: Shadow, work: Work, kind: type[Sibling]) -> None:
        """Such work is done, which `shadow` has the accesses of."""
        number = len(self._siblings)
        self._siblings.append(kind(launch, self._places, self._clocks, shadow, number, work, self._cta))

    def _late(self, agents: Array, times: Array) -> Array:
        return np.asarray(times > self._clocks.known(agents, self._known))

    def _begun(self, agent: int) -> int:
        return int(self._clocks.known(np.array([agent]), self._known)[0])

    def _words(self, began: int | None) -> tuple[str, str, str]:
        if self.queues:
            help_ = f"do it before line {began} queues this, or queue this into the tail"
            return "the grid that has queued this", "which nothing orders with that", help_
        help_ = f"do it before line {began} launches this grid, or launch this one into the tail"
        return "the grid that has launched this one", "which nothing orders with the launch", help_


def parent_of(grid: Grid) -> Parent | None:
    """Of a child grid: its parent; of others None."""
    told = None if grid.context.child is None else grid.context.child.told
    assert told is None or isinstance(told, Parent)
    return told


def taken(device: Device) -> Before | None:
    """What a launch finds of the one before it. In further schedules of a launch (`explore`) it is not looked at."""
    runtime = device.runtime
    if runtime.state.get(RACING) is not None:
        return None
    found, runtime.grid_before = runtime.grid_before, None
    assert found is None or isinstance(found, Before)
    return found


class Begun:
    """What a grid does with griddepcontrol."""

    def __init__(self, places: ProgramLines) -> None:
        self._places = places
        self._warps: dict[int, int] = {}
        self._children: list[Sibling] = []
        self._where = -1

    def controlled(self, action: str, at: View, warp: Warp, lanes: Array) -> None:
        """Lanes execute it."""
        if action == "wait":
            warp.take(WAITED, lanes)
            return
        self._where = at.op.where
        self._warps.setdefault(warp.agent, warp.time)
        warp.tick()

    def parent(self, at: View, clocks: Clocks, shadow: Shadow, told: Known) -> Parent:
        """What a child grid that a lane launches has to know."""
        launch, cta = at.launch, at.cta.place
        return Parent(
            launch.program, self._places, launch.block, clocks, shadow, told, at.op.where, cta, self._children
        )

    def leave(self, device: Device, launch: Launch, clocks: Clocks, shadow: Shadow) -> None:
        """The grid has ended: if it has let the next one begin, leave what that one has to know."""
        if self._warps and device.runtime.state.get(RACING) is None:
            found = Before(launch.program, self._places, launch.block, clocks, shadow, self._warps, self._where)
            device.runtime.grid_before = found
