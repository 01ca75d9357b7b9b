"""memcheck on memory that a kernel may only read: what ld.global.nc reads, for as long as the grid runs (9.7.9.9), and
constants (5.1.3)."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.machine.filters import EVERYWHERE, Bounds, stretches
from ptxtools.machine.observers import Anew, Guessed
from ptxtools.program.details import Look
from ptxtools.records import dataclass, field

from . import race_guess

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access, Array
    from ptxtools.program.program import Op, Program
    from ptxtools.sim.arena import Arena
    from ptxtools.sim.device import Grid

    from .session import Session

_NAME = "memcheck"
_PAGE = 4096
_ELSEWHERE = ("shared", "cluster", "local")
#: Behind the last address.
_END = (1 << 64) - 1
#: Nobody did it.
_NOBODY = -1


def _page() -> Array:
    return np.full(_PAGE, _NOBODY, np.int32)


@dataclass(slots=True)
class _Bytes:
    """Which instruction last touched each byte of global memory, by page: index of its line."""

    pages: dict[int, Array] = field(default_factory=dict)

    def note(self, places: Array, where: int) -> None:
        for number in np.unique(places // _PAGE).tolist():
            page = self.pages.get(number)
            if page is None:
                page = self.pages[number] = _page()
            page[places[places // _PAGE == number] % _PAGE] = where

    def find(self, places: Array) -> tuple[int, int] | None:
        """Number of the first place that was touched, and where."""
        for number in np.unique(places // _PAGE).tolist():
            page = self.pages.get(number)
            if page is not None:
                mine = np.flatnonzero(places // _PAGE == number)
                touched = page[places[mine] % _PAGE]
                hit = np.flatnonzero(touched != _NOBODY)
                if len(hit):
                    return int(mine[hit[0]]), int(touched[hit[0]])
        return None


def wanted(program: Program) -> bool:
    """Whether a kernel reads through .nc at all."""
    if ".nc" not in program.cache:
        program.cache[".nc"] = any(".nc" in text for *_, text in program.lines)
    return bool(program.cache[".nc"])


class ReadOnly:
    """Of one grid. Where it can run again, the grid is first guessed to read through .nc what it does not write
    (`race_guess`): then nothing is noted of either."""

    def __init__(self, session: Session, grid: Grid) -> None:
        self._session: Session = weakref.proxy(session)
        self._program = grid.program
        self._read, self._written = _Bytes(), _Bytes()
        self._constants = grid.image.const
        self._wanted = wanted(grid.program)
        self._first = bool(grid.trial)
        self._guess = race_guess.ReadOnly(grid.program, possible=self._wanted and bool(grid.trial or grid.again))
        self._guesses = False

    def access(self, at: View, access: Access) -> None:
        """An access to global memory that is made."""
        opcode = at.op.opcode
        uncached = opcode is not None and opcode.has("nc")
        if not self._wanted or access.space != "global" or not (access.writes or uncached):
            return
        if self._guesses:
            self._guessed(access)
            return
        places = (access.addresses.astype(np.int64)[:, None] + np.arange(access.size)).reshape(-1)
        mine, others = (self._written, self._read) if access.writes else (self._read, self._written)
        found = others.find(places)
        mine.note(places, at.op.where)
        if found is None:
            return
        number, where = found
        lane, address = int(access.lanes[number // access.size]), int(places[number])
        if access.writes:
            message = f"global {access.action} at {address:#x}, which this grid reads by ld.global.nc"
        else:
            message = f"ld.global.nc reads {address:#x}, which this grid writes"
        self._session.report(
            at, lane, _NAME, message, (*sorted((at.op.where, where)), "nc"), kind="read-only", address=address,
            space="global",
            others=(self._session.site(self._program, where),),
            help="ld.global without .nc: what .nc reads must stay the same while the grid runs",
        )  # fmt: skip

    def _guessed(self, access: Access) -> None:
        """An access while a guess stands. Raises `Guessed`, or `Anew`, where it is wrong."""
        try:
            self._guess.check(access)
            if not (access.writes or self._guess.holds(access)):
                self._guess.wrong()
        except Guessed:
            if self._first:
                raise
            raise Anew from None

    def bounds(self, launch: Launch, arena: Arena) -> tuple[Bounds, ...]:
        """Where what is only read lies, for reads through .nc and for writes: nowhere without a guess. Nothing where
        there are no such reads."""
        if not self._wanted:
            return ()
        self._guess.make(launch, arena.live(), (0, 0))
        self._guesses = bool(self._guess.stretches)
        read = stretches((*one, 0) for one in self._guess.stretches)
        first, gaps = 0, list[tuple[int, int]]()
        for start, after in [*self._guess.stretches, *([(_END, 0)] if self._guesses else [])]:
            gaps.append((first, start))
            first = after
        rest = {"shared": EVERYWHERE, "local": EVERYWHERE}
        return (Bounds({"global": read, **rest}, {"global": stretches(gaps), **rest}, _never, matters=_concerns),)

    def constant(self, access: Access) -> Array:
        """Lanes that would write to constants."""
        start, end = self._constants
        places = access.addresses.astype(np.int64)
        bad: Array = (places + access.size > start) & (places < end)
        return bad if access.writes and end else np.zeros(len(places), np.bool_)


def without(constants: tuple[int, int], places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What constants leave of stretches of memory."""
    start, end = constants
    if not end:
        return places
    return [
        part for first, after in places
        for part in ((first, min(after, start)), (max(first, end), after)) if part[0] < part[1]
    ]  # fmt: skip


def _never(op: Op) -> bool:
    return False


def _concerns(op: Op) -> bool:
    """Whether an access is one through .nc, or a write, as far as the program says."""
    writes = op.of(Look).action != "read"
    return op.space not in _ELSEWHERE and (writes or (op.opcode is not None and op.opcode.has("nc")))
