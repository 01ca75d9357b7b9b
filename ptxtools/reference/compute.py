"""Operations on registers: scalar semantics, copies, packing, special registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptxtools import semantics
from ptxtools.machine.launch import launch_special
from ptxtools.program.details import Constant, SpecialRegister, Suffixes, Truncated
from ptxtools.program.program import LANES, RANK_SHIFT, Op, is_launch_special

from .machine import Machine
from .registry import Array, Threads, executes


@executes("alu")
def alu(m: Machine, op: Op, threads: Threads) -> None:
    assert op.opcode is not None
    meaning = semantics.find(op.opcode)
    assert meaning is not None
    inputs = [m.source(ref, t, threads) for ref, t in zip(op.src, op.src_types, strict=True) if ref is not None]
    options: dict[str, Any] = {}
    if isinstance(op.detail, Constant):
        inputs[op.detail.place] = op.detail.value
    elif isinstance(op.detail, Truncated):
        options["truncated"] = True
    elif isinstance(op.detail, Suffixes):
        options["selectors"] = op.detail.selectors()
    outputs = meaning(m.algebra, op.opcode, *inputs, **options)
    for ref, t, value in zip(op.dst, op.dst_types, outputs, strict=False):
        m.write(ref, value, t, threads)


@executes("copy")
def copy(m: Machine, op: Op, threads: Threads) -> None:
    source = op.src[0]
    assert source is not None
    m.write(op.dst[0], m.read(source, threads), source.type, threads)


@executes("pack")
def pack(m: Machine, op: Op, threads: Threads) -> None:
    values = [m.source(ref, t, threads) for ref, t in zip(op.src, op.src_types, strict=True) if ref is not None]
    m.write(op.dst[0], m.algebra.pack(op.src_types[0], values), op.dst_types[0], threads)


@executes("unpack")
def unpack(m: Machine, op: Op, threads: Threads) -> None:
    source = op.src[0]
    assert source is not None
    whole = m.source(source, op.src_types[0], threads)
    values = m.algebra.unpack(op.dst_types[0], len(op.dst), whole)
    for ref, t, value in zip(op.dst, op.dst_types, values, strict=True):
        m.write(ref, value, t, threads)


@executes("sreg")
def special_register(m: Machine, op: Op, threads: Threads) -> None:
    """A special register (chapter 10), cut or extended to the type that the instruction reads it as."""
    value = special(m, op.of(SpecialRegister).name, threads)
    if op.dst_types[0] == "pred":
        m.write(op.dst[0], value != 0, "pred", threads)
        return
    bits = {"b16": 16, "b32": 32, "b64": 64}[op.dst[0].type if op.dst[0] is not None else "b32"]
    cut = value.astype({16: np.uint16, 32: np.uint32, 64: np.uint64}[bits])
    m.write(op.dst[0], cut, f"u{bits}", threads)


def special(m: Machine, name: str, threads: Threads) -> Array:
    """Values of a special register as uint64."""
    base, _, component = name.partition(".")
    m.timed |= base.startswith(("%clock", "%globaltimer"))
    axis = "xyzw".find(component) if component else 0
    value: Any
    if name in m.launch.specials:
        value = m.launch.specials[name]
    elif is_launch_special(name):
        value = launch_special(m.launch, name)
    elif axis == 3:
        value = 0
    elif base in _BY_AXIS:
        value = _BY_AXIS[base](m, threads, axis)
    elif base in _SINGLE:
        value = _SINGLE[base](m, threads)
    else:
        value = 0
    return np.broadcast_to(np.asarray(value, np.uint64), len(threads)).copy()


def _coordinate(linear: Array, shape: tuple[int, int, int], axis: int) -> Array:
    x, y, _ = shape
    result: Array = (linear % x, linear // x % y, linear // (x * y))[axis]
    return result


def _ctaid(m: Machine, threads: Threads, axis: int) -> Array:
    return _coordinate(m.cta_of_slot[m.slot_of[threads]], m.launch.grid, axis)


def _cluster_cta(m: Machine, threads: Threads, axis: int) -> Array:
    result: Array = _ctaid(m, threads, axis) % m.launch.cluster[axis]
    return result


def _cluster_rank(m: Machine, threads: Threads) -> Array:
    x, y, _ = m.launch.cluster
    i, j, k = (_cluster_cta(m, threads, axis) for axis in range(3))
    rank: Array = i + x * (j + y * k)
    return rank


def _lane(m: Machine, threads: Threads) -> Array:
    result: Array = (threads % LANES).astype(np.uint64)
    return result


def _clock(m: Machine, threads: Threads) -> int:
    return m.now()


_ONE = np.uint64(1)
_BY_AXIS: dict[str, Callable[[Machine, Threads, int], Any]] = {
    "%tid": lambda m, threads, axis: _coordinate(m.thread_of[threads], m.launch.block, axis),
    "%ctaid": _ctaid,
    "%cluster_ctaid": _cluster_cta,
    "%clusterid": lambda m, threads, axis: _ctaid(m, threads, axis) // m.launch.cluster[axis],
    "%nclusterid": lambda m, threads, axis: m.launch.grid[axis] // m.launch.cluster[axis],
}
_SINGLE: dict[str, Callable[[Machine, Threads], Any]] = {
    "%laneid": _lane,
    "%warpid": lambda m, threads: m.thread_of[threads] // LANES,
    "%nwarpid": lambda m, threads: m.warps,
    "%smid": lambda m, threads: m.slot_of[threads] % m.launch.sms,
    "%nsmid": lambda m, threads: m.launch.sms,
    "%cluster_ctarank": _cluster_rank,
    "%cta_window": lambda m, threads: m.slot_of[threads] % m.cluster << RANK_SHIFT,
    "%lanemask_eq": lambda m, threads: _ONE << _lane(m, threads),
    "%lanemask_lt": lambda m, threads: (_ONE << _lane(m, threads)) - _ONE,
    "%lanemask_le": lambda m, threads: (np.uint64(2) << _lane(m, threads)) - _ONE,
    "%lanemask_gt": lambda m, threads: np.uint64(0xFFFF_FFFF) - ((np.uint64(2) << _lane(m, threads)) - _ONE),
    "%lanemask_ge": lambda m, threads: np.uint64(0xFFFF_FFFF) - ((_ONE << _lane(m, threads)) - _ONE),
    "%clock": _clock,
    "%clock64": _clock,
    "%clock_hi": lambda m, threads: _clock(m, threads) >> 32,
    "%globaltimer": lambda m, threads: m.epoch + m.now(),
    "%globaltimer_lo": lambda m, threads: m.epoch + m.now() & 0xFFFF_FFFF,
    "%globaltimer_hi": lambda m, threads: m.epoch + m.now() >> 32,
    "%total_smem_size": lambda m, threads: m.shared_bytes,
}
