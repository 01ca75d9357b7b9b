"""Bulk copies and reductions, their groups, asynchronous stores, st.bulk (9.7.9.12, 9.7.9.13, 9.7.9.25, 9.7.13.7)."""

from __future__ import annotations

import numpy as np

from ptxtools.diagnostics import Cause
from ptxtools.isa.types import TYPES
from ptxtools.machine.claims import Span, span_at
from ptxtools.machine.events import View, let_others_first, serves
from ptxtools.program.details import Groups
from ptxtools.program.program import RANK_SHIFT
from ptxtools.records import replace
from ptxtools.sim import accesses
from ptxtools.sim.multimem import buffers
from ptxtools.sim.poison import poison
from ptxtools.sim.tensormap.boxes import Update

from .barriers import Barrier, barrier_at, guarded
from .operands import Array, Operands, bytes_of, targets, tell_of_sending
from .queue import Step, queue_of, tell_of_groups
from .reductions import update_of

#: Bytes that .ignore_oob leaves out at one end at most (9.7.9.25.4.1).
_MOST_IGNORED = 15


def signal(view: View, lane: int, barrier: Barrier, size: int) -> Step:
    """The step that completes `size` bytes of transactions."""

    def complete() -> None:
        if view.launch.observers is not None:
            view.launch.observers.tell("transacted", view, barrier.cta, barrier.offset, size)
        guarded(view, lane, barrier, lambda: barrier.complete_tx(size))

    return complete


@serves("bulk.copy")
def copy(view: View) -> None:
    operands, opcode = Operands(view), view.op.opcode
    stores = not operands.has("mbar") and opcode is not None and "redOp" not in opcode.mods
    for lane in operands.distinct(view.lanes()) if stores else view.lanes():
        size = operands.one("size", lane)
        if size % 16:
            raise view.trap(
                f"a bulk copy of {size} bytes; the size must be a multiple of 16", lane, cause=Cause.MISALIGNED
            )
        if operands.has("mbar"):
            _to_shared(view, operands, lane, size)
        else:
            _to_global(view, operands, lane, size)


def _update(view: View, *, shared: bool) -> Update | None:
    """The memory update of a reduction; None for a plain copy. In global memory add.f32 has no subnormals."""
    opcode = view.op.opcode
    assert opcode is not None
    if "redOp" not in opcode.mods:
        return None
    flushes = not opcode.has("noftz")
    return update_of(view, opcode.mods["redOp"], opcode.mods["type"], flushes=flushes, shared=shared)


def _to_shared(view: View, operands: Operands, lane: int, size: int) -> None:
    """From global memory or the CTA's shared memory into shared memory of the cluster; counted by an mbarrier."""
    source = _source(view, operands, lane, size)
    cta, offset = operands.shared("dstMem", lane, size, align=16)
    barrier = barrier_at(view, operands.one("mbar", lane), lane, operands.spaces["mbar"])
    multicast, update = operands.has("ctaMask"), _update(view, shared=True)
    listeners = view.launch.observers
    if update is not None and listeners is not None and listeners.hear("updates"):
        reduced = [Span(one, offset, offset + size, "reduce") for one in targets(view, operands, lane, cta)]
        listeners.tell("updates", view, lane, reduced)
    follows = listeners is not None and listeners.hear("brought") and not operands.has("ignoreBytesLeft")

    def run() -> None:
        for target in targets(view, operands, lane, cta):
            there = bytes_of(target, offset, size)
            if follows and update is None:
                assert listeners is not None
                listeners.tell("brought", view, lane, target, offset, read())
            if update is not None:
                update(there, source.copy())
            else:
                there[:] = source
            own = Barrier(target, barrier.offset) if multicast else barrier
            signal(view, lane, own, size)()

    text = f"a bulk copy of {size} bytes to shared {offset:#x}, for the mbarrier at {barrier}"

    address = operands.one("srcMem", lane)

    def read() -> list[Span]:
        return span_at(view, lane, address, size, operands.spaces["srcMem"], "read")

    def spans() -> list[list[Span]]:
        kind = "reduce" if update else "write"
        written = [Span(c, offset, offset + size, kind) for c in targets(view, operands, lane, cta)]
        return [[*written, *read()]]

    queue_of(view).submit(view, lane, [run], text, spans)


