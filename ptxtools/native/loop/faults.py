"""Makes a `Trap` from the state in which native code stopped: kernel, CTA, thread, instruction and reason."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxtools.diagnostics import Cause, Trap
from ptxtools.machine.deadlock import no_member, overflow
from ptxtools.native.code import structures
from ptxtools.native.code.keys import RECORD_BYTES
from ptxtools.native.code.structures import CTA, WARP
from ptxtools.program.details import Callee
from ptxtools.program.operations import OPERATIONS, access_bytes
from ptxtools.program.program import (
    CODE_BASE,
    CODE_STEP,
    LANES,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    RETURN_FRAME,
    SHARED_WINDOW,
    SLOT_BYTES,
    Ref,
    Terminator,
)

if TYPE_CHECKING:
    from ptxtools.machine.launch import Dim3, Launch
    from ptxtools.program.program import Op

    from .worker import Worker

_WINDOWS = {SHARED_WINDOW >> 56: "shared", LOCAL_WINDOW >> 56: "local", PARAM_WINDOW >> 56: "param"}
BARRIERS = 16


def read(address: int, size: int) -> int:
    """An unsigned number in memory."""
    return int.from_bytes(ctypes.string_at(address, size), "little")


def warp_field(warp: int, name: str) -> int:
    """A field of a warp, by the warp's address."""
    return WARP.at_address(warp, name)


def cta_field(cta: int, name: str) -> int:
    """A field of a CTA, by its address."""
    return CTA.at_address(cta, name)


def record_of(worker: Worker, ip: int) -> int:
    """Number of the record at an address."""
    return (ip - ctypes.addressof(worker.encoded.code)) // RECORD_BYTES


def where_of(worker: Worker, ip: int) -> int:
    """Index into the program's lines of the record at an address, or -1."""
    return where_at(worker, record_of(worker, ip))


def where_at(worker: Worker, record: int) -> int:
    """The same by the number of the record."""
    return worker.encoded.where[record] if 0 <= record < len(worker.encoded.where) else -1


def thread_of(launch: Launch, warp: int, lane: int) -> Dim3:
    """%tid of a lane, by the warp's address."""
    x, y, _ = launch.block
    linear = 32 * warp_field(warp, "id") + lane
    return linear % x, linear // x % y, linear // (x * y)


def cta_of(warp: int) -> Dim3:
    """%ctaid of a warp, by its address."""
    cta = warp_field(warp, "cta")
    return cta_field(cta, "x"), cta_field(cta, "y"), cta_field(cta, "z")


def _make(worker: Worker, reason: str, cause: Cause = Cause.OTHER, space: str = "") -> Trap:
    program = worker.launch.program
    warp, mask, ip = worker.get("stop_warp"), worker.get("stop_mask"), worker.get("stop_ip")
    where = where_of(worker, ip)
    lane = (mask & -mask).bit_length() - 1 if mask else 0
    return Trap(
        reason, kernel=program.kernel, cta=cta_of(warp), thread=thread_of(worker.launch, warp, lane), cause=cause,
        text=program.lines[where][2] if 0 <= where < len(program.lines) else "", where=where if where >= 0 else None,
        space=space,
    )  # fmt: skip


def trap(worker: Worker) -> Trap:
    """The trap that the worker's native code reported."""
    code = worker.get("stop_code")
    reason = _REASONS[code](worker)
    if code == structures.TRAP_MISALIGNED:
        return _make(worker, reason, Cause.MISALIGNED)
    if code == structures.TRAP_ADDRESS and not _writes_parameters(worker):
        return _make(worker, reason, Cause.OUT_OF_BOUNDS, _place(worker)[0])
    return _make(worker, reason)


def stopped_at(worker: Worker) -> Op | None:
    """The operation at which the worker stopped; of a terminator the one that it holds."""
    found = worker.encoded.operations[record_of(worker, worker.get("stop_ip"))]
    return found.op if isinstance(found, Terminator) else found


def _terminator(worker: Worker) -> Terminator:
    found = worker.encoded.operations[record_of(worker, worker.get("stop_ip"))]
    assert isinstance(found, Terminator)
    return found


def _content(worker: Worker, ref: Ref | None) -> int:
    """What a slot of 32 or 64 bits holds for the first lane that stopped."""
    if ref is None:
        return 0
    mask = worker.get("stop_mask")
    size = SLOT_BYTES[ref.type] // LANES
    return read(worker.get("stop_fp") + ref.slot + size * ((mask & -mask).bit_length() - 1), size)


