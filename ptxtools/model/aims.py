"""An execution that is looked for: what can no longer lead to it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from .axioms import Model
from .paths import Paths
from .programs import Test
from .structures import Skeleton
from .valuations import Valuation

#: Final values of memory that are looked at together.
_MOST_LAST = 200


class Aimed(Valuation):
    #: What is looked for: a final state for which the condition holds, or does not. None: all executions.
    aim: bool | None = None

    def __init__(self, test: Test, found: Skeleton, chosen: Model, paths: Paths, initial: dict[str, int]) -> None:
        super().__init__(test, found, chosen, paths, initial)
        #: The locations that are asked for and always accessed whole, with their pieces of memory.
        self.asked_whole = list(self._asked_whole())

    def _asked_whole(self) -> Iterator[tuple[str, int]]:
        """The locations that are asked for and have one piece of memory, as wide as their type, with that piece."""
        for name in self.asked:
            location = self.test.locations.get(name)
            pieces = [at for at, piece in enumerate(self.found.pieces) if location and piece[0] == location.memory]
            if len(pieces) == 1 and 8 * self.found.pieces[pieces[0]][2] == self.paths.types[name].bits:
                yield name, pieces[0]

    def is_possible(self) -> bool:
        """As for any execution; with an aim, whether it can still be reached."""
        if not super().is_possible():
            return False
        return self.aim is None or self._leads_to(self.known_registers())

    def _leads_to(self, state: dict[str, int]) -> bool:
        """Whether a state in which names are still open can become one that is aimed at."""
        condition, filter_ = self.test.condition, self.test.filter
        if condition is not None and condition.decided(state) not in (None, self.aim):
            return False
        return filter_ is None or filter_.decided(state) is not False

    def is_open(self) -> bool:
        """With an aim, whether it can be reached by some of the writes that may still be the last ones."""
        if self.aim is None or not self.asked_whole:
            return True
        self.known, last = {}, []
        for name, piece in self.asked_whole:
            values = list(dict.fromkeys(self.last_values(piece)))
            if None not in values:
                wrap = self.paths.types[name].wrap
                last.append([(name, wrap(value)) for value in values if value is not None])
        if len(last) == 0 or prod(map(len, last)) > _MOST_LAST:
            return True
        state = self.known_registers()
        return any(self._leads_to({**state, **dict(values)}) for values in product(*last))
