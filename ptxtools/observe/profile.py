"""The profile of kernels: what warps executed and how their accesses fell, line by line.

`Profile` is an observer that warps are not stopped for: instructions and accesses are counted in native code
(`machine.launch.Launch.counts`, `machine.measures`). Everything is exact but what the model of the cache says of DRAM.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ptxtools.machine.measures import SECTOR_BYTES
from ptxtools.machine.registers import live_bits
from ptxtools.program.lines import bare_opcode
from ptxtools.records import dataclass, field
from ptxtools.sim.occupancy import Occupancy, occupancy

from .classes import class_of, matrix_operations, operations_of
from .coverage import Ways, reached

if TYPE_CHECKING:
    from ptxtools.diagnostics import Trap
    from ptxtools.machine.launch import Launch


@dataclass(slots=True)
class Global:
    """Accesses of a line to global memory. warps: how often one accessed it; lanes: how often a thread did; sectors: of
    32 bytes, that these touched; dram: those that the model of the L2 did not have; asked: bytes."""

    warps: int = 0
    lanes: int = 0
    sectors: int = 0
    dram: int = 0
    asked: int = 0
    writes: bool = False

    @property
    def moved(self) -> int:
        """Bytes of the sectors."""
        return self.sectors * SECTOR_BYTES


@dataclass(slots=True)
class Shared:
    """Accesses of a line to shared memory. passes: over the banks; least: without conflicts."""

    warps: int = 0
    lanes: int = 0
    passes: int = 0
    least: int = 0

    @property
    def conflicts(self) -> int:
        """Passes that conflicts cost."""
        return self.passes - self.least


@dataclass(slots=True)
class Row:
    """An instruction. warps: how often warps executed it; lanes: threads of these, whether or not the guard held for
    them; threads: those for which it held; live: registers of 32 bits needed there, or None; memory, shared: None if it
    accesses none."""

    file: str
    line: int
    text: str
    function: str
    source: tuple[str, int] | None
    name: str
    pipe: str
    warps: int = 0
    lanes: int = 0
    guard: Ways | None = None
    memory: Global | None = None
    shared: Shared | None = None
    live: int | None = None

    @property
    def threads(self) -> int:
        return self.lanes if self.guard is None else self.guard.lanes

    @property
    def opcode(self) -> str:
        return bare_opcode(self.text)

    @property
    def is_branch(self) -> bool:
        return self.guard is not None and self.opcode.split(".")[0] in ("bra", "brx")


@dataclass(slots=True)
class KernelProfile:
    """All launches of a kernel that were alike in shape. rows: by the index of the instruction; texts: lines of the PTX
    by file; notes: what is not counted."""

    name: str
    chip: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    shared: int
    l2: int
    occupancy: Occupancy
    launches: int = 0
    rows: dict[int, Row] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    # --- sums ---------------------------------------------------------------------------------------------------------

    @property
    def warps(self) -> int:
        """Instructions executed by warps."""
        return sum(row.warps for row in self.rows.values())

    @property
    def lanes(self) -> int:
        """Instructions executed by threads, those with a guard that did not hold included."""
        return sum(row.lanes for row in self.rows.values())

    def by(self, attribute: str) -> dict[str, tuple[int, int]]:
        """Instructions of warps and threads by "name" (class) or "pipe", the most first."""
        found: dict[str, tuple[int, int]] = {}
        for row in self.rows.values():
            if row.warps:
                warps, lanes = found.get(getattr(row, attribute), (0, 0))
                found[getattr(row, attribute)] = (warps + row.warps, lanes + row.lanes)
        return dict(sorted(found.items(), key=lambda item: -item[1][0]))

    def memory(self, writes: bool) -> Global:
        """All reads, or all writes and atomics, of global memory."""
        total = Global(writes=writes)
        for row in self.rows.values():
            if row.memory is not None and row.memory.writes is writes:
                for name in ("warps", "lanes", "sectors", "dram", "asked"):
                    setattr(total, name, getattr(total, name) + getattr(row.memory, name))
        return total

    @property
    def banks(self) -> Shared:
        """All accesses to shared memory."""
        total = Shared()
        for row in self.rows.values():
            if row.shared is not None:
                for name in ("warps", "lanes", "passes", "least"):
                    setattr(total, name, getattr(total, name) + getattr(row.shared, name))
        return total

    @property
    def branches(self) -> tuple[int, int]:
        """Conditional branches that warps executed, and how many of these did not split the warp."""
        rows = [row for row in self.rows.values() if row.is_branch and row.guard is not None]
        executed = sum(row.warps for row in rows)
        return executed, executed - sum(row.guard.some - row.guard.whole for row in rows if row.guard is not None)

    @property
    def operations_by(self) -> dict[str, int]:
        """Floating-point operations by class: of threads, and of warps' matrix products."""
        found: dict[str, int] = {}
        for row in self.rows.values():
            count = operations_of(row.opcode) * row.threads + matrix_operations(row.opcode) * row.warps
            if count:
                found[row.name] = found.get(row.name, 0) + count
        return found

    @property
    def operations(self) -> int:
        """All of these."""
        return sum(self.operations_by.values())

    @property
    def live(self) -> int | None:
        """The most registers that are live at a line."""
        return max((row.live for row in self.rows.values() if row.live is not None), default=None)

    def lines(self) -> Iterator[tuple[str, int, list[Row]]]:
        """File, line and instructions of each PTX line with any, in order."""
        found: dict[tuple[str, int], list[Row]] = {}
        for row in self.rows.values():
            found.setdefault((row.file, row.line), []).append(row)
        for (file, line), rows in sorted(found.items()):
            yield file, line, rows


