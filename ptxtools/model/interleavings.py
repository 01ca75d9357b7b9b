"""Executions whose accesses are all morally strong and at one location: they are its interleavings.

Where all accesses use one address and one proxy, and conflicting ones of different threads are morally strong (8.7),
SC-per-Location (8.10.5) and Atomicity (8.10.3) leave the interleavings of the threads, and the other axioms forbid none
of them: all relations lead forward in an interleaving. So the executions are counted without being gone through: a
write is taken after the other, behind each the reads that return its value, and prefixes from which the rest goes on
alike are one, with a weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from ptxtools.records import dataclass, field

from .events import Event, Path
from .relations import members
from .structures import Node
from .valuations import Valuation

#: Prefixes of one length that are kept apart at most.
MOST_PREFIXES = 20_000

#: How a prefix came about: what preceded, an event, and the write that it reads from (-1: it does not read).
Steps: TypeAlias = "tuple[Steps, int, int] | None"

#: What the rest depends on: how many accesses each thread has made, the thread that read last (reads between two writes
#: are in the order of threads, so that no execution comes twice), the bytes in memory, and what was read, by thread.
_Prefix: TypeAlias = "tuple[tuple[int, ...], int, int, tuple[tuple[int, ...], ...]]"


@dataclass(slots=True)
class _Column:
    """The accesses of a thread, by number of event. Before each, and after the last: done, the accesses made, as a set
    of the path's events; kept, the reads among them that later values rest on."""

    path: Path
    accesses: list[tuple[int, Event]]
    done: list[int] = field(default_factory=list)
    kept: list[tuple[int, ...]] = field(default_factory=list)

    def known(self, at: int, values: tuple[int, ...]) -> list[int]:
        """By the events of the path, what is known to have been read before the thread's access `at`."""
        reads = [0] * len(self.path.events)
        for place, value in zip(self.kept[at], values, strict=True):
            reads[place] = value
        return reads

    def is_possible(self, at: int, reads: list[int]) -> bool:
        """Whether the conditions of the path hold that become known by the access `at`."""
        before, after = self.done[at], self.done[at + 1]
        return not self.path.conditions or all(
            bool(value.of(reads)) == wanted for value, wanted in self.path.conditions
            if value.needs & ~before and not value.needs & ~after
        )  # fmt: skip


def _is_result(event: Event) -> bool:
    """Whether it stands for a store that orders nothing (`guides.py`)."""
    return event.kind == "C" and event.covers is not None


class Interleavings:
    """Those of one choice of paths. Use `states` only if `apply`."""

    def __init__(self, valuation: Valuation, strong: list[int]) -> None:
        """strong: for each event those that it is morally strong with."""
        self.valuation, self.found = valuation, valuation.found
        self.apply = self._is_strong(strong)
        self.columns = [self._column(thread) for thread in range(len(self.found.paths))] if self.apply else []

    def _is_strong(self, strong: list[int]) -> bool:
        nodes = self.found.nodes
        if len(self.found.pieces) != 1 or any(
            (node.event.kind not in "RWUF" and not _is_result(node.event)) or node.event.agent or node.event.mbarrier
            for node in nodes
        ):
            return False
        if any(strong[a] >> b & 1 for a, b in self.found.fences):
            return False
        accesses = [n for n, node in enumerate(nodes) if node.thread >= 0 and node.event.kind in "RWU"]
        if len({(nodes[a].virtual, nodes[a].event.proxy) for a in accesses}) > 1:
            return False  # an alias, or another proxy: not even program order relates them
        return all(
            nodes[a].thread == nodes[b].thread or nodes[b].event.kind == "R" or strong[a] >> b & 1
            for a in accesses for b in accesses if a < b or nodes[a].event.kind == "R"
        )  # fmt: skip

    def _column(self, thread: int) -> _Column:
        path, first = self.found.paths[thread], self.found.first[thread]
        column = _Column(path, [(first + at, event) for at, event in enumerate(path.events) if event.kind in "RWU"])
        always = 0
        for register, value in path.registers.items():
            if f"{path.thread.name}:{register}" in self.valuation.asked:
                always |= value.needs
        done = 0
        for at in range(len(column.accesses) + 1):
            needed = always
            for _, event in column.accesses[at:]:
                needed |= event.value.needs if event.value is not None else 0
            for value, _ in path.conditions:
                needed |= value.needs if value.needs & ~done else 0
            column.done.append(done)
            column.kept.append(tuple(members(needed & done)))
            if at < len(column.accesses):
                done |= 1 << column.accesses[at][0] - first
        return column

    def states(self) -> Iterator[tuple[dict[str, int], int, Steps]] | None:
        """Each final state, the number of its executions, and one of them; None if there are too many prefixes."""
        name = self.found.pieces[0][0]
        size = self.found.pieces[0][2] - self.found.pieces[0][1]
        start = self.valuation.initial[name] & (1 << 8 * size) - 1
        columns = self.columns
        prefixes: dict[_Prefix, tuple[int, Steps]] = {
            ((0,) * len(columns), 0, start, ((),) * len(columns)): (1, None)
        }  # fmt: skip
        for _ in range(sum(len(column.accesses) for column in columns)):
            longer: dict[_Prefix, tuple[int, Steps]] = {}
            for prefix, (weight, steps) in prefixes.items():
                for thread, column in enumerate(columns):
                    if prefix[0][thread] < len(column.accesses):
                        self._extend(longer, prefix, weight, steps, thread)
            if len(longer) > MOST_PREFIXES:
                return None
            prefixes = longer
        return self._final(prefixes)

    def _extend(
        self, longer: dict[_Prefix, tuple[int, Steps]], prefix: _Prefix, weight: int, steps: Steps, thread: int
    ) -> None:
        """Add the prefix with the next access of a thread, if that may come next."""
        at, reader, memory, values = prefix
        column, place = self.columns[thread], at[thread]
        node, event = column.accesses[place]
        if event.kind == "R" and thread < reader:
            return
        index, mask = node - self.found.first[thread], (1 << 8 * event.size) - 1
        reads = column.known(place, values[thread])
        source = -1
        if event.kind != "W":
            source = _last_write(self.found.nodes, steps)
            reads[index] = memory
            if not column.is_possible(place, reads):
                return
        if event.value is not None and event.kind != "R":
            memory = event.value.of(reads) & mask
        kept = tuple(reads[a] for a in column.kept[place + 1])
        key = (
            (*at[:thread], place + 1, *at[thread + 1 :]),
            thread if event.kind == "R" else 0,
            memory,
            (*values[:thread], kept, *values[thread + 1 :]),
        )
        others, first = longer.get(key, (0, (steps, node, source)))
        longer[key] = weight + others, first

    def _final(self, prefixes: dict[_Prefix, tuple[int, Steps]]) -> Iterator[tuple[dict[str, int], int, Steps]]:
        # Prefixes that differ only in who read last end alike.
        for (at, _, memory, values), (weight, steps) in prefixes.items():
            known = [column.known(place, some) for column, place, some in zip(self.columns, at, values, strict=True)]
            yield self.valuation.state_of(known, memory), weight, steps


def _last_write(nodes: list[Node], steps: Steps) -> int:
    while steps is not None:
        if nodes[steps[1]].event.kind != "R":
            return steps[1]
        steps = steps[0]
    return 0
