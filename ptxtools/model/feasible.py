"""The paths of each thread that values allow, whatever path the other threads take: what a `cas` expects, or a branch
demands, must have been written by someone.

What a thread may read is over-approximated: what any path of another thread writes, and, of the initial value and its
own earlier writes, what it has not overwritten itself (8.10.5). Values come from somewhere (No-Thin-Air, 8.10.4), so
that as many rounds as there are writes find all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import prod
from typing import TypeAlias

from .events import Event, Path, Value
from .programs import Test
from .relations import members

#: Combinations of paths from which on it pays to look at the paths first.
WORTH = 12
#: Values of one location, and combinations of them, that are kept; if there are more, it may be any.
_MOST = 300

#: Values as unsigned numbers; None: any.
_Values: TypeAlias = "set[int] | None"
#: A piece of memory: the name of the object, and its first byte.
_Piece: TypeAlias = tuple[str, int]


class Feasible:
    """cuts: of each memory object, the bytes where an access begins or ends; pools: by thread and piece, what the
    thread may write there."""

    def __init__(self, test: Test, paths: Sequence[Sequence[Path]], initial: dict[str, int], version: str) -> None:
        self.test, self.paths = test, paths
        self.cuts: dict[str, list[int]] = {}
        places: dict[str, set[tuple[int, int]]] = {}
        addresses: dict[tuple[int, str], set[tuple[str, str]]] = {}
        strange: set[str] = set()
        for thread, ways in enumerate(paths):
            for event in (event for path in ways for event in path.events if event.location):
                location = test.locations[event.location]
                places.setdefault(location.memory, set()).add((event.offset, event.offset + event.size))
                addresses.setdefault((thread, location.memory), set()).add((location.virtual, event.proxy))
                if event.agent or event.mbarrier:
                    strange.add(location.memory)
        for name, found in places.items():
            if name not in strange:
                self.cuts[name] = sorted({place for pair in found for place in pair})
        self.initial = {
            (name, start): initial[name] >> 8 * start & (1 << 8 * (end - start)) - 1
            for name, cuts in self.cuts.items() for start, end in pairwise(cuts)
        }  # fmt: skip
        #: Where a thread uses one address and one proxy, so that its own accesses are ordered; in 6.0 only those of one
        #: size are.
        self.ordered = {
            (thread, name) for (thread, name), found in addresses.items()
            if len(found) == 1 and (version != "6.0" or len(places[name]) == 1)
        }  # fmt: skip
        self.pools: dict[tuple[int, _Piece], _Values] = {
            (thread, piece): set() for thread in range(len(paths)) for piece in self.initial
        }
        #: What each value is, by what the reads return that it needs. The paths keep the values alive.
        self._values: dict[int, dict[tuple[int, ...], int]] = {}
        #: Of what depends on one read: for which of its values that was asked, and for which it is true.
        self._tried: dict[int, tuple[set[int], set[int]]] = {}
        self.rounds = 1 + sum(
            max((sum(event.kind in "WU" for event in path.events) for path in ways), default=0) for ways in paths
        )

    def chosen(self) -> list[list[Path]]:
        """The paths that are possible."""
        found: list[list[Path]] = []
        for _ in range(self.rounds):
            before = {key: None if pool is None else len(pool) for key, pool in self.pools.items()}
            found = [
                [path for path in ways if self._is_possible(thread, path)] for thread, ways in enumerate(self.paths)
            ]  # fmt: skip
            if before == {key: None if pool is None else len(pool) for key, pool in self.pools.items()}:
                break
        return found

    def last(self, name: str) -> list[int] | None:
        """What a memory object that is accessed as a whole may hold in the end; None if that may be anything."""
        cuts = self.cuts.get(name, [])
        pools = [self.pools[thread, (name, cuts[0])] for thread in range(len(self.paths))] if len(cuts) == 2 else [None]
        if cuts[:1] != [0] or any(pool is None for pool in pools):
            return None
        return sorted({self.initial[name, 0]}.union(*(pool for pool in pools if pool is not None)))

    def _is_possible(self, thread: int, path: Path) -> bool:
        """Goes along a path; what it writes goes to the pools."""
        reads: dict[int, _Values] = {}
        own: dict[_Piece, _Values] = {}
        written: list[tuple[_Piece, _Values]] = []
        for at, event in enumerate(path.events):
            if event.kind in "RU":
                values = self._readable(thread, event, own)
                if values is not None:
                    values = self._allowed(path, at, values)
                    if not values:
                        return False
                reads[at] = values
            if event.kind in "WU":
                values = self._computed(path, event, reads)
                for piece, shift, mask in self._pieces(event):
                    own[piece] = None if values is None else {value >> shift & mask for value in values}
                    written.append((piece, own[piece]))
        if not all(self._may_hold(path, value, wanted, reads) for value, wanted in path.conditions):
            return False
        for piece, values in written:
            pool = self.pools[thread, piece]
            if pool is not None:
                more = None if values is None else pool | values
                self.pools[thread, piece] = None if more is None or len(more) > _MOST else more
        return True

    def _pieces(self, event: Event) -> Iterator[tuple[_Piece, int, int]]:
        """The pieces of memory of an access: each with its place in the value, in bits, and a mask."""
        name = self.test.locations[event.location].memory if event.location else ""
        for start, end in pairwise(self.cuts.get(name, ())):
            if event.offset <= start and end <= event.offset + event.size:
                yield (name, start), 8 * (start - event.offset), (1 << 8 * (end - start)) - 1

    def _readable(self, thread: int, event: Event, own: dict[_Piece, _Values]) -> _Values:
        parts: list[set[int]] = []
        for piece, shift, _ in self._pieces(event):
            found: set[int] = set()
            for other in range(len(self.paths)):
                if other == thread and (thread, piece[0]) in self.ordered:
                    values: _Values = own.get(piece, {self.initial[piece]})
                else:
                    values = self.pools[other, piece]
                    found |= {self.initial[piece]} if other == thread else set()
                if values is None:
                    return None
                found |= values
            parts.append({value << shift for value in found} if shift else found)
        if not parts or prod(map(len, parts)) > _MOST:
            return None
        return parts[0] if len(parts) == 1 else {sum(values) for values in product(*parts)}

    def _allowed(self, path: Path, at: int, values: set[int]) -> set[int]:
        """The values of a read that the conditions of a path allow, as far as they depend on that one alone."""
        for value, wanted in path.conditions:
            if value.needs == 1 << at:
                seen, true = self._tried.setdefault(id(value), (set(), set()))
                for one in values - seen:
                    if self._of(path, value, (one,)):
                        true.add(one)
                seen |= values
                values = values & true if wanted else values - true
        return values

    def _combined(self, path: Path, value: Value, reads: dict[int, _Values]) -> list[int] | None:
        """What a value may be; None: anything."""
        parts = [reads.get(at) for at in members(value.needs)]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or prod(map(len, known)) > _MOST:
            return None
        return [self._of(path, value, values) for values in product(*known)]

    def _of(self, path: Path, value: Value, read: tuple[int, ...]) -> int:
        """A value for what the reads that it needs return."""
        known = self._values.setdefault(id(value), {})
        if read not in known:
            reads = [0] * len(path.events)
            for at, one in zip(members(value.needs), read, strict=True):
                reads[at] = one
            known[read] = value.of(reads)
        return known[read]

    def _computed(self, path: Path, event: Event, reads: dict[int, _Values]) -> _Values:
        assert event.value is not None
        found = self._combined(path, event.value, reads)
        return None if found is None else {value & (1 << 8 * event.size) - 1 for value in found}

    def _may_hold(self, path: Path, value: Value, wanted: bool, reads: dict[int, _Values]) -> bool:
        found = self._combined(path, value, reads)
        return found is None or any(bool(one) == wanted for one in found)
