"""synccheck on mbarriers (9.7.13.15): initialised before they are used, once, and touched by nothing else while
in use; and shared memory of other CTAs, which ends with them (9.7.13.2)."""

from __future__ import annotations

import struct
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ptxtools.machine.residents import Cta
from ptxtools.program import mbarrier as word
from ptxtools.program.program import OFFSET_MASK, RANK_SHIFT, SHARED_WINDOW
from ptxtools.records import dataclass, field

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Access, Array
    from ptxtools.program.program import Program

    from .ground import Ground
    from .session import Session

_NAME = "synccheck"
_LIVE = "mbarriers in use"
_WORD = struct.Struct("<Q")
#: Bytes that something expects, or brings, and its place in the program.
_Part: TypeAlias = tuple[int, int]


def operation(session: Session, view: View, action: str, lanes: Array, ground: Ground) -> None:
    """Lanes initialise, use or invalidate mbarriers. ground: shared memory of all CTAs, without them."""
    for lane, cta, offset in _places(view, lanes):
        live = cta.state.setdefault(_LIVE, {})
        if cta.ended:
            _tell(session, view, lane, f"mbarrier at shared {offset:#x} of {cta}, which has exited", "ended")
        elif action == "init":
            if offset in live:
                _tell(session, view, lane, f"mbarrier at shared {offset:#x} is initialised while in use", "again")
                _kept(view, cta, offset)
            else:
                ground.take(offset, offset + _WORD.size)
            live[offset] = view.op.where
        elif not _initialised(cta, offset):
            verb = {"inval": "invalidated"}.get(action, "waited for" if "wait" in action else "used")
            _tell(session, view, lane, f"mbarrier at shared {offset:#x} is {verb}, but not initialised", "fresh")
        elif action == "inval" and live.pop(offset, None) is not None:
            ground.give(offset, offset + _WORD.size)


def ended(cta: Cta, ground: Ground) -> None:
    """A CTA has ended: while others of its cluster run, all accesses to shared memory matter."""
    for offset in cta.state.get(_LIVE, ()):
        ground.give(offset, offset + _WORD.size)
    if len(cta.cluster.ctas) > 1:
        (ground.open if all(other.ended for other in cta.cluster.ctas) else ground.close)(cta.cluster)


class Transactions:
    """What the open phases of mbarriers expect, and what copies have brought them, for the report of a deadlock."""

    def __init__(self, session: Session) -> None:
        self._session: Session = weakref.proxy(session)
        self._phases: dict[tuple[Cta, int], _Phase] = {}

    def expect(self, view: View, lanes: Array) -> None:
        """Lanes add to what is expected."""
        amounts, ref = None, view.op.src[1]
        for lane, cta, offset in each(view, lanes):
            phase = self._phase(cta, offset)
            if len(lanes) == 1 and ref is not None:
                amount = view.read(ref, lane)
            else:
                amounts = view.source(1) if amounts is None else amounts
                amount = int(amounts[lane])
            phase.expected.append((view.op.where, amount))
            phase.program, phase.thread = view.launch.program, view.thread(lane)

    def brought(self, view: View, cta: Cta, offset: int, size: int) -> None:
        """A copy completes."""
        phase = self._phase(cta, offset)
        phase.brought.append((view.op.where, size))
        phase.program = view.launch.program

    def stuck(self) -> None:
        """Nobody in a cluster can go on: report mbarriers that have all arrivals, and lack bytes or got too many."""
        for (cta, offset), phase in self._phases.items():
            found: int = _WORD.unpack_from(cta.shared, offset)[0]
            if word.phase(found) == phase.parity and word.transactions(found):
                wanted, come = _bytes(phase.expected), _bytes(phase.brought)
                message = f"expects {wanted:,} bytes in this phase, and {_copies(phase.brought)} brought {come:,}"
                self._report(cta, offset, phase, phase.expected, phase.brought, message)

    def ended(self, cta: Cta) -> None:
        """A CTA has ended: report mbarriers that got more bytes than anybody expects. What came in a phase after all
        bytes that were expected in the one before was meant for that."""
        for (owner, offset), phase in list(self._phases.items()):
            if owner is not cta:
                continue
            del self._phases[owner, offset]
            if _bytes(phase.brought) <= _bytes(phase.expected) or not word.transactions(
                _WORD.unpack_from(cta.shared, offset)[0]
            ):
                continue
            expected, brought = phase.before[0] + phase.expected, phase.before[1] + phase.brought
            message = f"was to expect {_bytes(expected):,} bytes, and {_copies(brought)} brought {_bytes(brought):,}"
            self._report(cta, offset, phase, expected, brought, message)

    def _report(
        self, cta: Cta, offset: int, phase: _Phase, expected: list[_Part], brought: list[_Part], message: str
    ) -> None:
        places = list(dict.fromkeys(where for where, _ in (*expected, *brought)))
        program, message = phase.program, f"the mbarrier at shared {offset:#x} of {cta} {message}"
        if program is not None:
            self._session.report_at(
                program, places[0], cta.place, phase.thread, _NAME, message,
                (places[0], "bytes"), kind="transaction-bytes", space="shared", address=offset,
                others=tuple(self._session.site(program, where, cta.place) for where in places[1:]),
                help="expect as many bytes as the copies of the phase bring",
            )  # fmt: skip

    def _phase(self, cta: Cta, offset: int) -> _Phase:
        parity = word.phase(_WORD.unpack_from(cta.shared, offset)[0])
        known = self._phases.get((cta, offset))
        if known is None or known.parity != parity:
            before = (known.expected, known.brought) if known is not None else ([], [])
            known = self._phases[cta, offset] = _Phase(parity, before)
        return known


