"""What warps know of asynchronous work, for asynccheck's first look: up to which number it is complete, plane by plane
(`machine.residents.PIPE`).

A warp learns from its own waits, and from barriers of the whole CTA (natively); a named barrier tells those who meet
there what any of them knew; an mbarrier tells whoever has waited for a phase what those knew who arrived in it, and
which work has signalled it. A warp may only wait for the phase behind the last one that it knows to be complete: with
another parity, work that ends late could let it pass earlier.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.machine.observers import Doubt
from ptxtools.machine.residents import MARKS_HEAD, PLANES, Cta
from ptxtools.program import mbarrier as word
from ptxtools.program.program import LANES, SHARED_WINDOW
from ptxtools.records import dataclass, field

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array

_WORD = struct.Struct("<Q")
#: Where the numbers that warps know are in the head, and those that any of their lanes know, in words
#: (`native.code.structures.MARKED`).
_KNOWN, _SOME, _WARPS = 176, 272, 32
#: Likewise when warps have had their last fences.
_LAST = 112


@dataclass(slots=True)
class Known:
    """until: of each plane, all work up to this number is complete; more: and these; products: how many of a warp's
    wgmma are, and fences: when the last fence for the asynchronous proxy of a whole warp was, as far as barriers of
    some warps have told; waits: how many tcgen05.wait a warp has done, likewise."""

    until: list[int] = field(default_factory=lambda: [0] * PLANES)
    more: list[set[int]] = field(default_factory=lambda: [set() for _ in range(PLANES)])
    products: dict[int, int] = field(default_factory=dict)
    fences: dict[int, int] = field(default_factory=dict)
    waits: dict[int, int] = field(default_factory=dict)

    def join(self, other: Known) -> None:
        """Learn what another knows."""
        until, unsettled = self.until, False
        for plane, (number, others) in enumerate(zip(other.until, other.more, strict=True)):
            if number > until[plane]:
                until[plane], unsettled = number, True
            if others:
                self.more[plane] |= others
                unsettled = True
        if unsettled:
            self.settle()
        numbers = (self.products, other.products), (self.fences, other.fences), (self.waits, other.waits)
        for mine, told in numbers:
            for warp, number in told.items():
                mine[warp] = max(number, mine.get(warp, 0))

    def settle(self) -> None:
        """Count on."""
        for plane, more in enumerate(self.more):
            if more:
                while self.until[plane] + 1 in more:
                    self.until[plane] += 1
                self.more[plane] = {number for number in more if number > self.until[plane]}


@dataclass(slots=True)
class _Barrier:
    """An mbarrier: number of the open phase; what is told to those who wait for it, and for the phase before; how many
    phases the lanes of warps know to be complete; and what anybody knew before the present epoch, or in it."""

    number: int = 0
    tells: Known = field(default_factory=Known)
    told: Known = field(default_factory=Known)
    phases: dict[int, int | Array] = field(default_factory=dict)  # by warp: of all its lanes, or of each
    epoch: int = 0
    common: int = 0
    latest: int = 0

    def observe(self, parity: int) -> None:
        """The word has this parity now."""
        if self.number & 1 != parity:
            self.number += 1
            self.told, self.tells = self.tells, Known()

    def known(self, warp: int, lanes: Array, epoch: int) -> int:
        """Complete phases that lanes know of; raises `Doubt` if some know more."""
        if epoch != self.epoch:
            self.epoch, self.common = epoch, self.latest
        mine = self.phases.get(warp, 0)
        if isinstance(mine, int):
            return max(self.common, mine)
        found = mine[lanes]
        first = max(self.common, int(found[0]))
        if len(lanes) > 1 and (np.maximum(found, self.common) != first).any():
            raise Doubt
        return first

    def learn(self, warp: int, lanes: Array, number: int) -> None:
        mine = number if len(lanes) == LANES else self.phases.get(warp, 0)
        if len(lanes) < LANES:
            mine = np.full(LANES, mine) if isinstance(mine, int) else mine
            mine[lanes] = number
        self.phases[warp] = mine
        self.latest = max(self.latest, number)


@dataclass(slots=True)
class _Named:
    """A named barrier: number of the open phase, and the threads that have come, of each warp, too; what is told to
    those who meet in it, and was in those before; the phases of warps' lanes that have come to go on behind it."""

    number: int = 0
    came: int = 0
    parts: dict[int, int] = field(default_factory=dict)
    tells: Known = field(default_factory=Known)
    told: dict[int, Known] = field(default_factory=dict)
    phases: dict[tuple[int, int], int] = field(default_factory=dict)


