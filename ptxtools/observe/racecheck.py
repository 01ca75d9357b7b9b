"""racecheck: accesses to the same bytes of shared or global memory that nothing orders (chapter 8).

Two accesses race when neither happens before the other, at least one writes, and they are not both strong with scopes
that include each other (8.6). What happens before what: `clocks`; the last accesses: `race_shadow`; words for reports:
`race_reports`. Lanes of a warp are ordered by bar.warp.sync and whatever orders threads, from sm_70 on. Two stores of
the same value are no race. Copies of the asynchronous engines are not looked at.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.program.details import Look
from ptxtools.program.program import LANES, OFFSET_MASK, RANK_SHIFT

from . import race_reports
from .clocks import CLUSTER, CTA, SYS, WEAK, Clocks, Warp
from .race_accesses import (
    covered,
    granules,
    lanes_are_independent,
    lanes_late,
    scope_named,
    scope_of,
    sort_of,
    stored_bytes,
    warps_of,
    words_of,
)
from .race_shadow import PAGE, WORD, Page, Shadow

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access
    from ptxtools.machine.residents import Cta
    from ptxtools.program.program import Op, Program
    from ptxtools.sim.device import Grid

    from .session import Session

Array: TypeAlias = npt.NDArray[Any]

_NAME = "racecheck"
_ALL = np.arange(LANES)
#: Strengths that acquire and that release.
_ACQUIRES, _RELEASES = ("acquire", "acq_rel"), ("release", "acq_rel")


class RaceCheck:
    """Looks at a grid. Shadows of shared memory hang on the CTAs, and end with them."""

    def __init__(self, session: Session, grid: Grid) -> None:
        self._session: Session = weakref.proxy(session)  # which outlives this
        self._global = Shadow()
        self._clocks: Clocks | None = None
        self._passes: dict[Any, Array] = {}
        self._swaps: set[int] = set()  # lines of compare-and-swap
        self._guesses: dict[Any, Callable[[], None]] = {}  # by who read, and where
        self._confirmed: set[Any] = set()
        self._lanes_race = lanes_are_independent(grid.image.target)

    @staticmethod
    def concerned(program: Program, device: Any) -> Callable[[Op], bool]:
        """Which events of a program matter: all but those of local memory and of copies."""
        return lambda op: op.kind != "observe.access" or (op.space != "local" and op.of(Look).action != "copy")

    def _warp(self, at: View) -> Warp:
        """The warp of a view."""
        per_cta = warps_of(at)
        if self._clocks is None:
            self._clocks = Clocks(per_cta, per_cta * max(1, len(at.cluster.ctas)))
        return self._clocks.warp(at.cluster.number, at.cta.rank * per_cta + at.warp)

    # --- synchronisation ----------------------------------------------------------------------------------------------

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        """Lanes come to a barrier: what their warp knows is known to whoever passes it with them."""
        warp = self._warp(at)
        clocks = self._clocks
        assert clocks is not None
        opcode = at.op.opcode
        relaxed = opcode is not None and opcode.has("relaxed")
        for key in self._keys(at, what, lanes, arriving=True):
            if what == "cluster wait" or (key[0] == "mbarrier" and "_wait" in what):
                continue
            if not relaxed:
                remote = key[0] == "mbarrier" and key[1] >> RANK_SHIFT not in (0, at.cta.rank)
                if remote and opcode is not None and opcode.has("cta"):
                    continue  # a scope that does not include who waits there
                clocks.give(warp, key)
            else:
                clocks.give(warp, key, warp.fenced.get(CLUSTER) or {})
            if key[0] in ("bar", "cluster"):
                clocks.forget((*key[:-1], key[-1] - 2))

    def leave(self, at: View, what: str, lanes: Array) -> None:
        warp = self._warp(at)
        assert self._clocks is not None
        if what == "warp":
            masks = at.source(0)
            for mask in np.unique(masks[lanes]).tolist():
                warp.meet(np.flatnonzero(mask >> _ALL & 1))
            self._clocks.fence(warp, CTA, lanes)
        elif what not in ("arrive", "cluster arrive"):
            for key in self._keys(at, what, lanes, arriving=False):
                self._clocks.take(warp, key, lanes)
            if not what.startswith("mbarrier"):  # barriers are fences for those that they are for (9.7.13.1)
                self._clocks.fence(warp, CLUSTER if what.startswith("cluster") else CTA, lanes)

    def fence(self, at: View, lanes: Array) -> None:
        opcode = at.op.opcode
        if opcode is not None and not opcode.has("proxy"):
            warp = self._warp(at)
            assert self._clocks is not None
            scope = CLUSTER if opcode.has("mbarrier_init") else scope_named(at, SYS)
            self._clocks.fence(warp, scope, lanes)

    def _keys(self, view: View, what: str, lanes: Array, *, arriving: bool) -> set[Any]:
        """What lanes meet at: a phase of a barrier, told by how often each has passed it; or an mbarrier."""
        if what.startswith("mbarrier"):
            return {
                ("mbarrier", int(address) & 0xFFFF_FFFF, view.cluster.number) for address in view.addresses()[lanes]
            }
        cluster = what.startswith("cluster")
        numbers = np.zeros(len(lanes), np.int64) if cluster else view.source(0)[lanes].astype(np.int64)
        keys = set()
        per_cta = warps_of(view)
        for number in np.unique(numbers).tolist():
            name = ("cluster", view.cluster.number) if cluster else ("bar", view.cluster.number, view.cta.rank, number)
            threads = LANES * per_cta * (len(view.cluster.ctas) if cluster else 1)
            passes = self._passes.setdefault(name, np.zeros(threads, np.int64))
            first = LANES * (view.cta.rank * per_cta + view.warp if cluster else view.warp)
            mine = first + lanes[numbers == number]
            if arriving and what != "cluster wait":
                passes[mine] += 1
            keys |= {(*name, count) for count in np.unique(passes[mine]).tolist()}
        return keys

    # --- accesses -----------------------------------------------------------------------------------------------------

    def access(self, at: View, access: Access) -> None:
        """Lanes access shared memory, of their CTA or another one of the cluster, or global memory."""
        if access.action == "copy" or access.space not in ("shared", "global"):
            return
        addresses = access.addresses.astype(np.int64)
        rows = stored_bytes(at, access)
        if access.space == "global":
            self._access(at, access, None, self._global, access.lanes, addresses, rows)
            return
        ranks = addresses >> RANK_SHIFT
        for rank in np.unique(ranks).tolist():
            if rank >= len(at.cluster.ctas):
                continue  # out of bounds: the access itself will trap
            owner = at.cluster.ctas[rank]
            offsets = addresses & OFFSET_MASK
            mine = (ranks == rank) & (offsets + access.size <= len(owner.shared))
            if mine.any():
                shadow = owner.state.setdefault(_NAME, Shadow())
                some = None if rows is None else rows[mine]
                self._access(at, access, owner, shadow, access.lanes[mine], offsets[mine], some)

    def _access(
        self,
        at: View,
        access: Access,
        owner: Cta | None,
        shadow: Shadow,
        lanes: Array,
        places: Array,
        rows: Array | None,
    ) -> None:
        warp = self._warp(at)
        scope = scope_of(at, access)
        if access.action == "atomic" and at.op.opcode is not None and at.op.opcode.has("cas"):
            self._swaps.add(at.op.where)
        pieces = shadow.pieces(places, access.size)
        if scope and access.action != "write" and shadow.messages:
            self._read_messages(at, access, warp, scope, shadow, places, lanes)
        step = access.size
        for number, page, inside, bytes_ in pieces:
            who = lanes[bytes_ // step]
            values = granules(rows, bytes_, page.grain)
            self._page(at, access, warp, owner, (number, page), inside, who, values, scope)
        if at.op.where in self._swaps:
            self._confirm(warp, owner, lanes, places)
        if access.writes:
            self._write_messages(at, access, warp, scope, shadow, places)

    def _read_messages(
        self, at: View, access: Access, warp: Warp, scope: int, shadow: Shadow, places: Array, lanes: Array
    ) -> None:
        assert self._clocks is not None
        acquire = access.strength in _ACQUIRES
        for word in words_of(places, access.size):
            for message in shadow.messages.get(word, ()):
                self._clocks.read(warp, message, scope, lanes, acquire=acquire)

    def _write_messages(self, at: View, access: Access, warp: Warp, scope: int, shadow: Shadow, places: Array) -> None:
        """A strong store replaces what was told there, an atomic adds to it, a weak store ends it."""
        assert self._clocks is not None
        if not scope and not shadow.messages:
            return
        words = words_of(places, access.size)
        whole = access.size % WORD == 0
        if not scope:
            for word in set(words) & shadow.messages.keys() if whole else ():
                del shadow.messages[word]
            return
        message = self._clocks.message(warp, scope, at.op.where, release=access.strength in _RELEASES)
        for word in words:
            before = shadow.messages.get(word, []) if access.action == "atomic" or not whole else []
            shadow.messages[word] = [known for known in before if not covered(known, message)] + [message]

    # --- one page -----------------------------------------------------------------------------------------------------

    def _page(
        self, at: View, access: Access, warp: Warp, owner: Cta | None, which: tuple[int, Page], inside: Array,
        lanes: Array, values: Array | None, scope: int,
    ) -> None:  # fmt: skip
        number, page = which
        clocks = self._clocks
        assert clocks is not None
        base = number * PAGE
        writes, grain, now = page.writes, page.grain, warp.time
        sort = sort_of(at, access)
        # Against the last write.
        written = writes["written"][inside]
        if written.any():
            writer, lane = writes["writer"][inside], writes["lane"][inside]
            mine = writer == warp.agent
            if mine.all():
                known = warp.lanes[lanes, lane]
            else:
                known = np.where(mine, warp.lanes[lanes, lane], clocks.known(writer, warp.known))
            late = (written > known) & ~(mine & (lane == lanes if self._lanes_race else True))
            if values is not None:  # to write the same value again harms nobody
                late &= writes["value"][inside] != values
            if late.any():
                needed = clocks.distance(warp, writer)
                strong = np.minimum(writes["scope"][inside], scope) >= needed
                racing = np.flatnonzero(late & ~strong)
                if len(racing):
                    one = racing[0]
                    did = "atomic" if writes["sort"][inside[one]] else "write"
                    other = race_reports.Other(
                        did, int(writer[one]), int(lane[one]), int(writes["where"][inside[one]]),
                        int(writes["scope"][inside[one]]), int(written[one]),
                    )  # fmt: skip
                    self._report(
                        at, access, warp, owner, base + int(inside[one]) * grain, int(lanes[one]), other, scope
                    )
        if not access.writes:
            self._note_read(at, page, warp, inside, lanes, scope, now)
            return
        if page.readers:
            self._against_reads(at, access, warp, owner, which, inside, lanes, scope)
        if self._lanes_race and not scope and len(inside) > 1:
            self._same_instruction(at, access, warp, owner, which, inside, lanes, values)
        writes["writer"][inside], writes["written"][inside], writes["lane"][inside] = warp.agent, now, lanes
        writes["where"][inside], writes["scope"][inside], writes["sort"][inside] = at.op.where, scope, sort
        writes["value"][inside] = -1 if values is None else values

    def _note_read(self, at: View, page: Page, warp: Warp, inside: Array, lanes: Array, scope: int, now: int) -> None:
        row, reads = page.row(warp.agent), page.reads
        old = reads["lanes"][row, inside]
        since = reads["since"][row, inside]
        stays = since > warp.lanes.min() if self._lanes_race else np.zeros(len(inside), np.bool_)
        reads["since"][row, inside] = np.where(stays, since, now)
        reads["lanes"][row, inside] = np.where(stays, old, 0)
        np.bitwise_or.at(reads["lanes"][row], inside, np.uint32(1) << lanes.astype(np.uint32))
        reads["time"][row, inside], reads["where"][row, inside] = now, at.op.where
        reads["scope"][row, inside] = scope

    def _against_reads(
        self, at: View, access: Access, warp: Warp, owner: Cta | None, which: tuple[int, Page], inside: Array,
        lanes: Array, scope: int,
    ) -> None:  # fmt: skip
        number, page = which
        assert self._clocks is not None
        count, reads = len(page.readers), page.reads
        agents = np.array(page.readers)
        times = reads["time"][:count, inside]
        known = np.maximum(self._clocks.known(agents, warp.known), self._clocks.known(agents, warp.seen))
        late = times > known[:, None]
        mine = np.flatnonzero(agents == warp.agent)
        late[mine] = False
        if len(mine) and self._lanes_race:
            late[mine[0]] = lanes_late(warp, reads["lanes"][mine[0], inside], reads["since"][mine[0], inside], lanes)
        if not late.any():
            return
        needed = self._clocks.distance(warp, agents)
        racing = np.argwhere(late & ~(np.minimum(reads["scope"][:count, inside], scope) >= needed[:, None]))
        if len(racing):
            row, one = racing[0].tolist()
            readers = int(reads["lanes"][row, inside[one]])
            if page.readers[row] == warp.agent:
                readers &= ~(1 << int(lanes[one]))
            lane = (readers & -readers).bit_length() - 1
            at_once = {name: int(reads[name][row, inside[one]]) for name in ("where", "scope", "time")}
            other = race_reports.Other("read", page.readers[row], lane, *at_once.values())
            place = number * PAGE + int(inside[one]) * page.grain
            self._report(at, access, warp, owner, place, int(lanes[one]), other, scope)

    def _same_instruction(
        self, at: View, access: Access, warp: Warp, owner: Cta | None, which: tuple[int, Page], inside: Array,
        lanes: Array, values: Array | None,
    ) -> None:  # fmt: skip
        """Lanes of one store that store different values in one place."""
        if values is None:
            return
        order = np.argsort(inside, kind="stable")
        place, value, lane = inside[order], values[order], lanes[order]
        twice = np.flatnonzero((place[1:] == place[:-1]) & (value[1:] != value[:-1]) & (lane[1:] != lane[:-1]))
        if len(twice):
            one = int(twice[0])
            other = race_reports.Other("write", warp.agent, int(lane[one]), at.op.where, WEAK, 0)
            number, page = which
            self._report(
                at, access, warp, owner, number * PAGE + int(place[one]) * page.grain, int(lane[one + 1]), other, WEAK
            )

    def _report(
        self, at: View, access: Access, warp: Warp, owner: Cta | None, place: int, lane: int,
        other: race_reports.Other, scope: int,
    ) -> None:  # fmt: skip
        assert self._clocks is not None
        tell = race_reports.report(self._session, at, access, (self._clocks, warp), owner, place, lane, other, scope)
        here, before = (str(access.action), scope, at.op.where), (other.action, other.scope, other.where)
        for read, change, who in (here, before, (warp.agent, lane)), (before, here, (other.agent, other.lane)):
            if read[:2] == ("read", WEAK) and change[0] == "atomic" and change[2] in self._swaps:
                self._guesses[*who, None if owner is None else owner.place, place // WORD] = tell
                return
        tell()

    def _confirm(self, warp: Warp, owner: Cta | None, lanes: Array, places: Array) -> None:
        """Lanes compare and swap: what they read before without any order was a guess, which this confirms."""
        memory = None if owner is None else owner.place
        for lane, place in zip(lanes.tolist(), places.tolist(), strict=True):
            self._confirmed.add((warp.agent, lane, memory, place // WORD))

    def grid_ended(self, launch: Launch) -> None:
        """Reads beside a compare-and-swap that no swap of the same thread has confirmed are races."""
        for who, tell in self._guesses.items():
            if who not in self._confirmed:
                tell()
        self._guesses.clear()
