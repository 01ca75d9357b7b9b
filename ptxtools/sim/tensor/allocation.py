"""tcgen05.alloc, dealloc and relinquish_alloc_permit (9.7.16.7.1)."""

from __future__ import annotations

from ptxtools.diagnostics import Cause, Trap
from ptxtools.machine.claims import Span, announce, span_at
from ptxtools.machine.events import View, serves
from ptxtools.machine.residents import Cta
from ptxtools.program.details import NamedOperands
from ptxtools.records import dataclass, field

from .layout import COLUMNS
from .memory import UNIT, TensorMemory, of, partners, split
from .operands import number, uniform

_WAIT = "tensor memory allocation"


@dataclass(slots=True, eq=False)
class _Meeting:
    """Allocation by a pair: columns requested by each CTA, and those granted but not yet collected."""

    asked: dict[int, int] = field(default_factory=dict)
    granted: dict[int, int] = field(default_factory=dict)


def _ctas(view: View) -> int:
    op = view.op.opcode
    assert op is not None
    return int(op.mods["cta_group"][-1])


def _columns(view: View) -> int:
    count = uniform(view, "nCols")
    if not UNIT <= count <= COLUMNS or count & (count - 1):
        raise view.trap(
            f"nCols is {count}: it must be a power of two from {UNIT} to {COLUMNS}", cause=Cause.TENSOR_MEMORY
        )
    return count


@serves("tcgen05.alloc")
def allocate(view: View) -> None:
    """Take columns, waiting until there are enough, and write their address to shared memory."""
    count = _columns(view)
    memory = of(view.cta)
    if memory.relinquished:
        reason = "tcgen05.alloc after tcgen05.relinquish_alloc_permit of this CTA"
        raise view.trap(reason, cause=Cause.TENSOR_MEMORY)
    if view.woken(view.leader) is None:
        if count > memory.limit:
            raise view.trap(
                f"tcgen05.alloc of {count} columns after one of {memory.limit}: nCols must not grow",
                cause=Cause.TENSOR_MEMORY,
            )
        memory.limit = count
    pair = partners(view, _ctas(view), "tcgen05.alloc")
    first = _take(view, pair, count)
    if first is None:
        return
    named = view.op.of(NamedOperands)
    address, space = number(view, "dst", view.leader), named.spaces["dst"]
    claim = announce(view, view.leader, "tcgen05.alloc", lambda: span_at(view, view.leader, address, 4, space, "write"))
    if claim is not None:
        claim.end()
    view.put(address, first.to_bytes(4, "little"), space, align=4)


def _take(view: View, ctas: tuple[Cta, ...], count: int) -> int | None:
    """The first column; None while the warp waits."""
    cta = view.cta
    if len(ctas) == 1:
        first = of(cta).free(count)
        if first is None:
            view.wait(_WAIT, f"{count} free columns of tensor memory; {_used(of(cta))} of {COLUMNS} are allocated")
            return None
        _note(view, cta, first, count)
        return first
    meeting: _Meeting = view.cluster.state.setdefault(f"{_WAIT} {cta.rank // 2}", _Meeting())
    if cta.rank in meeting.granted:
        return meeting.granted.pop(cta.rank)
    meeting.asked[cta.rank] = count
    if len(meeting.asked) < 2:
        view.wait(_WAIT, "tcgen05.alloc of the other CTA of the pair")
        return None
    if len(set(meeting.asked.values())) > 1:
        raise view.trap(
            f"the CTAs of the pair request different numbers of columns: {sorted(meeting.asked.values())}",
            cause=Cause.COLLECTIVE,
        )
    memories = [of(other) for other in ctas]
    first = memories[0].free(count, memories[1])
    if first is None:
        view.wait(_WAIT, f"{count} columns of tensor memory that are free in both CTAs of the pair")
        return None
    for other in ctas:
        _note(view, other, first, count)
        meeting.granted[other.rank] = first
    meeting.asked.clear()
    view.cluster.wake(_WAIT)
    return meeting.granted.pop(cta.rank)


def _used(memory: TensorMemory) -> int:
    return sum(memory.allocations.values())


def _note(view: View, cta: Cta, first: int, count: int) -> None:
    """Record an allocation; the CTA must have freed it when it ends."""
    memory = of(cta)
    if not memory.watched:
        memory.watched = True
        cta.at_end += [lambda: _check_leaks(cta), lambda: _check_permit(cta)]
    memory.allocations[first] = count
    memory.changed()
    memory.makers[first] = view
    listeners = view.launch.observers
    if listeners is not None:
        listeners.tell("tensor", view, view.leader, [Span(cta, first, first + count, "fresh", tensor=True)])


def _check_leaks(cta: Cta) -> None:
    memory = of(cta)
    for first, count in sorted(memory.allocations.items()):
        view = memory.makers[first]
        launch, op = view.launch, view.op
        reason = (
            f"the CTA has ended without tcgen05.dealloc of {count} columns of tensor memory, from column {first} on"
        )
        if launch.observers is not None and launch.observers.hear("leaked"):
            launch.observers.tell("leaked", view, cta, "tensor-memory", reason)
            continue
        raise Trap(
            reason, kernel=launch.program.kernel, cta=cta.place, thread=(0, 0, 0), where=op.where,
            text=launch.program.lines[op.where][2] if op.where >= 0 else "", kind="trap",
        )  # fmt: skip


def _check_permit(cta: Cta) -> None:
    """A CTA that keeps its permit keeps others of its SM from allocating as long as it runs."""
    memory = of(cta)
    view = next(iter(memory.makers.values()))
    if not memory.relinquished and view.launch.observers is not None:
        reason = "the CTA has allocated tensor memory, and ended without tcgen05.relinquish_alloc_permit"
        view.launch.observers.tell("leaked", view, cta, "alloc-permit", reason)


@serves("tcgen05.dealloc")
def release(view: View) -> None:
    """Free columns, which must be allocated."""
    count, address = _columns(view), uniform(view, "taddr")
    partners(view, _ctas(view), "tcgen05.dealloc", alive=False)  # the other CTA may have freed them already
    allocations = of(view.cta).allocations
    if address not in allocations:
        reason = f"tcgen05.dealloc of {address:#x}, which is not the start of a tensor memory allocation"
        raise view.trap(reason, cause=Cause.TENSOR_MEMORY)
    if allocations[address] != count:
        reason = f"tcgen05.dealloc of {count} columns at {address:#x}; {allocations[address]} were allocated"
        raise view.trap(reason, cause=Cause.TENSOR_MEMORY)
    del allocations[address]
    of(view.cta).changed()
    first, cta = split(address)[1], view.cta
    claim = announce(
        view, view.leader, "tcgen05.dealloc", lambda: [Span(cta, first, first + count, "write", tensor=True)]
    )
    if claim is not None:
        claim.end()
    view.cluster.wake(_WAIT)


@serves("tcgen05.relinquish_alloc_permit")
def relinquish(view: View) -> None:
    """The CTA will not allocate any more."""
    partners(view, _ctas(view), "tcgen05.relinquish_alloc_permit", alive=False)
    of(view.cta).relinquished = True
