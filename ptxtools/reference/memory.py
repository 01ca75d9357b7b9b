"""Loads, stores and atomics: state spaces, windows of the generic space, bounds and alignment (9.7.9.8 and on)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ptxtools import semantics
from ptxtools.diagnostics import Cause
from ptxtools.program.program import LOCAL_WINDOW, OFFSET_MASK, PARAM_WINDOW, RANK_SHIFT, SHARED_WINDOW, Op

from .buffers import Buffer
from .machine import Machine, element_bytes
from .registry import Array, Threads, executes

_WINDOWS = {SHARED_WINDOW >> 56: "cluster", LOCAL_WINDOW >> 56: "local", PARAM_WINDOW >> 56: "param"}
_OFFSET = np.uint64((1 << 56) - 1)


class Part:
    """Threads (indices in the list of running threads) whose addresses are in one buffer, and their offsets there."""

    __slots__ = ("buffer", "offsets", "places")

    def __init__(self, buffer: Buffer, places: Array, offsets: Array) -> None:
        self.buffer, self.places, self.offsets = buffer, places, offsets


def addresses(m: Machine, op: Op, threads: Threads) -> Array:
    """The byte address of each thread, modulo 2**64."""
    base = op.src[0]
    offset = np.uint64(op.imm & (1 << 64) - 1)
    if base is None:
        return np.full(len(threads), offset, np.uint64)
    value: Array = m.read(base, threads).astype(np.uint64) + offset
    if op.src_types[0] == "u32":
        value &= np.uint64(0xFFFF_FFFF)
    return value


def check_alignment(m: Machine, op: Op, threads: Threads, address: Array, size: int) -> None:
    """Trap for an address that is no multiple of `size`."""
    misaligned = np.flatnonzero(address & np.uint64(size - 1))
    if len(misaligned):
        first = int(misaligned[0])
        reason = f"address {int(address[first]):#x} is not aligned to {size} bytes"
        raise m.trap(reason, threads[first], op.where, cause=Cause.MISALIGNED)


def parts(m: Machine, op: Op, threads: Threads, size: int, *, write: bool) -> Iterator[Part]:
    """Split by state space, checked: each access covers `size` bytes, at a multiple of `size`."""
    address = addresses(m, op, threads)
    check_alignment(m, op, threads, address, size)
    everyone = np.arange(len(threads))
    if op.space != "generic":
        yield _in_space(m, op, threads, everyone, address, op.space, size, write)
        return
    window = (address >> np.uint64(56)).astype(np.int64)
    for number in np.unique(window):
        places = everyone[window == number]
        space = _WINDOWS.get(int(number), "global")
        inside = address[places] if space == "global" else address[places] & _OFFSET
        yield _in_space(m, op, threads, places, inside, space, size, write)


def _in_space(
    m: Machine, op: Op, threads: Threads, places: Array, address: Array, space: str, size: int, write: bool
) -> Part:
    chosen = threads[places]
    if space in ("global", "const"):
        memory = m.launch.memory
        offset = address - np.uint64(memory.base)
        if memory.open_host:
            return _open(m, op, chosen, places, address, offset, size, write)
        _check(m, op, chosen, address, offset, m.memory.size, size, write, space)
        return Part(m.memory, places, offset.astype(np.int64))
    if space in ("shared", "cluster"):
        slots = m.slot_of[chosen]
        offset = address
        if space == "cluster" and m.program.clustered:
            slots, offset = _owners(m, slots, address)
        _check(m, op, chosen, address, offset, m.shared_bytes, size, write, "shared")
        return Part(m.shared, places, offset.astype(np.int64) + slots * m.shared_stride)
    if space == "local":
        _check(m, op, chosen, address, address, m.local_bytes, size, write, space)
        return Part(m.local, places, address.astype(np.int64) + chosen * m.local_bytes)
    if write:
        raise m.trap("kernel parameters cannot be written", chosen[0], op.where)
    _check(m, op, chosen, address, address, m.params.size, size, write, space)
    return Part(m.params, places, address.astype(np.int64))


def _owners(m: Machine, slots: Array, address: Array) -> tuple[Array, Array]:
    """Slots of the CTAs whose shared memory is addressed, and offsets in it; an excessive rank is out of bounds."""
    rank = (address >> np.uint64(RANK_SHIFT)).astype(np.int64)
    offset = np.where(rank < m.cluster, address & np.uint64(OFFSET_MASK), address)
    return np.where(rank < m.cluster, slots // m.cluster * m.cluster + rank, slots), offset


def _check(
    m: Machine, op: Op, threads: Threads, address: Array, offset: Array, limit: int, size: int, write: bool, space: str
) -> None:
    bad = np.flatnonzero(offset > np.uint64(limit - size)) if limit >= size else np.arange(len(threads))
    if len(bad):
        first = int(bad[0])
        action = "write" if write else "read"
        where = f"{space} {action} of {size} bytes at {int(address[first]):#x} is out of bounds"
        raise m.trap(where, threads[first], op.where, cause=Cause.OUT_OF_BOUNDS, space=space)


def _open(
    m: Machine, op: Op, threads: Threads, places: Array, address: Array, offset: Array, size: int, write: bool
) -> Part:
    """Host memory is open to the kernel (`ptx_run`): each address outside the arena is checked."""
    outside = offset > np.uint64(max(0, m.memory.size - size))
    readable = m.launch.memory.readable
    for place in np.flatnonzero(outside):
        if readable is None or not readable(int(address[place]), size, write):
            reason = f"access to {size} bytes at {int(address[place]):#x} is out of bounds"
            raise m.trap(reason, threads[place], op.where, cause=Cause.OUT_OF_BOUNDS, space="global")
    if not outside.any():
        return Part(m.memory, places, offset.astype(np.int64))
    host = address.copy()
    host[~outside] += np.uint64((m.launch.memory.host - m.launch.memory.base) & (1 << 64) - 1)
    low = int(host.min())
    buffer = Buffer.at(low, int(host.max()) - low + size)
    return Part(buffer, places, (host - np.uint64(low)).astype(np.int64))


# --- loads and stores -------------------------------------------------------------------------------------------------


@executes("ld")
def load(m: Machine, op: Op, threads: Threads) -> None:
    """Elements follow each other in memory; the whole vector is aligned to its size (6.4.1)."""
    if m.weak is not None and m.weak.serves(op):
        m.weak.load(m, op, threads)
        return
    count = len(op.dst)
    size = element_bytes(op.dst_types[0])
    values = [empty(size, len(threads)) for _ in range(count)]
    for part in parts(m, op, threads, size * count, write=False):
        for number in range(count):
            load_into(values[number], part, size, number)
    for number in range(count):
        m.write(op.dst[number], narrow(m, values[number], op.dst_types[number]), op.dst_types[number], threads)


def empty(size: int, count: int) -> Any:
    if size == 16:
        return (np.zeros(count, np.uint64), np.zeros(count, np.uint64))
    return np.zeros(count, {1: np.uint16, 2: np.uint16, 4: np.uint32, 8: np.uint64}[size])


def load_into(values: Any, part: Part, size: int, number: int) -> None:
    offsets = part.offsets + size * number
    if size == 16:
        values[0][part.places] = part.buffer.load(offsets, 8)
        values[1][part.places] = part.buffer.load(offsets + 8, 8)
    else:
        values[part.places] = part.buffer.load(offsets, size)


def narrow(m: Machine, value: Any, type_name: str) -> Any:
    """8-bit values are extended inside their 16-bit words."""
    return m.algebra.adapt(value, "b16", type_name) if element_bytes(type_name) == 1 else value


@executes("st")
def store(m: Machine, op: Op, threads: Threads) -> None:
    if m.weak is not None and m.weak.serves(op):
        m.weak.store(m, op, threads)
        return
    count = len(op.src) - 1
    size = element_bytes(op.src_types[1])
    values = {}  # by place: `_` leaves one out
    for number, ref in enumerate(op.src[1:]):
        if ref is not None:
            values[number] = m.source(ref, op.src_types[number + 1], threads)
    for part in parts(m, op, threads, size * count, write=True):
        for number, value in values.items():
            offsets = part.offsets + size * number
            if size == 16:
                part.buffer.store(offsets, 8, value[0][part.places])
                part.buffer.store(offsets + 8, 8, value[1][part.places])
            else:
                part.buffer.store(offsets, size, value[part.places])


# --- atomics ----------------------------------------------------------------------------------------------------------


@executes("atom", "red")
def atomic(m: Machine, op: Op, threads: Threads) -> None:
    """Threads with the same address take effect one after the other, in the order of their numbers."""
    if m.weak is not None and m.weak.serves(op):
        m.weak.atomic(m, op, threads)
        return
    assert op.opcode is not None
    type_name = op.src_types[1]
    size = element_bytes(type_name)
    lanes = max(1, len(op.dst))
    if op.kind == "red":
        lanes = len(op.src) - 1
    sources = zip(op.src[1:], op.src_types[1:], strict=True)
    operands = [m.source(ref, t, threads) for ref, t in sources if ref is not None]
    vector = lanes if op.opcode.has("v2") or op.opcode.has("v4") or op.opcode.has("v8") else 1
    rule = semantics.atomic_rule(op.opcode)
    assert rule is not None
    olds = [empty(size, len(threads)) for _ in range(vector)]
    for part in parts(m, op, threads, size * vector, write=True):
        update(m, part, size, operands, olds, type_name, rule)
    for ref, t, old in zip(op.dst, op.dst_types, olds, strict=False):
        m.write(ref, old, t, threads)


def update(
    m: Machine, part: Part, size: int, operands: list[Any], olds: list[Any], type_name: str, rule: Callable[..., Any]
) -> None:
    """All elements of an atomic operation in one part, with operands of their own if there are several; old values go
    to `olds`, an array for each element."""
    for number, old in enumerate(olds):
        own = [operands[number]] if len(olds) > 1 else operands
        chosen = [take(value, part.places) for value in own]
        found = _one_by_one(m, part.buffer, part.offsets + size * number, size, chosen, type_name, rule)
        _put(old, part.places, found)


def take(value: Any, places: Array) -> Any:
    return (value[0][places], value[1][places]) if isinstance(value, tuple) else value[places]


def _put(target: Any, places: Array, value: Any) -> None:
    if isinstance(target, tuple):
        target[0][places], target[1][places] = value
    else:
        target[places] = value


def _one_by_one(
    m: Machine, buffer: Buffer, offsets: Array, size: int, operands: list[Any], type_name: str, rule: Callable[..., Any]
) -> Any:
    """In each round the first remaining thread at each address; returns the old values."""
    found = empty(size, len(offsets))
    for first in _turns(offsets):
        at = offsets[first]
        old = (buffer.load(at, 8), buffer.load(at + 8, 8)) if size == 16 else buffer.load(at, size)
        new = rule(m.algebra, type_name, old, *[take(value, first) for value in operands])
        _put(found, first, old)
        if size == 16:
            buffer.store(at, 8, new[0])
            buffer.store(at + 8, 8, new[1])
        else:
            buffer.store(at, size, new)
    return found


def _turns(offsets: Array) -> list[Array]:
    """Numbers of the first thread at each address, then of the second ones, and so on."""
    order = np.argsort(offsets, kind="stable")
    same = np.diff(offsets[order]) == 0
    if not same.any():
        return [order]
    place = np.arange(len(order))
    turn = place - np.maximum.accumulate(np.where(np.append(False, same), 0, place))
    return [order[turn == number] for number in range(int(turn.max()) + 1)]


@executes("fence")
def fence(m: Machine, op: Op, threads: Threads) -> None:
    """Accesses take effect in program order here, unless memory is weak."""
    if m.weak is not None:
        m.weak.fence(op, threads)
