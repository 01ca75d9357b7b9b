"""Filters on the native engine: native services that pass events by of which nobody has to be told.

Observers say which these are (`machine.filters`). When a launch begins, the cells of a program's events get what
native code needs to know of them, once (`structures.AccessFilter`, `MeetingFilter`), and each worker the bounds of this
launch, rows of FILTER. The service answers SERVED_DONE for an event that needs nobody, and has done what it would
have (of an access, set the predicate that says who makes it); otherwise it answers SERVED_NOT, and the observers are
told of the whole event. By then it may have set flags of bytes that the access writes.
"""

from __future__ import annotations

from functools import cache
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.filters import (
    COMES,
    COUNTED,
    EVERYWHERE,
    INITIALISED,
    MATRICES,
    NAMED,
    REPEATS,
    SPACES,
    UNIFORM,
    WHOLE,
    Bounds,
    Filters,
    framed,
    tables_of,
)
from ptxtools.machine.repeats import numbers_of
from ptxtools.native.code import structures
from ptxtools.native.code.emitter import expand, module_of
from ptxtools.native.code.layouts import size_of
from ptxtools.native.code.structures import (
    BOUND,
    CTX,
    FILTER,
    NO_SLOT,
    OWNERS,
    QUICK_COUNTED,
    QUICK_PART,
    QUICK_WHOLE,
    ROW,
    AccessFilter,
    GroupFilter,
    Long,
    MeetingFilter,
)
from ptxtools.program.details import Ahead, Groups, Guard, Look, Meeting, Touch
from ptxtools.program.operations import ADDRESSED
from ptxtools.program.program import LOCAL_WINDOW, SHARED_WINDOW, Op, Ref, Slot
from ptxtools.records import replace
from ptxtools.semantics.types import bits_of

from . import filter_code, filter_groups, filter_matrices, filter_regions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptxtools.machine.filters import Array
    from ptxtools.machine.launch import Launch
    from ptxtools.native.code.encode import Encoded

    from .worker import Shape, Worker

_SPACES = {
    "global": structures.SPACE_GLOBAL, "const": structures.SPACE_GLOBAL, "shared": structures.SPACE_SHARED,
    "cluster": structures.SPACE_SHARED, "local": structures.SPACE_LOCAL, "generic": structures.SPACE_GENERIC,
}  # fmt: skip
#: The upper byte of a generic address is the number of its space.
assert (SHARED_WINDOW >> 56, LOCAL_WINDOW >> 56) == (structures.SPACE_SHARED, structures.SPACE_LOCAL)
#: By kind of event, which source is its guard.
_GUARDS = {
    "observe.arrive": 2, "observe.leave": 2, "observe.fence": 2, "observe.together": 0, "observe.branch": 0,
    "observe.control": 0, "observe.unwritten": 0, "observe.in_flight": 0,
}  # fmt: skip
#: What lanes do that come to barriers, and that leave them.
_COMES = {
    "bar": structures.MEETS_COME, "cluster arrive": structures.MEETS_ARRIVE, "cluster wait": structures.MEETS_WAIT
}  # fmt: skip
_LEAVES = {
    "bar": structures.MEETS_LEAVE, "cluster wait": structures.MEETS_GO, "warp": structures.MEETS_WARP
}  # fmt: skip
#: Registers of a store that are compared (`AccessFilter.value0` to `value3`).
_MOST_STORED = 4
#: Services of programs with asynchronous work.
_ASYNCHRONOUS = (filter_groups.NAME, filter_matrices.NAME)


def prepare(launch: Launch, encoded: Encoded, shape: Shape) -> Tables | None:
    """Fill the cells of a program's events, where that is not done. The bounds of this launch, for its workers, if
    there are any."""
    assert launch.observers is not None
    bounds = tables_of(launch.observers, launch) if encoded.filtered else _prepared(launch, encoded)
    return Tables(bounds, encoded, shape) if bounds else None


