"""Shadow of memory for racecheck: pages of flat arrays, made for what is touched.

A page covers `PAGE` bytes. Its granules have 4 bytes until an access is smaller or not aligned, then 1 byte. Columns
are indexed by granule; those of readers have a row for each warp that has read the page, in the order of `readers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .clocks import Together

if TYPE_CHECKING:
    from ptxtools.machine.claims import Span

    from .clocks import Message

Array: TypeAlias = npt.NDArray[Any]

#: How many messages are not looked at one by one.
_SEVERAL = 4
PAGE = 4096
WORD = 4
#: Tensor memory as a flat memory: lanes in groups of 16, each with a word for a column.
_GROUPS, GROUP, _COLUMNS = 8, 16, 512
#: Columns of the last write: its warp, that warp's time (0: never), lane (-1: the warp as a whole), line, scope of a
#: strong access (0: weak) and bytes of its scalars, its sort (0: a store, else an atomic; a positive number: one whose
#: order does not matter among its like), what it stored (-1: not known), and the time of the first write of the same
#: warp that it has seen through atomics alone.
_WRITES = {
    "writer": np.int32, "written": np.int64, "lane": np.int8, "where": np.int32, "scope": np.uint8, "unit": np.uint8,
    "sort": np.int16, "value": np.int64, "since": np.int64,
}  # fmt: skip
#: Of one read; of which there are several, by what stands before these names.
READ = {"time": np.int64, "where": np.int32, "scope": np.uint8, "unit": np.uint8}
EARLIER = ("", "narrow_", "narrowest_", "apart_")
#: Of a write that a strong read has seen.
SAW = {"writer": np.int32, "since": np.int64, "written": np.int64, "at": np.int64}
SEEN = ("saw_", "before_")
#: Columns of a warp's reads: the time of the last one, the first time of those that `lanes` stands for, line, scope and
#: bytes of its scalars; of the last one before it whose scope was narrower (time 0: none was), of the last one before
#: that whose scope was narrower still, and of the last one whose scalars had another size; the last two writes that one
#: has seen with scopes that fit, by their warps, the first and last times that they stand for, and when that was; and
#: when the first one before these was seen, which is not kept.
_READS = {
    "since": np.int64, "lanes": np.uint32,
    **{f"{which}{name}": kind for which in EARLIER for name, kind in READ.items()},
    **{f"{which}{name}": kind for which in SEEN for name, kind in SAW.items()}, "lost_at": np.int64,
}  # fmt: skip


#: Why the last write of a granule does not stand for one before it: that one is not ordered before it; is not, and is
#: of another warp than the last one of these; has a narrower scope; had one, before another one of these; is a strong
#: write of the same warp, which the last one has not read, or of another one that it comes behind; is one of another
#: CTA, which is farther from threads of this one; or from APART on, for each size: is made of scalars of another size.
UNORDERED, OTHER, NARROWER, NARROWEST, OWN, BEHIND, FAR, APART = range(8)
#: Logarithms of the sizes of scalars, 1 to 16 bytes, and more.
_SIZES = 6


class Page:
    """The last write, and the last reads of each warp, of the granules of a page. hidden: the last of the writes that
    the last one does not stand for, for each reason, with warp and time of the atomic that has seen it (-1: none has);
    None where there are none."""

    def __init__(self) -> None:
        self.grain = WORD
        count = PAGE // WORD
        self.writes: dict[str, Array] = {name: np.zeros(count, kind) for name, kind in _WRITES.items()}
        self.writes["value"][:] = -1
        self.hidden: list[dict[str, Array] | None] = [None] * (APART + _SIZES)
        self.readers: list[int] = []
        self.reads: dict[str, Array] = {name: np.zeros((0, count), kind) for name, kind in _READS.items()}

    def split(self) -> None:
        """Granules of one byte from now on."""
        if self.grain > 1:
            self.grain = 1
            self.writes = _bytes_of(self.writes)
            self.hidden = [None if some is None else _bytes_of(some) for some in self.hidden]
            self.reads = {name: rows.repeat(WORD, axis=1) for name, rows in self.reads.items()}

    def hide(self, places: Array, why: int, by: tuple[Any, Any] = (-1, 0)) -> None:
        """Keep the last writes of granules, which are about to be replaced; why: the number in `hidden`; by: warp and
        time of the atomic that sees them as it does so."""
        before = self.hidden[why]
        if why == NARROWER and before is not None:
            narrower = before["scope"][places] < self.writes["scope"][places]
            self._keep(before, places[narrower], NARROWEST)
        if why == UNORDERED and before is not None:
            writer, since, written = (self.writes[name][places] for name in ("writer", "since", "written"))
            when = before["by_at"][places]
            told = (before["by"][places] == writer) & (since <= when) & (when <= written)  # who sees this one, sees it
            self._keep(before, places[(before["writer"][places] != writer) & ~told], OTHER)
        self._keep(self.writes, places, why)
        kept = self.hidden[why]
        if kept is not None:
            kept["by"][places], kept["by_at"][places] = by

    def pass_on(self, places: Array, agent: int, now: int) -> None:
        """An atomic sees the last writes of granules, and so what atomics among those have seen (8.9.2)."""
        writer, since, written = (self.writes[name][places] for name in ("writer", "since", "written"))
        for some in filter(None, self.hidden):
            when = some["by_at"][places]
            there = places[(some["by"][places] == writer) & (since <= when) & (when <= written)]
            some["by"][there], some["by_at"][there] = agent, now

    def hide_apart(self, places: Array) -> None:
        """The same for those made of scalars of another size than what replaces them."""
        sizes = np.minimum(np.log2(np.maximum(self.writes["unit"][places], 1)).astype(np.int64), _SIZES - 1)
        for size in np.unique(sizes).tolist():
            self._keep(self.writes, places[sizes == size], APART + size)

    def _keep(self, writes: dict[str, Array], places: Array, why: int) -> None:
        places = places[writes["written"][places] > 0]
        if not len(places):
            return
        kept = self.hidden[why]
        if kept is None:
            kept = self.hidden[why] = {name: np.zeros_like(column) for name, column in self.writes.items()}
            kept |= {"by": np.full(len(kept["writer"]), -1, np.int32), "by_at": np.zeros(len(kept["writer"]), np.int64)}
        for name, column in kept.items():
            column[places] = writes[name][places] if name in writes else -1

    def row(self, agent: int) -> int:
        """The row of a warp's reads."""
        if agent in self.readers:
            return self.readers.index(agent)
        self.readers.append(agent)
        if len(self.readers) > len(self.reads["time"]):
            more = max(2, len(self.readers) - 1)
            self.reads = {name: np.concatenate([rows, np.zeros((more, rows.shape[1]), rows.dtype)])
                          for name, rows in self.reads.items()}  # fmt: skip
        return len(self.readers) - 1


