"""The rarer operations, written once for both engines: the view of a stopped warp, and how functions register.

A lowerer ends its block with `f.event(Op(kind, …))`; kind is a name of the feature's own. A function registered with
`@serves(kind)` is called with a `View`: the lanes of one warp that came to the operation together. It reads operands
(`view.source(0)`: 32 values of the operand's PTX type; lanes outside `view.mask` hold anything), does its work on
memory and on the state of CTA, cluster and device, and writes results (`view.result(0, values)`). When it returns, the
lanes go on behind the operation, or stay:

    @serves("mbarrier_wait")
    def wait(view: View) -> None:
        for lane in view.lanes():
            word = view.memory(int(addresses[lane]), 8, "shared", lane=lane, align=8)
            if not done(word):
                view.wait(("mbarrier", place), f"mbarrier at {place:#x}", lanes=1 << lane)

Lanes that wait come to the function again after `cluster.wake(key)`, or when their time limit is over
(`view.expired`); they change nothing before they go on, except what the function wrote. Lanes that the scheduler finds
waiting with nothing pending are the deadlock report; the text of a wait stands there. What completes later is put into
`cluster.later(function, text)`.

Registering is by import: `Launch.services` finds the function of a kind whose file has not been loaded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.diagnostics import Cause, Trap
from ptxtools.program.operations import OPERATIONS
from ptxtools.program.program import LANES, OFFSET_MASK, RANK_SHIFT, WINDOWS, Op, Ref, Slot

from .issued import IssuedProducts
from .residents import LATENESS, Cluster, Cta, Schedule, Wait

if TYPE_CHECKING:
    from .arrays import NumpyAlgebra
    from .launch import Launch
    from .textures import TextureTable

Array: TypeAlias = npt.NDArray[Any]

#: State spaces by the upper byte of the generic addresses in their windows; all other addresses are global.
SPACE_OF_WINDOW = {window >> 56: name.removesuffix("_window") for name, window in WINDOWS.items()}
#: Names of state spaces in opcodes that mean one of ours.
_SPACES = {
    "": "generic", "shared::cta": "shared", "shared::cluster": "shared", "cluster": "shared", "param::entry": "param",
}  # fmt: skip
_MASK64 = (1 << 64) - 1
#: Under this name a CTA's state has the warps that have arrived at mbarriers, where it matters.
_TOLD = "warps that have told"
_LANES = np.arange(LANES, dtype=np.uint32)
#: nanosleep sleeps for a millisecond at most (9.7.19.2).
LONGEST_SLEEP = 1_000_000


def words_at(address: int, size: int) -> list[tuple[int, int]]:
    """Bytes of host memory as aligned words of 8 bytes, each an address and a mask of its bits."""
    found = []
    for word in range(address & ~7, address + size, 8):
        first, end = max(address - word, 0), min(address + size - word, 8)
        found.append((word, (1 << 8 * end) - (1 << 8 * first)))
    return found


class View(ABC):
    """The lanes of a warp that stopped at an operation: operands, memory, and their place on the device.

    mask: lanes that run the operation, lane 0 in bit 0; warp: number of the warp in its CTA.
    """

    op: Op
    mask: int
    warp: int
    launch: Launch
    schedule: Schedule
    cta: Cta
    came: list[Wait]

    # --- what engines implement ---------------------------------------------------------------------------------------

    @abstractmethod
    def values(self, ref: Ref) -> Any:
        """A copy of a slot, all 32 lanes, in its storage class; of a b128 the pair of low and high halves."""

    @abstractmethod
    def set_values(self, ref: Ref, values: Any, mask: int | None = None) -> None:
        """Set a slot for the lanes in `mask` (all that run the operation), from an array of its storage class."""

    @abstractmethod
    def words(self, ref: Ref, lane: int) -> list[tuple[int, int]]:
        """Where a lane's content of a slot lies in host memory: aligned words of 8 bytes, each an address and a mask
        of its bits."""

    @abstractmethod
    def local(self, lane: int, address: int, size: int) -> bytes:
        """Bytes of a lane's local memory; the caller has checked the bounds."""

    @abstractmethod
    def set_local(self, lane: int, address: int, data: bytes) -> None:
        """Write a lane's local memory; the caller has checked the bounds."""

    @abstractmethod
    def hold(self, wait: Wait) -> None:
        """Keep the lanes of a wait at this operation."""

    @property
    def time(self) -> int:
        """Virtual time in nanoseconds."""
        return self.schedule.now()

    @abstractmethod
    def thread(self, lane: int) -> tuple[int, int, int]:
        """%tid of a lane."""

    @property
    @abstractmethod
    def living(self) -> int:
        """Lanes of the warp that have not exited, as a mask."""

    @property
    @abstractmethod
    def local_bytes(self) -> int:
        """Size of a thread's local memory."""

    def local_flags(self, lane: int) -> Array | None:
        """The flags that an observer keeps of a lane's local memory (`filters.Bounds.flagged`), one for each byte;
        None where the engine has none."""
        return None

    @property
    @abstractmethod
    def tops(self) -> Array:
        """Where the free part of each lane's local memory ends (u64, a copy); what `alloca` takes lies above. Set it
        for all lanes."""

    @tops.setter
    @abstractmethod
    def tops(self, values: Array) -> None: ...

    @property
    @abstractmethod
    def algebra(self) -> NumpyAlgebra:
        """Values of PTX types as arrays."""

    # --- lanes --------------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def below(self) -> int:
        """Bytes of the frames of the functions that have called the one in which the lanes are; 0 in the entry."""

    @property
    def cluster(self) -> Cluster:
        return self.cta.cluster

    def lanes(self) -> Iterator[int]:
        """Numbers of the lanes that run the operation."""
        return (lane for lane in range(LANES) if self.mask >> lane & 1)

    @property
    def leader(self) -> int:
        """The lowest of them."""
        return (self.mask & -self.mask).bit_length() - 1

    @property
    def now(self) -> int:
        """Virtual time in nanoseconds."""
        return self.schedule.now()

    # --- where it is --------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The instruction as it is written, on one line and without its semicolon."""
        program, where = self.launch.program, self.op.where
        return " ".join(program.lines[where][2].split()) if where >= 0 else ""

    @property
    def line(self) -> int | None:
        """Its line in the PTX text; None where that is not known."""
        context = self.launch.context
        found: int | None = None if context is None else context.places.line_of(self.launch.program, self.op.where)[1]
        return found

    # --- operands -----------------------------------------------------------------------------------------------------

    def source(self, position: int) -> Any:
        """A source operand as 32 values of its PTX type (an absent one: zeros); of 128 bits a pair of arrays."""
        ref, type_ = self.op.src[position], self.op.src_types[position]
        if ref is None:
            return np.zeros(LANES, np.uint64)
        return self.algebra.adapt(self.values(ref), ref.type, type_)

    def result(self, position: int, values: Any, mask: int | None = None) -> None:
        """Write a destination from 32 values of its PTX type; nothing for a sink."""
        ref = self.op.dst[position]
        if ref is not None:
            self.set_values(ref, self.algebra.widen(values, self.op.dst_types[position], ref.type), mask)

    def read(self, ref: Ref, lane: int) -> int:
        """A lane's content of a slot, as an unsigned number."""
        values = self.values(ref)
        if isinstance(values, tuple):
            return int(values[0][lane]) | int(values[1][lane]) << 64
        return int(values[lane])

    def write(self, ref: Ref, lane: int, value: int) -> None:
        """Set a lane's content of a slot."""
        values = self.values(ref)
        for part, shift in zip(values, (0, 64), strict=True) if isinstance(values, tuple) else ((values, 0),):
            bits = 1 if part.dtype == np.bool_ else 8 * part.dtype.itemsize
            part[lane] = value >> shift & (1 << bits) - 1
        self.set_values(ref, values, 1 << lane)

    @property
    def counted(self) -> bool:
        """Whether the threads that come to this barrier have been counted (`filters.COMES`)."""
        return False

    def take_turns(self) -> int:
        """Lanes that have arrived at the cluster's barrier and not waited there, of whom nobody was told
        (`filters.TURNS`). The observer that asks notes them."""
        return 0

    def addresses(self, position: int = 0) -> Array:
        """Addresses of all lanes (u64): a source operand plus the operation's constant; no operand: the constant."""
        ref = self.op.src[position]
        offset = np.uint64(self.op.imm & _MASK64)
        if ref is None:
            return np.full(LANES, offset, np.uint64)
        values: Array = self.values(ref).astype(np.uint64) + offset
        return values & np.uint64(0xFFFF_FFFF) if ref.type == "b32" else values

    def address(self, lane: int) -> int:
        """The address of one lane, likewise."""
        ref, offset = self.op.src[0], self.op.imm
        if ref is None:
            return offset & _MASK64
        return self.read(ref, lane) + offset & (0xFFFF_FFFF if ref.type == "b32" else _MASK64)

    def register(self, name: str) -> Any:
        """The 32 lanes of a PTX register by its name (`machine.registers`). Raises KeyError for one that is not known
        here."""
        from .registers import register

        return register(self, name)

    def registers(self) -> dict[str, Any]:
        """All PTX registers that are known here, by their names."""
        from .registers import registers

        return registers(self)

    def block(self, slots: Array) -> Array:
        """Many 32-bit registers at once, by their slots: registers x 32 lanes (u32)."""
        return np.stack([self.values(Ref(Slot(int(slot)), "b32")) for slot in slots])

    def set_block(self, slots: Array, values: Array) -> None:
        """Write many 32-bit registers at once, for the lanes that run the operation."""
        for slot, row in zip(slots, values, strict=True):
            self.set_values(Ref(Slot(int(slot)), "b32"), row)

    # --- warpgroups ---------------------------------------------------------------------------------------------------

    def offer_fetch(self, textures: TextureTable) -> None:  # noqa: B027 - most engines have nothing to offer
        """Let an engine that can do this texture fetch by itself take it over. Others do nothing."""

    def issued_by(self, warp: int) -> IssuedProducts:
        """What a warp of the CTA has issued of wgmma."""
        record: IssuedProducts = self.cta.state.setdefault(f"wgmma of warp {warp}", IssuedProducts.empty())
        return record

    # --- memory -------------------------------------------------------------------------------------------------------

    def memory(
        self, address: int, size: int, space: str = "", *, lane: int | None = None, write: bool = True, align: int = 1,
        told: bool = True,
    ) -> memoryview:  # fmt: skip
        """`size` bytes at an address of a state space ("": generic), writable; shared memory of any CTA of the cluster.

        told: observers of what is written hear of it; False: the caller tells them of an access.
        Raises `Trap` for what is out of bounds or no multiple of `align`. Local memory is no stretch of bytes: see
        `fetch`.
        """
        found, place = self.resolve(address, space)
        who = self.leader if lane is None else lane
        if align > 1 and address % align:
            raise self.trap(f"address {address:#x} is not aligned to {align} bytes", who, cause=Cause.MISALIGNED)
        if found == "shared":
            cta = self.shared_owner(place, lane=who)
            offset = place & OFFSET_MASK
            if offset + size <= len(cta.shared):
                if write and told and self.launch.observers is not None:
                    self.launch.observers.tell("wrote_shared", cta, offset, size)
                return cta.shared[offset : offset + size]
        elif found == "param":
            if not write and place + size <= len(self.launch.params):
                return memoryview(self.launch.params)[place : place + size]
            if write:
                raise self.trap("kernel parameters cannot be written", who)
        elif found in ("global", "const"):
            view = self.launch.memory.bytes(place, size, write, told=told)
            if view is not None:
                return view
        action = "write" if write else "read"
        raise self.trap(
            f"{found} {action} of {size} bytes at {place:#x} is out of bounds",
            who,
            cause=Cause.OUT_OF_BOUNDS,
            space=found,
        )

    def fetch(self, address: int, size: int, space: str = "", *, lane: int | None = None, align: int = 1) -> bytes:
        """A copy of `size` bytes of any state space, local memory of the lane included. Raises `Trap`."""
        who = self.leader if lane is None else lane
        found, place = self.resolve(address, space)
        if found == "local":
            self._check_local(place, size, who, "read")
            return self.local(who, place, size)
        return bytes(self.memory(address, size, space, lane=who, write=False, align=align))

    def put(self, address: int, data: bytes, space: str = "", *, lane: int | None = None, align: int = 1) -> None:
        """Write bytes to any state space, local memory of the lane included. Raises `Trap`."""
        who = self.leader if lane is None else lane
        found, place = self.resolve(address, space)
        if found == "local":
            self._check_local(place, len(data), who, "write")
            if self.launch.observers is not None:
                self.launch.observers.tell("wrote_local", self, who, place, len(data))
            self.set_local(who, place, data)
        else:
            self.memory(address, len(data), space, lane=who, align=align)[:] = data

    def shared_owner(self, address: int, *, lane: int | None = None) -> Cta:
        """The CTA of the cluster whose shared memory an address of the shared window means. Raises `Trap`."""
        rank = (address & 0xFFFF_FFFF) >> RANK_SHIFT
        if rank == self.cta.rank or (rank == 0 and not self.launch.program.clustered):
            return self.cta
        if rank < len(self.cluster.ctas):
            return self.cluster.ctas[rank]
        who = self.leader if lane is None else lane
        raise self.trap(f"shared memory address {address:#x} belongs to no CTA of the cluster", who)

    def shared_places(self, addresses: Array, window: int = 0xFFFF_FFFF) -> Array:
        """Addresses of the shared window (u64) as places in the cluster's shared memory, the rank above the offset.
        A program that has no instruction for clusters leaves it out. window: the bits of an address that count."""
        places: Array = addresses & np.uint64(window)
        if not self.launch.program.clustered and self.cta.rank:
            mine = np.uint64(self.cta.rank << RANK_SHIFT)
            places = np.where(places >> np.uint64(RANK_SHIFT) == 0, places | mine, places)
        return places

    def resolve(self, address: int, space: str) -> tuple[str, int]:
        """State space and address in it; windows of the generic space are resolved."""
        space = _SPACES.get(space, space)
        if space != "generic":
            return space, address & (0xFFFF_FFFF if space == "shared" else _MASK64)
        found = SPACE_OF_WINDOW.get(address >> 56, "global")
        return found, address if found == "global" else address & (1 << 56) - 1

    def _check_local(self, address: int, size: int, lane: int, action: str) -> None:
        if address + size > self.local_bytes:
            reason = f"local {action} of {size} bytes at {address:#x} is out of bounds"
            raise self.trap(reason, lane, cause=Cause.OUT_OF_BOUNDS, space="local")

    # --- waiting and failing ------------------------------------------------------------------------------------------

    def wait(
        self, key: Hashable, text: object, *, lanes: int | None = None, limit: int | None = None, note: Any = None
    ) -> None:
        """These lanes (all that run the operation) stay, and try again after `cluster.wake(key)`.

        limit: nanoseconds of virtual time after which they try again in any case. text: what they wait for, such as
        "mbarrier at shared 0x40, phase 0: 3 of 4 arrivals". note: found again through `woken(lane).note`.
        """
        row = OPERATIONS.get(self.op.kind)
        assert row is None or row.waits, f"'{self.op.kind}' has no wait in the table of operations"
        who = self.mask if lanes is None else lanes & self.mask
        if who:
            until = None if limit is None else self.now + limit
            self.hold(Wait(self.cta, self.warp, who, key, text, until, note, self.op.where))

    def woken(self, lane: int) -> Wait | None:
        """The wait that this lane came back from, if it did so just now."""
        return next((wait for wait in self.came if wait.back >> lane & 1), None)

    def expired(self, lane: int) -> bool:
        """Whether the lane came back because the limit of its wait is over."""
        wait = self.woken(lane)
        return wait is not None and wait.expired

    @property
    def slept(self) -> int:
        """The lanes for which `expired` holds."""
        lanes = 0
        for wait in self.came:
            if wait.expired:
                lanes |= wait.back
        return lanes

    def trap(self, reason: str, lane: int | None = None, *, cause: Cause = Cause.OTHER, space: str = "") -> Trap:
        """The trap to raise for a lane (the lowest one) at this operation. cause, space: as in `Trap`."""
        program, where = self.launch.program, self.op.where
        return Trap(
            reason, kernel=program.kernel, cta=self.cta.place,
            thread=self.thread(self.leader if lane is None else lane),
            where=where if where >= 0 else None, text=program.lines[where][2] if where >= 0 else "",
            cause=cause, space=space,
        )  # fmt: skip


