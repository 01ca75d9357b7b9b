"""Coverage: which instructions of a module were executed, which ways branches went, which warps disagreed.

`Coverage` is an observer that warps are not stopped for: what it knows is counted while the kernel runs
(`machine.launch.Launch.counts`). It sums over all launches of all devices that it is given to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxtools.records import dataclass, field

if TYPE_CHECKING:
    from ptxtools.diagnostics import Trap
    from ptxtools.machine.launch import Launch
    from ptxtools.program.program import Program
    from ptxtools.sim.program_lines import ProgramLines


@dataclass(slots=True)
class Ways:
    """What a guard decided. some: how often a warp came with lanes for which it held; lanes: these lanes; whole: how
    often it held for all lanes that came."""

    some: int = 0
    lanes: int = 0
    whole: int = 0


@dataclass(slots=True)
class Instruction:
    """One instruction. warps: how often warps executed it; lanes: how often threads did, guarded-off ones included;
    guard: None if it has none; source: file and line of the language that it was generated from, or None."""

    file: str
    line: int
    text: str
    function: str
    warps: int = 0
    lanes: int = 0
    guard: Ways | None = None
    source: tuple[str, int] | None = None

    @property
    def taken(self) -> int:
        """Threads for which the guard held; without a guard, all."""
        return self.lanes if self.guard is None else self.guard.lanes

    @property
    def mixed(self) -> int:
        """How often the guard held for some of the lanes of a warp that came, but not for all."""
        return 0 if self.guard is None else self.guard.some - self.guard.whole


@dataclass(slots=True)
class CoveredFile:
    """A text of PTX. text: its lines, none where they are generated; instructions: by where they start, ascending."""

    name: str
    text: list[str] = field(default_factory=list)
    instructions: dict[int, Instruction] = field(default_factory=dict)

    def functions(self) -> dict[str, list[Instruction]]:
        """The instructions of each function."""
        found: dict[str, list[Instruction]] = {}
        for instruction in self.instructions.values():
            found.setdefault(instruction.function, []).append(instruction)
        return found

    def lines(self) -> dict[int, list[Instruction]]:
        """The instructions of each line that has any, ascending."""
        found: dict[int, list[Instruction]] = {}
        for instruction in self.instructions.values():
            found.setdefault(instruction.line, []).append(instruction)
        return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    hit: int
    of: int

    def __str__(self) -> str:
        return f"{self.hit} of {self.of}" + (f" ({100 * self.hit / self.of:.1f} %)" if self.of else "")


class Coverage:
    """The observer. files: by their names."""

    def __init__(self) -> None:
        self.files: dict[str, CoveredFile] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._trap: Trap | None = None

    def _repr_html_(self) -> str:
        """For notebooks: what was reached, and the PTX with counts."""
        from . import notebooks

        return notebooks.of_coverage(self)

    # --- what happens -------------------------------------------------------------------------------------------------

    def grid_begun(self, launch: Launch) -> None:
        self._trap = None

    def trapped(self, trap: Trap) -> None:
        self._trap = trap

    def counted(self, launch: Launch) -> None:
        """Add what a grid has counted."""
        places: ProgramLines = launch.context.places
        self._add_module(places)
        program = launch.program
        for where, warps, lanes in reached(launch, self._trap):
            found = self._instruction(program, places, where)
            if found is not None:
                found.warps += warps
                found.lanes += lanes
        assert launch.counts is not None
        for counter, row in zip(program.counters, launch.counts.tolist(), strict=True):
            found = self._instruction(program, places, counter.where) if counter.what == "held" else None
            if found is not None and found.guard is not None:
                found.guard.some += row[0]
                found.guard.lanes += row[1]
                found.guard.whole += row[2]

    def _instruction(self, program: Program, places: ProgramLines, where: int) -> Instruction | None:
        start = program.lines[where][1]
        file = self.files.get(self._name(places, places.line_at(start)[0]))
        return None if file is None else file.instructions.get(start)

    def _name(self, places: ProgramLines, name: str) -> str:
        """The name of a file here: texts of one name are told apart by a number."""
        source = places.source
        text = "" if source is None or source.joined else source.text
        known = self._names.get((name, text))
        if known is None:
            lines = text.splitlines()
            known, number = name, 1
            while known in self.files and self.files[known].text != lines:
                number += 1
                known = f"{name} ({number})"
            self._names[name, text] = known
        return known

    def _add_module(self, places: ProgramLines) -> None:
        """All instructions of a module, those of kernels that do not run as well; once."""
        source = places.source
        if source is None:
            return
        for body in places.bodies():
            for start, text, guarded in body.instructions:
                name, line = places.line_at(start)
                name = self._name(places, name)
                file = self.files.get(name)
                if file is None:
                    file = self.files[name] = CoveredFile(name, [] if source.joined else source.text.splitlines())
                if start in file.instructions or line is None:
                    continue
                origin = places.origin_at(start)
                file.instructions[start] = Instruction(
                    name, line, text, body.name, guard=Ways() if guarded else None,
                    source=None if origin is None else (origin.file, origin.line),
                )  # fmt: skip

    # --- sums ---------------------------------------------------------------------------------------------------------

    def instructions(self) -> Iterator[Instruction]:
        """Of all files."""
        for file in self.files.values():
            yield from file.instructions.values()

    @property
    def lines(self) -> Share:
        """PTX lines of which some instruction was executed."""
        rows = [row for file in self.files.values() for row in file.lines().values()]
        return Share(sum(any(i.warps for i in row) for row in rows), len(rows))

    @property
    def branches(self) -> Share:
        """Ways of the guards: each may hold, and not hold."""
        ways = [way for i in self.instructions() if i.guard is not None for way in (i.taken, i.lanes - i.taken)]
        return Share(sum(way > 0 for way in ways), len(ways))

    @property
    def mixed(self) -> Share:
        """Guards for which lanes of a warp disagreed."""
        guards = [i for i in self.instructions() if i.guard is not None]
        return Share(sum(i.mixed > 0 for i in guards), len(guards))

    def __str__(self) -> str:
        return f"lines {self.lines}, branch ways {self.branches}, guards mixed {self.mixed}"


def reached(launch: Launch, trap: Trap | None = None) -> Iterator[tuple[int, int, int]]:
    """For each instruction of the program, by its index: how often warps and threads came to it. trap: what ended the
    run; the warps that it stopped in the middle of a block have not executed what stands behind it there."""
    assert launch.counts is not None
    program = launch.program
    rows = [
        (counter.where, warps, lanes)
        for counter, (warps, lanes, *_) in zip(program.counters, launch.counts.tolist(), strict=True)
        if counter.what == "reached"
    ]
    ends = [*[where for where, _, _ in rows[1:]], len(program.lines)]
    for (first, warps, lanes), end in zip(rows, ends, strict=True):
        for where in range(first, end):
            if trap is not None and trap.where is not None and first <= trap.where < where:
                left = max(0, warps - launch.unfinished)
                yield where, left, lanes * left // warps if warps else 0
            else:
                yield where, warps, lanes