def _bytes_of(writes: dict[str, Array]) -> dict[str, Array]:
    """Columns of writes of words, for their bytes."""
    found = {name: column.repeat(WORD) for name, column in writes.items()}
    value = found["value"].reshape(-1, WORD)
    value[:] = np.where(value < 0, -1, value >> np.arange(0, 32, 8) & 0xFF)
    return found


class Shadow:
    """Pages of one memory by number, and what strong writes to its words tell."""

    def __init__(self) -> None:
        self.pages: dict[int, Page] = {}
        self.messages: dict[int, list[Message]] = {}
        self._together: dict[tuple[int, int], Together] = {}  # by extent

    def told(self, extent: tuple[int, int]) -> list[Message]:
        """What strong writes of just these bytes tell, of which none has been written by itself since."""
        here = self.messages.get(extent[0] // WORD)
        if not here:
            return []
        found = [one for one in here if one.extent == extent]
        others = words_in(extent)[1:]
        if not others:
            return found
        return [one for one in found if all(one in self.messages.get(word, ()) for word in others)]

    def together(self, extent: tuple[int, int], messages: list[Message]) -> Together | None:
        """What these messages of some bytes tell, where there are several, each for all threads of the device."""
        if len(messages) < _SEVERAL:
            return None
        found = self._together.setdefault(extent, Together())
        found.renew(messages)
        return found if found.wide else None

    def written(self, address: int, size: int) -> bool:
        """Whether somebody has written to one of these bytes."""
        for number in range(address // PAGE, (address + size - 1) // PAGE + 1):
            page = self.pages.get(number)
            if page is not None:
                first, last = max(address - number * PAGE, 0), min(address + size - number * PAGE, PAGE)
                if page.writes["written"][first // page.grain : -(-last // page.grain)].any():
                    return True
        return False

    def pieces(self, addresses: Array, size: int) -> list[tuple[int, Page, Array, Array]]:
        """Pages that accesses of `size` bytes touch: number, page, granules in it, and for each granule its byte among
        the accesses' bytes in order."""
        whole = size % WORD == 0 and not (addresses % WORD).any()
        step = WORD if whole else 1
        places = (addresses[:, None] + np.arange(0, size, step)).ravel()
        bytes_ = np.arange(0, len(addresses) * size, step)
        numbers = places // PAGE
        found = []
        first = int(numbers[0]) if len(numbers) else 0
        every = [first] if len(numbers) and (numbers == first).all() else np.unique(numbers).tolist()
        for number in every:
            page = self.pages.get(number)
            if page is None:
                page = self.pages[number] = Page()
            if not whole:
                page.split()
            here = slice(None) if len(every) == 1 else numbers == number
            inside, mine = places[here] % PAGE, bytes_[here]
            if whole and page.grain == 1:
                inside = (inside[:, None] + np.arange(WORD)).ravel()
                mine = (mine[:, None] + np.arange(WORD)).ravel()
            found.append((number, page, inside // page.grain, mine))
        return found


def words_in(extent: tuple[int, int]) -> range:
    """Numbers of the words that bytes lie in."""
    return range(extent[0] // WORD, (extent[1] - 1) // WORD + 1)


def tensor_places(span: Span) -> tuple[Array, int]:
    """Starts of the pieces of tensor memory in a span, in a flat memory, and their size."""
    columns = np.arange(span.start, span.end)
    groups = [n for n in range(_GROUPS) if span.lanes >> GROUP * n & (1 << GROUP) - 1]
    places = (np.array(groups, np.int64)[:, None] * _COLUMNS + columns).ravel() * WORD
    return places, WORD


def tensor_column(place: int) -> tuple[int, int]:
    """First lane and column of such a piece."""
    return place // WORD // _COLUMNS * GROUP, place // WORD % _COLUMNS
