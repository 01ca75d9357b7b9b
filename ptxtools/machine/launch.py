"""The input and output of an engine's launch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from ptxtools.program.program import (
    COUNTER_WORDS,
    GRID_SHAPES,
    LANES,
    SLOT_BYTES,
    FunctionCode,
    LaunchConstant,
    Program,
    Slot,
)
from ptxtools.records import dataclass, field

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ptxtools.diagnostics import Trap

    from .deadlock import CtaLine, Waiting
    from .events import View
    from .guides import Guide
    from .measures import Cache
    from .observers import Listeners
    from .products import Products

Dim3 = tuple[int, int, int]


@dataclass(slots=True)
class AddressSpace:
    """Device memory: device address `base + i` is host address `host + i`, for 0 <= i < size.

    const: range of device addresses for which `isspacep.const` is true. open_host: the kernel may use host
    addresses (`ptx_run`); then `readable(address, size, write)` says whether the process has this memory mapped, and
    `mapping(address)` gives the writable range around an address, as (start, end), if there is one. allowed: whether
    bytes may be accessed (`bytes` asks); written: is told of what `bytes` gives for writing. Both are of observers.
    """

    host: int
    base: int
    size: int
    const: tuple[int, int] = (0, 0)
    open_host: bool = False
    readable: Callable[[int, int, bool], bool] | None = None
    mapping: Callable[[int], tuple[int, int] | None] | None = None
    allowed: Callable[[int, int], bool] | None = None
    written: Callable[[int, int], None] | None = None
    _whole: memoryview | None = field(default=None, repr=False, compare=False)

    def bytes(self, address: int, size: int, write: bool, *, told: bool = True) -> memoryview | None:
        """`size` bytes at a device address, writable in place; None if there is no such memory. told: as in
        `View.memory`."""
        offset = address - self.base
        if offset >= 0 and offset + size <= self.size:
            if self.allowed is not None and not self.allowed(address, size):
                return None
            if write and told and self.written is not None:
                self.written(address, size)
            return self.whole()[offset : offset + size]
        if self.open_host and self.readable is not None and self.readable(address, size, write):
            return _host_bytes(address, size)
        return None

    def whole(self) -> memoryview:
        """All of device memory."""
        if self._whole is None:
            self._whole = _host_bytes(self.host, self.size)
        return self._whole


def _host_bytes(address: int, size: int) -> memoryview:
    return memoryview((ctypes.c_uint8 * size).from_address(address)).cast("B")


class Inspector(Protocol):
    """What an engine tells of a grid that is stopped in an event, for debuggers and reports."""

    def state(self) -> tuple[list[CtaLine], list[Waiting]]:
        """Lines about resident CTAs and pending work, and where the lanes of each warp are. Those in the event count as
        running somewhere."""

    def view(self, cta: Dim3, warp: int, lane: int) -> View | None:
        """A lane of a resident CTA where it waits or is about to go on, with those that are there; None: it has exited
        or is not resident. Only for looking, and for setting registers and memory."""


@dataclass(slots=True)
class Launch:
    """One grid. Shapes are (x, y, z), in CTAs and threads; `params` is the kernel's parameter block.

    numerics: "ieee", or the generation whose tensor cores are imitated (`semantics.generations.generation_of`);
    tier: when the native engine compiles regions: "auto", "interpreter" (never) or "regions" (at once, everywhere);
    resident: CTAs that share the device at a time; sms: SMs of the device; threads: worker threads; late: asynchronous
    work completes as late as allowed (with a seed: some of it); weak: loads and stores
    take effect as late or early as the memory model allows; guide: the execution that they follow then;
    local_bytes: local memory of a thread, stack included;
    deadline: time.monotonic() at which the run ends in a "timeout" trap; specials: special registers that are constant
    during the launch; services: loads the function that serves a kind of event (`events.serves`); observers: None if
    there are none; counts: what the run has counted, a row for each of `Program.counters`; cache: the model
    of the L2, if accesses are measured; unfinished: warps that were
    in the middle of a block when the run ended in a trap; device, context: for the services of `sim` (`sim.context`);
    provider: loads `products`, set by the engine that runs the launch;
    inspector: set by it, too; begun: how many CTAs have begun, for any thread, and summary: where threads are, as in a
    report of a deadlock, for the thread that runs the launch: both set by the engine while it runs;
    kept: what the engine needs to run it again, with other parameters or special registers; set where it has run to its
    end without any service, and so is as before.
    """

    program: Program
    memory: AddressSpace
    grid: Dim3
    block: Dim3
    cluster: Dim3 = (1, 1, 1)
    dynamic_shared: int = 0
    numerics: str = "ieee"
    tier: str = "auto"
    params: bytes = b""
    resident: int = 16
    sms: int = 16
    threads: int = 1
    seed: int | None = None
    late: bool = False
    weak: bool = False
    guide: Guide | None = None
    deadline: float | None = None
    max_instructions: int | None = None
    local_bytes: int = 0
    specials: dict[str, int] = field(default_factory=dict)
    services: Callable[[str], None] | None = None
    observers: Listeners | None = None
    device: Any = None
    context: Any = None
    counts: NDArray[np.uint64] | None = None
    cache: Cache | None = None
    unfinished: int = 1
    provider: Callable[[], Products] | None = None
    inspector: Inspector | None = None
    begun: Callable[[], int] | None = None
    summary: Callable[[], Trap] | None = None
    kept: Any = None
    _products: Products | None = field(default=None, repr=False, compare=False)

    @property
    def products(self) -> Products:
        """The products of asynchronous tensor cores, and updates of arrays in memory."""
        if self._products is None:
            assert self.provider is not None, "an engine gives its products to the launch"
            self._products = self.provider()
        return self._products


@dataclass(slots=True)
class Outcome:
    """The result of a run: thread-instructions executed (guarded-off lanes count as executed by their warp's active
    lanes)."""

    instructions: int = 0


def no_counts(program: Program, more: int = 0) -> NDArray[np.uint64]:
    """Rows for the counters of a program, all zero, behind some more."""
    import numpy as np  # a run that counts nothing starts without it

    return np.zeros((more + len(program.counters), COUNTER_WORDS), np.uint64)


def constants(launch: Launch, function: FunctionCode) -> list[tuple[Slot, str, int]]:
    """(slot, type, value) of all constant slots of a frame of `function` in this launch."""
    return function.constants + launch_constants(launch, function)


def launch_constants(launch: Launch, function: FunctionCode) -> list[tuple[Slot, str, int]]:
    """The same of those that each launch decides."""
    return [(c.slot, c.storage, launch_value(launch, c)) for c in function.launch_constants]


def launch_value(launch: Launch, constant: LaunchConstant) -> int:
    """What a launch gives for a constant."""
    if constant.source == "param":
        size, signed, most = widening(constant.name, constant.storage)
        data = launch.params[constant.offset : constant.offset + size]
        return int.from_bytes(data, "little", signed=signed) & most
    return launch_special(launch, constant.name)


@cache
def widening(name: str, storage: str) -> tuple[int, bool, int]:
    """Of a parameter's type: bytes, whether it is signed; and all bits of what it is widened to."""
    return int(name.lstrip("bsuf")) // 8, name[0] == "s", (1 << 8 * SLOT_BYTES[storage] // LANES) - 1


