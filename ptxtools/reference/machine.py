"""The state of resident CTAs, one array element per thread, and access to it for executors.

All resident CTAs share one set of arrays: thread number = CTA slot * padded threads of a CTA + thread of the CTA, each
CTA padded to whole warps. A register of a frame is an array over all threads, found by its offset from the frame area's
start and its storage class; the entry's frame is at 0.
"""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.diagnostics import Cause, Trap
from ptxtools.machine.arrays import NumpyAlgebra
from ptxtools.machine.launch import Dim3, Launch, constants, local_bytes
from ptxtools.machine.residents import Schedule, Wait
from ptxtools.program.program import LANES, STACK_POINTER, FunctionCode, Program, Ref
from ptxtools.semantics.types import bits_of

from .buffers import Buffer
from .events import Residents, release
from .registry import Array, Threads

if TYPE_CHECKING:
    from .barriers import Barrier
    from .weak import WeakMemory

#: `pc` of a thread that has exited or does not exist in its CTA.
GONE = 1 << 30

_DTYPES: dict[str, type] = {"pred": np.bool_, "b16": np.uint16, "b32": np.uint32, "b64": np.uint64}


class Machine:
    """Resident CTAs of one launch."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.program: Program = launch.program
        self.weak: WeakMemory | None = None  # set by the loop, if the launch wants it
        x, y, z = launch.block
        self.block_threads = x * y * z
        self.warps = -(-self.block_threads // LANES)
        self.padded = self.warps * LANES
        gx, gy, gz = launch.grid
        cx, cy, cz = launch.cluster
        self.ctas = gx * gy * gz
        self.cluster = cx * cy * cz
        self.slots = max(1, min(launch.resident // self.cluster, self.ctas // self.cluster)) * self.cluster
        count = self.slots * self.padded
        self.count = count
        self.pc = np.full(count, GONE, np.int64)
        self.frame = np.zeros(count, np.int64)
        self.depth = np.zeros(count, np.int64)
        self.blocked = np.zeros(count, np.bool_)  # waits at a barrier
        self.parked = np.zeros(count, np.bool_)  # waits for lanes of its warp
        self.resting = np.zeros(count, np.bool_)  # yields to others
        self.slot_of = np.repeat(np.arange(self.slots), self.padded)
        self.warp_of = np.arange(count) // LANES
        self.thread_of = np.tile(np.arange(self.padded), self.slots)
        self.cta_of_slot = np.full(self.slots, -1, np.int64)
        self.instructions = 0
        self.algebra = NumpyAlgebra(self._context)
        self._registers: dict[tuple[int, str], Any] = {}
        self.started = 0  # clusters
        self.order = None
        if launch.seed is not None and self.ctas <= 1 << 20:
            self.order = np.random.default_rng(launch.seed).permutation(self.ctas // self.cluster)
        self.at_cluster_barrier = np.zeros(count, np.bool_)  # has arrived in the phase that is not complete
        self.cluster_waiting = np.zeros(count, np.bool_)
        self.cluster_where = np.zeros(count, np.int64)  # line at which it waits
        self.running = 0  # block that runs
        self.together: Array = np.zeros(0, np.intp)  # threads that run it
        self.epoch = time.time_ns() if launch.seed is None else 0  # virtual time begins here
        self.timed = False  # a clock has been read
        self.skipped = 0  # virtual time in which nothing could run
        self.woken: dict[int, list[Wait]] = {}  # waits whose lanes may try again, by number of lane 0
        self.schedule = Schedule(launch, self.now, self._skip, lambda wait: release(self, wait), self.next_cluster)
        self.residents = Residents(self)
        self.barriers: dict[tuple[int, int], Barrier] = {}  # those in use, by CTA slot and number
        self.returns: dict[int, tuple[Array, Array]] = {}  # frame -> block and frame to return to
        self._constants = [self._fill(function) for function in self.program.functions]
        self._function_of_block = self._functions()
        self.function = 0
        self.here = 0  # frame of the threads that run
        self.local_bytes = local_bytes(launch)
        self.shared_bytes = self.program.static_shared + launch.dynamic_shared
        self.shared_stride = -(-self.shared_bytes // 16) * 16
        self.shared = Buffer.zeros(self.shared_stride * self.slots)
        self.local = Buffer.zeros(self.local_bytes * count)
        self.top = np.zeros(count, np.uint64)  # what `alloca` has taken lies above
        self.params = Buffer.copy_of(launch.params)
        self.memory = Buffer.at(launch.memory.host, launch.memory.size)

    def _functions(self) -> list[int]:
        owners: list[int] = []
        starts = [function.first for function in self.program.functions] + [len(self.program.blocks)]
        for number in range(len(starts) - 1):
            owners += [number] * (starts[number + 1] - starts[number])
        return owners

    def _context(self, name: str) -> int:
        low, size = self.launch.memory.const
        return {"const_base": low, "const_size": size - low if size > low else 0}[name]

    def _fill(self, function: FunctionCode) -> dict[int, Any]:
        filled: dict[int, Any] = {}
        for slot, storage, value in constants(self.launch, function):
            if storage == "b128":
                halves = (value & (1 << 64) - 1, value >> 64)
                filled[slot] = tuple(np.full(self.count, half, np.uint64) for half in halves)
            else:
                filled[slot] = np.full(self.count, value, _DTYPES[storage])
        return filled

    # --- registers ----------------------------------------------------------------------------------------------------

    def enter(self, block: int, frame: int) -> None:
        """From now on, slots refer to this block's function in this frame."""
        self.function = self._function_of_block[block]
        self.here = frame

    def _array(self, slot: int, storage: str) -> Any:
        key = (self.here + slot, storage)
        array = self._registers.get(key)
        if array is None:
            if storage == "b128":
                array = (np.zeros(self.count, np.uint64), np.zeros(self.count, np.uint64))
            else:
                array = np.zeros(self.count, _DTYPES[storage])
            self._registers[key] = array
        return array

    def arrays(self, ref: Ref) -> Any:
        """Content of a slot for all threads, in its storage class; of 128 bits two arrays."""
        array = self._constants[self.function].get(ref.slot)
        return self._array(ref.slot, ref.type) if array is None else array

    def read(self, ref: Ref, threads: Threads) -> Any:
        """Content of a slot, in its storage class."""
        array = self.arrays(ref)
        if isinstance(array, tuple):
            return (array[0][threads], array[1][threads])
        return array[threads]

    def source(self, ref: Ref, type_name: str, threads: Threads) -> Any:
        """A slot as an operand of a PTX type."""
        return self.algebra.adapt(self.read(ref, threads), ref.type, type_name)

    def write(self, ref: Ref | None, value: Any, type_name: str, threads: Threads) -> None:
        """A result of a PTX type into a slot, extended to the slot's width."""
        if ref is None:
            return
        self.put(ref, self.algebra.widen(value, type_name, ref.type), threads)

    def put(self, ref: Ref, value: Any, threads: Threads) -> None:
        """Content of a slot, in its storage class."""
        array = self._array(ref.slot, ref.type)
        if isinstance(array, tuple):
            array[0][threads], array[1][threads] = value
        else:
            array[threads] = value

    def stack_pointer(self, frame: int) -> Array:
        """The stack pointers of a frame, for all threads."""
        saved, self.here = self.here, frame
        array: Array = self._array(STACK_POINTER, "b64")
        self.here = saved
        return array

    # --- warps --------------------------------------------------------------------------------------------------------

    def ballot(self, flags: Array) -> Array:
        """One 32-bit mask per warp of a flag for each thread, lane 0 in bit 0."""
        bits = np.packbits(flags.reshape(-1, LANES), axis=1, bitorder="little")
        masks: Array = bits.view(np.uint32).reshape(-1)
        return masks

    def active(self, threads: Threads) -> Array:
        """For each thread, the mask of the threads of its warp that run with it."""
        flags = np.zeros(self.count, np.bool_)
        flags[threads] = True
        masks: Array = self.ballot(flags)[self.warp_of[threads]]
        return masks

    def digest(self) -> int:
        """A checksum of program counters, registers and shared memory."""
        found = zlib.crc32(self.pc.data, zlib.crc32(self.shared.bytes.data))
        for array in self._registers.values():
            for part in array if isinstance(array, tuple) else (array,):
                found = zlib.crc32(part.data, found)
        return found

    # --- time ---------------------------------------------------------------------------------------------------------

    def now(self) -> int:
        """Virtual time in nanoseconds."""
        return self.instructions // LANES + self.skipped

    def _skip(self, nanoseconds: int) -> None:
        self.skipped += nanoseconds

    # --- places -------------------------------------------------------------------------------------------------------

    def alive(self, slot: int) -> int:
        """Threads of a CTA that have not exited."""
        return int((self.pc[slot * self.padded : (slot + 1) * self.padded] != GONE).sum())

    def living(self, warp: Threads) -> int:
        """Which of the threads of a warp have not exited, as a mask."""
        return int(self.ballot(self.pc[warp] != GONE)[0])

    def next_cluster(self) -> int | None:
        """Claim a cluster that has not been started; returns its number."""
        if self.started * self.cluster >= self.ctas:
            return None
        self.started += 1
        return self.started - 1 if self.order is None else int(self.order[self.started - 1])

    def cta_number(self, cluster: int, rank: int) -> int:
        """Number of a CTA in the grid, x first, by its cluster and its rank in it."""
        gx, gy, _ = self.launch.grid
        cx, cy, _ = self.launch.cluster
        wide, high = gx // cx, gy // cy
        x, y, z = cluster % wide, cluster // wide % high, cluster // (wide * high)
        x, y, z = x * cx + rank % cx, y * cy + rank // cx % cy, z * self.launch.cluster[2] + rank // (cx * cy)
        return x + gx * (y + gy * z)

    def cluster_number(self, slot: int) -> int:
        """Number of the cluster in the grid, x first, that the CTA in a slot is in."""
        (gx, gy, _), (cx, cy, cz) = self.launch.grid, self.launch.cluster
        x, y, z = self.cta_coordinates(slot)
        return x // cx + gx // cx * (y // cy + gy // cy * (z // cz))

    def cta_coordinates(self, slot: int) -> Dim3:
        gx, gy, _ = self.launch.grid
        linear = int(self.cta_of_slot[slot])
        return linear % gx, linear // gx % gy, linear // (gx * gy)

    def thread_coordinates(self, thread: int) -> Dim3:
        x, y, _ = self.launch.block
        linear = int(self.thread_of[thread])
        return linear % x, linear // x % y, linear // (x * y)

    def trap(self, reason: str, thread: int, where: int, *, cause: Cause = Cause.OTHER, space: str = "") -> Trap:
        """The trap to raise for one thread at one instruction. cause, space: as in `Trap`."""
        return Trap(
            reason,
            kernel=self.program.kernel,
            cta=self.cta_coordinates(int(self.slot_of[thread])),
            thread=self.thread_coordinates(int(thread)),
            where=where if where >= 0 else None,
            text=self.program.lines[where][2] if where >= 0 else "",
            cause=cause,
            space=space,
        )


def element_bytes(type_name: str) -> int:
    """Bytes in memory of one element."""
    return max(1, bits_of(type_name) // 8)
