"""Device-side launches as nvcc compiles them (CUDA dynamic parallelism, version 2): `__cudaCDP2…`.

A child grid, and a copy or a fill on a stream, is put into the queue of its parent grid, and done when the parent's
threads have finished: children in launch order, each with its own children; then tail launches. Every
ordering required by streams and events then holds. A parent cannot wait for its children in this version.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.diagnostics import LaunchError
from ptxtools.machine.events import View
from ptxtools.program.program import LANES

from .children import Child, Prepared, Work
from .context import context_of
from .shape import check_block, check_grid
from .syscalls import owner_of, provides, runtime_of

if TYPE_CHECKING:
    from .device import Device

# cudaError_t
SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, INVALID_CONFIGURATION, INVALID_FUNCTION = 0, 1, 2, 9, 98
TAIL_LAUNCH, FIRE_AND_FORGET = 3, 4  # cudaStreamTailLaunch, cudaStreamFireAndForget; 0 is the null stream
_PARAMETER_ALIGNMENT, _MALLOC_ALIGNMENT = 64, 256

#: Names and texts of the errors that these functions return, and of a few more.
ERRORS = {
    SUCCESS: ("cudaSuccess", "no error"),
    INVALID_VALUE: ("cudaErrorInvalidValue", "invalid argument"),
    OUT_OF_MEMORY: ("cudaErrorMemoryAllocation", "out of memory"),
    INVALID_CONFIGURATION: ("cudaErrorInvalidConfiguration", "invalid configuration argument"),
    INVALID_FUNCTION: ("cudaErrorInvalidDeviceFunction", "invalid device function"),
    400: ("cudaErrorInvalidResourceHandle", "invalid resource handle"),
    719: ("cudaErrorLaunchFailure", "unspecified launch failure"),
    999: ("cudaErrorUnknown", "unknown error"),
}
_UNKNOWN = ("cudaErrorUnknown", "unrecognized error code")


def _each(view: View, answer: Callable[[int], int], dtype: type[np.generic] = np.uint32) -> None:
    """The result of a call, lane by lane."""
    answers = np.zeros(LANES, dtype)
    for lane in view.lanes():
        answers[lane] = answer(lane)
    view.result(0, answers)


def _status(view: View, answer: Callable[[int], int]) -> None:
    """A result that is an error code, also recorded as the thread's last error."""

    def noted(lane: int) -> int:
        error = answer(lane)
        if error:
            _errors(view)[_thread(view, lane)] = error
        return error

    _each(view, noted)


def _errors(view: View) -> dict[Any, int]:
    return context_of(view).errors


def _thread(view: View, lane: int) -> Any:
    return view.cta.place, view.warp, lane


def _put(view: View, address: int, lane: int, *words: tuple[str, int]) -> int:
    """Store values ((struct letter, number), …) at a generic address."""
    data = struct.pack("<" + "".join(letter for letter, _ in words), *(number for _, number in words))
    view.put(address, data, lane=lane)
    return SUCCESS


# --- launches ---------------------------------------------------------------------------------------------------------


@provides("__cudaCDP2GetParameterBufferV2")
def parameter_buffer(view: View) -> None:
    """Address of a buffer for the parameters of a grid; null when the grid is impossible, which is then the error."""
    columns = [view.source(n) for n in range(len(view.op.src))]
    prepared = context_of(view).prepared
    limits = view.launch.device.limits

    def buffer(lane: int) -> int:
        function, gx, gy, gz, bx, by, bz, shared = (int(column[lane]) for column in columns)
        kernel = context_of(view).kernels.get(function)
        error = SUCCESS if kernel is not None else INVALID_FUNCTION
        try:
            check_grid((gx, gy, gz), limits)
            if kernel is not None:
                check_block((bx, by, bz), kernel.bounds, limits)
        except LaunchError:
            error = INVALID_CONFIGURATION
        address = 0
        if kernel is not None and not error:
            size = kernel.parameter_bytes
            address = runtime_of(view).pending.allocate(size, owner_of(view, lane), _PARAMETER_ALIGNMENT)
            error = SUCCESS if address else OUT_OF_MEMORY
        if error:
            _errors(view)[_thread(view, lane)] = error
        elif kernel is not None:
            prepared[address] = Prepared(kernel, (gx, gy, gz), (bx, by, bz), shared)
        return address

    _each(view, buffer, np.uint64)


@provides("__cudaCDP2LaunchDeviceV2")
def launch_device(view: View) -> None:
    """LaunchDeviceV2(parameter buffer, stream): put the grid into the queue."""
    buffers, streams = view.source(0), view.source(1)
    prepared = context_of(view).prepared

    def launch(lane: int) -> int:
        address = int(buffers[lane])
        wanted = prepared.pop(address, None)
        if wanted is None:
            return INVALID_VALUE
        size = wanted.kernel.parameter_bytes
        params = view.fetch(address, size, lane=lane) if size else b""
        runtime_of(view).pending.free(address)
        stream = int(streams[lane])
        tail = stream == TAIL_LAUNCH
        child = Child(wanted.kernel, wanted.grid, wanted.block, wanted.shared, params, tail, stream=stream)
        if view.launch.observers is not None:
            view.launch.observers.tell("launched", view, lane, child)
        _queue(view).append(child)
        return SUCCESS

    _status(view, launch)


