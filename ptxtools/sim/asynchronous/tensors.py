"""Tensor copies and reductions (9.7.9.25.5), and tensor maps that kernels change (9.7.9.26, 9.7.13.16)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import numpy as np

from ptxtools.diagnostics import Cause
from ptxtools.machine.claims import Span, span_of_rows
from ptxtools.machine.events import View, serves
from ptxtools.machine.residents import Cta
from ptxtools.program.program import OFFSET_MASK, RANK_SHIFT
from ptxtools.sim import accesses
from ptxtools.sim.tensormap import BYTES, TensorMap, TensorMapError
from ptxtools.sim.tensormap.boxes import Memory, Region
from ptxtools.sim.tensormap.descriptor import ALIGNMENT
from ptxtools.sim.tensormap.fields import replace
from ptxtools.sim.tensormap.modes import region
from ptxtools.sim.tensormap.swizzle import ROW
from ptxtools.sim.tensormap.tiles import check_reduction, check_store, layout, load, take

from .barriers import Barrier, barrier_at
from .bulk import signal
from .operands import Array, Operands, bytes_of, targets, tell_of_sending
from .queue import Step, queue_of
from .reductions import update_of
from .signals import barrier_of_target

T = TypeVar("T")


def _trapping(view: View, lane: int, function: Callable[[], T]) -> T:
    """The function's value; what is wrong with a tensor map is a trap of the lane."""
    try:
        return function()
    except TensorMapError as error:
        raise view.trap(f"tensor copy: {error}", lane, cause=Cause.DESCRIPTOR) from None


def _tell(view: View, lane: int, address: int, what: str) -> None:
    """Tell who listens of a tensor map."""
    if view.launch.observers is not None:
        view.launch.observers.tell("tensormap", view, lane, address, what)


def _map(view: View, operands: Operands, lane: int) -> TensorMap:
    """The tensor map, as it is in memory now. Raises `Trap`."""
    data = operands.memory("tensorMap", lane, BYTES, write=False, align=ALIGNMENT).tobytes()
    _tell(view, lane, operands.one("tensorMap", lane), "used")

    def decode() -> TensorMap:
        if not operands.has("gAddrToOverride"):
            return _decoded(data)
        map_ = _overridden(TensorMap.decode(data), operands, lane)
        map_.check()
        return map_

    return _trapping(view, lane, decode)


@lru_cache(maxsize=64)
def _decoded(data: bytes) -> TensorMap:
    """A checked map, which is not to be changed: most copies of a kernel use a few. Raises `TensorMapError`."""
    map_ = TensorMap.decode(data)
    map_.check()
    return map_


def _overridden(map_: TensorMap, operands: Operands, lane: int) -> TensorMap:
    """The map with what the instruction gives in its place (9.7.10.28.5.2 of PTX 9.4): address, dimensions, strides."""
    address = operands.one("gAddrToOverride", lane)
    if address % 16:
        raise TensorMapError(f"the address {address:#x} in place of the map's is no multiple of 16")
    if not operands.has("tensorSizeToOverride"):
        return dataclasses.replace(map_, address=address)
    if any(operands.vector("tensorCoords", lane)):
        raise TensorMapError("with dimensions in place of the map's, all coordinates must be zero")
    shape = tuple(size & 0xFF for size in operands.vector("tensorSizeToOverride", lane))
    upper = operands.one("tensorUpperStrideToOverride", lane) if operands.has("tensorUpperStrideToOverride") else 0
    lower = enumerate(operands.vector("tensorLowerStrideToOverride", lane))
    strides = tuple((low + ((upper >> 4 * place & 15) << 32)) << 4 for place, low in lower)
    if len(shape) != map_.rank:
        raise TensorMapError(f"{len(shape)} dimensions in place of the map's {map_.rank}")
    return dataclasses.replace(map_, address=address, shape=shape, strides=strides)


def _memory(view: View, lane: int) -> Memory:
    """Global memory for a lane's copy."""

    def memory(address: int, size: int, write: bool) -> Array:
        return np.frombuffer(view.memory(address, size, "global", lane=lane, write=write), np.uint8)

    return memory


@serves("bulk.tensor")
def copy(view: View) -> None:
    operands, opcode = Operands(view), view.op.opcode
    assert opcode is not None
    mode = opcode.mods.get("load_mode", "tile")
    loads, operation = operands.has("mbar"), opcode.mods.get("redOp")
    for lane in view.lanes() if loads or operation is not None else operands.distinct(view.lanes()):
        map_ = _map(view, operands, lane)
        coordinates = operands.vector("tensorCoords", lane, signed=True)
        offsets = operands.vector("im2colInfo", lane)

        def box(map_: TensorMap = map_, at: list[int] = coordinates, offsets: list[int] = offsets) -> Region:
            if not loads:
                check_store(map_)
            if operation is not None:
                check_reduction(map_, operation)
            return region(map_, mode, at, offsets)

        found = _trapping(view, lane, box)
        if loads:
            _to_shared(view, operands, lane, map_, found)
        else:
            _to_global(view, operands, lane, map_, found)


