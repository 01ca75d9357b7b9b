"""A grid under observers that first look whether there is anything to look for (`machine.observers.Doubt`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import TYPE_CHECKING, Any, TypeGuard

from ptxtools.diagnostics import Trap, TrapKind
from ptxtools.machine.observers import (
    Alone,
    Anew,
    Closer,
    Doubt,
    Guessed,
    classes_of,
    may_restart,
    may_share,
    wants_trial,
)
from ptxtools.program.operations import ISSUES
from ptxtools.records import dataclass

from .keeping import Before, memory_of
from .kept import touched_bytes

if TYPE_CHECKING:
    from ptxtools.program.program import Program

    from .context import LaunchContext
    from .device import Device, Plan, Request, RunResult
    from .keeping import Keeper

#: The most memory that is kept to begin again with, and the most threads that are told apart.
_MOST_BYTES, _MOST_THREADS = 1 << 30, (1 << 31) - 66
#: How often observers may ask for another run.
_MOST_RUNS = 12


@dataclass(slots=True)
class How:
    """How a grid is run. trial: as which look, 0: as the run that reports; again: it can run once more
    (`machine.observers.Anew`); shared: by all workers; keeper: what keeps the memory that it writes, as an observer;
    counts: what ends by a limit ends by one of instructions."""

    trial: int = 0
    again: bool = False
    shared: bool = False
    keeper: Keeper | None = None
    counts: bool = False


@dataclass(slots=True)
class Ways:
    """What is known beforehand of how grids alike are run, if what they change can be put back. looks: with which they
    are run first; again: whether observers may ask to run them once more; shared: the looks that all workers can share,
    0 for the run that reports."""

    looks: list[int]
    again: bool
    shared: frozenset[int]


def ways(device: Device, program: Program, request: Request, cluster: tuple[int, int, int]) -> Ways:
    """Those of a program in one shape."""
    chosen = looks(device, program, request, cluster)
    shared = frozenset(trial for trial in {0, *chosen} if sharing(device, program, request, trial))
    return Ways(chosen, repeatable(device, program), shared)


def looks(device: Device, program: Program, request: Request, cluster: tuple[int, int, int]) -> list[int]:
    """The looks with which a grid is to be run first: 1, a first one, 2, a closer one, or none: the native engine has
    what it takes, and nobody else looks on."""
    if device.engine != "native" or device.observers or device.host_addresses or program.suspects:
        return []
    if device.seed is not None and asynchronous(program):
        return []  # when they end is up to the seed
    if prod(request.grid) * prod(request.block) > _MOST_THREADS:
        return []
    if "looks" not in program.cache:
        classes = classes_of(device.checks)
        found = [wants_trial(classes, program), wants_trial(classes, program, closer=True)]
        program.cache["looks"] = [look for look, wanted in enumerate(found, 1) if wanted]
    known: list[int] = program.cache["looks"]
    if prod(cluster) == 1:
        return known
    return [2] if 2 in known and not asynchronous(program) else []


def asynchronous(program: Program) -> bool:
    """Whether there is asynchronous work: in a first look it is complete at once."""
    if "asynchronous" not in program.cache:
        program.cache["asynchronous"] = any(op.kind in ISSUES for op in program.operations())
    return bool(program.cache["asynchronous"])


def repeatable(device: Device, program: Program) -> bool:
    """Whether observers may ask to run a grid once more, and it can."""
    if device.observers or device.host_addresses or not device.runtime.repeatable(program):
        return False
    return may_restart(classes_of(device.checks), program, device)


def _too_much(device: Device) -> bool:
    """Whether more memory would have to be kept than there should be."""
    return device.arena.used > _MOST_BYTES and sum(map(touched_bytes, memory_of(device))) > _MOST_BYTES


def sharing(device: Device, program: Program, request: Request, trial: int) -> bool:
    """Whether all workers can share a look at a grid, or, without one, the run that reports: nothing depends on who
    runs which CTA."""
    if device.workers < 2 or device.observers or device.host_addresses or prod(request.grid) < 2:
        return False
    if program.suspects or device.runtime.calls(program):
        return False
    return may_share(classes_of(device.checks, trial=trial), program)


def observed(
    device: Device, plan: Plan, request: Request, context: LaunchContext, run: Callable[[How], RunResult],
    keeper: Callable[[int, Before], Keeper | None] | None, sources: Mapping[int, Any],
) -> RunResult:  # fmt: skip
    """Run a grid under observers: trials come first where they are worth while, and all workers share what they can.
    keeper: makes what keeps memory for a look; None: memory cannot be put back; sources: as of `Before`."""
    if keeper is None or _too_much(device):
        return run(How())
    known = plan.ways
    if known is None:
        known = plan.ways = ways(device, plan.program, request, plan.cluster)
    # Of two limits it is not known which has ended a shared run.
    shared = frozenset[int]() if request.max_instructions is not None and request.timeout is not None else known.shared
    if known.looks or known.again or 0 in shared:
        how = How(again=known.again, counts=request.max_instructions is not None)
        return attempt(Before(device, sources), context, run, how, known.looks, shared.__contains__, keeper)
    return run(How())


def attempt(
    before: Before, context: LaunchContext, run: Callable[[How], RunResult], how: How, looks: list[int],
    shares: Callable[[int], bool], keeper: Callable[[int, Before], Keeper | None],
) -> RunResult:  # fmt: skip
    """Run a grid, first with the first of the looks; if there is any doubt, or that fails, from the same memory with
    the next one, if that can help, or with none (0); and, if `how.again`, as often as observers ask for it. A look is
    shared by all workers where it can be (`shares`), and what they have anything to say about is looked at again by
    one, whose reports come in the same order each time. What ends by a limit is not run again, unless they share it and
    it is one of instructions. before: what keeps memory; keeper: makes what keeps less of it
    for a look, where that is much."""
    left, trial = _MOST_RUNS if how.again else 0, min(looks, default=0)
    shared, kept = shares(trial), False
    while True:
        if not kept:
            try:
                before.keep(keeper(trial, before) if shared and before.much else None)
            except MemoryError:
                return run(How())
        kept = before.keeper is None  # all that the grid may change
        restore = [before.device.runtime.saved(context), *(watch.saved() for watch in context.watches)]
        try:
            return run(How(trial, left > 0, shared, before.keeper))
        except Anew:  # a closer look leaves nothing for a first one
            left, trial, shared = left - 1, 0, False
        except (Doubt, MemoryError) as doubt:
            if not trial and not shared:
                raise
            if _over(doubt.__context__, shared, how):
                raise doubt.__context__ from doubt
            if not isinstance(doubt, Guessed):
                if not (shared and isinstance(doubt, Alone | MemoryError)):
                    trial = 2 if isinstance(doubt, Closer) and trial < 2 and 2 in looks else 0
                shared = False
        except Trap as trap:
            if not (trial or shared) or _over(trap, shared, how):
                raise
            trial, shared = trial if shared else 0, False
        before.put_back()
        for put_back in restore:
            put_back()


def _over(end: BaseException | None, shared: bool, how: How) -> TypeGuard[BaseException]:
    """Whether what has ended a run is the end of all: the user, or a limit that holds for all runs together."""
    if not isinstance(end, Trap):
        return isinstance(end, KeyboardInterrupt)
    return end.kind is TrapKind.INTERRUPTED or (end.kind is TrapKind.TIMEOUT and not (shared and how.counts))
