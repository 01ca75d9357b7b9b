"""How long kernels would take on a chip: a first-order model, not a measurement (docs/estimating.md).

`Estimate` is an observer. Instructions and accesses of the whole grid are counted (`profile`), and give how long each
unit of the chip is busy. Some CTAs are followed instruction by instruction, and give the critical path of a CTA. The
longest of these times is the estimate.
"""

from __future__ import annotations

import json
from math import ceil, prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy.typing as npt

from ptxtools.diagnostics import LaunchError
from ptxtools.machine.logs import Log
from ptxtools.machine.measures import SECTOR_BYTES
from ptxtools.program.details import Meeting
from ptxtools.program.program import OFFSET_MASK, RANK_SHIFT
from ptxtools.records import dataclass, field
from ptxtools.sim.limits import limits_of
from ptxtools.sim.rates import ISSUES, RATES, rates_of

from .estimate_costs import costs
from .estimate_path import Paths
from .profile import KernelProfile, Profile

if TYPE_CHECKING:
    from ptxtools.diagnostics import Trap
    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.residents import Cta
    from ptxtools.sim.rates import Rates

Array: TypeAlias = npt.NDArray[Any]

FORMAT = "ptxtools estimate 1"
#: CTAs of a grid that are followed, about.
SAMPLE = 4
#: Events of a grid that are followed at most.
MOST = 1 << 16
_KINDS = frozenset(f"observe.{event}" for event in ("line", "arrive", "leave"))
_EVENTS = frozenset({"instruction", "arrive", "leave"})
#: What has happened to a warp of the sample: CTA, warp, what ("line" and so on), of what.
_Step: TypeAlias = "tuple[int, int, str, Any, str]"


@dataclass(slots=True)
class KernelEstimate:
    """A launch of a kernel in the model. chip, product, clock: of what (MHz); bounds: cycles that each unit is busy on
    the SM with the most work, and that the critical path takes, by name, the longest first; waves: how often the chip
    is filled; sms: that have work; tail: how much longer the fullest one has it than the average of these; path: cycles
    of a followed CTA; followed: how many, instructions: of their warps, complete: whether all of these; waits: cycles
    for which a warp of them waits, by reason; notes: what the model leaves out."""

    name: str
    chip: str
    product: str
    clock: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    bounds: dict[str, float]
    ctas_per_sm: int
    limiter: tuple[str, ...]
    waves: int
    sms: int
    tail: float
    path: float
    followed: int
    instructions: int
    complete: bool
    waits: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def bound(self) -> str:
        """What takes longest."""
        return next(iter(self.bounds))

    @property
    def cycles(self) -> float:
        """Cycles of the chip."""
        return self.bounds[self.bound]

    @property
    def microseconds(self) -> float:
        return self.cycles / self.clock

    @property
    def margin(self) -> float:
        """How many times longer that takes than what comes next; infinite where there is nothing else."""
        second = sorted(self.bounds.values())[-2:-1]
        return self.cycles / second[0] if second and second[0] else float("inf")


