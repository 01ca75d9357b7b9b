"""memcheck: every access must lie in one allocation or variable, at a multiple of its size.

Bad lanes are reported and left out of the access (`program.passes.instrument`), so that the run goes on.
"""

from __future__ import annotations

import re
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.filters import EVERYWHERE, SPACES, Bounds, framed, stretches
from ptxtools.machine.launch import local_bytes
from ptxtools.machine.looks import sized_late
from ptxtools.program.details import Look
from ptxtools.program.layout import LOCAL_GAP
from ptxtools.program.program import LANES, OFFSET_MASK, RANK_SHIFT, STACK_POINTER, Op, Ref
from ptxtools.sim.allocations import Allocations, beside
from ptxtools.sim.poison import REGISTERS
from ptxtools.sim.shape import shared_hint

from .maps import Maps, copies_tensors, in_global, is_fence
from .read_only import ReadOnly, wanted, without
from .sharing import independent

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access, Array
    from ptxtools.machine.residents import Cta
    from ptxtools.program.program import Program
    from ptxtools.sim.device import Grid

    from .session import Session

_NAME = "memcheck"
#: Bad accesses of warps after which a run ends: a loop may wait for what it can never read.
_ENOUGH = 10_000
#: Calls pass arrays in the frame of the function that they call.
CALL = re.compile(r"(^|\s)call\b")
_STACK = Ref(STACK_POINTER, "b64")
#: More than a thread has of local memory.
_FRAME = 1 << 39


class _Variables:
    """Shared and local variables of a program, with so many bytes of dynamic shared memory: the same in all launches
    alike. shared: names, addresses and sizes; valid: how many bytes of them there are below each address, parts: where
    they are; frames: local variables of each function, gaps: between them, extents: bytes of each function; local:
    where those of the kernel are; buffers: those of the last launch."""

    def __init__(self, program: Program, dynamic_shared: int) -> None:
        self.dynamic_shared, self.shared_bytes = dynamic_shared, program.static_shared + dynamic_shared
        self.shared = [
            (f"shared variable '{name}'", at, size) if size >= 0 else ("dynamic shared memory", at, dynamic_shared)
            for name, at, size in program.shared
        ]
        valid = np.ones(self.shared_bytes, np.bool_)
        if program.padding:  # otherwise nothing is apart, and what counts is the whole
            valid[:] = False
            for _, at, size in self.shared:
                valid[at : at + size] = True
        self.valid = np.concatenate(([0], np.cumsum(valid)))
        self.parts = stretches(_runs(self.valid))
        self.hint = shared_hint(program, dynamic_shared)
        self.frames = [function.variables for function in program.functions]
        self.gaps = [_gaps(variables) for variables in self.frames]
        self.extents = [function.local_bytes for function in program.functions]
        self.local = stretches(_between(self.gaps[0], self.extents[0]))
        self.buffers: _Buffers | None = None


class _Buffers:
    """Allocations as arrays, which nobody changes. first, after: their first bytes, and those behind their last; reads,
    writes: where accesses may be; bounds: with these and the kernel's variables, by what they ask for."""

    def __init__(self, allocations: Allocations, const: tuple[int, int]) -> None:
        self._key = allocations.starts, allocations.sizes, const
        self.first = np.array(allocations.starts, np.uint64)
        self.after = self.first + np.array(allocations.sizes, np.uint64)
        known = list(zip(self.first.tolist(), self.after.tolist(), strict=True))
        self.reads, self.writes = stretches(known), stretches(without(const, known))
        self.bounds: dict[Callable[[Op], bool], Bounds] = {}

    def are(self, allocations: Allocations, const: tuple[int, int]) -> bool:
        """Whether these are still all."""
        return self._key == (allocations.starts, allocations.sizes, const)