def _at_target(worker: Worker) -> bool:
    """Whether it is the shared memory that a copy of one thread writes to where it stopped."""
    op, address = stopped_at(worker), worker.get("stop_address")
    if op is None or OPERATIONS[op.kind].access != "copy" or _content(worker, op.src[1]) != address:
        return False
    size = access_bytes(op)
    return bool(address % size) or address + size > worker.get("shared_bytes")


def _place(worker: Worker) -> tuple[str, int]:
    """State space of the access at which the worker stopped, and the address in it."""
    op, address = stopped_at(worker), worker.get("stop_address")
    assert op is not None
    if _at_target(worker):
        return "shared", address
    if op.space != "generic":
        return "shared" if op.space == "cluster" else op.space, address
    space = _WINDOWS.get(address >> 56, "global")
    return space, address & ((1 << 56) - 1 if space != "global" else -1)


def _writes_parameters(worker: Worker) -> bool:
    """Whether the access would write kernel parameters, wherever they end."""
    op = stopped_at(worker)
    return op is not None and OPERATIONS[op.kind].access in ("write", "atomic") and _place(worker)[0] == "param"


def _out_of_bounds(worker: Worker) -> str:
    op, (space, address) = stopped_at(worker), _place(worker)
    assert op is not None
    access, size = OPERATIONS[op.kind].access, access_bytes(op)
    action = "read" if access in ("read", "copy") and not _at_target(worker) else "write"
    if access == "copy" and action == "read":
        size = 1  # a copy reads byte by byte
    if worker.launch.memory.open_host and space in ("global", "const"):
        return f"access to {size} bytes at {address:#x} is out of bounds"
    if _writes_parameters(worker):
        return "kernel parameters cannot be written"
    return f"{space} {action} of {size} bytes at {address:#x} is out of bounds"


def _misaligned(worker: Worker) -> str:
    op = stopped_at(worker)
    assert op is not None
    return f"address {worker.get('stop_address'):#x} is not aligned to {access_bytes(op)} bytes"


def _overflow(worker: Worker) -> str:
    end, program = _terminator(worker), worker.launch.program
    callee = end.callee
    if callee < 0:
        callee = end.targets[(_content(worker, end.index) - CODE_BASE) // CODE_STEP]
    return overflow(program.functions[callee].name, _depth(worker) + 1, worker.shape.local)


def _depth(worker: Worker) -> int:
    """Calls that the first lane that stopped is in."""
    mask, origin = worker.get("stop_mask"), worker.get("stop_warp") + WARP.size
    lane = (mask & -mask).bit_length() - 1
    frame, depth = worker.get("stop_fp"), 0
    while frame != origin:
        frame = origin + read(frame + RETURN_FRAME + 4 * lane, 4)
        depth += 1
    return depth


def _bad_barrier(worker: Worker) -> str:
    op = _terminator(worker).op
    assert op is not None
    number = _content(worker, op.src[0])
    if number >= BARRIERS:
        return f"barrier {number} does not exist; there are {BARRIERS}"
    return f"thread count {_content(worker, op.src[1])} of a barrier is not a multiple of {LANES}"


def _bad_switch(worker: Worker) -> str:
    end = _terminator(worker)
    return f"branch index {_content(worker, end.index)} is beyond the {len(end.targets)} targets"


def _no_member(worker: Worker) -> str:
    mask = worker.get("stop_mask")
    return no_member((mask & -mask).bit_length() - 1, _content(worker, _terminator(worker).index))


def _bad_call(worker: Worker) -> str:
    return f"call to {_content(worker, _terminator(worker).index):#x}, which is no function"


_REASONS: dict[int, Callable[[Worker], str]] = {
    structures.TRAP_INSTRUCTION: lambda worker: "trap instruction",
    structures.TRAP_ADDRESS: _out_of_bounds,
    structures.TRAP_MISALIGNED: _misaligned,
    structures.TRAP_STACK: _overflow,
    structures.TRAP_BARRIER: _bad_barrier,
    structures.TRAP_CALL: lambda worker: (
        f"call to {_content(worker, _terminator(worker).index):#x}, which is no function"
    ),
    structures.TRAP_SWITCH: _bad_switch,
    structures.TRAP_MEMBER: _no_member,
}


def unsupported(worker: Worker, op: Op) -> Trap:
    """An event that nobody serves."""
    name = op.detail.name if isinstance(op.detail, Callee) else op.kind
    return _make(worker, f"{name} is not supported yet")
