"""How blocks end: branches, calls and returns, warp and CTA barriers, traps (9.7.12, 9.7.13)."""

from __future__ import annotations

import numpy as np

from ptxtools.diagnostics import Cause
from ptxtools.machine.deadlock import no_member, overflow
from ptxtools.program.program import CODE_BASE, CODE_STEP, LANES, Terminator

from .barriers import arrive, leave_barriers
from .clusters import cluster_barrier, leave_clusters
from .machine import GONE, Machine
from .registry import Array, Threads, ends


def holds(m: Machine, end: Terminator, threads: Threads) -> Array:
    """Whether the terminator's guard holds, for each thread."""
    if end.guard is None:
        return np.ones(len(threads), np.bool_)
    flags: Array = m.read(end.guard, threads)
    return ~flags if end.negated else flags


@ends("jump")
def jump(m: Machine, end: Terminator, threads: Threads) -> None:
    m.pc[threads] = end.target


@ends("branch")
def branch(m: Machine, end: Terminator, threads: Threads) -> None:
    m.pc[threads] = np.where(holds(m, end, threads), end.target, end.other)


@ends("switch")
def switch(m: Machine, end: Terminator, threads: Threads) -> None:
    assert end.index is not None
    index = m.read(end.index, threads).astype(np.int64)
    bad = np.flatnonzero(index >= len(end.targets))
    if len(bad):
        first = int(bad[0])
        reason = f"branch index {int(index[first])} is beyond the {len(end.targets)} targets"
        raise m.trap(reason, threads[first], end.where)
    m.pc[threads] = np.asarray(end.targets)[index]


@ends("exit")
def leave(m: Machine, end: Terminator, threads: Threads) -> None:
    leaving = threads[holds(m, end, threads)]
    m.pc[threads] = end.other
    m.pc[leaving] = GONE
    if len(leaving):
        warps = np.unique(m.warp_of[leaving])
        m.parked[np.isin(m.warp_of, warps)] = False
        leave_barriers(m, leaving)
        leave_clusters(m, leaving)


@ends("ret")
def ret(m: Machine, end: Terminator, threads: Threads) -> None:
    returning = threads[holds(m, end, threads)]
    m.pc[threads] = end.other
    blocks, frames = m.returns[m.here]
    m.pc[returning] = blocks[returning]
    m.frame[returning] = frames[returning]
    m.depth[returning] -= 1


@ends("call")
def call(m: Machine, end: Terminator, threads: Threads) -> None:
    if end.callee >= 0:
        _enter(m, end, end.callee, threads)
        return
    assert end.index is not None
    address = m.read(end.index, threads).astype(np.int64)
    number = (address - CODE_BASE) // CODE_STEP
    table = np.asarray([*end.targets, -1])
    valid = (address >= CODE_BASE) & (address % CODE_STEP == CODE_BASE % CODE_STEP) & (number < len(end.targets))
    callee = table[np.where(valid, number, len(end.targets))]
    bad = np.flatnonzero(callee < 0)
    if len(bad):
        first = int(bad[0])
        raise m.trap(f"call to {int(address[first]):#x}, which is no function", threads[first], end.where)
    for function in np.unique(callee):
        _enter(m, end, int(function), threads[callee == function])


def _enter(m: Machine, end: Terminator, callee: int, threads: Threads) -> None:
    caller, code = m.program.functions[m.function], m.program.functions[callee]
    frame = m.here + caller.frame_bytes
    if frame not in m.returns:
        m.returns[frame] = (np.zeros(m.count, np.int64), np.zeros(m.count, np.int64))
    blocks, frames = m.returns[frame]
    blocks[threads], frames[threads] = end.other, m.here
    stack = m.stack_pointer(m.here)[threads] + np.uint64(caller.local_bytes)
    m.stack_pointer(frame)[threads] = stack
    over = np.flatnonzero(stack + np.uint64(code.local_bytes) > m.top[threads])
    if len(over):
        deep = int(m.depth[threads[0]]) + 1
        raise m.trap(overflow(code.name, deep, m.local_bytes), threads[over[0]], end.where)
    m.depth[threads] += 1
    m.frame[threads] = frame
    m.pc[threads] = code.first


@ends("trap")
def trap(m: Machine, end: Terminator, threads: Threads) -> None:
    hit = threads[holds(m, end, threads)]
    if len(hit):
        raise m.trap("trap instruction", hit[0], end.where)
    m.pc[threads] = end.other


@ends("brkpt")
def breakpoint_(m: Machine, end: Terminator, threads: Threads) -> None:
    """Without a debugger a breakpoint does nothing."""
    m.pc[threads] = end.other


@ends("warpsync")
def warpsync(m: Machine, end: Terminator, threads: Threads) -> None:
    """Continue once all live lanes of the member mask have arrived; parked lanes try again."""
    assert end.index is not None
    here = (m.pc == m.pc[threads[0]]) & (m.frame == m.here) & ~m.blocked
    everyone = np.flatnonzero(here & np.isin(m.warp_of, m.warp_of[threads]))
    own = m.read(end.index, threads)
    strangers = np.flatnonzero(own >> (threads % LANES).astype(np.uint32) & np.uint32(1) == 0)
    if len(strangers):
        first = int(strangers[0])
        raise m.trap(no_member(int(threads[first]) % LANES, int(own[first])), threads[first], end.where,
                     cause=Cause.COLLECTIVE)  # fmt: skip
    mask = m.read(end.index, everyone)
    present = m.ballot(here)[m.warp_of[everyone]]
    alive = m.ballot(m.pc != GONE)[m.warp_of[everyone]]
    free = (mask & alive & ~present) == 0
    m.parked[everyone] = ~free
    m.pc[everyone[free]] = end.other


@ends("barrier")
def barrier(m: Machine, end: Terminator, threads: Threads) -> None:
    assert end.op is not None
    m.pc[threads] = end.other
    if end.op.kind == "cluster_barrier":
        cluster_barrier(m, end.op, threads)
    else:
        arrive(m, end.op, threads)
