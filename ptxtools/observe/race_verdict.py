"""What racecheck says of other schedules: whether the order of this run's synchronisation is fixed by the program.

Threads whose reads are all ordered, by synchronisation that comes out alike in every schedule, do the same in every
schedule. So it is enough to note the operations whose outcome depends on one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxtools.program import effects
from ptxtools.program.details import SpecialRegister
from ptxtools.program.passes.colouring import bits, block_liveness

from . import race_states, race_waits
from .race_accesses import sort_of, words_of

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Access
    from ptxtools.program.program import Op, Program

    from .clocks import Array, Clocks, Warp
    from .session import Session

#: Special registers whose values depend on when and where a thread runs (10).
_SREGS = ("%clock", "%globaltimer", "%smid", "%warpid", "%pm")
#: Instructions whose results do, or depend on who has come before.
_INSTRUCTIONS = frozenset({"activemask", "clusterlaunchcontrol"})
_PENDING = "mbarrier.pending_count"  # which is arithmetic in the program


class Deciders:
    """Lines of a grid that decide the order in which its threads synchronise."""

    def __init__(self, session: Session, program: Program) -> None:
        self._session, self._program = session, program
        self._useful = useful_atomics(program)
        self._open: dict[tuple[object, int], int] = {}  # words whose value depends on the order, by line of a writer
        #: Of words by warp when it last changed one by an atomic whose result is used, and that line.
        self._atomics: dict[tuple[object, int], dict[int, tuple[int, int]]] = {}
        self._decided: set[int] = set()
        for block in program.blocks:
            for op in block.ops if block.terminator.op is None else [*block.ops, block.terminator.op]:
                self._look(op)
        for where, (*_, text) in enumerate(program.lines):
            if _PENDING in text:
                self.decide(where, _PENDING)
        for where in race_states.deciding(program):
            self.decide(where, "an arrival whose state is used")
        for where in race_waits.deciding(program):
            self.decide(where, "a wait whose result is used")

    def _look(self, op: Op) -> None:
        if op.kind == "sreg" and op.of(SpecialRegister).name.startswith(_SREGS):
            self.decide(op.where, op.of(SpecialRegister).name)
        elif op.opcode is not None and op.opcode.family in _INSTRUCTIONS and op.kind.startswith(op.opcode.family):
            self.decide(op.where, op.kind)

    def decide(self, where: int, what: str) -> None:
        """This line decides an order."""
        self._decided.add(where)
        self._session.decide(self._program, where, what)

    # --- accesses to memory -------------------------------------------------------------------------------------------

    def reads(self, view: View, access: Access) -> bool:
        """Whether the program sees what an access finds."""
        return access.action == "read" or view.op.where in self._useful

    def early(self, view: View, access: Access) -> None:
        """A strong access finds what another thread has stored, without being ordered behind that."""
        if self.reads(view, access):
            self.decide(view.op.where, "an atomic" if access.action == "atomic" else "a read")

    def unordered(self, view: View, memory: object, words: Array, before: Array) -> None:
        """Strong stores or atomics come in no order with those of the lines `before`, and the last one matters."""
        for where in np.unique(before).tolist():
            if where in self._useful:
                self.decide(where, "an atomic")
        if self._useful.isdisjoint((view.op.where, *before.tolist())):  # those say so themselves
            for place in np.unique(words).tolist():
                self._open[memory, place] = view.op.where

    def seen(self, view: View, access: Access, memory: object, words: Array) -> None:
        """An access to words, the value of which may depend on an order."""
        if not self._open:
            return
        for place in np.unique(words).tolist():
            where = self._open.get((memory, place))
            if where is not None and self.reads(view, access):
                self.decide(where, "a write")
            elif where is not None and access.action == "write":
                del self._open[memory, place]

    def changed(
        self, view: View, access: Access, memory: object, words: Array, who: tuple[Clocks, Warp]
    ) -> None:  # fmt: skip
        """A strong write: atomics of other warps have come before it in this run, behind which it is not ordered."""
        clocks, warp = who
        tracked = access.action == "atomic" and view.op.where in self._useful - self._decided
        if not (self._atomics or tracked):
            return
        for place in np.unique(words).tolist():
            for agent, (time, where) in list(self._atomics.get((memory, place), {}).items()):
                if agent != warp.agent and time > clocks.known(np.array([agent]), warp.known)[0]:
                    self.decide(where, "an atomic")
                    del self._atomics[memory, place][agent]
            if tracked:
                self._atomics.setdefault((memory, place), {})[warp.agent] = warp.time, view.op.where

    @property
    def leaves_open(self) -> bool:
        """Whether what memory has in the end depends on the order of stores or atomics."""
        return bool(self._open)

    def together(self, view: View, access: Access, memory: object, places: Array) -> None:
        """Lanes of one atomic that meet at one place: their order is open."""
        if access.action != "atomic":
            return
        found, counts = np.unique(places, return_counts=True)
        if len(found) == len(places):
            return
        if self.reads(view, access):
            self.decide(view.op.where, "an atomic")
        elif sort_of(view, access) <= 0:  # what they leave depends on it
            for word in words_of(found[counts > 1], access.size):
                self._open[memory, word] = view.op.where


def useful_atomics(program: Program) -> frozenset[int]:
    """Lines of atomics whose results are read: compilers name a register for the others, too."""
    atomics = [op for block in program.blocks for op in block.ops if op.kind == "atom"]
    results: set[int] = {slot for op in atomics for slot in effects.writes(op)}
    if not results:
        return frozenset()
    found = set()
    _, leaving = block_liveness(program.blocks, results)
    for block, out in zip(program.blocks, leaving, strict=True):
        live = set(bits(out))
        live.difference_update(effects.terminator_writes(block.terminator))
        live.update(effects.terminator_reads(block.terminator))
        for op in reversed(block.ops):
            if op.kind == "atom" and not live.isdisjoint(effects.writes(op)):
                found.add(op.where)
            if op.guard is None:
                live.difference_update(effects.writes(op))
            live.update(effects.reads(op))
    return frozenset(found)