class MemCheck:
    """The exact map of memory at the launch: buffers, variables of the module and of functions, blocks of the heap."""

    BOUNDS = REGIONS = True

    def __init__(self, session: Session, grid: Grid) -> None:
        device, request, program = session.device, grid.request, grid.program
        allocations = Allocations(device, grid.image, request.kernel, request.params)
        self._session: Session = weakref.proxy(session)  # which outlives this
        self._allocations, self._stop = allocations, device.check_stop
        self._left = _ENOUGH
        self._read_only = ReadOnly(session, grid)
        self._maps = Maps(session, grid)
        known: _Variables | None = program.cache.get(_NAME)
        if known is None or known.dynamic_shared != request.shared:
            known = program.cache[_NAME] = _Variables(program, request.shared)
        self._known, self._frames, self._gaps, self._extents = known, known.frames, known.gaps, known.extents
        self._shared_bytes, self._valid = known.shared_bytes, known.valid
        buffers = known.buffers
        if buffers is None or not buffers.are(allocations, grid.image.const):
            buffers = known.buffers = _Buffers(allocations, grid.image.const)
        self._buffers, self._first, self._after = buffers, buffers.first, buffers.after
        self._grows = program.takes_stack  # memory at the end, which alloca has taken, is in use, too

    @staticmethod
    def concerned(program: Program, device: Any) -> Callable[[Op], bool]:
        """Which events of a program matter: all accesses, and fences of tensor maps."""

        def matters(op: Op) -> bool:
            if op.kind == "observe.fetch":
                return sized_late(op)
            return op.kind != "observe.fence" or is_fence(op.opcode)

        return matters

    def access(self, at: View, access: Access) -> None:
        """What is left of an access."""
        self._read_only.access(at, access)
        self._maps.access(at, access)

    def fetched(self, at: View, access: Access) -> None:
        """A cp.async reads its source, whose size is known only now: `permit` has not seen it."""
        if not sized_late(at.op):
            return
        self._bad(at, access)
        size, given = at.op.of(Look).size, at.source(2)[access.lanes]
        more = given > size if at.op.src_types[2] != "pred" else np.zeros(len(given), np.bool_)
        if more.any():
            lane, address = _first(access, more)
            message = f"the source of a copy of {size} bytes has a size of {int(given[more][0])}"
            self._tell(at, lane, "size", message, _how_many(more), kind="size", address=address, space=access.space,
                       help=f"at most {size}: the rest is filled with zeros")  # fmt: skip

    def fence(self, at: View, lanes: Array) -> None:
        """A fence, perhaps one of the proxy of tensor maps."""
        self._maps.fence(at, lanes)

    def tensormap(self, at: View, lane: int, address: int, what: str) -> None:
        """A tensor map is used or changed."""
        self._maps.used(at, lane, address, what)

    def permit(self, at: View, access: Access) -> Array | None:
        """Which lanes of an access are bad, None for none; the first is reported, and what they load is poison. Raises
        a `Trap` where the run has to end."""
        bad = self._bad(at, access)
        if bad is not None and at.op.of(Look).action != "write":
            spoiled = sum(1 << int(lane) for lane in access.lanes[bad])
            for ref in at.op.src[2:]:
                if ref is not None:
                    at.set_values(ref, _poisoned(ref.type), spoiled)
        return bad

    @staticmethod
    def shares(program: Program) -> bool:
        """Whether workers may share a grid (`machine.observers.Alone`). Which maps a fence is about depends on who has
        executed it first."""
        fences = any(is_fence(op.opcode) for op in program.operations())
        return program.found(independent) and not fences

    @staticmethod
    def restarts(program: Program, device: Any) -> bool:
        """Whether the kernel reads through .nc, or uses tensor maps, of which there is a guess first."""
        return wanted(program) or program.found(copies_tensors)

    @staticmethod
    def state(device: Any) -> Hashable:
        """The kernels whose stores may change tensor maps."""
        return frozenset(in_global(device))

    def filter(self, launch: Launch) -> tuple[Bounds, ...]:
        """Accesses in one allocation, or in variables; heap blocks come and go, and are asked for. And what is only
        read, as far as is guessed."""
        asks = _changes_memory if self._maps.wanted else _nothing
        only_read = self._read_only.bounds(launch, self._session.device.arena)
        if len(self._frames) == 1:
            bounds = self._buffers.bounds.get(asks)
            if bounds is None:
                bounds = Bounds(*self._places(), asks, lasting=True)
                self._buffers.bounds[asks] = bounds
            return bounds, *only_read
        reads, writes = self._places()
        all_local = {"local": stretches(_between(self._gaps[0], local_bytes(launch)))}
        places = {**dict.fromkeys(SPACES, EVERYWHERE), "local": self._in_frames()}
        texts = [text for *_, text in launch.program.lines]

        def calls(op: Op) -> bool:  # which may access the frame of the function that is called
            return op.where >= 0 and CALL.search(texts[op.where]) is not None

        def in_frames(op: Op) -> bool:  # whose place depends on the lane
            return op.space in ("local", "generic") and (bool(op.of(Look).function) or calls(op))

        return (
            Bounds(reads, writes, asks, matters=lambda op: not in_frames(op)),
            Bounds(reads | all_local, writes | all_local, asks, matters=in_frames),
            Bounds(places, places, lambda op: False, matters=lambda op: in_frames(op) and op.of(Look).function > 0,
                   frames=lambda op: 2 * op.of(Look).function + calls(op)),
            *only_read,
        )  # fmt: skip

    def _places(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """Where reads and writes may be: in allocations, and in variables of the kernel."""
        reads = {"global": self._buffers.reads, "shared": self._known.parts, "local": self._known.local}
        return reads, {**reads, "global": self._buffers.writes}

    def _in_frames(self) -> Array:
        """Where called functions may access local memory, relative to their stack pointers: below their own variables,
        where those of their callers are, and in these; behind them where the stack grows, and for calls."""
        found = []
        for number in range(2, 2 * len(self._frames)):
            last = _FRAME if self._grows or number % 2 else self._extents[number // 2]
            edges = [-_FRAME, *(edge for gap in self._gaps[number // 2] for edge in gap), last]
            parts = zip(edges[::2], edges[1::2], strict=True)
            found += [(framed(number, first), framed(number, min(after, last))) for first, after in parts]
        return stretches(found)

    def _bad(self, view: View, access: Access) -> Array | None:
        outside: Array = getattr(self, f"_bad_{access.space}")(view, access)
        constant = self._read_only.constant(access) & ~outside if access.space == "global" else np.zeros_like(outside)
        if constant.any():
            lane, address = _first(access, constant)
            message = f"global {access.action} at {address:#x} changes constant memory"
            place = {"address": address, "space": "global"}
            self._tell(view, lane, "constant", message, _how_many(constant), kind="constant", **place)
        size = view.op.of(Look).size if sized_late(view.op) else access.size
        misaligned = (
            access.addresses % np.uint64(size) != 0 if size & (size - 1) == 0 else np.zeros(len(access.lanes), np.bool_)
        )
        if not outside.any() and not misaligned.any():
            return constant if constant.any() else None
        if misaligned.any():
            lane, address = _first(access, misaligned)
            message = f"{access.space} {access.action} at {address:#x} is not aligned to {size} bytes"
            place = {"address": address, "space": access.space}
            self._tell(view, lane, "align", message, _how_many(misaligned), kind="misaligned", **place)
        outside &= ~misaligned
        if outside.any():
            lane, address = _first(access, outside)
            freed = self._allocations.freed(address) if access.space == "global" else ""
            what = "lies in freed memory" if freed else "is out of bounds"
            message = f"{access.space} {access.action} of {access.size} bytes at {address:#x} {what}"
            details = (freed or self._near(view, access, lane, address), *_how_many(outside))
            if access.space == "shared" and self._known.hint:
                details += (self._known.hint,)
            place = {"address": address, "space": access.space}
            self._tell(view, lane, access.space, message, details, kind="freed" if freed else "bounds", **place)
        return misaligned | outside | constant

    def _tell(self, view: View, lane: int, key: str, message: str, details: tuple[str, ...], **more: Any) -> None:
        if not view.op.dst:
            raise self._session.trap(view, lane, _NAME, message, details)
        if self._stop:
            self._session.stop(view, lane, _NAME, message, details, **more)
        self._session.report(view, lane, _NAME, message, (view.op.where, key), details, **more)
        self._left -= 1
        if not self._left:
            details = (f"{_ENOUGH:,} accesses of warps were bad: the run ends here", *details)
            raise self._session.trap(view, lane, _NAME, message, details)

    # --- global memory ------------------------------------------------------------------------------------------------

    def _bad_global(self, view: View, access: Access) -> Array:
        size = np.uint64(access.size)
        place = np.searchsorted(self._first, access.addresses, "right") - 1
        inside = place >= 0
        if len(self._first):  # an address near 2^64 plus its size is no small one
            inside &= access.addresses - self._first[place] + size <= self._after[place] - self._first[place]
        for number in np.flatnonzero(~inside):
            address = int(access.addresses[number])
            inside[number] = self._allocations.in_pools(address, access.size) or _host(view, address, access)
        bad: Array = ~inside
        return bad

    def allows(self, address: int, size: int) -> bool:
        """Whether bytes of global memory lie in one allocation."""
        return self._allocations.holds(address, size)

    def copies(self, at: View, lane: int, cta: Cta, offset: int, size: int) -> None:
        """A copy leaves the variable that it begins in. It is made all the same; what leaves shared memory traps."""
        end = offset + size
        if end > self._shared_bytes or self._valid[end] - self._valid[offset] == size:
            return
        known = [one for one in self._known.shared if one[1] <= offset < one[1] + one[2]]
        name, start, extent = known[0] if known else ("no shared variable", offset, 0)
        message = (
            f"the copy leaves {name}: {size:,} bytes at {offset:#x}, and only {start + extent - offset:,} are left"
        )
        if self._stop:
            self._session.stop(at, lane, _NAME, message, (), kind="copy")
        self._session.report(at, lane, _NAME, message, (at.op.where, "copy"), kind="copy")

    # --- shared and local memory --------------------------------------------------------------------------------------

    def _bad_shared(self, view: View, access: Access) -> Array:
        addresses = access.addresses.astype(np.int64)
        offsets, ranks = addresses & OFFSET_MASK, addresses >> RANK_SHIFT
        inside = (ranks >= 0) & (ranks < len(view.cluster.ctas)) & (offsets + access.size <= self._shared_bytes)
        places = np.where(inside, offsets, 0)
        ends = np.where(inside, offsets + access.size, 0)
        bad: Array = ~inside | (self._valid[ends] - self._valid[places] != ends - places)
        return bad

    def _bad_local(self, view: View, access: Access) -> Array:
        end = np.uint64(view.local_bytes)
        bad: Array = (access.addresses > end) | (access.addresses + np.uint64(access.size) > end)
        bad |= _overlap(self._gaps[0], access.addresses, access.size)
        function = view.op.of(Look).function
        frames = view.values(_STACK)[access.lanes] if function else np.zeros(len(bad), np.uint64)
        beyond = access.addresses + np.uint64(access.size) > frames + np.uint64(self._extents[function])
        if beyond.any() and not CALL.search(view.text):  # of a function that has returned, or that the stack freed
            bad |= beyond & (access.addresses < view.tops[access.lanes]) if self._grows else beyond
        if function and self._gaps[function]:
            bad |= _overlap(self._gaps[function], access.addresses - frames, access.size)
        return bad

    # --- telling ------------------------------------------------------------------------------------------------------

    def _near(self, view: View, access: Access, lane: int, address: int) -> str:
        if access.space == "global":
            return self._allocations.nearest(address, access.size)
        if access.space == "shared":
            known, at = self._known.shared, address & OFFSET_MASK
            whole = f"the CTA has {self._shared_bytes:,} bytes of shared memory"
        else:
            function = view.op.of(Look).function
            frame = int(view.values(_STACK)[lane]) if function else 0
            number, at = (0, address) if address < self._extents[0] else (function, address - frame)
            known = [(f"local variable '{name}'", start, size) for name, start, size in self._frames[number]]
            whole = f"a thread has {view.local_bytes:,} bytes of local memory"
            if self._grows and address >= frame + self._extents[function]:
                return f"alloca has taken what is from {int(view.tops[lane]):#x} to {view.local_bytes:#x}"
        if not known:
            return whole
        name, start, size = min(known, key=lambda k: max(k[1] - at, at - (k[1] + k[2]), 0))
        return f"{name}, {beside(at, access.size, start, size)}: {size:,} bytes at {address - at + start:#x}"


def _changes_memory(op: Op) -> bool:
    """Whether more than bounds matters: tensor maps."""
    return op.space not in ("shared", "cluster", "local") and op.of(Look).action != "read"


def _nothing(op: Op) -> bool:
    return False


def _poisoned(storage: str) -> Any:
    if storage == "pred":
        return np.zeros(LANES, np.bool_)
    if storage == "b128":
        return (_poisoned("b64"), _poisoned("b64"))
    return np.full(LANES, REGISTERS[storage], f"u{int(storage[1:]) // 8}")


def _runs(valid: Array) -> list[tuple[int, int]]:
    """Stretches of valid bytes, from how many there are below each address."""
    flags = np.concatenate(([0], np.diff(valid), [0]))
    edges = np.flatnonzero(np.diff(flags))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _between(gaps: list[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """What gaps, ascending, leave of `size` bytes."""
    edges = [0, *(edge for gap in gaps for edge in gap), size]
    return [(max(first, 0), min(after, size)) for first, after in zip(edges[::2], edges[1::2], strict=True)]


def _gaps(variables: list[tuple[str, int, int]]) -> list[tuple[int, int]]:
    """Where nothing of a function's lies, among its local variables."""
    if not variables:
        return []
    ends = [variables[0][1] - LOCAL_GAP, *(at + size for _, at, size in variables)]
    starts = [*(at for _, at, _ in variables), ends[-1] + LOCAL_GAP]
    return list(zip(ends, starts, strict=True))


def _overlap(gaps: list[tuple[int, int]], addresses: Array, size: int) -> Array:
    places = addresses.astype(np.int64)
    bad = np.zeros(len(places), np.bool_)
    for start, end in gaps:
        bad |= (places < end) & (places + size > start)
    return bad


def _host(view: View, address: int, access: Access) -> bool:
    """Whether it is host memory that is open to the kernel (`ptx_run`)."""
    memory = view.launch.memory
    if not memory.open_host or memory.base <= address < memory.base + memory.size or memory.readable is None:
        return False
    return memory.readable(address, access.size, access.writes)


def _first(access: Access, bad: Array) -> tuple[int, int]:
    number = int(np.flatnonzero(bad)[0])
    return int(access.lanes[number]), int(access.addresses[number])


def _how_many(bad: Array) -> tuple[str, ...]:
    count = int(bad.sum())
    return (f"{count} threads of the warp do so",) if count > 1 else ()
