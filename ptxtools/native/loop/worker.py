"""One worker: its share of the resident CTAs in memory, and calls of the native loop until the grid is done."""

from __future__ import annotations

import ctypes
import mmap
import time
from collections.abc import Hashable
from functools import cached_property
from math import gcd
from random import Random
from typing import TYPE_CHECKING, Any

from ptxtools.machine.issued import WARPS
from ptxtools.machine.launch import flagged_local, launch_special, launch_value, local_bytes, no_counts
from ptxtools.machine.residents import MARKS_HEAD, PLANES, Schedule, take_back
from ptxtools.native.code import library, structures
from ptxtools.native.code.encode import ConstantRows, Encoded, frame_area, set_constants
from ptxtools.native.code.filling import Filling, array_of
from ptxtools.native.code.layouts import Structure
from ptxtools.native.code.structures import (
    CTA,
    CTX,
    KNOWN_OFFSET,
    KNOWN_ROWS,
    OWNERS,
    RECORD,
    STRETCH,
    WARP,
)
from ptxtools.program.program import COUNTER_BYTES, RANK_SHIFT, is_launch_special

from . import events
from .parts import Parts
from .polling import Hang, Polls, Watch, stuck
from .spare import PAGE, SMALL, release, resident_memory

if TYPE_CHECKING:
    from ptxtools.diagnostics import Trap
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.residents import Wait
    from ptxtools.program.program import Program

    from .filters import Rows
    from .team import Team

#: Records (one operation of one warp) between two looks at limits and signals: about 40 ms.
QUANTUM = 16_000_000
#: Records that one warp, and one CTA, may execute before others get a turn.
WARP_SLICE, CTA_SLICE = 8192, 131072
_SHUFFLED_CTA_SLICE = 4096
#: Nanoseconds, and cycles, of virtual time that one record takes.
NANOSECONDS = 4
#: Calls of Python functions between two looks at limits and signals.
_SERVICES = 2000
#: Seconds that a worker sleeps while it can only wait for other workers.
_REST = 0.0005
_NEVER = (1 << 63) - 1
#: Host ranges that a worker remembers for `ptx_run`.
_RANGES = 64

#: Bytes before the rows of counters that native code works in (`handlers.measures.ROOM`, which loads LLVM).
_COUNT_ROOM = 256


#: Fields of a worker's context that refer to what its launch adds to the program (`Given.addresses`).
GIVEN = "functions", "params", "specials"
#: Fields of a worker's context that differ between launches of one shape, or between workers.
_OWN = (
    *GIVEN, "next", "slots", "arena", "base", "size", "const_base", "const_size",
    "param_bytes", "slot_count", "unison", "epoch", "workers", "part", "parts",
)  # fmt: skip
#: Shapes of a program's launches that are remembered.
_SHAPES = 64


def shape_of(launch: Launch, encoded: Encoded) -> Shape:
    """The sizes of a launch, as another one of the same shape has found them."""
    seen = launch.observers
    kept = None if seen is None else (seen.flags, seen.owners, seen.marks, seen.proxies, seen.flights)
    key = launch.grid, launch.block, launch.cluster, launch.dynamic_shared, launch.local_bytes, launch.sms, kept
    shape: Shape | None = encoded.shapes.get(key)
    if shape is None:
        if len(encoded.shapes) >= _SHAPES:
            encoded.shapes.clear()
        shape = encoded.shapes[key] = Shape(launch)
    return shape