def launch_special(launch: Launch, name: str) -> int:
    """Value of a special register for which `is_launch_special` holds."""
    if name in launch.specials:
        return launch.specials[name]
    base, _, component = name.partition(".")
    if base in GRID_SHAPES:
        shape: Dim3 = getattr(launch, GRID_SHAPES[base])
        return shape["xyz".index(component)]
    x, y, z = launch.cluster
    return x * y * z if name == "%cluster_nctarank" else launch.dynamic_shared


#: The most local memory of a CTA with flags beside it: they are cleared for each CTA.
_MOST_FLAGGED = 1 << 22
#: Default local memory of a thread.
DEFAULT_LOCAL = 16384


def local_bytes(launch: Launch) -> int:
    """Bytes of a thread's local memory, a multiple of 16."""
    program = launch.program
    known = program.local_bytes + (DEFAULT_LOCAL if program.takes_stack else 0)
    return -(-(launch.local_bytes or known or DEFAULT_LOCAL) // 16) * 16


def flagged_local(launch: Launch) -> int:
    """Bytes of local memory of a thread that may have flags beside them, for an observer that keeps some: all, or none
    where there is no local memory, or a CTA has very much."""
    program, (x, y, z) = launch.program, launch.block
    size = local_bytes(launch) if program.local_bytes or program.takes_stack or not program.max_frames else 0
    return size if size * x * y * z <= _MOST_FLAGGED else 0
