"""A grid under observers that first look whether there is anything to look for (`machine.observers.Doubt`)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.diagnostics import Trap, TrapKind
from ptxtools.machine.observers import Anew, Closer, Doubt, Guessed, classes_of, may_restart, wants_trial
from ptxtools.program.operations import ISSUES

from .kept import Bytes, Kept, touched_bytes

if TYPE_CHECKING:
    from ptxtools.program.program import Program

    from .context import LaunchContext
    from .device import Device, Request, RunResult

#: The most memory that is kept to begin again with, and the most threads that are told apart.
_MOST_BYTES, _MOST_THREADS = 1 << 30, (1 << 31) - 66
#: How often observers may ask for another run.
_MOST_RUNS = 12


def looks(device: Device, program: Program, request: Request, cluster: tuple[int, int, int]) -> list[int]:
    """The looks with which a grid is to be run first: 1, a first one, 2, a closer one, or none: the native engine has
    what it takes, nobody else looks on, and what the grid changes can be put back."""
    if device.engine != "native" or device.observers or device.host_addresses or program.suspects:
        return []
    if device.seed is not None and asynchronous(program):
        return []  # when they end is up to the seed
    if _too_much(device) or prod(request.grid) * prod(request.block) > _MOST_THREADS:
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
    """Whether observers may ask to run a grid once more, and it can: what it changes can be put back."""
    if device.observers or device.host_addresses or _too_much(device) or device.runtime.calls(program):
        return False
    return may_restart(classes_of(device.checks), program, device)


def _memory(device: Device) -> Bytes:
    return np.frombuffer(device.arena.view(device.arena.base, device.arena.used), np.uint8)


def _too_much(device: Device) -> bool:
    """Whether more memory would have to be kept than there should be."""
    return device.arena.used > _MOST_BYTES and touched_bytes(_memory(device)) > _MOST_BYTES


def attempt(
    device: Device, context: LaunchContext, run: Callable[..., RunResult], looks: list[int], *, again: bool
) -> RunResult:
    """Run a grid, `run(look, again)`, first with the first of the looks; if there is any doubt, or that fails, from
    the same memory with the next one, if that can help, or with none (0); and, if `again`, as often as observers ask
    for it. What ends by a limit is not run again."""
    try:
        before = Kept(_memory(device))
    except MemoryError:
        return run(0, False)
    left, trial = _MOST_RUNS if again else 0, min(looks, default=0)
    while True:
        restore = [watch.saved() for watch in context.watches]
        try:
            return run(trial, left > 0)
        except Anew:  # a closer look leaves nothing for a first one
            left, trial = left - 1, 0
        except (Doubt, MemoryError) as doubt:
            if not trial:
                raise
            if not isinstance(doubt, Guessed):
                trial = 2 if isinstance(doubt, Closer) and trial < 2 and 2 in looks else 0
        except Trap as trap:
            if not trial or trap.kind in (TrapKind.TIMEOUT, TrapKind.INTERRUPTED):
                raise
            trial = 0
        before.put_back()
        for put_back in restore:
            put_back()
