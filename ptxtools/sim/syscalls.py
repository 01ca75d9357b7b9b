"""System calls of kernels: printf, the device heap and assertions; those of child grids are in `childgrids.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ptxtools.diagnostics import Cause
from ptxtools.machine.events import View, serves
from ptxtools.program.details import Callee
from ptxtools.program.program import LANES

from . import printf
from .context import context_of

if TYPE_CHECKING:
    from .heap import Owner
    from .runtime import Runtime

Call: TypeAlias = Callable[[View], None]

#: Functions of the runtime by name.
CALLS: dict[str, Call] = {}

#: Strings are read in pieces of this many bytes, up to a limit.
_PIECE, _LONGEST = 256, 1 << 20


def provides(*names: str) -> Callable[[Call], Call]:
    """Register a function of the runtime."""

    def add(function: Call) -> Call:
        for name in names:
            CALLS[name] = function
        return function

    return add


@serves("syscall")
def system_call(view: View) -> None:
    """Serve a call of a runtime function."""
    name = view.op.of(Callee).name
    if name not in CALLS:
        from . import childgrids  # noqa: F401 - registers its functions
    call = CALLS.get(name)
    if call is None:
        raise view.trap(f"the runtime has no function {name}")
    call(view)


def runtime_of(view: View) -> Runtime:
    """The runtime of the device."""
    runtime: Runtime = view.launch.device.runtime
    return runtime


def owner_of(view: View, lane: int) -> Owner:
    """The allocating thread, for reports."""
    launch = view.launch
    places, program, where = context_of(view).places, launch.program, view.op.where
    file, line = places.line_of(program, where)
    return program.kernel, view.cta.place, view.thread(lane), file, line, partial(places.source_of, program, where)


def c_string(view: View, address: int, lane: int) -> bytes:
    """The bytes of a zero-terminated string at a generic address. Raises `Trap`."""
    memory = view.launch.memory
    found = bytearray()
    while len(found) < _LONGEST:
        here = address + len(found)
        piece = min(_PIECE, memory.base + memory.size - here)
        data = memory.bytes(here, piece, False) if piece > 0 and here >= memory.base else None
        text = view.fetch(here, 1, lane=lane) if data is None else bytes(data)
        end = text.find(0)
        if end >= 0:
            return bytes(found + text[:end])
        found += text
    return bytes(found)


# --- printf -----------------------------------------------------------------------------------------------------------


@provides("vprintf")
def vprintf(view: View) -> None:
    """vprintf(format, packed arguments): the number of arguments; -1 without a format."""
    formats, packed = view.source(0), view.source(1)
    answers = np.zeros(LANES, np.uint32)
    texts: dict[int, bytes] = {}
    out: list[bytes] = []
    for lane in view.lanes():
        address = int(formats[lane])
        if not address:
            answers[lane] = 0xFFFF_FFFF
            continue
        if address not in texts:
            texts[address] = c_string(view, address, lane)
        form = printf.parse(texts[address])
        data = view.fetch(int(packed[lane]), form.size, lane=lane) if form.size else b""
        out.append(printf.render(form, data, lambda at, lane=lane: c_string(view, at, lane)))  # type: ignore[misc]
        answers[lane] = form.count
    runtime_of(view).output(context_of(view), b"".join(out))
    view.result(0, answers)


# --- the heap ---------------------------------------------------------------------------------------------------------


@provides("malloc")
def malloc(view: View) -> None:
    """malloc(bytes): an address, or null if the heap is exhausted."""
    sizes, heap = view.source(0), runtime_of(view).heap
    answers = np.zeros(LANES, np.uint64)
    for lane in view.lanes():
        answers[lane] = heap.allocate(int(sizes[lane]), owner_of(view, lane))
    view.result(0, answers)


@provides("free")
def free(view: View) -> None:
    """free(address): an address from `malloc`, once, or null."""
    addresses, heap = view.source(0), runtime_of(view).heap
    for lane in view.lanes():
        address = int(addresses[lane])
        if address and heap.free(address, owner_of(view, lane)) is None:
            before = heap.freed_at(address)
            again = "" if before is None else f": it is in a freed block: {before}"
            reason = f"free of {address:#x}, which is not the start of an allocated heap block{again}"
            raise view.trap(reason, lane, cause=Cause.HEAP)


# --- assertions -------------------------------------------------------------------------------------------------------


@provides("__assertfail")
def assertion_failed(view: View) -> None:
    """__assertfail(message, file, line, function, size of a character)."""
    lane = view.leader
    message, file, function = (c_string(view, int(view.source(n)[lane]), lane) for n in (0, 1, 3))
    text, where, who = (part.decode("utf-8", "replace") for part in (message, file, function))
    raise view.trap(f"assertion `{text}` failed at {where}:{int(view.source(2)[lane])} in {who}", lane)