class Profile:
    """The observer. kernels: in the order of their first launches."""

    def __init__(self) -> None:
        self.kernels: list[KernelProfile] = []
        self._known: dict[Any, KernelProfile] = {}
        self._trap: Trap | None = None

    def _repr_html_(self) -> str:
        """For notebooks: totals, classes, hot lines and the roofline of each kernel."""
        from . import notebooks

        return notebooks.of_profile(self)

    def grid_begun(self, launch: Launch) -> None:
        self._trap = None

    def trapped(self, trap: Trap) -> None:
        self._trap = trap

    def measured(self, launch: Launch) -> None:
        """Add what a grid has counted."""
        kernel = self._kernel(launch)
        kernel.launches += 1
        for where, warps, lanes in reached(launch, self._trap):
            row = kernel.rows[where]
            row.warps += warps
            row.lanes += lanes
        assert launch.counts is not None
        for number, counted in enumerate(launch.counts.tolist()):
            _add(kernel, launch, number, counted)

    def _kernel(self, launch: Launch) -> KernelProfile:
        program = launch.program
        key = id(program), launch.grid, launch.block, launch.dynamic_shared
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _new(launch)
            known.notes += _notes(launch)
            self.kernels.append(known)
            program.cache.setdefault("profiles", []).append(self)  # as long as that lives its identity is its own
        return known


def _new(launch: Launch) -> KernelProfile:
    program, device = launch.program, launch.device
    shared = program.declared_shared + launch.dynamic_shared
    x, y, z = launch.block
    assert launch.cache is not None
    places = launch.context.places
    bounds = places.bounds(program.kernel)
    registers = min(program.registers, (bounds and bounds.registers) or program.registers)
    kernel = KernelProfile(
        program.kernel, device.target, launch.grid, launch.block, registers, shared, launch.cache.size,
        occupancy(x * y * z, registers, shared, device.limits),
    )  # fmt: skip
    functions = {counter.where: program.functions[counter.function].name for counter in program.counters}
    guarded = {counter.where for counter in program.counters if counter.what == "held"}
    live, known, function = live_bits(program), None, ""
    for where, (_, start, text) in enumerate(program.lines):
        if where in functions and functions[where] != function:
            function, known = functions[where], None
        file, line = places.line_at(start)
        origin = places.origin_at(start)
        known = live.get(where, known)
        kernel.rows[where] = Row(
            file, line or 0, text, function, None if origin is None else (origin.file, origin.line),
            *class_of(bare_opcode(text)), guard=Ways() if where in guarded else None,
            live=None if known is None else known // 32,
        )  # fmt: skip
    source = places.source
    if source is not None and not source.joined:
        kernel.texts[source.name] = source.text.splitlines()
    return kernel


def _add(kernel: KernelProfile, launch: Launch, number: int, counted: list[int]) -> None:
    """Add a row of counters to that of its instruction."""
    counter = launch.program.counters[number]
    row = kernel.rows[counter.where]
    if counter.what == "held" and row.guard is not None:
        row.guard.some += counted[0]
        row.guard.lanes += counted[1]
        row.guard.whole += counted[2]
    elif counter.what == "global":
        row.memory = row.memory or Global(writes=counter.writes)
        row.memory.warps += counted[0]
        row.memory.lanes += counted[1]
        row.memory.sectors += counted[2]
        row.memory.dram += counted[3]
        row.memory.asked += counted[1] * counter.size
    elif counter.what == "shared":
        row.shared = row.shared or Shared()
        row.shared.warps += counted[0]
        row.shared.lanes += counted[1]
        row.shared.passes += counted[2]
        row.shared.least += counted[3]


_UNMEASURED = (
    ("cp.async.bulk", "bulk and tensor copies"), ("tcgen05.", "tcgen05 operations"), ("wgmma.", "wgmma operands"),
    ("tex.", "texture fetches"), ("tld4.", "texture fetches"), ("suld.", "surface accesses"),
    ("sust.", "surface accesses"), ("sured.", "surface accesses"), ("multimem.", "multimem accesses"),
    ("st.async", "st.async"), ("st.bulk", "st.bulk"), ("red.async", "red.async"),
)  # fmt: skip


def _notes(launch: Launch) -> list[str]:
    """What the counts of memory leave out."""
    texts = {bare_opcode(text) for _, _, text in launch.program.lines}
    names = dict.fromkeys(name for start, name in _UNMEASURED if any(text.startswith(start) for text in texts))
    notes = [f"not in sectors, passes and bytes: {', '.join(names)}"] if names else []
    if not launch.program.optimised:
        notes.append("registers are those of the program as it is written, since each instruction is looked at")
    if launch.late and any(text.startswith("cp.async.c") for text in texts):
        notes.append("not in sectors, passes and bytes: cp.async, which completes late in this run")
    return notes


__all__ = ["Global", "KernelProfile", "Profile", "Row", "Shared"]
