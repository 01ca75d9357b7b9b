"""Operands of the events of the tensor cores, by the names of the manual."""

from __future__ import annotations

import numpy as np

from ptxtools.diagnostics import Cause
from ptxtools.machine.events import View
from ptxtools.program.details import NamedOperands
from ptxtools.program.program import Ref

from .numbers import Array


def number(view: View, name: str, lane: int) -> int:
    """An operand of a lane, without sign; addresses with their constant."""
    named = view.op.of(NamedOperands)
    ref = view.op.src[named.sources[name][0]]
    value: int = 0 if ref is None else view.read(ref, lane)
    offset: int | None = named.offsets.get(name)
    if offset is None:
        return value
    wide = named.spaces[name] != "tensor" and (ref is None or ref.type == "b64")
    return value + offset & (0xFFFF_FFFF_FFFF_FFFF if wide else 0xFFFF_FFFF)


def place(view: View, name: str) -> Ref | None:
    """The slot of an operand of one register, if it has one and nothing is added to it."""
    named = view.op.of(NamedOperands)
    ref: Ref | None = view.op.src[named.sources[name][0]]
    return None if named.offsets.get(name) else ref


def has(view: View, name: str) -> bool:
    """Whether an operand is written."""
    return name in view.op.of(NamedOperands).sources


def vector(view: View, name: str, lane: int) -> list[int]:
    """The elements of a vector operand of a lane."""
    first, count = view.op.of(NamedOperands).sources[name]
    return [view.read(ref, lane) for ref in view.op.src[first : first + count] if ref is not None]


def _slots(view: View, table: dict[str, tuple[int, int]], name: str) -> tuple[Array, Array]:
    """Slots of a vector of 32-bit registers, and which elements they are of; sinks have none. Found once."""
    named = view.op.of(NamedOperands)
    result = table is named.results
    known = named.known.get((name, result))
    if known is None:
        first, count = table[name]
        refs = (view.op.dst if result else view.op.src)[first : first + count]
        some = [(index, ref.slot) for index, ref in enumerate(refs) if ref is not None]
        known = named.known[name, result] = (np.array([s for _, s in some], np.int64), np.array([i for i, _ in some]))
    return known


def registers(view: View, name: str) -> Array:
    """The 32-bit registers of a vector operand: registers x 32 lanes, u32."""
    return view.block(_slots(view, view.op.of(NamedOperands).sources, name)[0])


def slots(view: View, name: str) -> Array:
    """Slots of a vector of 32-bit registers that is read and written in place."""
    return _slots(view, view.op.of(NamedOperands).sources, name)[0]


def set_registers(view: View, name: str, values: Array) -> None:
    """Write a vector of 32-bit registers: registers x 32 lanes, u32."""
    slots, elements = _slots(view, view.op.of(NamedOperands).results, name)
    view.set_block(slots, values if len(slots) == len(values) else values[elements])


def uniform(view: View, name: str) -> int:
    """An operand that must be the same in all lanes. Raises `Trap`."""
    named = view.op.of(NamedOperands)
    ref = view.op.src[named.sources[name][0]]
    if ref is not None:
        values = view.values(ref)
        first = values[view.leader]
        if not all(values[lane] == first for lane in view.lanes()):
            raise view.trap(f"'{name}' differs between the threads of the warp", cause=Cause.COLLECTIVE)
    return number(view, name, view.leader)
