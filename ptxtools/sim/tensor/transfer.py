"""Moving data into, out of and inside tensor memory: tcgen05.ld, st, cp and shift (9.7.16.8, 9.7.16.9)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ptxtools.diagnostics import Cause
from ptxtools.isa import Opcode
from ptxtools.isa.descriptors import DescriptorError
from ptxtools.machine.claims import Span, chunks, mask_of
from ptxtools.machine.events import View, serves
from ptxtools.machine.residents import Cta
from ptxtools.program.details import NamedOperands
from ptxtools.sim.sparse import compress_floats

from . import queue, shared
from .layout import LANES
from .memory import cells_of, check_columns, partners, split
from .numbers import Array, unpack_containers
from .operands import number, registers, set_registers, uniform
from .queue import Work, issue

_WARP = 32


# --- ld and st --------------------------------------------------------------------------------------------------------


@lru_cache(256)
def places(shape: str, count: int) -> tuple[Array, Array]:
    """Lane and column, relative to the address, of each register of each thread: registers x 32 (9.7.16.2.3). Threads
    16 to 31 of 16x32bx2 count from a second address."""
    thread = np.arange(_WARP)[None, :]
    register = np.arange(count)[:, None]
    both = np.zeros((count, _WARP), np.intp)
    if shape == "32x32b":
        return thread + both, register + both
    if shape == "16x32bx2":
        return thread % 16 + both, register + both
    if shape == "16x64b":
        return thread // 4 % 8 + 8 * (thread % 2) + both, thread // 2 % 2 + 2 * register
    if shape == "16x128b":
        return thread // 4 + 8 * (register % 2), thread % 4 + 4 * (register // 2)
    return thread // 4 + 8 * (register // 2 % 2), 2 * (thread % 4) + register % 2 + 8 * (register // 4)


def _cells(view: View, packed: bool) -> tuple[Array, Array, Array]:
    """Cells of the CTA, and lane and column of the cell of each register (of its first cell if two are packed)."""
    op = view.op.opcode
    assert op is not None
    named = view.op.of(NamedOperands)
    shape = op.mods["shape"]
    if op.has("spcompress"):
        moved = int(op.mods["num"][1:])
    else:
        moved = (named.results if "r" in named.results else named.sources)["r"][1]
    lanes, columns = places(shape, moved)
    address = uniform(view, "taddr")
    lane, column = split(address)
    first = _WARP * (view.warp % 4)
    rows = 32 if shape == "32x32b" else 16
    if lane not in range(first, first + _WARP - rows + 1, 16):
        raise view.trap(f"{op.name} at lane {lane}: this warp accesses lanes {first} to {first + 31} of tensor memory, "
                        f"and .{shape} requires {rows} of them at a multiple of 16",
                        cause=Cause.TENSOR_MEMORY)  # fmt: skip
    width = 2 if packed else 1
    reach = width * (int(columns[-1].max()) + 1)
    cells = check_columns(view, view.cta, column, reach, op.name)
    if shape != "16x32bx2":
        return cells, lanes + lane, width * columns + column
    other = address + number(view, "immHalfSplitoff", view.leader) & 0xFFFF_FFFF
    second, further = split(other)
    if second not in (first, first + 16):
        raise view.trap(f"{op.name}: the second half begins at lane {second}; this warp accesses lanes {first} to "
                        f"{first + 31} of tensor memory", cause=Cause.TENSOR_MEMORY)  # fmt: skip
    check_columns(view, view.cta, further, reach, op.name)
    upper = np.arange(_WARP) >= 16
    return cells, lanes + np.where(upper, second, lane), width * columns + np.where(upper, further, column)


@serves("tcgen05.ld")
def load(view: View) -> None:
    """Cells to registers and, with .red, the minimum or maximum of those of each thread (9.7.16.8.3)."""
    op = view.op.opcode
    assert op is not None
    packed = op.has("pack::16b")
    cells, lanes, columns = _cells(view, packed)
    queue.load(view, lambda: _touched(view, lanes, columns, "read", packed))
    values = cells[lanes, columns]
    if packed:
        values = values & np.uint32(0xFFFF) | cells[lanes, columns + 1] << np.uint32(16)
    if op.has("spcompress"):
        words, kept = compress_floats(values, least=op.has("min"), magnitude=op.has("abs"))
        set_registers(view, "mdata", words)
        set_registers(view, "cdata", kept)
    else:
        set_registers(view, "r", values)
    if op.has("red"):
        set_registers(view, "redval", reduced(op, values)[None])


def reduced(op: Opcode, values: Array) -> Array:
    """tcgen05.ld.red: registers x 32 to 32 values, u32."""
    least = op.has("min")
    if op.type != "f32":
        typed = values.view(np.int32 if op.type == "s32" else np.uint32)
        found: Array = (typed.min(axis=0) if least else typed.max(axis=0)).view(np.uint32)
        return found
    if op.has("abs"):
        values = values & np.uint32(0x7FFF_FFFF)
    floats = values.view(np.float32)
    nan = np.isnan(floats)
    # Compared by bits, so that -0 is less than +0 (9.7.3.11).
    order = np.where(values >> np.uint32(31), ~values, values | np.uint32(0x8000_0000))
    order = np.where(nan, np.uint32(0xFFFF_FFFF if least else 0), order)
    best = order.min(axis=0) if least else order.max(axis=0)
    result = np.where(best >> np.uint32(31), best & np.uint32(0x7FFF_FFFF), ~best)
    wrong = nan.any(axis=0) if op.has("NaN") else nan.all(axis=0)
    return np.where(wrong, np.uint32(0x7FFF_FFFF), result).astype(np.uint32)


@serves("tcgen05.st")
def store(view: View) -> None:
    """Registers to cells (9.7.16.8.4). Unpacked halves leave the upper halves of their cells unchanged."""
    op = view.op.opcode
    assert op is not None
    unpacked = op.has("unpack::16b")
    cells, lanes, columns = _cells(view, unpacked)
    values = registers(view, "r")

    def work() -> None:
        if not unpacked:
            cells[lanes, columns] = values
            return
        high = np.uint32(0xFFFF_0000)
        cells[lanes, columns] = cells[lanes, columns] & high | values & ~high
        cells[lanes, columns + 1] = cells[lanes, columns + 1] & high | values >> np.uint32(16)

    queue.store(view, work, lambda: _touched(view, lanes, columns, "write", unpacked))


def _touched(view: View, lanes: Array, columns: Array, kind: str, packed: bool) -> Span:
    """Cells of the CTA that a load or store moves."""
    end = int(columns.max()) + 1 + packed
    return Span(view.cta, int(columns.min()), end, kind, tensor=True, lanes=mask_of(lanes))


# --- cp ---------------------------------------------------------------------------------------------------------------

#: Rows and 32-bit words of the source (table of 9.7.16.2.3), by shape.
_SHAPES = {"128x256b": (128, 8), "4x256b": (4, 8), "128x128b": (128, 4), "64x128b": (64, 4), "32x128b": (32, 4)}
_DECOMPRESSED = {"b6x16_p32": 6, "b4x16_p64": 4}


@lru_cache(16)
def copy_lanes(shape: str, multicast: str) -> Array:
    """Lanes that each row of the source is copied to: copies x rows."""
    row: Array = np.arange(_SHAPES[shape][0])
    copies = [0]
    if shape == "4x256b":
        row = 32 * row
    elif shape == "32x128b":
        copies = [0, 32, 64, 96]
    elif multicast == "warpx2::02_13":
        copies = [0, 64]
    elif multicast:
        row, copies = row % 32 + 64 * (row // 32), [0, 32]
    lanes: Array = np.add(row, np.array(copies)[:, None])
    return lanes


@serves("tcgen05.cp")
def copy(view: View) -> None:
    """Shared memory to tensor memory (9.7.16.9.2); with .cta_group::2 in both CTAs, each from its shared memory."""
    for lane in view.lanes():
        work, spans = copied(view, lane)
        issue(
            view, work, "tcgen05.cp", lane, spans,
            matrices=lambda spans=spans: [span for span in spans() if not span.tensor],  # type: ignore[misc]
        )  # fmt: skip


def copied(view: View, lane: int) -> tuple[Work, Callable[[], list[Span]]]:
    """A lane's copy, and what it reads and writes. Raises `Trap`."""
    op = view.op.opcode
    assert op is not None
    ctas = partners(view, int(op.mods["cta_group"][-1]), "tcgen05.cp", lane)
    address = number(view, "taddr", lane)
    shape = op.mods["shape"]
    rows, words = _SHAPES[shape]
    targets = copy_lanes(shape, op.mods.get("multicast", ""))
    first, column = split(address)
    if first + int(targets.max()) >= LANES:
        raise view.trap(
            f"tcgen05.cp to lane {first}: .{shape} extends past lane 127 of tensor memory",
            lane,
            cause=Cause.TENSOR_MEMORY,
        )
    try:
        descriptor = shared.tensor_descriptor(number(view, "s_desc", lane))
    except DescriptorError as problem:
        raise view.trap(f"s-desc: {problem}", lane, cause=Cause.DESCRIPTOR) from None
    bits = _DECOMPRESSED.get(op.mods.get("src_fmt", ""), 0)
    for cta in ctas:
        check_columns(view, cta, column, words, "tcgen05.cp", lane)

    def work() -> None:
        for cta in ctas:
            cells = cells_of(view, cta, column, words, "tcgen05.cp", lane)
            data = _source(view, cta, descriptor, rows, words, lane)
            if bits:
                data = unpack_containers(bits, data)
            cells[first + targets, column : column + words] = np.ascontiguousarray(data).view(np.uint32)[None]

    def spans() -> list[Span]:
        found = []
        for cta in ctas:
            numbers, _ = shared.chunk_numbers(descriptor, rows, words // 4, mn_major=False)
            found += chunks(cta, numbers)
            lanes = mask_of(first + targets)
            found.append(Span(cta, column, column + words, "write", tensor=True, lanes=lanes))
        return found

    return work, spans


def _source(view: View, cta: Cta, descriptor: shared.Descriptor, rows: int, words: int, lane: int) -> Array:
    memory = np.frombuffer(cta.shared, np.uint8)
    try:
        return shared.gather(memory, descriptor, rows, words // 4, mn_major=False)
    except DescriptorError as problem:
        raise view.trap(f"s-desc: {problem}", lane, cause=Cause.DESCRIPTOR) from None


# --- shift ------------------------------------------------------------------------------------------------------------

_SHIFTED = 8  # columns: 32 bytes


@serves("tcgen05.shift")
def shift(view: View) -> None:
    """Rows move down by one in each group of 32 lanes; the last row of a group stays (9.7.16.9.3). The manual leaves
    open the direction, and that all groups from the address on take part: see docs/tensor-cores.md."""
    for lane in view.lanes():
        work, spans = shifted(view, lane)
        issue(view, work, "tcgen05.shift", lane, spans)


def shifted(view: View, lane: int) -> tuple[Work, Callable[[], list[Span]]]:
    """A lane's shift, and what it reads and writes. Raises `Trap`."""
    op = view.op.opcode
    assert op is not None
    ctas = partners(view, int(op.mods["cta_group"][-1]), "tcgen05.shift", lane)
    first, column = split(number(view, "taddr", lane))
    if first % 32 or first >= LANES:
        raise view.trap(
            f"tcgen05.shift at lane {first}: the lane must be a multiple of 32 below 128",
            lane,
            cause=Cause.TENSOR_MEMORY,
        )

    for cta in ctas:
        check_columns(view, cta, column, _SHIFTED, "tcgen05.shift", lane)

    def work() -> None:
        for cta in ctas:
            cells = cells_of(view, cta, column, _SHIFTED, "tcgen05.shift", lane)
            block = cells[first:, column : column + _SHIFTED].reshape(-1, _WARP, _SHIFTED)
            block[:, :-1] = block[:, 1:].copy()
            cells[first:, column : column + _SHIFTED] = block.reshape(-1, _SHIFTED)

    def spans() -> list[Span]:
        lanes = mask_of(np.arange(first, LANES))
        return [Span(cta, column, column + _SHIFTED, kind, tensor=True, lanes=lanes)
                for cta in ctas for kind in ("read", "write")]  # fmt: skip

    return work, spans
