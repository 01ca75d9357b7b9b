"""Which bytes of shared memory the threads of walks have written, and who reads others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir.nodes import Variable
from ptxtools.records import NamedTuple

from ..accesses import variable_bytes
from ..facts import Line
from ..inflight import accessed
from ..values import THREADS, WARP, Terms, Value
from .shadow import OWNER, Touch

if TYPE_CHECKING:
    from .memory import Memory
    from .threads import Threads

#: Products that are remembered.
_MOST = 256
#: Bytes that a step of a walk stands for.
_BYTES = 256
#: Families that read and write memory.
UPDATES = ("atom", "red")


class Factor(NamedTuple):
    """Bytes that a product reads, behind a variable that `terms` are."""

    line: Line
    operand: int
    terms: Terms
    places: frozenset[int]


class Whole:
    """What the walks of a kernel's warps write together. It is known if each warp of the CTA is walked to its end, and
    none depends on what is not known."""

    def __init__(self) -> None:
        self._written: dict[Terms, set[int]] = {}
        self._factors: list[Factor] = []
        self._warps: set[int] = set()
        self._size = 0
        self._open = False

    def add(self, threads: Threads, written: dict[Terms, set[int]], factors: list[Factor]) -> None:
        """A walk has come to its end. Nothing of it was assumed, and all that it writes is known."""
        self._size = threads.size
        self._warps.update(number // WARP for number in threads.registers["%tid.x"].numbers)
        self._factors += factors
        for terms, places in written.items():
            self._written.setdefault(terms, set()).update(places)

    def give_up(self) -> None:
        self._open = True

    def missing(self) -> list[tuple[Factor, int]]:
        """Factors with a byte that no thread of the CTA writes, and the first such byte; each instruction once."""
        found: dict[tuple[int, int], tuple[Factor, int]] = {}
        if self._open or not self._size or len(self._warps) * WARP < self._size:
            return []
        for factor in self._factors:
            left = factor.places - self._written.get(factor.terms, set())
            if left:
                found.setdefault((id(factor.line.item), factor.operand), (factor, min(left)))
        return list(found.values())


class Written:
    """The bytes that one walk writes: memory.all_seen says whether that is all that anybody does."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.places: dict[Terms, set[int]] = {}
        self._factors: list[Factor] = []
        threads, self._program = memory.threads, memory.walker.program
        self._alone = memory.clusters.is_pair if threads.apart else threads.whole
        self._together = not threads.apart and threads.declared and self._program.multiplies
        # What is copied to all CTAs of a cluster is written unseen.
        self.active = (self._alone or self._together) and not self._program.copied

    def write(self, address: Value, size: int, mask: int) -> None:
        """Threads write bytes."""
        self.memory.walker.left -= mask.bit_count() * size // _BYTES
        places = self.places.setdefault(address.terms, set())
        numbers = address.numbers
        for thread in range(THREADS):
            if mask >> thread & 1:
                places.update(range(numbers[thread], numbers[thread] + size))

    def factor(self, line: Line, operand: int, address: Value, places: frozenset[int]) -> None:
        """A product, or what copies its operands, reads bytes behind an address."""
        if self._together and len(self._factors) < _MOST:
            self._factors.append(
                Factor(line, operand, address.terms, frozenset([address.numbers[0] + at for at in places]))
            )

    def note(self, touch: Touch) -> None:
        """Remember which bytes are written, and look whether those that are read have been."""
        if touch.kind != "stores" and self._alone and not self._reads(touch):
            return
        if touch.kind != "reads":
            self.write(touch.address, touch.size, touch.mask)

    def _reads(self, touch: Touch) -> bool:
        """Whether what is read has been written, or nobody minds."""
        memory, numbers = self.memory, touch.address.numbers
        symbol = touch.line.names.lookup(touch.address.variable or "")
        copies = touch.line.plan.family == "cp"
        if not isinstance(symbol, Variable) or variable_bytes(symbol) is None or (touch.flight and not copies):
            return True
        if not self._matters(touch.line):
            return True
        written = self.places.get(touch.address.terms, set())
        for thread in range(THREADS):
            if not touch.mask >> thread & 1:
                continue
            missing = next(
                (at for at in range(numbers[thread], numbers[thread] + touch.size) if at not in written), None
            )
            if missing is not None:
                if not memory.walker.assumed:
                    at = missing if copies else numbers[thread]
                    byte = f"byte {at & (1 << OWNER) - 1} of '{touch.address.variable}'"
                    who = memory.threads.name(thread) + f" of CTA {thread // WARP}" * memory.threads.apart
                    message = f"{who} reads {byte}, which nothing has written"
                    memory.walker.report("unwritten shared", touch.line, touch.operand, message, sure=not copies)
                memory.all_seen = False
                return False
        return True

    def _matters(self, line: Line) -> bool:
        """Whether what a load gives is used by more than selections and guarded instructions; what an update leaves in
        memory is."""
        if line.plan.family in UPDATES:
            return True
        into = [key for name, write in accessed(line) if write and (key := line.registers[name]) is not None]
        return not into or not self._program.used.isdisjoint(into)

    def end(self) -> None:
        """All threads have ended."""
        if self._together and self.memory.all_seen and not self.memory.walker.assumed:
            self._program.whole.add(self.memory.threads, self.places, self._factors)
        elif self._together:
            self._program.whole.give_up()