def _queue(view: View) -> list[Child | Work]:
    return context_of(view).children


def _queue_work(
    view: View,
    lane: int,
    stream: int,
    run: Callable[[], None],
    writes: tuple[int, int],
    reads: tuple[int, int] = (0, 0),
) -> None:
    work = Work(run, stream == TAIL_LAUNCH, reads, writes, stream)
    if view.launch.observers is not None:
        view.launch.observers.tell("queued", view, lane, work)
    _queue(view).append(work)


@provides("__cudaCDP2MemcpyAsync", "__cudaCDP2MemcpyAsync_ptsz")
def memcpy(view: View) -> None:
    """MemcpyAsync(to, from, bytes, kind, stream), in global memory."""
    to, source, sizes, streams = (view.source(n) for n in (0, 1, 2, 4))

    def copy(lane: int) -> int:
        size = int(sizes[lane])
        if size:
            target = view.memory(int(to[lane]), size, "global", lane=lane)
            data = view.memory(int(source[lane]), size, "global", lane=lane, write=False)
            _queue_work(view, lane, int(streams[lane]), lambda: _assign(target, bytes(data)), (int(to[lane]), size),
                        (int(source[lane]), size))  # fmt: skip
        return SUCCESS

    _status(view, copy)


@provides("__cudaCDP2MemsetAsync", "__cudaCDP2MemsetAsync_ptsz")
def memset(view: View) -> None:
    """MemsetAsync(to, byte, bytes, stream), in global memory."""
    to, values, sizes, streams = (view.source(n) for n in range(4))

    def fill(lane: int) -> int:
        size = int(sizes[lane])
        if size:
            target = view.memory(int(to[lane]), size, "global", lane=lane)
            data = bytes([int(values[lane]) & 255]) * size
            _queue_work(view, lane, int(streams[lane]), lambda: _assign(target, data), (int(to[lane]), size))
        return SUCCESS

    _status(view, fill)


def _assign(target: memoryview, data: bytes) -> None:
    target[:] = data


# --- streams and events: the queue keeps every order ------------------------------------------------------------------


@provides("__cudaCDP2StreamCreateWithFlags", "__cudaCDP2EventCreateWithFlags", "__cudaCDP2EventCreate")
def create(view: View) -> None:
    """A new handle, stored where the first argument points."""
    places = view.source(0)
    context = context_of(view)

    def handle(lane: int) -> int:
        context.handle += 1
        return _put(view, int(places[lane]), lane, ("Q", context.handle))

    _status(view, handle)


@provides(
    "__cudaCDP2StreamDestroy", "__cudaCDP2EventRecord", "__cudaCDP2EventRecord_ptsz",
    "__cudaCDP2EventRecordWithFlags", "__cudaCDP2EventRecordWithFlags_ptsz", "__cudaCDP2EventDestroy",
)  # fmt: skip
def accept(view: View) -> None:
    """Nothing to do: work is done in the order of its launch."""
    _each(view, lambda lane: SUCCESS)


@provides("__cudaCDP2StreamWaitEvent", "__cudaCDP2StreamWaitEvent_ptsz")
def wait_for_event(view: View) -> None:
    """Nothing to do either, but to note that streams are ordered."""
    context_of(view).waits = True
    accept(view)


# --- errors -----------------------------------------------------------------------------------------------------------


@provides("__cudaCDP2GetLastError")
def last_error(view: View) -> None:
    """The thread's last error, which is forgotten."""
    _each(view, lambda lane: _errors(view).pop(_thread(view, lane), SUCCESS))


@provides("__cudaCDP2PeekAtLastError")
def peek_error(view: View) -> None:
    """The thread's last error."""
    _each(view, lambda lane: _errors(view).get(_thread(view, lane), SUCCESS))


@provides("__cudaCDP2GetErrorName")
def error_name(view: View) -> None:
    """Address of the name of an error."""
    codes = view.source(0)
    _each(view, lambda lane: runtime_of(view).text_address(ERRORS.get(int(codes[lane]), _UNKNOWN)[0]), np.uint64)


@provides("__cudaCDP2GetErrorString")
def error_string(view: View) -> None:
    """Address of the text of an error."""
    codes = view.source(0)
    _each(view, lambda lane: runtime_of(view).text_address(ERRORS.get(int(codes[lane]), _UNKNOWN)[1]), np.uint64)


def error_texts() -> Iterable[str]:
    """All names and texts, which must be in device memory before a kernel requests them."""
    return (text for pair in (*ERRORS.values(), _UNKNOWN) for text in pair)


# --- memory -----------------------------------------------------------------------------------------------------------


