"""From where the native code stopped to a `Trap`: kernel, CTA, thread, instruction and reason."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from ptxtools.diagnostics import Trap
from ptxtools.engine.native import structures
from ptxtools.engine.native.keys import RECORD_BYTES
from ptxtools.engine.native.structures import CTA, WARP

if TYPE_CHECKING:
    from ptxtools.engine.grid import Dim3, Launch
    from ptxtools.engine.native.worker import Worker
    from ptxtools.engine.program import Op

_WIDTHS = {"i32": 4, "i64": 8, "ptr": 8}
BARRIERS = 16


def _read(address: int, size: int) -> int:
    return int.from_bytes(ctypes.string_at(address, size), "little")


def warp_field(warp: int, name: str) -> int:
    """A field of a warp, by the warp's address."""
    offset, type_ = WARP.fields[name]
    return _read(warp + offset, _WIDTHS[type_])


def cta_field(cta: int, name: str) -> int:
    """A field of a CTA, by its address."""
    offset, type_ = CTA.fields[name]
    return _read(cta + offset, _WIDTHS[type_])


def record_of(worker: Worker, ip: int) -> int:
    """Number of the record at an address."""
    return (ip - ctypes.addressof(worker.encoded.code)) // RECORD_BYTES


def where_of(worker: Worker, ip: int) -> int:
    """Index into the program's lines of the record at an address, or -1."""
    record = record_of(worker, ip)
    return worker.encoded.where[record] if 0 <= record < len(worker.encoded.where) else -1


def _thread(launch: Launch, warp: int, lane: int) -> Dim3:
    x, y, _ = launch.block
    linear = 32 * warp_field(warp, "id") + lane
    return linear % x, linear // x % y, linear // (x * y)


def _cta(warp: int) -> Dim3:
    cta = warp_field(warp, "cta")
    return cta_field(cta, "x"), cta_field(cta, "y"), cta_field(cta, "z")


def _make(worker: Worker, reason: str, warp: int, mask: int, ip: int, kind: str, details: tuple[str, ...]) -> Trap:
    program = worker.launch.program
    where = where_of(worker, ip)
    lane = (mask & -mask).bit_length() - 1 if mask else 0
    return Trap(
        reason, kernel=program.kernel, cta=_cta(warp), thread=_thread(worker.launch, warp, lane), kind=kind,
        text=program.lines[where][2] if 0 <= where < len(program.lines) else "", where=where if where >= 0 else None,
        details=details,
    )  # fmt: skip


def trap(worker: Worker) -> Trap:
    """The trap that the worker's native code reported."""
    code, address = worker.get("stop_code"), worker.get("stop_address")
    reason = {
        structures.TRAP_INSTRUCTION: "trap instruction",
        structures.TRAP_ADDRESS: f"access at {address:#x} is out of bounds",
        structures.TRAP_MISALIGNED: f"address {address:#x} is not aligned",
        structures.TRAP_STACK: "stack overflow",
        structures.TRAP_BARRIER: "barrier number above 15, or a thread count that is not a multiple of 32",
        structures.TRAP_CALL: "call to an address that is no function",
        structures.TRAP_SWITCH: "branch index is beyond the targets",
    }[code]
    return _make(worker, reason, worker.get("stop_warp"), worker.get("stop_mask"), worker.get("stop_ip"), "trap", ())


def unsupported(worker: Worker, op: Op) -> Trap:
    """An event that nobody serves."""
    name = op.detail if isinstance(op.detail, str) else op.kind
    return _make(
        worker, f"{name} is not supported yet", worker.get("stop_warp"), worker.get("stop_mask"),
        worker.get("stop_ip"), "trap", (),
    )  # fmt: skip


def _current_cta(worker: Worker) -> int:
    return worker.get("slots") + worker.get("slot_current") * worker.get("slot_bytes")


def _warps(worker: Worker, cta: int) -> list[int]:
    shape = worker.shape
    return [cta + shape.warps_offset + i * shape.warp_bytes for i in range(shape.warps)]


def _waits(worker: Worker, cta: int) -> tuple[list[str], int, int]:
    """What the warps of a CTA wait for; the first warp that does, and the lanes of it."""
    lines: list[str] = []
    first, lanes = 0, 0
    alive = cta_field(cta, "alive")
    place = tuple(cta_field(cta, axis) for axis in "xyz")
    for number in range(BARRIERS):
        arrived = _read(cta + CTA.offset("arrived") + 4 * number, 4)
        if arrived:
            expected = _read(cta + CTA.offset("expected") + 4 * number, 4) or alive
            lines.append(f"CTA {place}: {arrived} of {expected} threads came to barrier {number}")
    for warp in _warps(worker, cta):
        waiting = warp_field(warp, "parked")
        if waiting:
            lines.append(f"CTA {place}, warp {warp_field(warp, 'id')}: lanes {waiting:#010x} wait for other lanes")
        for number in range(BARRIERS):
            waiting |= _read(warp + WARP.offset("waiting") + 4 * number, 4)
        if waiting and not first:
            first, lanes = warp, waiting
    return lines, first, lanes


def deadlock(worker: Worker) -> Trap:
    """No warp of the worker's present CTA can go on."""
    lines, warp, lanes = _waits(worker, _current_cta(worker))
    ip = warp_field(warp, "wait_ip")
    return _make(worker, "no thread can go on", warp, lanes, ip, "deadlock", tuple(lines))


def interrupted(worker: Worker, reason: str) -> Trap:
    """A limit was reached: say where the worker's present CTA is."""
    cta = _current_cta(worker)
    if cta_field(cta, "state") == 0:
        return Trap(reason, kernel=worker.launch.program.kernel, kind="timeout")
    lines, warp, lanes = _waits(worker, cta)
    ip = warp_field(warp, "wait_ip") if warp else 0
    for candidate in _warps(worker, cta):
        ready = warp_field(candidate, "ready")
        if ready:
            warp, lanes, ip = candidate, ready, warp_field(candidate, "group_ip")
            break
    if not warp:
        return Trap(reason, kernel=worker.launch.program.kernel, kind="timeout")
    return _make(worker, reason, warp, lanes, ip, "timeout", tuple(lines))