def _source(view: View, operands: Operands, lane: int, size: int) -> Array:
    """The bytes to copy. With .ignore_oob some at both ends may lie outside of memory and are not read: what arrives in
    their place is not defined, and here the pattern of uninitialised memory."""
    if not operands.has("ignoreBytesLeft"):
        return operands.memory("srcMem", lane, size, write=False, align=16)
    left, right = (operands.one(name, lane) for name in ("ignoreBytesLeft", "ignoreBytesRight"))
    if max(left, right) > _MOST_IGNORED or left + right > size:
        raise view.trap(
            f"a bulk copy of {size} bytes ignores {left} at its begin and {right} at its end",
            lane,
            cause=Cause.MISALIGNED,
        )
    address = operands.one("srcMem", lane)
    operands.memory("srcMem", lane, 0, write=False, align=16)
    inside = view.memory(address + left, size - left - right, operands.spaces["srcMem"], lane=lane, write=False)
    return np.frombuffer(poison(0, left) + bytes(inside) + poison(size - right, right), np.uint8)


def _targets(view: View, operands: Operands, name: str, lane: int, size: int) -> list[int]:
    """Addresses that an operand stands for: its own, or with multimem those of a multicast object's buffers."""
    address, opcode = operands.one(name, lane), view.op.opcode
    assert opcode is not None
    return buffers(view, lane, address, size) if opcode.family == "multimem" else [address]


def _to_global(view: View, operands: Operands, lane: int, size: int) -> None:
    """From the CTA's shared memory to global memory; counted in bulk groups."""
    source = operands.memory("srcMem", lane, size, write=False, align=16)
    addresses = _targets(view, operands, "dstMem", lane, size)
    mask = _byte_mask(operands.one("byteMask", lane)) if operands.has("byteMask") else None
    whole = mask is None or bool(mask.all())
    update, listeners = _update(view, shared=False), view.launch.observers
    if update is not None and listeners is not None and listeners.hear("updates"):
        space = operands.spaces["dstMem"]
        reduced = [span for address in addresses for span in span_at(view, lane, address, size, space, "reduce")]
        listeners.tell("updates", view, lane, reduced)
    targets = [operands.at("dstMem", address, lane, size, align=16, told=whole) for address in addresses]
    if mask is not None and not whole:
        for address in addresses:
            _tell_of_bytes(view, address, size, mask)
    taken: list[Array] = []
    cta, offset = operands.shared("srcMem", lane, size, align=16, write=False)
    chosen = np.arange(16) if mask is None else np.flatnonzero(mask)
    tell_of_sending(view, lane, cta, lambda shared: shared[offset : offset + size].reshape(-1, 16)[:, chosen])

    def write() -> None:
        data = taken[0]
        for target in targets:
            if update is not None:
                update(target, data)
            elif mask is not None:
                target.reshape(-1, 16)[:, mask] = data.reshape(-1, 16)[:, mask]
            else:
                target[:] = data

    text = f"a bulk copy of {size} bytes to global {operands.one('dstMem', lane):#x}"

    def spans() -> list[list[Span]]:
        kind = "reduce" if update else "write"
        read = span_at(view, lane, operands.one("srcMem", lane), size, operands.spaces["srcMem"], "read")
        space = operands.spaces["dstMem"]
        written = [span for address in addresses for span in span_at(view, lane, address, size, space, kind)]
        if mask is not None and not whole:
            return [[_masked(span, mask) for span in some if mask.any()] for some in (read, written)]
        return [read, written]

    queue_of(view).submit(view, lane, [lambda: taken.append(source.copy()), write], text, spans)


def _masked(span: Span, mask: Array) -> Span:
    """What of a span is in the mask of each 16 bytes."""
    places = span.start + np.arange(span.end - span.start)
    return replace(span, rows=places[np.tile(mask, len(places) // len(mask))], row=1)


def _tell_of_bytes(view: View, address: int, size: int, mask: Array) -> None:
    """Tell who listens which bytes of global memory a copy writes."""
    tell = view.launch.memory.written
    if tell is None:
        return
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask, [0])).astype(np.int8)))
    _, first = view.resolve(address, "global")
    for start in range(first, first + size, len(mask)):
        for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            tell(start + begin, end - begin)