class Estimate:
    """The observer. kernels: one for each launch."""

    def __init__(self) -> None:
        self.kernels: list[KernelEstimate] = []
        self.log = Log(_KINDS, _EVENTS, MOST)
        self._trap: Trap | None = None
        self._steps: list[_Step] = []
        self._lost = 0  # steps that have found no room
        self._stride = 1
        self._clustered = False
        self._ops: list[tuple[str, Any, str]] = []

    def _repr_html_(self) -> str:
        """For notebooks: the bounds of each kernel."""
        from . import notebooks

        return notebooks.of_estimate(self)

    def grid_begun(self, launch: Launch) -> None:
        """Raises `LaunchError` for a chip that has no published rates."""
        if rates_of(launch.device.target) is None:
            known = ", ".join(RATES)
            raise LaunchError(f"there are no published rates of {launch.device.target}; an estimate knows {known}")
        self._trap = None
        self._steps, self._lost, self._ops = [], 0, []
        self._clustered = launch.program.clustered
        single = prod(launch.cluster) == 1
        self._stride = self.log.state.stride = max(1, prod(launch.grid) // SAMPLE) if single else 1

    def trapped(self, trap: Trap) -> None:
        self._trap = trap

    # --- the sample ---------------------------------------------------------------------------------------------------

    def logged(self, rows: Array, known: object) -> None:
        """Rows of the log."""
        if not self._ops:
            self._ops = [(op.kind.partition(".")[2], op.where, _what(op.detail)) for op in self.log.ops]
        for op, warp, _, _, _, key, cta, _, _, _, _, rank, _ in rows.tolist():
            kind, where, what = self._ops[op]
            thing = where if kind == "line" else self._barrier(what, key, cta - rank, rank, warp)
            self._steps.append((cta, warp, kind, thing, what))

    def instruction(self, at: View, lanes: Array) -> None:
        self._tell(at, "line", at.op.where, "")

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        self._meets(at, "arrive", what)

    def leave(self, at: View, what: str, lanes: Array) -> None:
        self._meets(at, "leave", what)

    def transacted(self, at: View, cta: Cta, offset: int, size: int) -> None:
        """A copy brings an mbarrier its bytes."""
        first = _number(at) - at.cta.rank
        self._tell(at, "copied", ("mbarrier", first + cta.rank, offset), "")

    def _meets(self, at: View, kind: str, what: str) -> None:
        from .timeline import key_of

        number = _number(at)
        self._tell(at, kind, self._barrier(what, key_of(at, what), number - at.cta.rank, at.cta.rank, at.warp), what)

    def _tell(self, at: View, kind: str, thing: object, what: str) -> None:
        number = _number(at)
        if number % self._stride:
            return
        if len(self._steps) >= MOST:
            self._lost += 1
        else:
            self._steps.append((number, at.warp, kind, thing, what))

    def _barrier(self, what: str, key: int, first: int, rank: int, warp: int) -> object:
        """What barrier lanes came to. first: number of the first CTA of the cluster."""
        if what in ("bar", "arrive"):
            return "bar", first + rank, key
        if what.startswith("cluster"):
            return "cluster", first
        if what.startswith("mbarrier"):
            there = (key & 0xFFFF_FFFF) >> RANK_SHIFT if self._clustered else rank
            return "mbarrier", first + there, key & OFFSET_MASK
        return what, first + rank, warp

    # --- the estimate -------------------------------------------------------------------------------------------------

    def measured(self, launch: Launch) -> None:
        """The grid is over, and all is counted."""
        counted = Profile()
        if self._trap is not None:
            counted.trapped(self._trap)
        counted.measured(launch)
        profile = counted.kernels[0]
        if not profile.warps:
            return
        rates, limits = rates_of(profile.chip), limits_of(profile.chip)
        assert rates is not None and limits is not None
        table = costs(launch.program, profile.rows, rates)
        paths = Paths(table, rates.shared_latency)
        for cta, warp, kind, thing, what in self._steps:
            if kind == "line":
                paths.line(cta, warp, thing)
            elif kind == "arrive":
                paths.arrive(cta, warp, thing, what)
            elif kind == "leave":
                paths.leave(cta, warp, thing, what)
            else:
                paths.copied(cta, warp, thing, rates.dram_latency)
        ends = paths.ends()
        ctas = prod(launch.grid)
        complete = not self.log.lost and not self._lost
        self.log.state.lost = 0
        whole = profile.warps / ctas * len(ends)
        scale = max(1.0, whole / paths.issued) if paths.issued and not complete else 1.0
        path = scale * sum(ends) / len(ends) if ends else 0.0
        at_once = limits.sms * profile.occupancy.ctas
        waves = ceil(ctas / at_once)
        most = ceil(ctas / limits.sms)
        busy = {name: cycles / ctas * most for name, cycles in _busy(profile, table).items()}
        reads, writes = profile.memory(False), profile.memory(True)
        busy["L2"] = (reads.moved + writes.moved) / rates.l2
        busy["DRAM"] = SECTOR_BYTES * (reads.dram + writes.dram) / rates.dram_bytes
        busy["latency"] = path * waves
        if not any(busy.values()):
            busy["issue"] = 1  # what costs nothing has to be begun
        self.kernels.append(KernelEstimate(
            profile.name, rates.name, limits.product, rates.clock, launch.grid, launch.block,
            dict(sorted(((name, cycles) for name, cycles in busy.items() if cycles), key=lambda row: -row[1])),
            profile.occupancy.ctas, profile.occupancy.limiter, waves, min(ctas, limits.sms),
            most * min(ctas, limits.sms) / ctas, path, len(ends),
            paths.issued, complete, paths.waited(), _notes(profile, rates),
        ))  # fmt: skip


def _number(at: View) -> int:
    """Of the CTA, cluster by cluster, as the log has it."""
    return at.cta.cluster.number * len(at.cta.cluster.ctas) + at.cta.rank


def _what(detail: object) -> str:
    return detail.what if isinstance(detail, Meeting) else ""


def _busy(profile: KernelProfile, table: dict[int, Any]) -> dict[str, float]:
    """Cycles for which pipes of one SM would be busy with the whole grid."""
    found: dict[str, float] = {}
    issued = 0.0
    for where, row in profile.rows.items():
        cost = table[where]
        issued += row.warps * cost.count
        if cost.pipe:
            found[cost.pipe] = found.get(cost.pipe, 0.0) + row.warps * cost.cycles
    return {"issue": issued / ISSUES, **found}


def _notes(profile: KernelProfile, rates: Rates) -> list[str]:
    notes = list(profile.notes)
    if rates.like:
        notes.append(f"latencies are those of {rates.like}: none are published for {rates.name}")
    if any(row.opcode.startswith("tcgen05.mma") and row.warps for row in profile.rows.values()):
        notes.append("not in the time of the tensor pipe: tcgen05.mma, whose shape is in a descriptor")
    return notes


# --- JSON -------------------------------------------------------------------------------------------------------------


def as_dict(estimate: Estimate) -> dict[str, Any]:
    """The estimates as plain values."""
    return {"format": FORMAT, "model": True, "kernels": [_kernel(kernel) for kernel in estimate.kernels]}


def as_json(estimate: Estimate) -> str:
    return json.dumps(as_dict(estimate), indent=1) + "\n"


def _kernel(kernel: KernelEstimate) -> dict[str, Any]:
    margin = kernel.margin
    return {
        "name": kernel.name, "chip": kernel.chip, "product": kernel.product, "clock_mhz": kernel.clock,
        "grid": kernel.grid, "block": kernel.block, "cycles": kernel.cycles, "microseconds": kernel.microseconds,
        "bound": kernel.bound, "margin": None if margin == float("inf") else margin, "bounds": kernel.bounds,
        "ctas_per_sm": kernel.ctas_per_sm, "limiter": kernel.limiter,
        "waves": kernel.waves, "sms": kernel.sms, "tail": kernel.tail,
        "path_cycles": kernel.path, "followed_ctas": kernel.followed, "followed_instructions": kernel.instructions,
        "complete": kernel.complete, "waits": kernel.waits, "notes": kernel.notes,
    }  # fmt: skip


__all__ = ["MOST", "SAMPLE", "Estimate", "KernelEstimate", "as_dict", "as_json"]
