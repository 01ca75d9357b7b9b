"""Whether a program uses the state that an arrival at an mbarrier returns for anything but waiting for its phase.

The state (9.7.13.15.13) is opaque: it names the phase, and beside that how many arrivals were pending, which depends on
who came first. Who only tests or waits with it learns the phase alone; who stores, compares or computes with it does
something else in another schedule.
"""

from __future__ import annotations

from typing import TypeAlias

from ptxtools.program import effects
from ptxtools.program.details import Action
from ptxtools.program.operations import OPERATIONS
from ptxtools.program.program import Op, Program

#: By slot the lines of the arrivals whose state it may hold.
States: TypeAlias = "dict[int, frozenset[int]]"
#: What hands a state on as it is.
_MOVES = ("mov", "selp")
#: Reads the number that the state holds, of which the verdict speaks anyway.
_COUNT = "mbarrier.pending_count"


def deciding(program: Program) -> list[int]:
    """Lines of the arrivals whose state becomes data."""
    if not any(_arrives(op) for op in program.operations()):
        return []
    found = _Flow(program)
    found.run()
    return sorted(found.used)


def _arrives(op: Op) -> bool:
    seen = OPERATIONS[op.kind].seen == "mbarrier" and "arrive" in op.of(Action).name
    return seen and bool(op.dst) and op.dst[0] is not None


class _Flow:
    """Where states go, block by block."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._entering: dict[int, States] = {}
        self._spilled: frozenset[int] = frozenset()
        self.used: set[int] = set()

    def run(self) -> None:
        """Until nothing is new."""
        blocks = self._program.blocks
        for _ in range(2):  # again with what has been spilled
            left = list(range(len(blocks)))
            while left:
                number = left.pop()
                states = dict(self._entering.get(number, {}))
                end = blocks[number].terminator
                for op in blocks[number].ops if end.op is None else [*blocks[number].ops, end.op]:
                    self._step(op, states)
                if end.index is not None and end.kind != "event":
                    self.used |= states.get(end.index.slot, frozenset())
                if end.kind == "call":  # arguments are not followed
                    frame = self._frame(number)
                    self.used |= {where for slot, lines in states.items() if slot >= frame for where in lines}
                left += [following for following in effects.successors(end) if self._enter(following, states)]

    def _frame(self, number: int) -> int:
        functions = [one for one in self._program.functions if one.first <= number]
        return max(functions, key=lambda one: one.first).frame_bytes

    def _enter(self, number: int, states: States) -> bool:
        """Whether a block may hold more states at its begin than was known."""
        known, more = self._entering.setdefault(number, {}), False
        for slot, lines in states.items():
            if not lines <= known.get(slot, frozenset()):
                known[slot], more = known.get(slot, frozenset()) | lines, True
        return more

    def _step(self, op: Op, states: States) -> None:
        if op.kind.startswith("observe."):
            return
        lines = frozenset[int]().union(*(states.get(ref.slot, frozenset()) for ref in op.src if ref is not None))
        given = frozenset[int]()
        if _arrives(op):
            given = frozenset({op.where})
        elif lines and (op.kind == "copy" or (op.opcode is not None and op.opcode.family in _MOVES)):
            given = lines
        elif op.kind == "ld" and op.space == "local":
            given = self._spilled
        elif lines and op.kind == "st" and op.space == "local":
            self._spilled |= lines
        elif lines and OPERATIONS[op.kind].seen != "mbarrier" and _COUNT not in self._program.lines[op.where][2]:
            self.used |= lines
        for number, ref in enumerate(op.dst):
            if ref is None:
                continue
            if given and not number:
                states[ref.slot] = given | (states.get(ref.slot, frozenset()) if op.guard is not None else frozenset())
            elif op.guard is None:
                states.pop(ref.slot, None)