def _to_shared(view: View, operands: Operands, lane: int, map_: TensorMap, box: Region) -> None:
    size, whole = box.bytes, layout(map_, box).extent
    cta, offset = operands.shared("dstMem", lane, whole, align=ROW)
    barrier = barrier_at(view, operands.one("mbar", lane), lane, operands.spaces["mbar"])
    opcode = view.op.opcode
    pair = opcode is not None and opcode.has("cta_group::2")
    multicast = operands.has("ctaMask")
    _check_barrier(view, lane, cta, barrier, pair)

    def run() -> None:
        for target in targets(view, operands, lane, cta):
            load(map_, box, _memory(view, lane), bytes_of(target, offset, whole), offset)
            own = barrier_of_target(target.rank, barrier, pair) if multicast else barrier
            signal(view, lane, own, size)()

    text = f"a tensor copy of {size} bytes to shared {offset:#x}, for the mbarrier at {barrier}"

    def spans() -> list[list[Span]]:
        written = [Span(c, offset, offset + whole, "write") for c in targets(view, operands, lane, cta)]
        return [[*written, *span_of_rows(*box.pieces(), "read")]]

    queue_of(view).submit(view, lane, [run], text, spans)


def _check_barrier(view: View, lane: int, cta: Cta, barrier: Barrier, pair: bool) -> None:
    """The mbarrier is in the CTA of the destination, with .cta_group::2 in its pair (9.7.9.25.5.2). Raises `Trap`."""
    ranks = cta.rank, barrier.cta.rank
    if ranks[0] // 2 != ranks[1] // 2 if pair else ranks[0] != ranks[1]:
        where = "pair" if pair else "CTA"
        raise view.trap(
            f"the mbarrier at {barrier} is not in the {where} of the destination, CTA rank {cta.rank}",
            lane,
            cause=Cause.MBARRIER,
        )


def _to_global(view: View, operands: Operands, lane: int, map_: TensorMap, box: Region) -> None:
    opcode = view.op.opcode
    assert opcode is not None
    places = layout(map_, box, store=True)
    size, whole = box.bytes, places.extent
    cta, offset = operands.shared("srcMem", lane, whole, align=ROW, write=False)
    update = None
    if "redOp" in opcode.mods:
        type_, _, flushes = map_.type.name.partition(".")
        update = update_of(view, opcode.mods["redOp"], type_, flushes=bool(flushes))
    taken: list[Array] = []

    def read() -> None:
        taken.append(take(map_, box, np.frombuffer(cta.shared[offset : offset + whole], np.uint8), offset).copy())

    starts, row = box.pieces()
    if len(starts) * row == size:  # of what lies outside of the tensor nothing is copied
        tell_of_sending(view, lane, cta, lambda shared: places.gather(shared[offset : offset + whole], offset))

    def write() -> None:
        if update is None:
            box.store(_memory(view, lane), taken[0])
        else:
            box.change(_memory(view, lane), taken[0], update)

    steps: list[Step] = [read, write]
    text = f"a tensor copy of {size} bytes from shared {offset:#x}"

    def spans() -> list[list[Span]]:
        kind = "write" if update is None else "reduce"
        return [[Span(cta, offset, offset + whole, "read")], span_of_rows(*box.pieces(), kind)]

    queue_of(view).submit(view, lane, steps, text, spans)


# --- tensor maps ------------------------------------------------------------------------------------------------------


@serves("tensormap.replace")
def change_map(view: View) -> None:
    operands, opcode = Operands(view), view.op.opcode
    assert opcode is not None
    field = opcode.mods["field"]
    for lane in view.lanes():
        place = operands.memory("addr", lane, BYTES, write=True, align=ALIGNMENT)
        value = operands.one("new_val", lane)
        if operands.has("shift"):
            value <<= operands.one("shift", lane)
        if field == "swizzle_mode" and value > 3:
            raise view.trap(f"swizzle mode {value} is not simulated: its layout is not published", lane)
        dimension = operands.one("ord", lane) if operands.has("ord") else 0
        space, found = view.resolve(operands.one("addr", lane), operands.spaces["addr"])
        if space == "shared":
            found = view.shared_owner(found, lane=lane).rank << RANK_SHIFT | found & OFFSET_MASK
        accesses.tell(view, space, "write", BYTES, [lane], [found])
        replace(place, field, dimension, value)
        _tell(view, lane, operands.one("addr", lane), "changed")


@serves("tensormap.copy")
def copy_map(view: View) -> None:
    """tensormap.cp_fenceproxy: the warp copies one map (9.7.13.16)."""
    operands, lane = Operands(view), view.leader
    source = operands.memory("src", lane, BYTES, write=False, align=ALIGNMENT)
    operands.memory("dst", lane, BYTES, write=True, align=ALIGNMENT)[:] = source
    _tell(view, lane, operands.one("dst", lane), "changed")
