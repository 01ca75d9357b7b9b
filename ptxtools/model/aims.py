"""An execution that is looked for: what can no longer lead to it."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING

from .axioms import Model
from .paths import Paths
from .programs import Goal, Test
from .relations import members
from .structures import Skeleton
from .valuations import Valuation

if TYPE_CHECKING:
    from .domains import Domains

#: Final values of memory that are looked at together.
_MOST_LAST = 500


class Aimed(Valuation):
    #: What is looked for: a final state for which the condition holds, or does not. None: all executions.
    aim: bool | None = None
    #: What of it is looked for: one of the ways to reach the aim (`Condition.goals`).
    goal: Goal | None = None
    #: The values that writes may write, once they are known (`domains.py`).
    domains: Domains | None = None

    def __init__(self, test: Test, found: Skeleton, chosen: Model, paths: Paths, initial: dict[str, int]) -> None:
        super().__init__(test, found, chosen, paths, initial)
        #: The locations and elements that are asked for, with their pieces of memory.
        self.asked_memory = {name: self._pieces_of(name) for name in self.asked if ":" not in name}
        #: What each write writes, by what the reads return that it needs; whether a value is what a read must return.
        self.computed: dict[int, dict[tuple[int, ...], int]] = {}
        self.demanded: dict[tuple[int, int], bool] = {}
        self.has_conditions = any(path.conditions for path in found.paths)
        #: By thread, the events that the registers that are asked for and the conditions of its path depend on.
        self._register_needs = [
            (index, value.needs, name) for name in self.asked if name in self.left
            for index, _, value in (self.left[name],)
        ]  # fmt: skip
        self._path_needs = [
            (index, value.needs) for index, path in enumerate(found.paths) for value, _ in path.conditions
        ]
        self.asked_needs = [(index, needs) for index, needs, _ in self._register_needs] + self._path_needs

    def _pieces_of(self, name: str) -> list[int]:
        memory = self.test.locations[name.partition("[")[0]].memory
        return [at for at, piece in enumerate(self.found.pieces) if piece[0] == memory]

    def look_for(self, wanted: bool, goal: Goal | None = None) -> None:
        """Look for final states for which the condition holds, or does not; goal: for those that reach it alone."""
        self.aim, self.goal = wanted, goal
        self.demanded.clear()
        if goal is not None:
            names = goal[1].union(self.test.filter.names if self.test.filter else ())
            self.asked_needs = [(index, needs) for index, needs, name in self._register_needs if name in names]
            self.asked_needs += self._path_needs
            self.asked_memory = {name: pieces for name, pieces in self.asked_memory.items() if name in names}

    def is_possible(self) -> bool:
        """As for any execution; with an aim, whether it can still be reached."""
        if not super().is_possible():
            return False
        return self.aim is None or self.leads_to(self.known_registers())

    def leads_to(self, state: dict[str, int]) -> bool:
        """Whether a state in which names are still open can become one that is aimed at."""
        condition, filter_ = self.test.condition, self.test.filter
        if self.goal is not None:
            if self.goal[0](state) is False:
                return False
        elif condition is not None and condition.decided(state) not in (None, self.aim):
            return False
        return filter_ is None or filter_.decided(state) is not False

    def is_open(self) -> bool:
        """With an aim, whether it can be reached by some of the writes that may still be the last ones."""
        if self.aim is None or not self.asked_memory:
            return True
        last = [[0]] * len(self.found.pieces)
        names = []
        for name, pieces in self.asked_memory.items():
            values = {piece: self._last_or_any(piece) for piece in pieces}
            if not any(found is None for found in values.values()):
                names.append(name)
                last = [values.get(piece) or before for piece, before in enumerate(last)]
        if not names or prod(map(len, last)) > _MOST_LAST:
            return True
        state = self.known_registers()
        return any(self.leads_to({**state, **self._memory(chosen, names)}) for chosen in product(*last))

    def _last_or_any(self, piece: int) -> list[int] | None:
        """What a piece of memory may hold in the end; None if that may be anything."""
        order, writers = self.x.universe.rows(self.chosen.coherence.rows(self.x)), self.found.writers[piece]
        found: set[int] = set()
        for write in members(writers):
            if not order[write] & writers:
                value = self.written_value(write, piece)
                values = {value} if value is not None else self.domains.written(write, piece) if self.domains else None
                if values is None:
                    return None
                found |= values
        return list(found)

    def needed_reads(self, last: bool) -> set[int]:
        """The reads without a source, or with one for some of their pieces, that the aim rests on, as far as that is
        known: those of registers that are asked for, of the conditions of paths, of mbarriers; with `last`, of what
        memory holds in the end; and what the writes rest on from which these read."""
        found = self.found
        pending = [n for n, node in enumerate(found.nodes) if node.event.mbarrier and node.event.kind in "RU"]
        for index, needs in self.asked_needs:
            pending += [found.first[index] + at for at in members(needs)]
        if last:
            order = self.x.universe.rows(self.chosen.coherence.rows(self.x))
            for pieces in self.asked_memory.values():
                for piece in pieces:
                    writers = found.writers[piece]
                    for write in members(writers):
                        node = found.nodes[write]
                        if not order[write] & writers and node.event.value is not None:
                            pending += self._needed(node)
        needed: set[int] = set()
        seen: set[int] = set()
        while pending:
            read = pending.pop()
            if read in seen:
                continue
            seen.add(read)
            for arrival in self.reductions.get(read, ()):
                if found.nodes[arrival].event.value is not None:
                    pending += self._needed(found.nodes[arrival])
            for piece in found.nodes[read].pieces:
                source = self.sources.get((read, piece))
                if source is None:
                    needed.add(read)
                elif found.nodes[source].event.value is not None:
                    pending += self._needed(found.nodes[source])
        return needed