class Shape:
    """Sizes of a CTA's memory, the same for all workers of a launch."""

    #: Fills the contexts of its workers, once there is one.
    filling: Filling | None = None
    #: Thread-instructions and seconds of the last launch, and the values that it added to the program.
    instructions, seconds = 0, 0.0
    given: Given | None = None
    #: What lasting bounds of observers were made into.
    rows: Rows | None = None
    #: Workers of launches before, which may run another, by how many there are, for how many clusters, in which parts.
    teams: dict[tuple[int, int, int], list[Team]]

    def __init__(self, launch: Launch) -> None:
        self.teams = {}
        x, y, z = launch.block
        self.threads = x * y * z
        self.warps = -(-self.threads // 32)
        self.shared = launch.program.static_shared + launch.dynamic_shared
        self.local = local_bytes(launch)
        self.frames = frame_area(launch.program, self.local)
        #: Bytes from shared memory to the flags that observers keep of it; 0: there are none.
        self.flags = _up(self.shared + 64, 64) if launch.observers is not None and launch.observers.flags else 0
        self.clear = self.flags + self.shared
        #: Bytes from shared memory to the words that say who has touched it, a header before them; 0: there are none.
        self.owners = 0
        if launch.observers is not None and launch.observers.owners:
            self.owners = _up(self.clear + 64, 64)
            self.clear = self.owners + OWNERS.size + 4 * self.shared // launch.observers.owners
        #: Bytes from shared memory to the marks of what copies write, a head before them; 0: there are none.
        self.marks = self.stores = self.reads = self.reads_bytes = 0
        if launch.observers is not None and launch.observers.marks:
            self.marks = _up(self.clear + 64, 64) + MARKS_HEAD
            self.clear = self.marks + _up(self.shared, 64)
        #: Likewise to words of when its bytes were stored, and of which products of each warpgroup read them.
        if launch.observers is not None and launch.observers.proxies:
            self.stores = _up(self.clear + 64, 64)
            self.reads = self.stores + _up(self.shared, 64)
            self.reads_bytes = _up(self.shared // 4 + 4, 64)
            self.clear = self.reads + -(-self.warps // WARPS) * self.reads_bytes
        #: Likewise to planes of asynchronous work, as long as those.
        self.flights = 0
        if launch.observers is not None and launch.observers.flights:
            self.flights = self.clear
            self.clear += PLANES * self.reads_bytes
        self.warps_offset = _up(CTA.size + self.clear + 64, 64)
        self.warp_bytes = _up(WARP.size + self.frames, 64) | 64  # warps begin at different cache sets
        self.local_offset = _up(self.warps_offset + self.warps * self.warp_bytes, 64)
        self.local_warp = 32 * self.local
        #: Bytes from a warp's local memory to the flags that observers keep of it, lane by lane; 0: there are none.
        self.local_flags = self.warps * self.local_warp if self.flags and flagged_local(launch) else 0
        self.slot = _up(self.local_offset + self.warps * self.local_warp + self.local_flags, PAGE) + 64
        #: Bytes of it that are used: not the local memory of kernels that have none.
        self.used = self.slot if has_local(launch.program) else _up(self.local_offset, PAGE)
        self.ctas = launch.grid[0] * launch.grid[1] * launch.grid[2]
        self.cluster = launch.cluster[0] * launch.cluster[1] * launch.cluster[2]
        self.clusters = self.ctas // self.cluster


def has_local(program: Program) -> bool:
    """Whether local memory means something."""
    return bool(program.local_bytes or program.takes_stack or not program.max_frames)


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


class Given:
    """What launches of one shape with the same parameters add to a program, which nobody changes: parameters, constants
    and special registers of the grid. key: what it depends on."""

    def __init__(self, launch: Launch, encoded: Encoded, key: Hashable) -> None:
        self.key = key
        params = launch.params + bytes(64)
        self.params = array_of(ctypes.c_char, len(params)).from_buffer_copy(params)
        values = [_special(launch, name) & (1 << 64) - 1 for name in encoded.specials]
        self.specials = array_of(ctypes.c_uint64, max(1, len(values)))(*values)
        self.functions = encoded.functions
        self.keep: list[object] = []
        known = _known(launch, encoded)
        if known:
            self.functions = type(encoded.functions).from_buffer_copy(encoded.functions)
            for number, rows in known.items():
                table = rows.table(launch)
                self.keep.append(table)
                set_constants(self.functions, number, table, rows.count)
        self.addresses = tuple(map(ctypes.addressof, (self.functions, self.params, self.specials)))


class Tables:
    """What the workers of a launch have in common: the values that it adds to the program, those of the last launch if
    they are the same; the clusters, in so many parts; what workers know of each other."""

    def __init__(self, launch: Launch, encoded: Encoded, shape: Shape, workers: int, parts: int = 1) -> None:
        self.given = self.found(launch, encoded, shape)
        self.parts = Parts(shape.clusters, parts)
        self.polls = Polls(workers)

    @staticmethod
    def found(launch: Launch, encoded: Encoded, shape: Shape) -> Given:
        """What a launch adds to the program."""
        if encoded.others is None:
            encoded.others = [one for rows in _known(launch, encoded).values() for _, one in rows.others]
        values = [_special(launch, name) for name in encoded.specials]
        key = launch.params, *values, *[launch_value(launch, one) for one in encoded.others]
        given = shape.given
        if given is None or given.key != key:
            given = shape.given = Given(launch, encoded, key)
        return given


def _known(launch: Launch, encoded: Encoded) -> dict[int, ConstantRows]:
    """The constants of functions of which launches decide some, by the functions' numbers."""
    if encoded.known is None:
        functions = enumerate(launch.program.functions)
        encoded.known = {number: ConstantRows(one) for number, one in functions if one.launch_constants}
    return encoded.known


def _special(launch: Launch, name: str) -> int:
    if is_launch_special(name):
        return launch_special(launch, name)
    return launch.specials.get(name, 0)


class Worker:
    """Runs its share of the CTAs of a launch."""

    #: Of virtual time, for each record.
    nanoseconds = NANOSECONDS

    def __init__(self, launch: Launch, encoded: Encoded, shape: Shape, tables: Tables, number: int, slots: int) -> None:
        self.launch, self.encoded, self.shape, self.number = launch, encoded, shape, number
        self.memory, self.used, slots = resident_memory(shape.slot, slots, shape.cluster)
        self.ctx = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.first_slot, self.tables, self.slot_count = PAGE, tables, slots
        self.renew()
        self.woken: dict[int, list[Wait]] = {}  # waits whose lanes may try again, by offset of the warp
        self.view = memoryview(self.memory)
        self.began = time.monotonic()
        #: A gated run is the same however often Python is called: its steps are the parts of whole quanta. begins: the
        #: next one is the first of a quantum.
        listeners = launch.observers
        self.gated = listeners is not None and (listeners.gate is not None or listeners.hear("delays"))
        self.begins = True
        self.log = None if listeners is None else listeners.log
        self.bounded = False  # regions look at accesses themselves
        self.dead: Hang | None = None  # a cluster is dead-locked, and others come to where they are going to wait

    # --- what many launches never need --------------------------------------------------------------------------------

    @cached_property
    def schedule(self) -> Schedule:
        """What waits, and what is pending."""
        return Schedule(self.launch, self._clock, self._skip, self._release, self._claim)

    @cached_property
    def residents(self) -> events.Residents:
        """The clusters that Python knows."""
        return events.Residents(self)

    @cached_property
    def watch(self) -> Watch:
        """What has been seen of the worker's state."""
        return Watch(self, self.tables.polls)

    @cached_property
    def ranges(self) -> ctypes.Array[ctypes.c_uint64]:
        """Host memory that the kernel may use, `ctx.ranges`."""
        ranges = array_of(ctypes.c_uint64, 2 * _RANGES)()
        self.set("ranges", ctypes.addressof(ranges))
        return ranges

    def join(self, launch: Launch, encoded: Encoded, shape: Shape) -> None:
        """Belong to another launch of the same shape."""
        self.launch, self.encoded, self.shape, self.began = launch, encoded, shape, time.monotonic()

    def leave(self) -> None:
        """The run is over, and there may be another: drop what belongs to this one."""
        self.launch = self.encoded = self.shape = None  # type: ignore[assignment]

    def release(self) -> None:
        """The run is over: drop references back to it, to leave no cycles."""
        schedule = vars(self).get("schedule")
        if schedule is not None:
            schedule.release()
        vars(self).clear()

    # --- the context --------------------------------------------------------------------------------------------------

    def renew(self) -> None:
        """Begin with nothing done."""
        ctypes.memset(self.ctx, 0, PAGE)
        for slot in range(self.shape.cluster):
            ctypes.memset(self.ctx + self.slot_offset(slot), 0, CTA.size)
        self._fill(self.tables, self.slot_count)

    def _fill(self, tables: Tables, slots: int) -> None:
        launch, encoded, shape, memory = self.launch, self.encoded, self.shape, self.launch.memory
        if shape.filling is None:
            shape.filling = Filling(CTX, self._alike(), _OWN)
        unison = encoded.unison if launch.seed is None and shape.cluster == 1 else 0
        values = (
            *tables.given.addresses, tables.parts.address, self.ctx + PAGE,
            memory.host - memory.base, memory.base, memory.size, memory.const[0], memory.const[1] - memory.const[0],
            len(launch.params), slots,
            unison, time.time_ns() if launch.seed is None else 0, tables.polls.live, self.number % tables.parts.count,
            tables.parts.count,
        )  # fmt: skip
        shape.filling.fill(self.memory, 0, values)
        if unison and self.number == 0:  # parts try again what they have missed
            ctypes.memset(unison + RECORD.offset("s2"), 0, RECORD.offset("guard") - RECORD.offset("s2"))
        if launch.seed is not None:
            self._shuffle(launch.seed)
        if launch.counts is not None:
            self._count(launch)

    def _alike(self) -> dict[str, int]:
        """The fields of the context that are alike in all launches of one shape."""
        launch, encoded, shape = self.launch, self.encoded, self.shape
        gx, gy, gz = launch.grid
        bx, by, bz = launch.block
        cx, cy, cz = launch.cluster
        return {
            "code": ctypes.addressof(encoded.code), "blocks": ctypes.addressof(encoded.blocks),
            "open_host": launch.memory.open_host, "has_calls": encoded.calls or launch.program.takes_stack,
            "total": shape.clusters, "grid_x": gx, "grid_y": gy, "grid_z": gz,
            "block_x": bx, "block_y": by, "block_z": bz, "cluster_x": cx, "cluster_y": cy, "cluster_z": cz,
            "cluster_size": shape.cluster, "clusters_x": gx // cx, "clusters_y": gy // cy, "alarm": _NEVER,
            "rank_step": launch.program.clustered << RANK_SHIFT, "threads": shape.threads, "warps": shape.warps,
            "slot_bytes": shape.slot, "slot_used": shape.cluster, "warps_offset": shape.warps_offset,
            "warp_bytes": shape.warp_bytes, "local_offset": shape.local_offset, "local_warp_bytes": shape.local_warp,
            "shared_bytes": shape.shared, "clear_bytes": shape.clear, "owners": shape.owners,
            "marks": shape.marks and shape.marks - MARKS_HEAD, "stores": shape.stores, "reads": shape.reads,
            "reads_bytes": shape.reads_bytes, "flights": shape.flights, "frame_limit": shape.frames,
            "local_bytes": shape.local, "local_flags": shape.local_flags, "sms": launch.sms,
            "first_block": 2 * launch.program.functions[0].first,
            "warp_slice": WARP_SLICE, "given": WARP_SLICE, "cta_slice": CTA_SLICE,
        }  # fmt: skip

    def _count(self, launch: Launch) -> None:
        """Give native code rows to count in."""
        self._counts = no_counts(launch.program, more=_COUNT_ROOM // COUNTER_BYTES)
        self.counts = self._counts[_COUNT_ROOM // COUNTER_BYTES :]
        self.set("counters", _address(self._counts) + _COUNT_ROOM)
        cache = launch.cache
        if cache is not None:
            self.set("cached", _address(cache.cached))
            self.set("dirty", _address(cache.dirty))
            self.set("cache_mask", cache.entries - 1)

    def _shuffle(self, seed: int) -> None:
        """Let the native code draw warps, slices and the order of clusters from the seed."""
        random, total = Random(seed), self.shape.clusters
        stride = random.randrange(total)
        while gcd(stride, total) != 1:
            stride += 1
        self.set("random", random.getrandbits(63) | 1)
        self.set("stride", stride)
        self.set("start", random.randrange(total))
        self.set("cta_slice", _SHUFFLED_CTA_SLICE)

    # --- shared memory with the native code ---------------------------------------------------------------------------

    def set(self, name: str, value: int) -> None:
        """Write a field of this worker's context."""
        CTX.write(self.memory, 0, name, value)

    def get(self, name: str) -> int:
        """Read a field of this worker's context, as an unsigned number."""
        return CTX.read(self.memory, 0, name)

    def lend(self, size: int) -> mmap.mmap:
        """Give native services memory to work in; it is lent once."""
        if not self.get("scratch"):
            self.scratch = mmap.mmap(-1, size)  # pages that nobody uses cost nothing
            self.set("scratch", ctypes.addressof(ctypes.c_char.from_buffer(self.scratch)))
        return self.scratch

    def show(self, rows: Any, count: int) -> None:
        """Let native services know the textures."""
        self.textures = rows  # alive as long as native code may read it
        self.set("textures", rows.__array_interface__["data"][0])
        self.set("texture_count", count)

    def filter(self, rows: Rows) -> None:
        """Let native services pass accesses by."""
        self.rows, self.bounded = rows, rows.bounded  # alive as long as native code may read them
        rows.show(self.memory)

    def slot_offset(self, slot: int) -> int:
        """Offset of the CTA of a slot in the memory of the worker."""
        return self.first_slot + slot * self.shape.slot

    def field(self, at: int, structure: Structure, name: str) -> int:
        """A field of a structure at an offset in the worker's memory."""
        return structure.read(self.memory, at, name)

    def set_field(self, at: int, structure: Structure, name: str, value: int) -> None:
        """Write a field of a structure at an offset in the worker's memory."""
        structure.write(self.memory, at, name, value)

    @property
    def instructions(self) -> int:
        """Thread-instructions executed so far."""
        return self.get("count")

    @property
    def claimed(self) -> int:
        """Clusters that this worker will start, and nobody else."""
        return max(0, self.get("claims") - self.get("claimed"))

    # --- running ------------------------------------------------------------------------------------------------------

    def step(self, quantum: int, answer: int | None = None) -> bool:
        """Run for a quantum of records, or for the first part of it; true when this worker has nothing left to do.
        answer: of the loop, which has been called by somebody else behind `begin`. Raises `Trap` and `Hang`."""
        if answer is None and (self.begins or not self.gated):
            self.set("quantum", quantum)
            self.begins = False
        finished = self._step(answer)
        if self.dead is not None:
            raise self.dead
        return finished

    def begin(self, quantum: int) -> None:
        """Make ready for the first call of the loop, which somebody else makes."""
        self.set("quantum", quantum)
        self.begins = False
        self._forget()

    def _forget(self) -> None:
        """What is known of stretches of memory is so no longer: Python may have changed them."""
        if self.bounded:
            ctypes.memset(self.ctx + KNOWN_OFFSET, 0, KNOWN_ROWS * STRETCH.size)

    def _step(self, answer: int | None) -> bool:
        for _ in range(_SERVICES):
            if answer is None:
                self._forget()
                answer = self.encoded.run(self.ctx)
            if self.log is not None:
                self._read_log()
            if answer == structures.RUN_FINISHED:
                return True
            if answer == structures.RUN_QUANTUM:
                self.begins = True
                return False
            if answer == structures.RUN_TRAP:
                raise self.trap()
            if answer == structures.RUN_STUCK:
                self._stuck()
            elif answer == structures.RUN_ALARM:
                self.schedule.run_due()
                self.set("resume", structures.RESUME_SAME)
            elif answer == structures.RUN_ENDED:
                self.residents.ended(self.get("slot_current"))
            else:
                self._serve(answer)
                self.set("resume", structures.RESUME_EXACT)
            answer = None
            due = self.schedule.next_time()
            self.set("alarm", _NEVER if due is None else due // NANOSECONDS + 1)
            if self.watch.rests:
                self.watch.rests = False
                time.sleep(_REST)
                return False
        return False

    def _read_log(self) -> None:
        """Tell of what has been logged, before anything else happens in Python."""
        listeners = self.launch.observers
        assert listeners is not None and listeners.logged is not None
        for rows in self.log.taken() if self.log is not None else ():
            rows["time"] *= NANOSECONDS
            listeners.logged(rows, self.residents.places())

    def trap(self) -> Trap:
        from . import faults

        return faults.trap(self)

    def _serve(self, answer: int) -> None:
        from . import faults

        if answer == structures.RUN_HOST:
            if not self._open_range():
                self.set("stop_code", structures.TRAP_ADDRESS)
                raise self.trap()
            return
        op = faults.stopped_at(self)
        assert op is not None
        serve = events.find(self.launch, op.kind)
        if serve is None:
            raise faults.unsupported(self, op)
        mask = self.get("stop_mask")
        if not mask:
            return
        view = events.NativeView(self, op, self.get("stop_warp"), self.get("stop_fp"), mask)
        if self.woken:
            view.came = take_back(self.woken, view.origin, mask)
        serve(view)
        if view.held:
            self.set("resume_mask", self.get("resume_mask") & ~view.held)

    # --- waiting ------------------------------------------------------------------------------------------------------

    def stopped_block(self) -> int:
        """Number, for the native code, of the place at which an event has stopped."""
        where = self.get("stop_ip") + structures.RECORD.offset("s2")
        return int.from_bytes(ctypes.string_at(where, 4), "little")

    def hold(self, warp: int, wait: Wait) -> None:
        """Mark lanes of a warp (by its offset) as unable to run; they are at the block of the wait."""
        self.set_field(warp, WARP, "ready", self.field(warp, WARP, "ready") & ~wait.lanes)
        self.set_field(warp, WARP, "group", 0)
        self.set_field(warp, WARP, "wait_ip", self.get("stop_ip"))
        events.set_blocks(self.memory, warp + WARP.offset("pc"), wait.lanes, wait.block)

    def _release(self, wait: Wait) -> None:
        """Let the lanes of a wait try again."""
        warp = wait.frame
        self.woken.setdefault(warp, []).append(wait)
        self.set_field(warp, WARP, "ready", self.field(warp, WARP, "ready") | wait.lanes)
        cta = wait.cta.handle
        self.set_field(cta, CTA, "ready", self.field(cta, CTA, "ready") | 1 << wait.warp)

    def _clock(self) -> int:
        return self.get("clock") * NANOSECONDS

    def _skip(self, nanoseconds: int) -> None:
        self.set("clock", self.get("clock") - -nanoseconds // NANOSECONDS)

    def _claim(self) -> int | None:
        claim = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(library.early({})[0]["claim"])
        number = int(claim(self.ctx))
        return None if number < 0 else number

    def _stuck(self) -> None:
        """Nobody in the present cluster can move: see what is due, let others run, or report.

        When a cluster is dead-locked the others still run to the end of the step: the report names them, too.
        """
        schedule = self.schedule
        if schedule.run_due():
            if self._others():  # a short sleep must not keep them from running
                self.set("resume", structures.RESUME_NEXT)
            return
        cluster = self.residents.known(self.get("slot_current"))
        if cluster is None or not schedule.has_due(cluster):
            self.dead = stuck()
        if self._others():
            self.set("resume", structures.RESUME_NEXT)
            return
        if self.dead is not None:
            raise self.dead
        if not schedule.works() and self.watch.only_waits():
            raise stuck()
        schedule.jump()

    def _others(self) -> bool:
        """Whether any CTA of this worker can run, or be started."""
        used = self.get("slot_used")
        started = self.tables.parts.taken >= self.shape.clusters and not self.claimed
        if not started and used < self.get("slot_count"):
            return True
        for slot in range(used):
            at = self.slot_offset(slot)
            state = self.field(at, CTA, "state")
            if (state == 0 and not started) or (state == 1 and self.field(at, CTA, "ready")):
                return True
        return False

    def _open_range(self) -> bool:
        """Let the kernel use the host memory around the address that it stopped at, if the process has it."""
        address, code = self.get("stop_address"), self.get("stop_code")
        size, write = code >> 1, bool(code & 1)
        memory = self.launch.memory
        if memory.readable is None or not memory.readable(address, size, write):
            return False
        around = memory.mapping(address) if memory.mapping is not None else None
        first, end = around or (address, address + size)
        end = max(end, address + size)
        count = self.get("range_count")
        if count == _RANGES:
            count = 0
        self.ranges[2 * count], self.ranges[2 * count + 1] = first, end
        self.set("range_count", count + 1)
        return True

    def used_bytes(self) -> int:
        """Bytes of its memory that have been used so far."""
        size = len(self.memory)
        self.used = size if size <= SMALL else max(self.used, PAGE + self.get("slot_used") * self.shape.used)
        return self.used

    def close(self) -> None:
        """Give the memory back for the next launch."""
        release(self.memory, self.used_bytes())
