"""Operations between the lanes of a warp: shfl, vote, match, redux, activemask, elect (9.7.9.6, 9.7.13)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptxtools.program.program import LANES, Op

from .machine import Machine
from .registry import Array, Threads, executes


def _members(m: Machine, op: Op, threads: Threads) -> Array:
    """For each thread, the participating lanes of its warp: the running ones, in the member mask if there is one."""
    running = m.active(threads)
    if op.opcode is None or not op.opcode.text.startswith(f"{op.kind}.sync"):
        return running
    mask = op.src[-1]
    assert mask is not None
    members: Array = running & m.read(mask, threads)
    return members


def _source(m: Machine, op: Op, position: int, threads: Threads) -> Array:
    ref = op.src[position]
    assert ref is not None
    value: Array = m.source(ref, op.src_types[position], threads)
    return value


@executes("shfl")
def shfl(m: Machine, op: Op, threads: Threads) -> None:
    """9.7.9.6: for a source lane that does not run, undefined in the manual, the thread keeps its value."""
    assert op.opcode is not None
    lane = threads % LANES
    b = _source(m, op, 1, threads).astype(np.int64) & 31
    c = _source(m, op, 2, threads).astype(np.int64)
    clamp, segment = c & 31, c >> 8 & 31
    highest = (lane & segment) | (clamp & ~segment)
    lowest = lane & segment
    if op.opcode.has("up"):
        wanted = lane - b
        inside = wanted >= highest
    elif op.opcode.has("down"):
        wanted = lane + b
        inside = wanted <= highest
    elif op.opcode.has("bfly"):
        wanted = lane ^ b
        inside = wanted <= highest
    else:
        wanted = lowest | (b & ~segment)
        inside = wanted <= highest
    wanted = np.where(inside, wanted, lane)
    value = op.src[0]
    assert value is not None
    source = threads - lane + wanted
    result = m.source(value, op.src_types[0], source)
    m.write(op.dst[0], result, op.dst_types[0], threads)
    if len(op.dst) > 1:
        m.write(op.dst[1], inside, "pred", threads)


@executes("vote")
def vote(m: Machine, op: Op, threads: Threads) -> None:
    """9.7.13: all, any, uni and ballot of the participating lanes."""
    assert op.opcode is not None
    flags = np.zeros(m.count, np.bool_)
    flags[threads] = _source(m, op, 0, threads)
    true = m.ballot(flags)[m.warp_of[threads]]
    members = _members(m, op, threads)
    true = true & members
    if op.opcode.has("ballot"):
        m.write(op.dst[0], true, "b32", threads)
    elif op.opcode.has("all"):
        m.write(op.dst[0], true == members, "pred", threads)
    elif op.opcode.has("any"):
        m.write(op.dst[0], true != 0, "pred", threads)
    else:
        m.write(op.dst[0], (true == 0) | (true == members), "pred", threads)


@executes("match")
def match(m: Machine, op: Op, threads: Threads) -> None:
    """match.any: lanes with the same value; match.all: all lanes if they agree, else none."""
    assert op.opcode is not None
    value = _source(m, op, 0, threads)
    members = _members(m, op, threads)
    whole = np.zeros(m.count, np.uint64)
    whole[threads] = value
    rows = whole.reshape(-1, LANES)[m.warp_of[threads]]
    same = np.packbits(rows == value.astype(np.uint64)[:, None], axis=1, bitorder="little").view(np.uint32).reshape(-1)
    same = same & members
    if op.opcode.has("all"):
        agree = same == members
        m.write(op.dst[0], np.where(agree, members, np.uint32(0)), "b32", threads)
        if len(op.dst) > 1:
            m.write(op.dst[1], agree, "pred", threads)
    else:
        m.write(op.dst[0], same, "b32", threads)


_REDUCTIONS: dict[str, Callable[[Array], object]] = {
    "add": lambda values: np.add.reduce(values, dtype=values.dtype),
    "min": np.min,
    "max": np.max,
    "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce,
}


@executes("redux")
def redux(m: Machine, op: Op, threads: Threads) -> None:
    """Reduce over the lanes of each thread's member mask."""
    assert op.opcode is not None
    value = _source(m, op, 0, threads)
    signed = op.src_types[0][0] == "s"
    numbers = value.view(np.int32) if signed else value
    reduction = next(_REDUCTIONS[name] for name in _REDUCTIONS if op.opcode.has(name))
    members = _members(m, op, threads)
    warps = m.warp_of[threads]
    lanes = threads % LANES
    result = np.zeros_like(numbers)
    for key in {(int(w), int(mask)) for w, mask in zip(warps, members, strict=True)}:
        warp, mask = key
        own = (warps == warp) & (mask >> lanes & 1).astype(np.bool_)
        same = (warps == warp) & (members == mask)
        result[same] = reduction(numbers[own])
    m.write(op.dst[0], result.view(np.uint32), op.dst_types[0], threads)


@executes("activemask")
def activemask(m: Machine, op: Op, threads: Threads) -> None:
    m.write(op.dst[0], m.active(threads), "b32", threads)


@executes("elect")
def elect(m: Machine, op: Op, threads: Threads) -> None:
    """elect.sync: the lowest lane of the member mask."""
    members = _members(m, op, threads)
    lowest = members & (~members + np.uint32(1))
    leader = m.algebra.sub("u32", m.algebra.const("u32", 31), m.algebra.leading_zeros("u32", lowest))
    m.write(op.dst[0], leader, "b32", threads)
    if len(op.dst) > 1:
        m.write(op.dst[1], leader == threads % LANES, "pred", threads)