def _byte_mask(bits: int) -> Array:
    return np.array([bits >> i & 1 for i in range(16)], np.bool_)


# --- groups -----------------------------------------------------------------------------------------------------------


@serves("bulk.group")
def group(view: View) -> None:
    queue = queue_of(view)
    groups = view.op.of(Groups)
    if groups.pending is None:
        for lane in view.lanes():
            queue.commit((view.warp, lane))
        tell_of_groups(view, view.lanes())
        return
    most, read, done = groups.pending, groups.read, list[int]()
    for lane in view.lanes():
        left = queue.unfinished((view.warp, lane), most, read=read)
        if left and view.launch.late:
            if not let_others_first(view, 1 << lane):
                continue
            for work in view.schedule.in_some_order(left):
                queue.force(work, read=read)
        elif left:
            what = "be read" if read else "be done"
            text = f"{len(left)} bulk operations to {what}, among them {left[0].text}"
            view.wait(queue.key((view.warp, lane)), text, lanes=1 << lane)
            continue
        done.append(lane)
    tell_of_groups(view, done)


# --- asynchronous stores ----------------------------------------------------------------------------------------------


@serves("async.store")
def store(view: View) -> None:
    """st.async and red.async: to shared memory with an mbarrier, or to global memory without one; with multimem to
    several buffers."""
    operands, opcode = Operands(view), view.op.opcode
    assert opcode is not None
    type_ = opcode.mods["type"]
    width = TYPES[type_].bits // 8
    update = None
    if "op" in opcode.mods:
        update = update_of(view, opcode.mods["op"], type_, shared=operands.has("mbar"))
    for lane in view.lanes():
        values = operands.vector("b", lane)
        data = np.frombuffer(b"".join((v & (1 << 8 * width) - 1).to_bytes(width, "little") for v in values), np.uint8)
        addresses = _targets(view, operands, "a", lane, len(data))
        targets = [operands.at("a", address, lane, len(data), align=len(data)) for address in addresses]
        barrier = None
        if operands.has("mbar"):
            operands.shared("a", lane, len(data), align=len(data))
            barrier = barrier_at(view, operands.one("mbar", lane), lane, operands.spaces["mbar"])
        step = _Store(view, lane, targets, data, update, barrier)
        text = f"an asynchronous store of {len(data)} bytes" + (f", for the mbarrier at {barrier}" if barrier else "")
        kind = "reduce" if update else "write"

        def spans(
            lane: int = lane, size: int = len(data), kind: str = kind, addresses: list[int] = addresses
        ) -> list[list[Span]]:
            space = operands.spaces["a"]
            return [[span for one in addresses for span in span_at(view, lane, one, size, space, kind)]]

        queue_of(view).submit(view, lane, [step], text, spans)


class _Store:
    """The one step of an asynchronous store."""

    def __init__(
        self, view: View, lane: int, targets: list[Array], data: Array, update: Update | None, barrier: Barrier | None
    ) -> None:
        self.view, self.lane, self.targets, self.data = view, lane, targets, data
        self.update, self.barrier = update, barrier

    def __call__(self) -> None:
        for target in self.targets:
            if self.update is not None:
                self.update(target, self.data)
            else:
                target[:] = self.data
        if self.barrier is not None:
            signal(self.view, self.lane, self.barrier, len(self.data))()


@serves("bulk.clear")
def clear(view: View) -> None:
    """st.bulk: zeros (9.7.9.13)."""
    operands = Operands(view)
    for lane in view.lanes():
        size = operands.one("size", lane)
        if size % 8:
            raise view.trap(f"st.bulk of {size} bytes; a multiple of 8 is possible", lane, cause=Cause.MISALIGNED)
        target = operands.memory("a", lane, size, write=True, align=8)
        cta, offset = operands.shared("a", lane, size, align=8)
        accesses.tell(view, "shared", "write", size, [lane], [cta.rank << RANK_SHIFT | offset])
        target[:] = 0