@dataclass(slots=True)
class _Phase:
    """before: both of the phase before; expected, brought."""

    parity: int
    before: tuple[list[_Part], list[_Part]] = field(default_factory=lambda: ([], []))
    expected: list[_Part] = field(default_factory=list)
    brought: list[_Part] = field(default_factory=list)
    program: Program | None = None
    thread: tuple[int, int, int] | None = None


def _bytes(parts: list[_Part]) -> int:
    return sum(size for _, size in parts)


def _copies(parts: list[_Part]) -> str:
    return f"{len(parts)} cop{'y' if len(parts) == 1 else 'ies'}"


def access(session: Session, view: View, access: Access) -> None:
    """Lanes access shared memory by ordinary instructions."""
    places = access.addresses.astype(np.int64)
    ranks = places >> RANK_SHIFT if view.launch.program.clustered else np.full(len(places), view.cta.rank)
    offsets = places & OFFSET_MASK
    for cta in view.cluster.ctas:
        mine = np.flatnonzero(ranks == cta.rank)
        if not len(mine):
            continue
        if cta.ended:
            message = f"shared {access.action} at {int(offsets[mine[0]]):#x} of {cta}, which has exited"
            _tell(session, view, int(access.lanes[mine[0]]), message, "ended")
        for offset in cta.state.get(_LIVE, ()):
            hit = mine[(offsets[mine] < offset + 8) & (offsets[mine] + access.size > offset)]
            if len(hit):
                message = f"shared {access.action} of the mbarrier at {offset:#x}, which is in use"
                _tell(session, view, int(access.lanes[hit[0]]), message, "touched")
                if access.writes:
                    _kept(view, cta, offset)


def _kept(view: View, cta: Cta, offset: int) -> None:
    """Memory of an mbarrier that nobody has invalidated is used anew: a leak, too."""
    if view.launch.observers is not None:
        reason = f"the memory of the mbarrier at shared {offset:#x} of {cta} is used anew without mbarrier.inval"
        view.launch.observers.tell("leaked", view, cta, "mbarrier", reason)


def _places(view: View, lanes: Array) -> Iterator[tuple[int, Cta, int]]:
    """A lane for each mbarrier that the operation is on."""
    seen = set()
    for lane, cta, offset in each(view, lanes):
        if (cta, offset) not in seen:
            seen.add((cta, offset))
            yield lane, cta, offset


def each(view: View, lanes: Array) -> Iterator[tuple[int, Cta, int]]:
    """The mbarrier of each lane; what is no mbarrier's address traps in the operation."""
    numbers = lanes.tolist()
    addresses = [view.address(numbers[0])] if len(numbers) == 1 else view.addresses()[lanes].tolist()
    found = {address: _mbarrier_at(view, address) for address in set(addresses)}
    for lane, address in zip(numbers, addresses, strict=True):
        place = found[address]
        if place is not None:
            yield lane, *place


def distinct(view: View, lanes: Array) -> list[tuple[Cta, int]]:
    """The mbarriers of some lanes, each once."""
    addresses = view.addresses()[lanes]
    alike = bool((addresses == addresses[0]).all())
    found = {addresses.item(0)} if alike else dict.fromkeys(addresses.tolist())
    return [place for address in found if (place := _mbarrier_at(view, address)) is not None]


def _mbarrier_at(view: View, address: int) -> tuple[Cta, int] | None:
    if view.op.space == "generic" and address >> 56 != SHARED_WINDOW >> 56:
        return None
    rank, offset = (address & 0xFFFF_FFFF) >> RANK_SHIFT, address & OFFSET_MASK
    ctas = view.cluster.ctas
    if rank >= len(ctas):
        return None
    cta = ctas[rank] if view.launch.program.clustered else view.cta
    return (cta, offset) if offset + _WORD.size <= len(cta.shared) else None


def _initialised(cta: Cta, offset: int) -> bool:
    found: int = _WORD.unpack_from(cta.shared, offset)[0]
    return bool(word.pending(found) or word.expected(found))


def _tell(session: Session, view: View, lane: int, message: str, kind: str) -> None:
    session.report(view, lane, _NAME, message, (view.op.where, kind), kind=kind)
