"""A grid under observers that first look whether there is anything to look for (`machine.observers.Doubt`)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

from ptxtools.diagnostics import Trap, TrapKind
from ptxtools.machine.observers import Doubt, classes_of, wants_trial
from ptxtools.program.operations import ISSUES

if TYPE_CHECKING:
    from ptxtools.program.program import Program

    from .context import LaunchContext
    from .device import Device, Request, RunResult

#: The most memory that is kept to begin again with, and the most threads that are told apart.
_MOST_BYTES, _MOST_THREADS = 1 << 30, (1 << 31) - 66


def worth(device: Device, program: Program, request: Request, cluster: tuple[int, int, int]) -> bool:
    """Whether a grid is to be run like that: the native engine has what it takes, nobody else looks on, and what the
    grid changes can be put back."""
    if device.engine != "native" or device.observers or device.host_addresses or prod(cluster) > 1:
        return False
    if device.seed is not None and asynchronous(program):
        return False  # when they end is up to the seed
    if device.arena.used > _MOST_BYTES or prod(request.grid) * prod(request.block) > _MOST_THREADS:
        return False
    if "trial" not in program.cache:
        program.cache["trial"] = wants_trial(classes_of(device.checks), program)
    return bool(program.cache["trial"])


def asynchronous(program: Program) -> bool:
    """Whether there is asynchronous work: in a first look it is complete at once."""
    if "asynchronous" not in program.cache:
        program.cache["asynchronous"] = any(op.kind in ISSUES for op in program.operations())
    return bool(program.cache["asynchronous"])


def attempt(device: Device, context: LaunchContext, run: Callable[[bool], RunResult]) -> RunResult:
    """Run a grid as a trial, `run(True)`; if there is any doubt, or it fails, again from the same memory. What ends by
    a limit is not run again."""
    memory = device.arena.view(device.arena.base, device.arena.used)
    try:
        before = bytes(memory)
    except MemoryError:
        return run(False)
    restore = [watch.saved() for watch in context.watches]
    try:
        return run(True)
    except (Doubt, MemoryError):
        pass
    except Trap as trap:
        if trap.kind in (TrapKind.TIMEOUT, TrapKind.INTERRUPTED):
            raise
    memory[:] = before
    for put_back in restore:
        put_back()
    return run(False)
