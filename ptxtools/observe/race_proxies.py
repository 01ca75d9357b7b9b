"""racecheck on proxies (8.6): accesses to the same bytes of global memory through different ones.

Base causality orders them only through a fence of the proxy that is not the generic one, by a thread of the CTA that
uses it (8.9.5), and PTX has no such fence for textures, surfaces and constants (9.7.13.4): inside of a grid nothing
orders them, with the end of the grid everything. Accesses to surfaces by one CTA are in one proxy, those by several are
not. A multicast address is an alias of the addresses that it stands for (8.2.2, 8.2.3): fence.proxy.alias orders them.
What copies access asynchronously is a matter of asynccheck, but beside textures, surfaces and constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ptxtools.program.details import Look
from ptxtools.program.operations import ADDRESSED, FETCHES, SURFACES
from ptxtools.program.program import LANES
from ptxtools.records import NamedTuple

from . import race_reports
from .race_shadow import WORD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Access
    from ptxtools.program.program import Op, Program

    from .clocks import Array, Clocks, Warp
    from .race_accesses import Strength
    from .session import Session

GENERIC, ASYNC, SURFACE, TEXTURE, CONSTANT, MULTICAST = range(6)
_NAMES = {GENERIC: "generic", ASYNC: "asynchronous", SURFACE: "surface", TEXTURE: "texture", CONSTANT: "constant",
          MULTICAST: "alias"}  # fmt: skip
_PAGE = 4096
#: Columns of an access: its line + 1 (0: none), thread, time of its warp, scope and bytes of its scalars; the last
#: three are kept for aliases alone.
_COLUMNS = {"where": np.int32, "who": np.int64}
_TIMED = {**_COLUMNS, "time": np.int64, "scope": np.uint8, "unit": np.uint8}

Columns: TypeAlias = "dict[str, Array]"


def proxy_of(op: Op) -> int:
    """The proxy of an operation that a thread does itself."""
    family = "" if op.opcode is None else op.opcode.family
    if op.kind in FETCHES or (op.opcode is not None and op.opcode.has("nc")):
        return TEXTURE
    if op.space == "const":
        return CONSTANT
    return SURFACE if family in SURFACES else MULTICAST if family == "multimem" else GENERIC


class _Found(NamedTuple):
    """An access before: number of its granule among those of the access now; what it did, and its columns."""

    at: int
    proxy: int
    action: str
    columns: dict[str, int]


class _Plane:
    """By page the first access by one proxy to each granule, and the last one: of another CTA than the first where
    `apart` says so."""

    def __init__(self, columns: Mapping[str, type], grain: int, apart: int) -> None:
        self._columns, self._grain, self._apart = columns, grain, apart
        self.pages: dict[int, tuple[Columns, Columns]] = {}

    def _empty(self) -> Columns:
        return {name: np.zeros(_PAGE // self._grain, kind) for name, kind in self._columns.items()}

    def note(self, granules: Array, **values: Array | int) -> None:
        count = _PAGE // self._grain
        for number in np.unique(granules // count).tolist():
            if number not in self.pages:
                make: list[Columns] = [
                    {name: np.zeros(count, kind) for name, kind in self._columns.items()} for _ in range(2)
                ]
                self.pages[number] = make[0], make[1]
            here = granules // count == number
            inside = granules[here] % count
            mine = {name: np.broadcast_to(values[name], here.shape)[here] for name in self._columns}
            first, last = self.pages[number]
            begun = first["where"][inside] > 0
            later = begun
            if self._apart:
                later = begun & (first["who"][inside] // self._apart != mine["who"] // self._apart)
            for columns, some in ((first, ~begun), (last, later)):
                for name, column in columns.items():
                    column[inside[some]] = mine[name][some]

    def look(self, granules: Array) -> list[tuple[Array, Columns]]:
        """The first and the last accesses to granules: numbers of those that there are, and their columns."""
        count, found = _PAGE // self._grain, []
        for number in np.unique(granules // count).tolist():
            for columns in self.pages.get(number, ()):
                mine = np.flatnonzero(granules // count == number)
                inside = granules[mine] % count
                there = columns["where"][inside] > 0
                if there.any():
                    found.append((mine[there], {name: one[inside[there]] for name, one in columns.items()}))
        return found


class Proxies:
    """Of a grid. constants: first byte of its constants in global memory, and the one behind them."""

    def __init__(self, session: Session, program: Program, constants: tuple[int, int]) -> None:
        self._session = session
        used = program.found(_used)
        self.multicast = MULTICAST in used
        self.wanted = bool(used)
        self.reading = used <= {TEXTURE, CONSTANT}  # all others but read
        self._constants = constants if used == {CONSTANT} else None
        changing = {SURFACE, MULTICAST} & used
        self._reads = bool(changing)  # whether generic reads can matter
        self._grain = 1 if used - {TEXTURE, CONSTANT} else program.found(_grain)
        self._planes: dict[tuple[int, bool], _Plane] = {}
        self.pairs: set[tuple[int, int]] = set()  # lines of races that have been found

    def look(
        self, at: View, access: Access, who: tuple[Clocks, Warp], lanes: Array, places: Array, strength: Strength,
        proxy: int,
    ) -> None:  # fmt: skip
        """Lanes access global memory through a proxy."""
        if self._constants is not None:
            start, end = self._constants
            here = (places + access.size > start) & (places < end)
            lanes, places = lanes[here], places[here]
        if not (access.writes or self._reads or proxy not in (GENERIC, ASYNC)) or not len(places):
            return
        clocks, warp = who
        steps = np.arange(-(-access.size // self._grain))
        granules = (places[:, None] // self._grain + steps).ravel()
        threads = np.repeat(warp.agent * LANES + np.maximum(lanes, 0), len(steps))
        found = self._before(clocks, warp, access, proxy, granules, strength)
        if found is not None:
            lane = int(lanes[found.at // len(steps)])
            self._report(at, access, who, int(granules[found.at]) * self._grain, lane, found, strength, proxy)
        plane = self._planes.get((proxy, access.writes))
        if plane is None:
            apart = clocks.per_cta * LANES if proxy == SURFACE else 0
            plane = _Plane(_TIMED if self.multicast else _COLUMNS, self._grain, apart)
            self._planes[proxy, access.writes] = plane
        plane.note(granules, where=at.op.where + 1, who=threads, time=warp.time, scope=strength.scope,
                   unit=strength.unit)  # fmt: skip

    def _before(
        self, clocks: Clocks, warp: Warp, access: Access, proxy: int, granules: Array, strength: Strength
    ) -> _Found | None:
        """An access before that nothing orders with one now."""
        for (other, writes), plane in self._planes.items():
            plain = {GENERIC, ASYNC} >= {proxy, other} or (proxy == other != SURFACE)
            if plain or not (writes or access.writes):
                continue
            for mine, columns in plane.look(granules):
                racing = np.ones(len(mine), np.bool_)
                if proxy == other:
                    racing = columns["who"] // (clocks.per_cta * LANES) != warp.agent // clocks.per_cta
                elif {proxy, other} == {GENERIC, MULTICAST}:
                    agents = columns["who"] // LANES
                    racing = columns["time"] > clocks.known(agents, clocks.aliased(warp))
                    needed = clocks.distance(warp, agents)
                    racing &= ~np.asarray(strength.fits(columns["scope"], columns["unit"], needed))
                if racing.any():
                    one = int(racing.argmax())
                    action = "write" if writes else "read"
                    return _Found(int(mine[one]), other, action, {name: int(c[one]) for name, c in columns.items()})
        return None

    def _report(
        self, at: View, access: Access, who: tuple[Clocks, Warp], place: int, lane: int, found: _Found,
        strength: Strength, proxy: int,
    ) -> None:  # fmt: skip
        columns = found.columns
        agent, other_lane = divmod(columns["who"], LANES)
        where = columns["where"] - 1
        other = race_reports.Other(found.action, agent, other_lane, where, 0, 0, columns.get("time", 0))
        self.pairs |= {(at.op.where, where), (where, at.op.where)}
        why = race_reports.Why("proxy", *_words(proxy, found.proxy))
        race_reports.report(self._session, at, access, who, None, place, lane, other, strength, why)()


def _words(proxy: int, other: int) -> tuple[str, str]:
    """What there is not between accesses through two proxies, and what would help."""
    if {proxy, other} == {GENERIC, MULTICAST}:
        return (
            "one of the two by a multicast address and no fence.proxy.alias",
            "fence.proxy.alias, behind the one and before the other: a multicast address is an alias (8.2.2)",
        )
    if proxy == other:
        return (
            "no order of the surface proxies of two CTAs",
            "a grid for each of the two: inside of one no fence orders surface accesses of different CTAs (8.6)",
        )
    special = proxy if proxy not in (GENERIC, ASYNC) else other
    said = f"no order of the {_NAMES[proxy]} proxy (here) and the {_NAMES[other]} one (there)"
    if TEXTURE in (proxy, other):
        instead = "ld.global without .nc, or a grid for each of the two"
    else:
        instead = "one proxy for both, or a grid for each of the two"
    return said, f"{instead}: inside of a grid no fence orders the {_NAMES[special]} proxy with others (8.6, 9.7.13.4)"


def _used(program: Program) -> frozenset[int]:
    """Proxies of accesses but the generic one."""
    return frozenset(proxy_of(op) for op in program.operations() if op.space != "param") - {GENERIC}


def _grain(program: Program) -> int:
    """Bytes that all accesses to global memory are whole numbers of."""
    sizes = [op.of(Look).size for op in program.operations() if op.kind in ADDRESSED and op.space != "shared"]
    return min((size & -size for size in sizes), default=WORD)