@provides("__cudaCDP2Malloc")
def malloc(view: View) -> None:
    """cudaMalloc on the device: a block of the device heap, its address stored where the first argument points."""
    places, sizes = view.source(0), view.source(1)

    def allocate(lane: int) -> int:
        address = runtime_of(view).heap.allocate(int(sizes[lane]), owner_of(view, lane), _MALLOC_ALIGNMENT)
        _put(view, int(places[lane]), lane, ("Q", address))
        return SUCCESS if address else OUT_OF_MEMORY

    _status(view, allocate)


@provides("__cudaCDP2Free")
def free(view: View) -> None:
    """cudaFree on the device."""
    addresses = view.source(0)

    def release(lane: int) -> int:
        address = int(addresses[lane])
        freed = not address or runtime_of(view).heap.free(address, owner_of(view, lane))
        return SUCCESS if freed else INVALID_VALUE

    _status(view, release)


# --- questions --------------------------------------------------------------------------------------------------------


def _attributes(device: Device) -> dict[int, int]:
    """cudaDeviceAttr to value."""
    limits = device.limits
    (major, minor), block, grid = limits.capability, limits.block, limits.grid
    return {
        1: limits.cta_threads, 2: block[0], 3: block[1], 4: block[2],
        5: grid[0], 6: grid[1], 7: grid[2], 8: limits.shared_default, 9: 64 << 10, 10: 32,
        12: limits.cta_registers, 13: 1_000_000, 15: 0, 16: device.sms, 17: 0, 31: 1, 39: limits.threads, 75: major,
        76: minor, 81: limits.shared, 82: limits.registers, 95: 1, 97: limits.shared_cta, 106: limits.ctas,
        111: limits.shared_reserved,
    }  # fmt: skip


@provides("__cudaCDP2DeviceGetAttribute")
def device_attribute(view: View) -> None:
    """DeviceGetAttribute(place, attribute, device)."""
    places, wanted, devices = (view.source(n) for n in range(3))
    known = _attributes(view.launch.device)

    def attribute(lane: int) -> int:
        value = known.get(int(wanted[lane]))
        if value is None or devices[lane]:
            return INVALID_VALUE
        return _put(view, int(places[lane]), lane, ("i", value))

    _status(view, attribute)


@provides("__cudaCDP2DeviceGetLimit")
def device_limit(view: View) -> None:
    """DeviceGetLimit(place, limit): stack of a thread, printf buffer (unlimited here), heap."""
    places, wanted = view.source(0), view.source(1)
    device: Device = view.launch.device
    known = {0: view.launch.local_bytes, 1: 1 << 20, 2: device.heap_bytes, 4: device.runtime.pending.size}

    def limit(lane: int) -> int:
        value = known.get(int(wanted[lane]))
        return INVALID_VALUE if value is None else _put(view, int(places[lane]), lane, ("Q", value))

    _status(view, limit)


def _number(name: str, value: Callable[[View], int]) -> None:
    """A function that stores one int where its argument points."""

    @provides(name)
    def tell(view: View) -> None:
        places = view.source(0)
        _status(view, lambda lane: _put(view, int(places[lane]), lane, ("i", value(view))))


_number("__cudaCDP2GetDevice", lambda view: 0)
_number("__cudaCDP2GetDeviceCount", lambda view: 1)
_number("__cudaCDP2RuntimeGetVersion", lambda view: 13000)


@provides(
    "__cudaCDP2OccupancyMaxActiveBlocksPerMultiprocessor",
    "__cudaCDP2OccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
)
def occupancy(view: View) -> None:
    """OccupancyMaxActiveBlocksPerMultiprocessor(place, function, threads, shared bytes[, flags])."""
    places, functions, threads, shared = (view.source(n) for n in range(4))
    ask = context_of(view).occupancy
    limits = view.launch.device.limits

    def tell(lane: int) -> int:
        kernel = context_of(view).kernels.get(int(functions[lane]))
        if kernel is None:
            return INVALID_FUNCTION
        if not 0 < int(threads[lane]) <= limits.cta_threads:
            return INVALID_VALUE
        return _put(view, int(places[lane]), lane, ("i", ask(kernel, int(threads[lane]), int(shared[lane]))))

    _status(view, tell)


@provides("__cudaCDP2FuncGetAttributes")
def function_attributes(view: View) -> None:
    """FuncGetAttributes(place, function): the first fields of cudaFuncAttributes."""
    places, functions = view.source(0), view.source(1)
    device: Device = view.launch.device
    major, minor = device.limits.capability

    def tell(lane: int) -> int:
        kernel = context_of(view).kernels.get(int(functions[lane]))
        if kernel is None:
            return INVALID_FUNCTION
        program = context_of(view).program(kernel)
        threads = device.limits.cta_threads
        bound = kernel.bounds.reqntid or kernel.bounds.maxntid
        if bound is not None:
            threads = prod(bound)
        return _put(
            view, int(places[lane]), lane, ("Q", program.declared_shared), ("Q", 0), ("Q", program.local_bytes),
            ("i", threads), ("i", program.registers), ("i", 10 * major + minor), ("i", 10 * major + minor), ("i", 0),
            ("i", device.limits.shared_default), ("i", -1),
        )  # fmt: skip

    _status(view, tell)