class Knowledge:
    """That of the warps and lanes of a CTA. anybody: what any of them knows."""

    def __init__(self, cta: Cta) -> None:
        self._cta = cta
        head: Array = cta.marks[:MARKS_HEAD].view(np.uint32)
        self.known = head[_KNOWN : _KNOWN + PLANES * _WARPS].reshape(PLANES, _WARPS)
        self.some = head[_SOME : _SOME + PLANES * _WARPS].reshape(PLANES, _WARPS)
        self._warps: dict[int, Known] = {}
        self.anybody, self._before = Known(), Known()
        self._epoch = 0
        self._epochs: dict[int, int] = {}  # in which what a warp knows has been looked up
        self._lanes: dict[int, list[Known | None]] = {}  # by warp; lanes that know the same share it
        self._barriers: dict[int, _Barrier] = {}
        self._named: dict[int, _Named] = {}
        self._fences: Array = head[_LAST : _LAST + _WARPS]

    def of(self, warp: int, lane: int | None = None) -> Known:
        """What a warp knows, or one of its lanes."""
        own, epoch = self._warps.get(warp), int(self._cta.owners[1])
        if epoch != self._epoch:  # all know what any knew before it
            self._epoch = epoch
            self._before.join(self.anybody)
            self.known[:] = np.maximum(self.known, np.array(self._before.until, np.uint32)[:, None])
        if own is None:
            own = self._warps[warp] = Known()
        if self._epochs.get(warp) != epoch:
            self._epochs[warp] = epoch
            own.join(self._before)
        found = None if lane is None or warp not in self._lanes else self._lanes[warp][lane]
        if found is None:
            return own
        found.join(own)
        return found

    def learn(self, at: View, lanes: Array, news: Known) -> None:
        """Lanes learn something: the warp, if all its lanes do."""
        warp = at.warp
        own = self.of(warp)
        self.anybody.join(news)
        if len(lanes) == threads_of(at):
            own.join(news)
            self.known[:, warp] = own.until
            self.some[:, warp] = np.maximum(self.some[:, warp], own.until)
            return
        mine = self._lanes.setdefault(warp, [None] * threads_of(at))
        for found, some in _by_knowledge(mine, lanes.tolist()):
            found.join(news)
            found.join(own)
            for lane in some:
                mine[lane] = found
            self.some[:, warp] = np.maximum(self.some[:, warp], found.until)
        if None not in mine:  # what all of them know
            different = {id(one): one for one in mine if one is not None}.values()
            least = (min(numbers) for numbers in zip(*(one.until for one in different), strict=True))
            own.until = list(map(max, own.until, least))  # what the warp has learnt since, lanes have yet to look up
            self.known[:, warp] = own.until

    def has_waited(self, warp: int, number: int) -> None:
        """A warp has done as many tcgen05.wait."""
        self.of(warp).waits[warp] = self.anybody.waits[warp] = number

    # --- mbarriers ----------------------------------------------------------------------------------------------------

    def _barrier(self, cta: Cta, offset: int) -> _Barrier:
        if cta is not self._cta:
            raise Doubt
        found = self._barriers.get(offset)
        if found is None:
            found = self._barriers[offset] = _Barrier()
        found.observe(word.phase(_WORD.unpack_from(cta.shared, offset)[0]))
        return found

    def tell(self, cta: Cta, offset: int, news: Known) -> None:
        """Somebody is about to arrive at an mbarrier, or work to signal it."""
        self._barrier(cta, offset).tells.join(news)

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        """Lanes are about to do something with mbarriers."""
        offset = self._place(at, lanes)
        if what.endswith((" init", " inval")):
            self._barriers.pop(offset, None)
            return
        if "drop" in what or "noComplete" in what:
            raise Doubt
        barrier = self._barrier(self._cta, offset)
        arrives = what.endswith((" arrive", " arrive.expect_tx"))
        amounts = int(at.source(1)[lanes].sum()) if what.endswith(" arrive") else len(lanes)
        if arrives and len(lanes) > 1 and amounts > word.pending(_WORD.unpack_from(self._cta.shared, offset)[0]):
            raise Doubt  # it could begin two phases
        for lane in lanes.tolist() if len(lanes) < threads_of(at) else [None]:
            barrier.tells.join(self.of(at.warp, lane))
        self._tell_more(barrier.tells, at, whole=len(lanes) == threads_of(at))

    def _tell_more(self, tells: Known, at: View, *, whole: bool) -> None:
        """What a warp tells beside what it knows. whole: with all its lanes."""
        tells.products[at.warp] = at.issued_by(at.warp).done
        if whole:
            tells.fences[at.warp] = max(int(self._fences[at.warp]), tells.fences.get(at.warp, 0))

    def leave(self, at: View, what: str, lanes: Array) -> None:
        """Lanes go on behind a wait, which may have failed."""
        offset, epoch = self._place(at, lanes), int(self._cta.owners[1])
        barrier = self._barrier(self._cta, offset)
        wanted = at.source(1)[lanes]
        shift = 0 if what.endswith("parity") else word.PHASE_SHIFT
        parity = int(wanted[0]) >> shift & 1
        if len(lanes) > 1 and (wanted != wanted[0]).any():
            bits = wanted >> wanted.dtype.type(shift) & wanted.dtype.type(1)
            if (bits != parity).any():
                raise Doubt
        phase = barrier.known(at.warp, lanes, epoch)
        if parity != phase & 1:
            if barrier.number != phase:
                raise Doubt  # it waits for a phase that it knows of, and the next one is over
            return
        if barrier.number not in (phase, phase + 1):
            raise Doubt
        if barrier.number == phase + 1:
            barrier.learn(at.warp, lanes, phase + 1)
            self.learn(at, lanes, barrier.told)

    # --- named barriers -----------------------------------------------------------------------------------------------

    def come(self, at: View, lanes: Array, *, stays: bool) -> None:
        """Lanes of a warp come to a named barrier. stays: until the others have come."""
        numbers, counts = at.source(0)[lanes], at.source(1)[lanes]
        if (numbers != numbers[0]).any() or (counts != counts[0]).any():
            raise Doubt
        barrier, threads = self._named.setdefault(int(numbers[0]), _Named()), threads_of(at)
        for lane in lanes.tolist() if len(lanes) < threads else [None]:
            barrier.tells.join(self.of(at.warp, lane))
        parts = barrier.parts[at.warp] = barrier.parts.get(at.warp, 0) + len(lanes)
        self._tell_more(barrier.tells, at, whole=parts == threads)
        if stays:
            barrier.phases.update({(at.warp, lane): barrier.number for lane in lanes.tolist()})
        barrier.came += LANES if len(lanes) == threads else len(lanes)
        if barrier.came > int(counts[0]):
            raise Doubt
        if barrier.came == int(counts[0]):
            barrier.told[barrier.number], barrier.tells = barrier.tells, Known()
            barrier.number, barrier.came = barrier.number + 1, 0
            barrier.parts.clear()
            barrier.told = {one: told for one, told in barrier.told.items() if one in barrier.phases.values()}

    def go(self, at: View, lanes: Array) -> None:
        """Lanes go on behind it."""
        barrier = self._named.get(int(at.source(0)[lanes[0]]))
        found = {-1} if barrier is None else {barrier.phases.pop((at.warp, lane), -1) for lane in lanes.tolist()}
        phase = found.pop()
        if barrier is None or found or phase not in barrier.told:
            raise Doubt
        self.learn(at, lanes, barrier.told[phase])

    def _place(self, at: View, lanes: Array) -> int:
        """The mbarrier that all lanes are at."""
        ref, address = at.op.src[0], at.op.imm
        if ref is not None:
            values = at.values(ref)[lanes]
            if len(lanes) > 1 and (values != values[0]).any():
                raise Doubt
            address = int(values[0]) + address & (0xFFFF_FFFF if ref.type == "b32" else word.MASK64)
        if address >> 56 != (SHARED_WINDOW >> 56 if at.op.space == "generic" else 0):
            raise Doubt
        offset = (address & 0xFFFF_FFFF) - self._cta.window
        if not 0 <= offset <= len(self._cta.shared) - _WORD.size:
            raise Doubt
        return offset


def _by_knowledge(mine: list[Known | None], lanes: list[int]) -> Iterator[tuple[Known, list[int]]]:
    """Lanes by what they know, which other lanes of the warp know no longer with them."""
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for lane in lanes:
        groups[id(mine[lane])].append(lane)
    for some in groups.values():
        found = mine[some[0]]
        if found is None:
            yield Known(), some
        elif sum(one is found for one in mine) == len(some):
            yield found, some
        else:
            apart = Known()
            apart.join(found)
            yield apart, some


def threads_of(at: View) -> int:
    """Threads of a warp."""
    x, y, z = at.launch.block
    return min(LANES, x * y * z - LANES * at.warp)


__all__ = ["Knowledge", "Known", "threads_of"]
