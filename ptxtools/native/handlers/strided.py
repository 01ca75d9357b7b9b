"""Accesses of neighbouring words by several instructions, with lanes two or four words apart (`regions`): what
compilers make of vectors whose elements have guards of their own. All words of half a warp are in a row, so they are
loaded as one and taken apart, or put together and stored, where else each instruction would be a gather or a scatter.

Loads take whole rows, whoever is guarded out; a row that is not in bounds as a whole is left to other ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ptxtools.native.code.handler import ELEMENT
from ptxtools.native.code.runs import Step
from ptxtools.records import NamedTuple
from ptxtools.semantics.algebra import Value

from . import wide
from .parts import half, in_units, join
from .patterns import SIDES, WORDS, Pattern
from .regions import Accesses

#: Words from lane to lane, and the least number of them that has an access.
_LEAST = {2: 2, 4: 3}


class Row(NamedTuple):
    """Accesses whose words make a row: from lane to lane `width` words, of which the first is `least` bytes behind the
    address; number: the address's."""

    number: int
    space: str
    least: int
    width: int
    steps: tuple[Step, ...]

    def word(self, step: Step) -> int:
        """Which of a lane's words an access goes for."""
        return (step.imm - self.least) // 4


def rows_of(steps: Sequence[Step]) -> list[Row]:
    """The rows that accesses may have; stores of a row follow each other."""
    accesses = [step for step in steps if step.space]
    if any(step.kind == "measure" for step in steps) or any(wide.width_of(step) > 1 for step in accesses):
        return []
    loads: dict[tuple[int, str], list[Step]] = {}
    for step in accesses:
        if step.kind == "ld":
            loads.setdefault((step.sources[0][0], step.space), []).append(step)
    found = [row for group in loads.values() for row in _rows(group)]
    stores = [step for step in accesses if step.kind == "st"]
    ends = [0, *(at + 1 for at, (a, b) in enumerate(pairwise(stores)) if not _alike(a, b)), len(stores)]
    for first, last in pairwise(ends):
        group = stores[first:last]
        for row in _rows(group):
            start = group.index(row.steps[0])
            if tuple(group[start : start + len(row.steps)]) == row.steps:  # words of other rows may be the same
                found.append(row)
    return found


def _alike(a: Step, b: Step) -> bool:
    return a.sources[0][0] == b.sources[0][0] and a.space == b.space


def _rows(group: Sequence[Step]) -> list[Row]:
    """Rows of accesses to one address and constants."""
    found, rest = [], sorted({step.imm: step for step in group}.values(), key=lambda step: step.imm)
    while rest:
        least = rest[0].imm
        near = [step for step in rest if step.imm < least + 16]
        width = 2 if len(near) == 2 else 4
        fine = all((step.imm - least) % 4 == 0 and step.imm < least + 4 * width for step in near)
        number, storage, _ = rest[0].sources[0]
        narrow = storage == "b32" and rest[0].space != "shared"
        if fine and len(near) >= _LEAST[width] and number >= 0 and storage in ELEMENT and not narrow:
            in_order = tuple(step for step in group if step in near)
            if len(in_order) == len(near):
                found.append(Row(number, rest[0].space, least, width, in_order))
        rest = rest[len(near) :]
    return found


class StridedAccesses(Accesses):
    """Accesses of a run that does not go round; `find_rows` lets it look for rows."""

    rows: dict[Step, Row]

    def find_rows(self) -> None:
        """From here on accesses that may have rows must have them."""
        self.rows = {step: row for row in rows_of(self.steps) if row.number not in self.found for step in row.steps}
        self.words_of: dict[Row, list[Value]] = {}
        self.pointers: dict[Row, list[str]] = {}

    def load(self, step: Step) -> list[Value]:
        row = self.rows.get(step)
        if row is None:
            return super().load(step)
        if row not in self.words_of:
            sides = [wide.row(self.handler, pointer, row.width) for pointer in self._pointers(row)]
            self.words_of[row] = wide.joined(self.handler, sides, row.width)
        return [self.words_of[row][row.word(step)]]

    def store(self, step: Step, values: list[Value]) -> None:
        row = self.rows.get(step)
        if row is None:
            super().store(step, values)
            return
        active = self._active(step.guard, negated=step.negated)
        self.stores.append((step, Pattern([], [], [], active), self._pointers(row), values[0], ""))

    def commit(self) -> None:
        if not self.rows:
            super().commit()
            return
        made: list[tuple[Step, str, Value]] = []
        for step, pattern, pointers, value, _ in self.stores:
            row = self.rows.get(step)
            if row is None:
                self._scatter(step, pattern.active, value)
                continue
            made.append((step, pattern.active, value))
            if len(made) == len(row.steps):
                self._store_row(row, pointers, made)
                made = []

    def _pointers(self, row: Row) -> list[str]:
        """Host addresses of the first words of both halves, whose lanes have the row; else a miss."""
        if row not in self.pointers:
            e, vector = self.code, self.contents[row.number]
            element = ELEMENT[self.contents.storage(row.number)]
            made = self.maker.straight(vector, element, 4 * row.width, "-1", point=False, either=False)
            first = made.first if element == "i64" else self._widened(made, "zext").first
            window = self.windows[row.space]
            limit, found = self._limit(row.space, 4 * (WORDS * row.width - 1), point=True), []
            for one in first:
                offset = e.value(f"sub i64 {e.value(f'add i64 {one}, {row.least}')}, {window.base}")
                words = in_units(self.handler, offset, 2, "i64")
                self.maker.demand(e.value(f"icmp ult i64 {words}, {limit}"))
                found.append(e.value(f"add i64 {window.host}, {offset}"))
            self.pointers[row] = found
        return self.pointers[row]

    def _store_row(self, row: Row, pointers: Sequence[str], made: Sequence[tuple[Step, str, Value]]) -> None:
        e, count = self.code, WORDS * row.width
        name = f"llvm.masked.store.v{count}i32.p0"
        e.declare(name, f"declare void @{name}(<{count} x i32>, ptr, <{count} x i1>)")
        none = "zeroinitializer"
        for side in SIDES:
            data: list[Value] = [none] * row.width
            mine: list[Value] = [none] * row.width
            for step, active, value in made:
                lanes = e.value(f"bitcast i32 {active} to <32 x i1>")
                data[row.word(step)] = half(self.handler, value, "i32", side)
                mine[row.word(step)] = half(self.handler, lanes, "i1", side)
            words, flags = join(self.handler, 32, data), join(self.handler, 1, mine)
            place = e.value(f"inttoptr i64 {pointers[side]} to ptr")
            e.line(f"call void @{name}(<{count} x i32> {words}, ptr align 4 {place}, <{count} x i1> {flags})")