Service: TypeAlias = Callable[[View], None]

#: The function that serves an event, by the kind of its operation.
HANDLERS: dict[str, Service] = {}


def serves(*kinds: str) -> Callable[[Service], Service]:
    """Register a function for the events of these kinds of operations."""

    def add(function: Service) -> Service:
        for kind in kinds:
            HANDLERS[kind] = function
        return function

    return add


def find(launch: Launch, kind: str) -> Service | None:
    """The function for a kind of operation; None if nobody serves it."""
    known = HANDLERS.get(kind)
    home = "looks" if kind.startswith("observe.") else "stack" if kind == "stack" else ""
    if known is None and home:
        import_module(f"{__package__}.{home}")  # which registers itself
        known = HANDLERS.get(kind)
    if known is None and launch.services is not None:
        launch.services(kind)
        known = HANDLERS.get(kind)
    return known


def has_told(view: View) -> None:
    """The warp arrives at an mbarrier."""
    view.cta.state.setdefault(_TOLD, set()).add(view.warp)


def let_others_first(view: View, lanes: int) -> int:
    """Those of some lanes that go on now; they wait for asynchronous work of their own. If the warp has arrived at an
    mbarrier since it last did so, they stay until nobody else can go on: who was told too early finds the work
    outstanding."""
    if view.warp not in view.cta.state.get(_TOLD, ()):
        return lanes
    awake = lanes & ~view.slept
    if awake != lanes:
        view.cta.state[_TOLD].discard(view.warp)
    if awake:
        text, until = "its asynchronous work to be complete", view.now + LATENESS
        wait = Wait(view.cta, view.warp, awake, ("others first", view.cta.rank), text, until, None, view.op.where)
        view.hold(wait)
        view.schedule.yields(wait)
    return lanes & ~awake


@serves("nanosleep")
def nanosleep(view: View) -> None:
    """9.7.19.2: lanes sleep for a virtual time of at most twice what they ask for; here exactly that."""
    awake = view.mask & ~view.slept
    if not awake:
        return
    durations = np.minimum(view.source(0), np.uint32(LONGEST_SLEEP))
    lanes = (np.uint32(awake) >> _LANES & np.uint32(1)).astype(np.bool_)
    for duration in np.unique(durations[lanes]).tolist():
        group = int(np.packbits(lanes & (durations == duration), bitorder="little").view(np.uint32)[0])
        view.wait(("sleep", view.cta.rank, view.warp, duration), f"{duration} ns to pass", lanes=group, limit=duration)
