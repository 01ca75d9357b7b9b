"""The values that each read may return, whatever else is chosen, so that the search leaves out the writes whose values
the conditions of paths exclude, or what is looked for.

Values come from somewhere (No-Thin-Air, 8.10.4): from constants and initial values, along chains in which no write
occurs twice. So as many rounds as there are writes find all of them, and perhaps more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from .events import Path
from .relations import members

if TYPE_CHECKING:
    from .aims import Aimed

#: Values of one read or write, and combinations of them, that are kept; if there are more, it may be any.
MOST_VALUES = 1_000
#: The same at a first look at one of many choices of paths.
FEW_VALUES = 40

#: Values as unsigned numbers; None: any.
Domain: TypeAlias = "set[int] | None"
#: A read, a piece of memory, and the writes that it may read this piece from.
Choice: TypeAlias = tuple[int, int, list[int]]


def narrowed(search: Aimed, choices: list[Choice], most: int) -> list[Choice] | None:
    """The choices without those whose values contradict the conditions of paths, or the aim, if there is one; None if
    a read is left without any. Tells the search what each write may write. most: values that are told apart."""
    domains = Domains(search, choices, most)
    search.domains = domains
    while True:
        found = []
        for read, piece, writes in choices:
            values = domains.reads[read]
            if values is not None:
                start, mask = domains.bits(read, piece)
                wanted = {value >> start & mask for value in values}
                writes = [
                    w for w in writes if (some := domains.written(w, piece)) is None or not some.isdisjoint(wanted)
                ]
                if not writes:
                    return None
            found.append((read, piece, writes))
        if search.aim is None or not domains.trace_back(found):
            return found
        choices = found


def _demands(search: Aimed) -> Iterator[tuple[int, Callable[[int], bool]]]:
    """What is demanded of single reads: a read, and whether a value will do."""
    for index, path in enumerate(search.found.paths):
        for value, wanted in path.conditions:
            if value.needs.bit_count() == 1:
                at = value.needs.bit_length() - 1
                yield (search.found.first[index] + at,
                       lambda read, at=at, path=path, value=value, wanted=wanted:  # type: ignore[misc]
                       bool(value.of(_reads(path, (at,), (read,)))) == wanted)  # fmt: skip
    for name in search.asked if search.aim is not None else ():
        if name in search.left:
            index, path, value = search.left[name]
            if value.needs.bit_count() == 1:
                at = value.needs.bit_length() - 1
                yield (search.found.first[index] + at,
                       lambda read, at=at, path=path, value=value, name=name:  # type: ignore[misc]
                       search.leads_to({name: value.of(_reads(path, (at,), (read,)))}))  # fmt: skip


def _reads(path: Path, needs: Iterable[int], values: Iterable[int]) -> list[int]:
    found = [0] * len(path.events)
    for at, value in zip(needs, values, strict=True):
        found[at] = value
    return found


class Domains:
    """reads, writes: the values by event, as they grow round by round: fresh are the events that the last round gave
    new values."""

    def __init__(self, search: Aimed, choices: list[Choice], most: int) -> None:
        self.search, self.found, self.most = search, search.found, most
        self.sources: dict[int, list[tuple[int, list[int]]]] = {}
        for read, piece, writes in choices:
            self.sources.setdefault(read, []).append((piece, writes))
        self.demands: dict[int, list[Callable[[int], bool]]] = {}
        for read, demand in _demands(search):
            self.demands.setdefault(read, []).append(demand)
        self.reads: dict[int, Domain] = {read: set() for read in self.sources}
        self.seen: dict[int, set[int]] = {read: set() for read in self.sources}
        self.writes: dict[int, Domain] = {}
        self.needs: dict[int, list[int]] = {}
        for n, node in enumerate(self.found.nodes):
            if node.event.kind in "WU" and node.thread < 0:
                self.writes[n] = {search.initial[self.found.pieces[node.pieces[0]][0]]}
            elif node.event.kind in "WU":
                value = node.event.value
                self.needs[n] = [self.found.first[node.thread] + at for at in members(value.needs if value else 0)]
                self.writes[n] = self._values(n)
        #: What the writes leave in each piece of memory.
        self.parts: dict[tuple[int, int], Domain] = {}
        for n in self.writes:
            self._cut(n)
        fresh = set(self.writes)
        for _ in self.writes:
            if not fresh:
                break
            fresh = self._grow(fresh)

    def _grow(self, fresh: set[int]) -> set[int]:
        """One more step of every chain: the writes that have new values by it."""
        changed = {read for read, sources in self.sources.items()
                   if self.reads[read] is not None and any(not fresh.isdisjoint(writes) for _, writes in sources)
                   and self._read_more(read)}  # fmt: skip
        found = set()
        for write, needs in self.needs.items():
            if self.writes[write] is not None and not changed.isdisjoint(needs):
                new = self._values(write)
                if new != self.writes[write]:
                    self.writes[write] = new
                    self._cut(write)
                    found.add(write)
        return found

    def _values(self, write: int) -> Domain:
        needs, value = self.needs[write], self.found.nodes[write].event.value
        assert value is not None
        parts = [self.reads.get(read) for read in needs]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or prod(map(len, known)) > self.most:
            return None
        return {self._written(write, values) for values in product(*known)}

    def _written(self, write: int, values: tuple[int, ...]) -> int:
        """What a write writes when the reads that it needs return these values."""
        known = self.search.computed.setdefault(write, {})
        if values not in known:
            node = self.found.nodes[write]
            assert node.event.value is not None
            path = self.found.paths[node.thread]
            known[values] = node.event.value.of(_reads(path, members(node.event.value.needs), values))
        return known[values]

    def _read_more(self, read: int) -> bool:
        """Whether a read may return values that it could not before."""
        parts: list[set[int]] = []
        for piece, writes in self.sources[read]:
            some = [self.parts[write, piece] for write in writes]
            known = [values for values in some if values is not None]
            if len(known) < len(some):
                self.reads[read] = None
                return True
            part, start = set().union(*known), self.bits(read, piece)[0]
            parts.append({value << start for value in part} if start else part)
        if prod(map(len, parts)) > self.most:
            self.reads[read] = None
            return True
        new = (parts[0] if len(parts) == 1 else {sum(values) for values in product(*parts)}) - self.seen[read]
        self.seen[read] |= new
        demands = self.demands.get(read, ())
        before = self.reads[read]
        assert before is not None
        more = {value for value in new if self._is_demanded(read, value, demands)} if demands else new
        before |= more
        return bool(more)

    def _is_demanded(self, read: int, value: int, demands: Iterable[Callable[[int], bool]]) -> bool:
        known = self.search.demanded
        if (read, value) not in known:
            known[read, value] = all(demand(value) for demand in demands)
        return known[read, value]

    def trace_back(self, choices: list[Choice]) -> bool:
        """Where a read has one source only, that write writes one of the read's values, and what it computes them from
        has been read. Returns whether some read has fewer values by that."""
        wanted: dict[int, list[tuple[int, set[int]]]] = {}
        for read, piece, writes in choices:
            values = self.reads[read]
            if len(writes) == 1 and values is not None and len(self.needs.get(writes[0], ())) == 1:
                start, mask = self.bits(read, piece)
                wanted.setdefault(writes[0], []).append((piece, {value >> start & mask for value in values}))
        fewer = False
        for write, parts in wanted.items():
            (need,) = self.needs[write]
            values = self.reads.get(need)
            if values is None:
                continue
            cuts = [(*self.bits(write, piece), some) for piece, some in parts]
            kept = {
                value for value in values
                if all(self._written(write, (value,)) >> start & mask in some for start, mask, some in cuts)
            }  # fmt: skip
            if len(kept) < len(values):
                self.reads[need], fewer = kept, True
                for other in (other for other, needs in self.needs.items() if need in needs):
                    self.writes[other] = self._values(other)
                    self._cut(other)
        return fewer

    def bits(self, event: int, piece: int) -> tuple[int, int]:
        """Where a piece of memory is in the value of an event: the bits to shift by, and a mask."""
        _, start, end = self.found.pieces[piece]
        return 8 * (start - self.found.nodes[event].start), (1 << 8 * (end - start)) - 1

    def _cut(self, write: int) -> None:
        """Cut what a write may write into pieces of memory."""
        values = self.writes[write]
        for piece in self.found.nodes[write].pieces:
            start, mask = self.bits(write, piece)
            self.parts[write, piece] = None if values is None else {value >> start & mask for value in values}

    def written(self, write: int, piece: int) -> Domain:
        """What a write may leave in a piece of memory."""
        return self.parts[write, piece]
