"""What racecheck says of two accesses: who, where, and what would have ordered them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ptxtools.diagnostics import shown
from ptxtools.program.program import LANES
from ptxtools.records import NamedTuple, dataclass

from .clocks import CLUSTER, CTA, NAMES, Clocks, Warp
from .race_accesses import Strength
from .race_shadow import GROUP, tensor_column

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Access
    from ptxtools.machine.residents import Cta

    from .session import Session

_NAME = "racecheck"
_DONE = {"read": "read", "write": "written", "atomic": "changed by an atomic"}


@dataclass(frozen=True, slots=True)
class Other:
    """The earlier access: what it did, its warp's number, lane and line, its scope if it was strong, and the bytes of
    its scalars, and its warp's time."""

    action: str
    agent: int
    lane: int
    where: int
    scope: int
    unit: int
    time: int


class Why(NamedTuple):
    """A word for a race, what there is, or is not, between its accesses, and what would help."""

    kind: str
    between: str
    help: str


def report(
    session: Session, view: View, access: Access, who: tuple[Clocks, Warp], owner: Cta | None, place: int, lane: int,
    other: Other, strength: Strength, why: Why | None = None,
) -> Callable[[], None]:  # fmt: skip
    """What tells of a race on the byte at `place` of a CTA's shared memory, or of global memory (owner None). why:
    None: found out from the clocks."""
    clocks, warp = who
    x, y, _ = view.launch.block
    thread = LANES * (other.agent % clocks.per_cta) + max(0, other.lane)
    coordinates = (thread % x, thread // x % y, thread // (x * y))
    cta = _place(view, clocks, other.agent)
    near = other.agent // clocks.per_cta == warp.agent // clocks.per_cta
    whose = f"{'the warp of ' if other.lane < 0 else ''}thread ({','.join(map(str, coordinates))})"
    if not near and cta is not None:
        whose += f" of CTA ({','.join(map(str, cta))})"
    elif not near:
        whose += " of another CTA"
    memory, allocation = _memory(session, view, access.space, owner, place)
    site = session.site(view.launch.program, other.where, cta, coordinates)
    at = f" at {site.file}:{site.line}" if site.line is not None else ""
    if why is None:
        kind, between = _why(session, view, clocks, warp, other, strength)
        why = Why(kind, between, _help(clocks, warp, other, kind))
    message = (
        f"race on {memory}: {access.action} here, {_DONE[other.action]} by {whose}{at}, with {why.between} between"
    )
    who_here = view.thread(view.leader if lane < 0 else lane)
    key = frozenset({(view.op.where, access.action), (other.where, other.action)})
    return partial(
        session.report_at, view.launch.program, view.op.where, view.cta.place, who_here, _NAME, message, key,
        _needed(clocks, warp, other), kind=why.kind, others=(site,), address=place, space=access.space,
        allocation=allocation, help=why.help,
    )  # fmt: skip


def _memory(session: Session, view: View, space: str, owner: Cta | None, place: int) -> tuple[str, str]:
    """Words for a byte, and for the allocation or variable that it is in."""
    if owner is None:
        return f"global byte {place:#x}", session.allocations.around(place)
    if space == "tensor":
        lane, column = tensor_column(place)
        return f"column {column}, lanes {lane} to {lane + GROUP - 1} of the tensor memory of {owner}", ""
    around = ""
    for name, start, size in view.launch.program.shared:
        extent = size if size >= 0 else len(owner.shared) - start
        if start <= place < start + extent:
            around = f"variable '{shown(name)}', byte {place - start:,}: {extent:,} bytes at shared {start:#x}"
    return f"byte {place:#x} of the shared memory of {owner}", around


def _why(session: Session, view: View, clocks: Clocks, warp: Warp, other: Other, strength: Strength) -> tuple[str, str]:
    """A word for the race, and what there is, or is not, between the accesses."""
    if other.agent == warp.agent:
        return "lanes", "no bar.warp.sync"
    scope = strength.scope
    if scope and other.scope and strength.unit != other.unit:
        return "size", f"nothing that orders accesses of {strength.unit} and of {other.unit} bytes"
    if scope and other.scope:
        return "scope", f"a scope too narrow, .{NAMES[min(scope, other.scope)]},"
    missed = warp.missed.get(other.agent)
    if missed is not None:
        message, reach = missed
        line = session.place(view.launch.program, message.where)[1]
        told = None if message.told is None else message.told.get(other.agent // clocks.per_cluster)
        if told is None or told[other.agent % clocks.per_cluster] < other.time:
            return (
                "pattern",
                f"no order (what was read there was stored by line {line}: no release, and no fence before)",
            )
        if not reach:
            return "pattern", f"no order (what line {line} stored there was read with no acquire, and no fence behind)"
        return "scope", f"too narrow a scope of the release or acquire, .{NAMES[reach]}, through line {line},"
    near = other.agent // clocks.per_cta == warp.agent // clocks.per_cta
    return "order", "no barrier" if near else "nothing that orders CTAs"


def _help(clocks: Clocks, warp: Warp, other: Other, kind: str) -> str:
    if kind == "size":
        return "strong accesses fit together only if they are of the same bytes; or order them"
    if kind == "lanes":
        return "bar.warp.sync between them; shuffles and votes do not order memory"
    needed = _needed(clocks, warp, other)
    barrier = {CTA: "bar.sync, or ", CLUSTER: "barrier.cluster.arrive and wait, or "}.get(needed, "")
    return f"{barrier}a release and an acquire with scope .{NAMES[needed]} or wider"


def _needed(clocks: Clocks, warp: Warp, other: Other) -> int:
    """The narrowest scope that has both accesses; -1 for lanes of one warp."""
    if other.agent == warp.agent:
        return -1
    if other.agent // clocks.per_cta == warp.agent // clocks.per_cta:
        return CTA
    return CLUSTER if other.agent // clocks.per_cluster == warp.cluster else CLUSTER + 1


def _place(view: View, clocks: Clocks, agent: int) -> tuple[int, int, int] | None:
    """The CTA of a warp, where it is still known."""
    if agent // clocks.per_cluster != view.cluster.number:
        return None
    ctas = view.cluster.ctas
    rank = int(clocks.cta_of(agent))
    return ctas[rank].place if rank < len(ctas) else None
