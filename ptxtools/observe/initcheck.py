"""initcheck: registers, shared and local memory, tensor memory, blocks of the heap and buffers of `Device.alloc` must
be written before they are read.

Other buffers, and variables, hold what they were given, so that they have nothing to look for.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.machine.filters import MATRICES, NOBODY, Bounds, stretches
from ptxtools.machine.launch import flagged_local
from ptxtools.machine.looks import sized_late
from ptxtools.machine.observers import Anew
from ptxtools.machine.residents import Cta
from ptxtools.program.details import Touch
from ptxtools.program.layout import RESERVED, RESERVED_OFFSETS
from ptxtools.program.passes.answers import takes_cluster, unchecked
from ptxtools.program.passes.registers import copying, rewritten
from ptxtools.program.program import OFFSET_MASK, RANK_SHIFT
from ptxtools.sim.runtime import HEAP_CALLS
from ptxtools.sim.tensor.wgmma_reads import multiplies

from . import launch_control
from .factors import Factors
from .memcheck import CALL
from .registers import RegisterCheck
from .sharing import independent
from .tensor import TensorCells
from .unwritten import unwritten_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from ptxtools.diagnostics import Trap
    from ptxtools.machine.claims import Span
    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access
    from ptxtools.program.program import Op, Program
    from ptxtools.sim.device import Device, Grid

    from .session import Session

Array: TypeAlias = npt.NDArray[Any]

_NAME = "initcheck"
_SUSPECTS = "loads of what nobody wrote"
#: State spaces that are written before a grid begins, as far as nothing else is known.
_WRITTEN = ("global", "const", "param")
#: Of a stretch of memory whose accesses are all told of, in place of its flags; behind the last address.
_ASKED, _END = -1, (1 << 64) - 1
#: All bits of a byte.
_WHOLE = 0xFF


class InitCheck:
    """Which bytes have been written. Those of the heap are kept from launch to launch with their block."""

    FLAGS = REGIONS = True

    def __init__(self, session: Session, grid: Grid) -> None:
        self._session: Session = weakref.proxy(session)  # which outlives this
        self._device, self._kernel = session.device, grid.program.kernel
        if _discards(grid.program):
            unwritten_of(self._device).know(self._device.arena.live())
        self._again = grid.again  # a load of what nobody wrote is followed in another run
        self._suspects: dict[int, Callable[[], None]] = {}  # such loads, and their reports
        self._followed = grid.program.suspects
        #: Where the system's shared memory ends, which it has written.
        self._reserved = RESERVED_OFFSETS["end"] if RESERVED.name in (name for name, *_ in grid.program.shared) else 0
        self._registers = RegisterCheck(session)
        self._tensor = TensorCells(session)
        self._factors = Factors(session, grid.program, partial(_flags_of, self._reserved))

    @staticmethod
    def state(device: Device) -> Hashable:
        """Whether there is global memory that nobody has written, and the loads that are followed."""
        return _unknown(device), frozenset(_doubtful(device))

    @staticmethod
    def concerned(program: Program, device: Device) -> Callable[[Op], bool]:
        """Which events of a program matter: accesses to global memory only where some may not have been written."""
        unknown = _unknown(device) or bool(device.runtime.calls(program)) or _discards(program)

        def matters(op: Op) -> bool:
            if op.kind == "observe.together":
                return multiplies(op)
            if op.kind == "observe.control":
                return takes_cluster(op)
            if op.kind == "observe.fetch":
                return unknown and sized_late(op)
            return unknown or op.kind != "observe.access" or op.space not in ("global", "const")

        return matters

    @staticmethod
    def shares(program: Program) -> bool:
        """Whether workers may share a grid (`machine.observers.Alone`)."""
        return program.found(independent)

    @staticmethod
    def restarts(program: Program, device: Device) -> bool:
        """Whether the kernel loads what somebody must have written."""
        unknown = _unknown(device) or _discards(program)
        loads = any(op.kind == "ld" and (unknown or op.space not in _WRITTEN) for op in program.operations())
        return loads or bool(unchecked(program))

    @staticmethod
    def suspects(device: Device, program: Program) -> frozenset[int]:
        """Lines of loads that a run has seen load what nobody wrote; of a kernel that cannot run again, also of those
        whose results are stored and nothing else: they may copy a structure, and what lies between its parts."""
        found = frozenset(where for name, where in _doubtful(device) if name == program.kernel)
        if device.runtime.repeatable(program):
            return found
        calls = device.runtime.calls(program)
        spaces = ("local", "generic", "global") if _unknown(device) or calls & HEAP_CALLS else ("local",)
        return found | {op.where for op in copying(program) if op.space in spaces}

    def filter(self, launch: Launch) -> Bounds:
        """Accesses to what has been written; blocks of the heap, and very much local memory, are asked for."""
        heap, first = self._device.runtime.used_heap, 0
        apart: list[tuple[int, int, int]] = unwritten_of(self._device).places()
        if heap is not None:
            apart.append((heap.base, heap.end, _ASKED))
        places: list[tuple[int, int, int]] = []
        for start, end, flags in sorted(apart):
            places += [(first, start, 0), (start, end, flags)]
            first = end
        places.append((first, _END, 0))
        everywhere = stretches(place for place in places if place[2] != _ASKED)
        shared = stretches([(self._reserved, launch.program.static_shared + launch.dynamic_shared)])
        known = {"global": everywhere, "shared": shared, "local": stretches([(0, flagged_local(launch))])}
        followed = launch.program.suspects
        stores = set() if not followed else {
            op.where for op in launch.program.operations() if isinstance(op.detail, Touch) and op.detail.kind == "st"
        }  # fmt: skip
        program, again = launch.program, self._again
        return Bounds(
            known, known, lambda op: op.where in stores or (not again and _hands_over(program, op)), flagged=True
        )

    def passing(self, op: Op) -> int | None:
        """Registers matter to the lanes that run an instruction; a guard that nobody has written, to all."""
        if op.kind == "observe.together":
            return MATRICES
        if op.kind == "observe.control":
            return None
        touch = op.of(Touch)
        return NOBODY if touch.guard < 0 and touch.kind != "entry" else None

    def access(self, at: View, access: Access) -> None:
        """Reads of bytes that nobody wrote are reported, and then count as written."""
        reads = access.action not in ("write", "copy")
        if not self._again and _hands_over(at.launch.program, at.op):
            self._hand_over(at, access, reads=reads)
            return
        found = self._in_one(at, access)
        if found is not None:
            flags, places = found
            if flags is None:
                return
            places = places[:, None] + np.arange(access.size)
            if not reads:
                flags[places] = True
                self._spoil(at, access)
                return
            if flags[places].all():
                return
        for number in range(len(access.lanes)):
            lane, address = int(access.lanes[number]), int(access.addresses[number])
            written, place = self._written(at, access.space, lane, address)
            if written is None:
                continue
            part = written[place : place + access.size]
            if reads and not part.all() and not self._load(at, access, lane, address, place, part):
                continue
            part[:] = True
        if not reads:
            self._spoil(at, access)

    def fetched(self, at: View, access: Access) -> None:
        """A cp.async reads its source, whose size is known only now: `access` has not seen it."""
        if sized_late(at.op):
            self.access(at, access)

    def _hand_over(self, at: View, access: Access, *, reads: bool) -> None:
        """A part of an argument or a result of a function is copied, as little written as it is."""
        key = f"handed over {at.warp}"
        if reads:
            at.cta.state[key] = at.op.where, access.size, {}
        where, size, parts = at.cta.state.get(key, (-1, 0, {}))
        for lane, address in zip(access.lanes.tolist(), access.addresses.tolist(), strict=True):
            flags = _local_flags(at, lane)[address : address + access.size]
            if reads:
                parts[lane] = flags.copy()
            else:
                flags[:] = parts.pop(lane, True) if (where, size) == (at.op.where, access.size) else True

    def _load(self, at: View, access: Access, lane: int, address: int, place: int, part: Array) -> bool:
        """A lane reads bytes of which some are not written; whether they count as written from now on."""
        missing, where = np.flatnonzero(~part), at.op.where
        first = place + int(missing[0])
        message = f"{access.space} read of {access.size} bytes at {address:#x}: nobody wrote byte {first:#x}"
        opcode = at.op.opcode
        if access.action == "read" and opcode is not None and opcode.family == "ld":
            if where in self._followed:
                spoilt = {} if access.space == "global" else self._spoilt(at, access.space, lane, address)
                origin, _ = spoilt.get(first, (where, _WHOLE))
                bits = np.zeros(len(part), np.uint8)
                bits[missing] = [spoilt.get(place + byte, (where, _WHOLE))[1] for byte in missing.tolist()]
                if self._registers.loaded(at, access.space, lane, bits, origin, message):
                    return False
                if where in at.launch.program.found(rewritten):
                    return True
            elif self._again:
                self._doubts(at, lane, message)
                return False
        self._session.report(at, lane, _NAME, message, where)
        return True

    def _doubts(self, at: View, lane: int, message: str) -> None:
        """What a lane gets here is followed in another run, or reported, if there is none."""
        program, where = at.launch.program, at.op.where
        tell = partial(
            self._session.report_at, program, where, at.cta.place, at.thread(lane), _NAME, message, where
        )  # fmt: skip
        if self._again:
            self._suspects.setdefault(where, tell)
        else:
            tell()

    def _spoil(self, at: View, access: Access) -> None:
        """Bytes that a store has written with what nobody has are not written after all."""
        found = self._registers.stored(at) if self._followed else []
        places = dict(zip(access.lanes.tolist(), access.addresses.tolist(), strict=True))
        for lane, byte, origin, padding, bits in found:
            if lane not in places or byte >= access.size or (access.space == "global" and not padding):
                continue  # what is stored to global memory has been reported, but for padding
            written, place = self._written(at, access.space, lane, places[lane])
            if written is not None:
                written[place + byte] = False
                if access.space == "global":
                    continue  # who loads it is to blame
                self._spoilt(at, access.space, lane, places[lane])[place + byte] = origin, bits

    @staticmethod
    def _spoilt(at: View, space: str, lane: int, address: int) -> dict[int, tuple[int, int]]:
        """By byte of the memory that an address is in: the line to blame for its content, and the bits that lack."""
        rank = address >> RANK_SHIFT
        owner = at.cluster.ctas[rank] if space == "shared" and rank < len(at.cluster.ctas) else at.cta
        key = "spoilt shared" if space == "shared" else f"spoilt local {at.warp} {lane}"
        found: dict[int, tuple[int, int]] = owner.state.setdefault(key, {})
        return found

    def grid_ended(self, launch: Launch) -> None:
        """Look again, and closer, if there are loads of what nobody wrote: what they load may not be used."""
        new = {(self._kernel, where) for where in self._suspects} - _doubtful(self._device)
        if new:
            _doubtful(self._device).update(new)
            raise Anew

    def trapped(self, trap: Trap) -> None:
        """The run ends early."""
        for tell in self._suspects.values():
            tell()

    def unwritten(self, at: View, lanes: Array) -> None:
        """Registers that lanes might not have written."""
        self._registers.touched(at, lanes)

    def together(self, at: View, lanes: Array) -> None:
        """A warp is about to execute a product of its warpgroup."""
        if multiplies(at.op):
            self._factors.multiplies(at)

    def matrices(self, at: View, lane: int, spans: Sequence[Span]) -> None:
        """A product, or a copy to tensor memory, reads shared memory."""
        self._factors.read(at, lane, spans)

    def control(self, at: View, lanes: Array) -> None:
        """Lanes take a cluster from an answer of clusterlaunchcontrol; it is followed if there is none (9.7.13.18)."""
        where = at.op.where
        if takes_cluster(at.op) and where not in self._followed and where in unchecked(at.launch.program):
            for lane in launch_control.failed(at, lanes)[:1].tolist():
                self._doubts(at, lane, launch_control.MESSAGE)

    def tensor(self, at: View, lane: int, spans: Sequence[Span]) -> None:
        """An instruction works on tensor memory."""
        self._tensor.touched(at, lane, spans)

    def sent(self, at: View, lane: int, cta: Cta, pick: Callable[[Array], Array]) -> None:
        """A copy takes shared memory to global memory."""
        flags = _flags_of(self._reserved, cta)
        copied = pick(flags.view(np.uint8)).astype(np.bool_)
        if copied.all():
            return
        message = (
            f"nobody wrote {int((~copied).sum()):,} of the {copied.size:,} bytes that the copy takes to global memory"
        )
        self._session.report(at, lane, _NAME, message, (at.op.where, "copy"), kind="copy")

    def updates(self, at: View, lane: int, spans: Sequence[Span]) -> None:
        """A copy adds to memory, or the like."""
        for span in spans:
            flags = self._of_span(span)
            if flags is not None and not flags.all():
                message = f"nobody wrote {int((~flags).sum()):,} of the {flags.size:,} bytes that the copy changes"
                self._session.report(at, lane, _NAME, message, (at.op.where, "copy"), kind="copy")

    def brought(self, at: View, lane: int, cta: Cta, offset: int, source: Sequence[Span]) -> None:
        """A copy has written shared memory with what may not be written."""
        for span in source:
            flags = self._of_span(span)
            if flags is not None and not flags.all():
                shared_flags(cta)[offset : offset + flags.size] = flags

    def _of_span(self, span: Span) -> Array | None:
        """Flags of bytes of shared or global memory; None where everything is initialised."""
        if span.owner is not None:
            return _flags_of(self._reserved, span.owner)[span.start : span.end]
        flags, place = self._of_global(span.start)
        return None if flags is None else flags[place : place + span.end - span.start]

    def wrote_shared(self, cta: Cta, offset: int, size: int) -> None:
        """Something else than a look wrote shared memory: copies, mbarriers."""
        shared_flags(cta)[offset : offset + size] = True

    def wrote_local(self, at: View, lane: int, address: int, size: int) -> None:
        """A service wrote local memory of a thread."""
        _local_flags(at, lane)[address : address + size] = True

    def wrote_global(self, address: int, size: int) -> None:
        """A service wrote global memory."""
        flags, place = self._of_global(address)
        if flags is not None:
            flags[place : place + size] = True

    def discarded(self, address: int, size: int) -> None:
        """Global memory has lost its value."""
        unwritten_of(self._device).discarded(address, size)

    def _in_one(self, view: View, access: Access) -> tuple[Array | None, Array] | None:
        """Flags of the memory that all lanes access, and their places there; flags are None where everything is
        initialised. None where lanes access different memory, or leave it."""
        addresses = access.addresses.astype(np.int64)
        first, last = int(addresses.min()), int(addresses.max())
        if access.space == "shared":
            if first >> RANK_SHIFT != last >> RANK_SHIFT:
                return None
            flags, _ = self._written(view, "shared", 0, first)
            if flags is None:
                return None
            places = addresses & OFFSET_MASK
        elif access.space == "global":
            flags, place = self._of_global(first)
            if flags is None:
                return (None, addresses) if self._all_written(first, last) else None
            places = addresses - (first - place)
        else:
            return None
        if flags is not None and int(places.max()) + access.size > len(flags):
            return None
        return flags, places

    def _all_written(self, first: int, last: int) -> bool:
        """Whether there is nothing to look for between two global addresses, of which the first is initialised."""
        heap = self._device.runtime.used_heap
        apart = heap is None or (first not in heap and not first < heap.base <= last)
        return apart and not unwritten_of(self._device).begins(first, last)

    def _written(self, view: View, space: str, lane: int, address: int) -> tuple[Array | None, int]:
        """Flags of the memory that an address is in, and its place there; None where everything is initialised."""
        if space == "shared":
            rank = address >> RANK_SHIFT
            if rank >= len(view.cluster.ctas) or address & OFFSET_MASK < self._reserved:
                return None, 0
            return shared_flags(view.cluster.ctas[rank]), address & OFFSET_MASK
        if space == "local":
            return _local_flags(view, lane), address
        return self._of_global(address)

    def _of_global(self, address: int) -> tuple[Array | None, int]:
        runtime = self._device.runtime
        found = unwritten_of(self._device).find(address)
        if found is not None:
            return found
        heap = runtime.used_heap
        block = heap.block_at(address) if heap is not None and address in heap else None
        if heap is None or block is None:
            return None, 0
        flags: Array = heap.flags.setdefault(block, np.zeros(block.size, np.bool_))
        return flags, address - block.address


def _hands_over(program: Program, op: Op) -> bool:
    """Whether an access to local memory copies an argument or a result of a function, for a call."""
    return op.space == "local" and CALL.search(program.lines[op.where][2]) is not None


def _unknown(device: Device) -> bool:
    """Whether there is global memory that nobody has written."""
    return device.runtime.used_heap is not None or bool(unwritten_of(device))


def _flags_of(reserved: int, cta: Cta) -> Array:
    """Which bytes of a CTA's shared memory have been written, by the system, too: the first ones are reserved."""
    flags = shared_flags(cta)
    flags[:reserved] = True
    return flags


def _discards(program: Program) -> bool:
    """Whether a program leaves global memory without a value."""
    return "discard" in program.kinds


def _doubtful(device: Device) -> set[tuple[str, int]]:
    """Loads that are followed: kernel and line."""
    found: set[tuple[str, int]] = device.runtime.state.setdefault(_SUSPECTS, set())
    return found


def _local_flags(view: View, lane: int) -> Array:
    """Which bytes of a thread's local memory have been written."""
    kept = view.local_flags(lane)
    if kept is not None:
        return kept
    thread = f"{_NAME} {view.warp} {lane}"
    if thread not in view.cta.state:
        view.cta.state[thread] = np.zeros(view.local_bytes, np.bool_)
    flags: Array = view.cta.state[thread]
    return flags


def shared_flags(cta: Cta) -> Array:
    """Which bytes of a CTA's shared memory have been written."""
    if cta.flags is None:
        cta.flags = np.zeros(len(cta.shared), np.bool_)
    flags: Array = cta.flags
    return flags
