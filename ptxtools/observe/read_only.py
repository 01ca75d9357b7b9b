"""memcheck on memory that a kernel may only read: what ld.global.nc reads, for as long as the grid runs (9.7.9.9), and
constants (5.1.3)."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Access, Array
    from ptxtools.program.program import Op
    from ptxtools.sim.device import Grid

    from .session import Session

_NAME = "memcheck"
_PAGE = 4096
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


class ReadOnly:
    """Of one grid. wanted: the kernel has ld.global.nc at all."""

    def __init__(self, session: Session, grid: Grid) -> None:
        self._session: Session = weakref.proxy(session)
        self._program = grid.program
        self._read, self._written = _Bytes(), _Bytes()
        self._constants = grid.image.const
        self._wanted = any(".nc" in text for *_, text in grid.program.lines)

    def access(self, at: View, access: Access) -> None:
        """An access to global memory that is made."""
        opcode = at.op.opcode
        uncached = opcode is not None and opcode.has("nc")
        if not self._wanted or access.space != "global" or not (access.writes or uncached):
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

    def asks(self, op: Op, *, writes: bool) -> bool:
        """Whether it has to see the accesses of an operation."""
        return self._wanted and (writes or (op.opcode is not None and op.opcode.has("nc")))

    def without_constants(self, places: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """What constants leave of stretches of memory."""
        start, end = self._constants
        if not end:
            return places
        return [
            part for first, after in places
            for part in ((first, min(after, start)), (max(first, end), after)) if part[0] < part[1]
        ]  # fmt: skip

    def constant(self, access: Access) -> Array:
        """Lanes that would write to constants."""
        start, end = self._constants
        places = access.addresses.astype(np.int64)
        bad: Array = (places + access.size > start) & (places < end)
        return bad if access.writes and end else np.zeros(len(places), np.bool_)
