"""The instruction trace: what chosen lanes executed, with the values of their registers (`ptx-run --trace`).

`Trace` is an observer. It passes one record for each event to a writer: an instruction with its registers before and
after, and the memory that it accessed; barriers, calls, asynchronous work, traps. It keeps only what lanes have begun
and not ended, and the last records if only these are wanted, so its memory does not grow with the run.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.machine.registers import named
from ptxtools.records import dataclass, field, replace

from .selection import Moment, Selection

if TYPE_CHECKING:
    from ptxtools.diagnostics import Trap
    from ptxtools.machine.claims import Claim
    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access

Array: TypeAlias = npt.NDArray[Any]

#: A register, one of its elements, or something else with the form of a name.
_NAME = re.compile(r"[%$_a-zA-Z][\w$%]*(?:\.[xyzwrgba])?")
#: The guard and the opcode of an instruction.
_OPCODE = re.compile(r"(@!?\S+\s+)?(\S+)\s*")


@dataclass(slots=True)
class Record:
    """One event. event: "grid begun", "grid ended", "instruction", "arrive", "leave", "call", "return", "issued",
    "completed" or "trap"; number: of all traced events, from 1; lanes: numbers, ascending; what: a barrier, a function,
    asynchronous work or a reason; before, after: values of registers for these lanes (anything in one that nobody has
    written); accesses: memory that an
    instruction was about to access."""

    event: str
    number: int
    kernel: str
    cta: tuple[int, int, int] | None = None
    warp: int | None = None
    lanes: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    file: str = ""
    line: int | None = None
    source: str = ""
    text: str = ""
    what: str = ""
    before: Mapping[str, Array] = field(default_factory=dict)
    after: Mapping[str, Array] = field(default_factory=dict)
    accesses: list[Access] = field(default_factory=list)

    def _repr_html_(self) -> str:
        """For notebooks: its text."""
        from . import notebooks

        return notebooks.of_record(self)


@dataclass(slots=True)
class _Place:
    """What is known of an instruction, whoever executes it."""

    file: str
    line: int | None
    source: str
    text: str
    opcode: str
    names: tuple[str, ...]
    chosen: bool


@dataclass(slots=True)
class _Begun:
    """An instruction that lanes have come to and not ended; values of all 32 lanes."""

    lanes: Array
    before: dict[str, Array]
    accesses: list[Access]


class Trace:
    """An observer that passes records to `write`, in the order of the events.

    begin, end: from and up to which moment, both included; last: only so many last records, at the end of each grid.
    """

    def __init__(
        self, write: Callable[[Record], object], select: Selection | None = None, *, begin: Moment | None = None,
        end: Moment | None = None, last: int | None = None,
    ) -> None:  # fmt: skip
        self.select = Selection() if select is None else select
        self.begin, self.end = begin, end
        self.on, self.over = begin is None, False
        self.number = 0
        self._kept: deque[Record] | None = None if last is None else deque(maxlen=last)
        self._write = write
        self._launch: Launch | None = None
        self._places: dict[int, _Place] = {}
        self._begun: dict[tuple[tuple[int, int, int], int, int], _Begun] = {}

    # --- grids --------------------------------------------------------------------------------------------------------

    def grid_begun(self, launch: Launch) -> None:
        self._launch, self._places, self._begun = launch, {}, {}
        if self.on and not self.over:
            self._tell(Record("grid begun", 0, launch.program.kernel, what=_shape(launch)))

    def grid_ended(self, launch: Launch) -> None:
        if self.on and not self.over:
            self._tell(Record("grid ended", 0, launch.program.kernel))
        self.flush()

    def flush(self) -> None:
        """Write what is kept of the last records."""
        while self._kept:
            self._write(self._kept.popleft())

    def trapped(self, trap: Trap) -> None:
        """The instructions that had begun there come first: they say what the lanes were about to do."""
        if self.over or not self.on:
            return
        for begun, record in self._unfinished(trap):
            self._fill(record, begun, begun.lanes, {})
        self._tell(Record("trap", 0, trap.kernel or "", cta=trap.cta, text=trap.text or "", what=trap.reason))

    def _unfinished(self, trap: Trap) -> Iterator[tuple[_Begun, Record]]:
        for (cta, warp, where), begun in list(self._begun.items()):
            place = self._places[where]
            if (cta, where) == (trap.cta, trap.where) and len(begun.lanes):
                yield begun, self._record("instruction", trap.kernel or "", trap.cta, warp, place)

    # --- instructions -------------------------------------------------------------------------------------------------

    def instruction(self, at: View, lanes: Array) -> None:
        place = self._of(at)
        if not self._begins(at, place) or not place.chosen:
            return
        mine = self.select.only(lanes)
        values = self._values(at, place)
        key = at.cta.place, at.warp, at.op.where
        known = self._begun.get(key)
        if known is None or not len(known.lanes):
            self._begun[key] = _Begun(mine, values, [])
            return
        for name, old in known.before.items():
            if name in values:
                old[..., mine] = values[name][..., mine]
        known.lanes = np.union1d(known.lanes, mine)

    def access(self, at: View, access: Access) -> None:
        begun = self._begun.get((at.cta.place, at.warp, at.op.where))
        if begun is not None:
            begun.accesses.append(access)

    def retired(self, at: View, lanes: Array) -> None:
        begun = self._begun.get((at.cta.place, at.warp, at.op.where))
        place = self._of(at)
        if begun is not None:
            mine = self.select.only(lanes)
            if len(mine) or not (len(lanes) or len(begun.lanes) or self.select.lanes):
                record = self._record("instruction", at.launch.program.kernel, at.cta.place, at.warp, place)
                self._fill(record, begun, mine, self._values(at, place))
            begun.lanes = np.setdiff1d(begun.lanes, mine)
            if not len(begun.lanes):
                del self._begun[at.cta.place, at.warp, at.op.where]
        self._ends(at, place)

    def _fill(self, record: Record, begun: _Begun, lanes: Array, after: dict[str, Array]) -> None:
        record.lanes = lanes
        record.before = {name: values[..., lanes] for name, values in begun.before.items()}
        record.after = {name: values[..., lanes] for name, values in after.items()}
        for access in begun.accesses:
            mine = np.isin(access.lanes, lanes)
            if mine.any():
                record.accesses.append(_part(access, mine))
        self._tell(record)

    # --- the rest -----------------------------------------------------------------------------------------------------

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        self._event("arrive", at, what, lanes)

    def leave(self, at: View, what: str, lanes: Array) -> None:
        self._event("leave", at, what, lanes)

    def called(self, at: View, function: str, lanes: Array) -> None:
        if self.begin is not None and self.begin.function == function and self.select.warp(at):
            self.on = True
        self._event("call", at, function, lanes)

    def returned(self, at: View, lanes: Array) -> None:
        self._event("return", at, "", lanes)

    def issued(self, claim: Claim) -> None:
        self._event("issued", claim.view, claim.text, np.array([claim.lane]))

    def completed(self, claim: Claim) -> None:
        self._event("completed", claim.view, claim.text, np.array([claim.lane]))

    def _event(self, event: str, at: View, what: str, lanes: Array) -> None:
        if not self.on or self.over or not self.select.warp(at):
            return
        place, mine = self._of(at), self.select.only(lanes)
        if place.chosen and len(mine):
            record = self._record(event, at.launch.program.kernel, at.cta.place, at.warp, place)
            record.lanes, record.what = mine, what
            self._tell(record)

    # --- what it needs ------------------------------------------------------------------------------------------------

    def _tell(self, record: Record) -> None:
        self.number += 1
        record.number = self.number
        if self._kept is None:
            self._write(record)
        else:
            self._kept.append(record)

    def _begins(self, at: View, place: _Place) -> bool:
        """Whether an instruction of a warp is traced, as far as warp and time go."""
        if self.over or not self.select.warp(at):
            return False
        if not self.on and self.begin is not None and self.begin.reached(place.line, place.opcode):
            self.on = True
        return self.on

    def _ends(self, at: View, place: _Place) -> None:
        if self.on and self.end is not None and self.end.reached(place.line, place.opcode) and self.select.warp(at):
            self.over = True

    def _of(self, at: View) -> _Place:
        found = self._places.get(at.op.where)
        if found is None:
            found = self._places[at.op.where] = self._place(at)
        return found

    def _place(self, at: View) -> _Place:
        context, program, where = at.launch.context, at.launch.program, at.op.where
        file, line = ("", None) if context is None else context.places.line_of(program, where)
        origin = None if context is None or where < 0 else context.places.source_of(program, where)
        text = at.text
        match = _OPCODE.match(text)
        opcode = match[2].rstrip(";") if match else ""
        guard = (match[1] or "") if match else ""
        names = names_in(guard + " " + text[match.end() :] if match else "")
        chosen = self.select.instruction(line, opcode, names)
        return _Place(file, line, "" if origin is None else str(origin), text, opcode, names, chosen)

    def _record(self, event: str, kernel: str, cta: tuple[int, int, int] | None, warp: int, place: _Place) -> Record:
        return Record(
            event, 0, kernel, cta, warp, file=place.file, line=place.line, source=place.source, text=place.text
        )

    def _values(self, at: View, place: _Place) -> dict[str, Array]:
        """Values of the registers that an instruction mentions, of all 32 lanes; of 128 bits two rows."""
        known = named(at)
        found: dict[str, Array] = {}
        for name in place.names:
            parts = (name,) if name in known else (f"{name}.{part}" for part in "xyzw" if f"{name}.{part}" in known)
            for part in parts:
                values = at.register(part)
                found[part] = np.stack(values) if isinstance(values, tuple) else np.array(values)
        return found


def names_in(operands: str) -> tuple[str, ...]:
    """What may be registers in a text of operands, each once."""
    return tuple(dict.fromkeys(_NAME.findall(operands)))


def _part(access: Access, mine: Array) -> Access:
    return replace(access, lanes=access.lanes[mine], addresses=access.addresses[mine])


def _shape(launch: Launch) -> str:
    return "grid {},{},{} block {},{},{}".format(*launch.grid, *launch.block)