def _prepared(launch: Launch, encoded: Encoded) -> list[Bounds]:
    """Fill the cells of a program's events."""
    assert launch.observers is not None
    encoded.filtered = True
    found, numbers = Filters(launch.observers, launch), numbers_of(launch.program)
    asked = [found.of_access(replace(look, kind="observe.access")) for look in encoded.looks]
    encoded.bounded = bool(asked) and None not in asked
    encoded.refuses = any(
        _sort(look, tables, found) for look, tables in zip(encoded.looks, asked, strict=True) if tables
    )
    for op in launch.program.operations():
        payload, service = _payload(op, found)
        if isinstance(payload, MeetingFilter) or (isinstance(payload, AccessFilter) and found.polls(op)):
            payload = payload._replace(number=numbers[id(op)])
        if payload is not None:
            cell = encoded.cells[id(op)]
            cell.write(payload)
            cell.serve(service_of(service))
        elif op.kind == "observe.together":
            encoded.cells[id(op)].refused = not _teachable(op, found)
    return found.tables


class Rows:
    """The bounds of a worker as rows of FILTER, and what its context says of them. tables: what they are made of;
    bounded: regions that look at accesses themselves may go by them."""

    def __init__(self, tables: Sequence[Bounds], encoded: Encoded, shape: Shape) -> None:
        self.tables = tables
        self.array, self._kept = _rows(tables, shape)  # alive as long as native code may read them
        self.bounded = encoded.bounded and not any(map(_elsewhere, tables))
        clocks = [table.clocks.address for table in tables if table.clocks is not None]
        repeats = self.array[:, FILTER.offset("repeats") // 8]
        fields = {"clocks": max(clocks, default=0), "repeats": int(repeats.max())}
        if self.bounded:
            services = (filter_regions.FIND, filter_regions.KEPT, filter_regions.SET)
            fields |= {"bounded": _address_of(self.array), "bounded_count": len(tables),
                       "bounded_refuses": encoded.refuses, **{name: service_of(name) for name in services}}  # fmt: skip
        context = bytearray(CTX.size)
        for name, value in fields.items():
            CTX.write(context, 0, name, value)
        self._filters, self._context = _address_of(self.array), bytes(context[_FILTERED])

    def show(self, memory: Any) -> None:
        """Write them to a worker's context, at the beginning of its memory."""
        CTX.write(memory, 0, "filters", self._filters)
        memory[_FILTERED] = self._context


#: Fields of the context that stand side by side, beside `filters`.
_FILTERED = slice(CTX.offset("bounded"), CTX.offset("region_set") + size_of("ptr"))


class Tables:
    """The bounds of a launch. Workers have the same rows, but for those with bounds of their own; so have launches,
    where all bounds are those of the last one."""

    def __init__(self, bounds: Sequence[Bounds], encoded: Encoded, shape: Shape) -> None:
        self._bounds, self._encoded, self._shape = bounds, encoded, shape
        self._own = any(one.of_worker is not None for one in bounds)
        self._rows = None if self._own else shape.rows
        if self._rows is not None and not (
            len(self._rows.tables) == len(bounds) and all(map(is_, self._rows.tables, bounds))
        ):
            self._rows = None

    def rows(self, worker: Worker) -> Rows:
        """Those of a worker."""
        if self._rows is not None:
            return self._rows
        if self._own:
            schedule = worker.schedule
            own = [one if one.of_worker is None else one.of_worker(schedule) for one in self._bounds]
            return Rows(own, self._encoded, self._shape)
        self._rows = Rows(self._bounds, self._encoded, self._shape)
        if all(one.lasting for one in self._bounds):
            self._shape.rows = self._rows
        return self._rows


def _rows(tables: Sequence[Bounds], shape: Shape) -> tuple[Array, list[Array]]:
    """Rows of FILTER, and the arrays that they point to."""
    kept: list[Array] = []
    rows = []
    for bounds in tables:
        sizes = [max(1, n).bit_length() - 1 for n in bounds.owners or (1, 1)]
        row = [0] * (FILTER.size // 8)
        row[:2] = int(bounds.flagged) | bounds.kept << 32, sizes[0] | sizes[1] << 32
        if bounds.marks is not None:
            kept.append(bounds.marks)
            row[FILTER.offset("marks") // 8] = _address_of(bounds.marks)
        if bounds.repeats is not None:
            kept.append(bounds.repeats.table)
            row[FILTER.offset("repeats") // 8] = _address_of(bounds.repeats.table)
        row[FILTER.offset("framed") // 8] = int(bounds.frames is not None)
        if bounds.clocks is not None:
            kept.append(bounds.clocks.header)
        first = FILTER.offset("bounds") // 8
        for writes, of in enumerate((bounds.reads, bounds.writes)):
            for number, space in enumerate(SPACES):
                at = first + BOUND.size // 8 * (2 * number + writes)
                if writes and of[space] is bounds.reads[space]:
                    row[at : at + 2] = row[at - 2 : at]
                    continue
                places = of[space]  # itself: it may change
                assert places.dtype == np.uint64 and places.shape[1:] == (ROW.size // 8,)
                if space == "shared" and (bounds.flagged or bounds.owners or bounds.marks is not None):
                    places = places.copy()
                    owners = shape.owners + OWNERS.size
                    places[:, 2] = shape.flags if bounds.flagged else owners if bounds.owners else shape.marks
                if space == "local" and bounds.flagged:
                    places = places.copy()
                    places[:, 2] = shape.local_flags
                kept.append(places)
                row[at : at + 2] = _address_of(places), len(places)
        rows.append(row)
    return np.array(rows, np.uint64).reshape(len(rows), FILTER.size // 8), kept


def _address_of(array: Array) -> int:
    return _EVERYWHERE_AT if array is EVERYWHERE else int(array.__array_interface__["data"][0])


_EVERYWHERE_AT = int(EVERYWHERE.__array_interface__["data"][0])


def _elsewhere(table: Bounds) -> bool:
    """Whether more is kept than regions look at."""
    kept = table.marks, table.repeats, table.clocks, table.frames
    return table.proxies or table.flights or any(one is not None for one in kept)


def _payload(op: Op, found: Filters) -> tuple[AccessFilter | MeetingFilter | GroupFilter | None, str]:
    """What native code needs to know of an event, and its service; None where it cannot do it."""
    if op.kind in ADDRESSED:
        tables = found.of_access(op)
        if tables is None:
            return None, filter_code.ACCESS
        stored = _stored(op) if any(one.kept == 1 for one in found.chosen(tables)) else []
        return _access(op, tables, _sort(op, tables, found), stored, _frames(op, tables, found)), filter_code.ACCESS
    if op.kind == "observe.group":
        groups, table = op.of(Groups), found.marked
        if table is None:
            return None, ""
        pending = groups.pending
        return GroupFilter(groups.commit, pending is not None, pending or 0, table), filter_groups.NAME
    if op.kind == "observe.ahead":
        tables = found.of_access(replace(op, kind="observe.access"))
        made = _access(op, tables or 0, 0, frames=_frames(op, tables or 0, found))
        plain = tables is not None and not any(one.flagged or one.owners or one.repeats for one in found.chosen(tables))
        return None if made is None else made._replace(refuses=1 if plain else 2), filter_code.ACCESS
    place = _GUARDS.get(op.kind)
    rule = None if place is None else found.of_event(op)
    if place is None or rule is None or rule & MATRICES:
        return None, ""
    return _meeting(op, place, rule), filter_code.MEETING


def _teachable(op: Op, found: Filters) -> bool:
    """Whether a product's reads can be looked at natively, which needs all lanes of the warp."""
    rule = found.of_event(op)
    return rule is not None and not rule & ~(MATRICES | WHOLE | UNIFORM)


def _sort(op: Op, tables: int, found: Filters) -> int:
    """Which accesses an atomic or a read may come beside, as the observer says that asks who has touched memory."""
    sorts = [one.sort for one in found.chosen(tables) if one.sort is not None]
    return sorts[0](op) if sorts and op.of(Look).action in ("atomic", "read") else 0


def _frames(op: Op, tables: int, found: Filters) -> int:
    """`AccessFilter.frames`."""
    numbers = [one.frames(op) for one in found.chosen(tables) if one.frames is not None]
    return framed(numbers[0]) if numbers else 0


def _access(op: Op, tables: int, sort: int, stored: Sequence[Ref] = (), frames: int = 0) -> AccessFilter | None:
    look, address = op.of(Look), op.src[0]
    space = _SPACES.get(op.space)
    if (
        space is None
        or (address is not None and address.type not in ("b32", "b64"))
        or tables >> structures.TABLES_ASKED
    ):
        return None
    guard = op.src[1]
    permit = op.dst[0] if op.dst else None
    fetches = op.kind == "observe.fetch"
    last = op.src[2] if fetches and len(op.src) > 2 else None
    return AccessFilter(
        size=Long(look.size),
        low=Long(look.align - 1 if isinstance(look, Ahead) else _low(look.size)),
        imm=Long(op.imm),
        slot=_slot(address),
        narrow=address is not None and address.type == "b32",
        guard=_slot(guard),
        turned=-1 if look.negated and guard is not None else 0,
        permit=_slot(permit),
        lanes=(1 << look.lanes) - 1,
        space=space,
        writes=look.action != "read",
        reads=look.action in ("read", "atomic"),
        copies=2 if fetches else int(look.action == "copy"),
        last=_slot(last),
        ignores=last is not None and last.type == "pred",
        sort=sort,
        refuses=0,
        tables=tables,
        value_bytes=bits_of(stored[0].type) // 8 if stored else 0,
        frames=Long(frames),
        **{f"value{number}": _slot(ref) for number, ref in enumerate(stored)},
    )


def _stored(op: Op) -> list[Ref]:
    """The registers of a plain store of whole registers, if all are of one size, that native code can compare."""
    plain = op.opcode is not None and op.opcode.family == "st" and op.of(Look).action == "write"
    refs, types = op.src[2:], op.src_types[2:]
    if not plain or not 1 <= len(refs) <= _MOST_STORED:
        return []
    found = [
        ref for ref, type_ in zip(refs, types, strict=True) if ref is not None and bits_of(ref.type) == bits_of(type_)
    ]
    sizes = {bits_of(ref.type) for ref in found}
    return found if len(found) == len(refs) and len(sizes) == 1 and sizes <= {16, 32, 64} else []


def _meeting(op: Op, place: int, rule: int) -> MeetingFilter | None:
    guard, detail = op.src[place], op.detail
    assert isinstance(detail, Meeting | Guard | Touch)
    warp = isinstance(detail, Meeting) and detail.what == "warp"
    members = op.src[0 if warp else -1] if rule & NAMED else None
    count = op.src[1] if rule & COUNTED else None
    wanted = [ref for ref, bit in ((members, NAMED), (count, COUNTED)) if rule & bit]
    if any(ref is None or ref.type != "b32" for ref in wanted):
        return None
    turned = -1 if detail.negated and guard is not None else 0
    whats = _COMES if op.kind == "observe.arrive" else _LEAVES
    what = whats.get(detail.what, 0) if isinstance(detail, Meeting) else 0
    quick = _quick(rule, guard)
    found = MeetingFilter(_slot(guard), turned, rule, _slot(members), _slot(count), quick=quick, what=what)
    return _at_mbarrier(op, found) if rule & INITIALISED else found


def _quick(rule: int, guard: Ref | None) -> int:
    """`MeetingFilter.quick`."""
    if guard is not None or rule & ~(WHOLE | UNIFORM | COMES):
        return 0
    if rule & COMES:
        return QUICK_COUNTED
    return QUICK_WHOLE if rule else QUICK_WHOLE | QUICK_PART


def _at_mbarrier(op: Op, found: MeetingFilter) -> MeetingFilter | None:
    address, space = op.src[0], _SPACES.get(op.space)
    if space is None or (address is not None and address.type not in ("b32", "b64")):
        return None
    narrow = address is not None and address.type == "b32"
    found = found._replace(mbarrier=_slot(address), imm=Long(op.imm), narrow=narrow, space=space)
    if not found.rule & REPEATS:
        return found
    wanted = op.src[1]
    if wanted is None or wanted.type not in ("b32", "b64"):
        return None
    return found._replace(wanted=_slot(wanted), states=wanted.type == "b64")


def _low(size: int) -> int:
    """Bits that are 0 in an aligned address."""
    return size - 1 if size & (size - 1) == 0 else 0


def _slot(ref: Ref | None) -> Slot:
    return NO_SLOT if ref is None else Slot(ref.slot)


def service_of(name: str) -> int:
    """Where a compiled service is."""
    return _addresses(name in _ASYNCHRONOUS)[name]


@cache
def _addresses(asynchronous: bool) -> dict[str, int]:
    from ptxtools.native.code import library

    if asynchronous:
        return library.functions_of(_ASYNCHRONOUS, _asynchronous)
    names = filter_code.ACCESS, filter_code.MEETING, filter_regions.FIND, filter_regions.KEPT, filter_regions.SET
    return library.functions_of(names, filter_code.module)


def _asynchronous(attributes: str) -> str:
    parts = [filter_groups.TEXT, *filter_matrices.functions()]
    return module_of([expand(part) for part in parts], "", attributes)
