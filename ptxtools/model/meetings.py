"""The choices of paths that interleavings of the threads lead to, where all accesses are at one location and morally
strong: SC-per-Location (8.10.5) and Atomicity (8.10.3) leave no others, whatever else is in the test.

Threads with many `cas` have many paths, most of which contradict each other. Here threads go on access by access, each
with the paths that what it has read so far leaves open, so that the others are never combined.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TypeAlias

from .events import Path
from .programs import Test

#: Prefixes of one length, and choices of paths, that are kept apart at most.
_MOST = 20_000
#: Of a thread: how many accesses it has made, the paths that are open, and what it has read that they depend on, by
#: number of access.
_State: TypeAlias = "tuple[int, frozenset[int], tuple[tuple[int, int], ...]]"


class Meetings:
    """Use `choices` only if `apply`."""

    def __init__(self, test: Test, ways: Sequence[Sequence[Path]], initial: dict[str, int]) -> None:
        self.test, self.ways, self.initial = test, ways, initial
        self.accesses = [[[at for at, e in enumerate(path.events) if e.location] for path in paths] for paths in ways]
        self.apply = self._are_strong()
        self._steps: dict[tuple[int, _State, int], list[tuple[_State, int]]] = {}

    def _are_strong(self) -> bool:
        events = {
            (thread, e.kind, e.order == "weak", e.scope, e.location, e.offset, e.size, e.proxy)
            for thread, paths in enumerate(self.ways) for path in paths for e in path.events if e.location
        }  # fmt: skip
        if any(e.agent or e.mbarrier or e.kind not in "RWUF" for paths in self.ways for p in paths for e in p.events):
            return False
        if len({(self.test.locations[name].virtual, start, size, proxy)
                for _, _, _, _, name, start, size, proxy in events}) != 1:  # fmt: skip
            return False
        threads = self.test.threads
        return all(
            a == b or (first == other == "R") or not (
                weak or slack or not threads[a].shares(scope, threads[b]) or not threads[b].shares(reach, threads[a])
            )
            for a, first, weak, scope, *_ in events for b, other, slack, reach, *_ in events
        )  # fmt: skip

    def choices(self) -> list[tuple[Path, ...]] | None:
        """Paths, one of each thread; None if there are too many prefixes."""
        first = next(e for paths in self.ways for p in paths for e in p.events if e.location)
        whole = self.initial[self.test.locations[first.location].memory]
        memory = whole >> 8 * first.offset & (1 << 8 * first.size) - 1
        starts = tuple((0, frozenset(range(len(paths))), ()) for paths in self.ways)
        prefixes: set[tuple[tuple[_State, ...], int]] = {(starts, memory)}
        found: set[tuple[int, ...]] = set()
        while prefixes:
            longer: set[tuple[tuple[_State, ...], int]] = set()
            for states, memory in prefixes:
                ends = [self._ended(thread, state) for thread, state in enumerate(states)]
                found.update(product(*ends))
                for thread, state in enumerate(states):
                    for after, left in self._next(thread, state, memory):
                        longer.add(((*states[:thread], after, *states[thread + 1 :]), left))
                if len(longer) > _MOST or len(found) > _MOST:
                    return None
            prefixes = longer
        return [tuple(paths[at] for paths, at in zip(self.ways, chosen, strict=True)) for chosen in sorted(found)]

    def _ended(self, thread: int, state: _State) -> list[int]:
        done, paths, _ = state
        return [at for at in paths if len(self.accesses[thread][at]) == done]

    def _next(self, thread: int, state: _State, memory: int) -> list[tuple[_State, int]]:
        """What the thread's next access leads to, on the paths that are open."""
        key = thread, state, memory
        if key not in self._steps:
            ways: dict[tuple[int, tuple[tuple[int, int], ...]], set[int]] = {}
            for at in state[1]:
                step = self._step(thread, at, state, memory)
                if step is not None:
                    ways.setdefault(step, set()).add(at)
            self._steps[key] = [((state[0] + 1, frozenset(paths), kept), left) for (left, kept), paths in ways.items()]
        return self._steps[key]

    def _step(self, thread: int, at: int, state: _State, memory: int) -> tuple[int, tuple[tuple[int, int], ...]] | None:
        """Memory behind the next access of a path, and what is kept of what was read; None if there is none."""
        done, _, known = state
        path, accesses = self.ways[thread][at], self.accesses[thread][at]
        if done == len(accesses):
            return None
        event = path.events[accesses[done]]
        reads = [0] * len(path.events)
        for number, value in known:
            reads[accesses[number]] = value
        if event.kind != "W":
            known = (*known, (done, memory))
            reads[accesses[done]] = memory
        before, now = sum(1 << a for a in accesses[:done]), sum(1 << a for a in accesses[: done + 1])
        for condition, wanted in path.conditions:
            if condition.needs & ~before and not condition.needs & ~now and bool(condition.of(reads)) != wanted:
                return None
        if event.kind != "R" and event.value is not None:
            memory = event.value.of(reads) & (1 << 8 * event.size) - 1
        return memory, tuple(pair for pair in known if self._later(thread, at, done, accesses[pair[0]]))

    def _later(self, thread: int, at: int, done: int, read: int) -> bool:
        """Whether something behind an access depends on what was read."""
        path, accesses = self.ways[thread][at], self.accesses[thread][at]
        now = sum(1 << a for a in accesses[: done + 1])
        values = [value for a in accesses[done + 1 :] if (value := path.events[a].value) is not None]
        return any(value.needs >> read & 1 for value in values) or any(
            value.needs >> read & 1 and value.needs & ~now for value, _ in path.conditions
        )
