"""The events of mbarriers and of asynchronous copies (8.9.1.1, 9.7.9.25, 9.7.13.15).

An mbarrier object is a word of memory. An arrival is an atomic operation on it, with the order and scope that it names;
a wait that succeeds is a read with those. Whether it succeeds follows from the value that it reads. So mbarriers need
no axioms of their own: 8.8 has arrivals as release patterns and waits as acquire patterns on the object's location.

A copy is an agent of its own: reads, then writes, which are not in program order. They are behind what the thread has
executed before, and in front of their completion: a wait, or an operation on an mbarrier, which is itself behind what
the thread has executed before. Nothing else orders them, and what precedes the copy does not, by that, precede what
follows its completion. A store or reduction into the cluster's shared memory is the same without reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from math import gcd
from typing import TYPE_CHECKING, Any

from ptxtools.records import dataclass, replace

from . import mbarriers
from .agents import COUNT, WORD_BYTES, mask, own_events, updated
from .events import Event, Path, Pending, Value, constant
from .functions import computed
from .multimem import follow_multimem
from .programs import (
    Copy,
    CopyGroup,
    Instruction,
    Mbarrier,
    Multimem,
    Product,
    RemoteStore,
    TensorCopy,
    TensorCore,
    TensorMap,
    Type,
)
from .tensor_cores import follow_tensor_core
from .tensors import Convert, Transfer, elements, follow_tensor_map, reduction_type, transfers
from .wgmma import follow_product
from .words import refuse

if TYPE_CHECKING:
    from .paths import Paths

#: Elements of a copy, each of which is a read and a write; more than these are one.
MOST_ELEMENTS = 16
#: Bytes that a mask has bits for, and that a relaxed bulk copy moves at once (9.7.9.25.4.1).
_CHUNK = 16
_WORD = Type("b", 64)

#: What follows an instruction: the paths on which it has been executed.
Follow = Callable[["Paths", Path, Any], list[Path]]


# --- mbarriers --------------------------------------------------------------------------------------------------------


def _mbarrier(paths: Paths, path: Path, instruction: Mbarrier) -> list[Path]:
    name, offset = paths.place(path, instruction, instruction.places[0], WORD_BYTES)
    event = Event("U", path.steps, instruction, instruction.order, instruction.scope, "generic", name, offset,
                  WORD_BYTES, needs=path.control, returns=bool(instruction.result), mbarrier=True)  # fmt: skip
    if instruction.kind == "wait":
        return _wait(paths, path, instruction, event)
    if instruction.kind == "arrive_copies":
        return _arrive_with_copies(path, instruction, event)
    counts = [paths.operand(path, value) for value in instruction.values] or [constant(1)]
    if instruction.kind in ("init", "inval"):
        count = counts[0] if instruction.kind == "init" else constant(0)
        value = Value(count.needs, lambda reads: mbarriers.initial(count.of(reads) & COUNT))
        path.events.append(replace(event, kind="W", value=value, needs=event.needs | count.needs))
        return [path]
    expected = constant(0) if instruction.transactions is None else paths.operand(path, instruction.transactions)
    path.events.append(updated(event, path, instruction.kind, [counts[0], expected]))
    if instruction.result:
        path.registers[instruction.result] = paths.loaded(len(path.events) - 1, _WORD)
    return [path]


def _wait(paths: Paths, path: Path, instruction: Mbarrier, event: Event) -> list[Path]:
    """test_wait and try_wait: an acquire operation if the phase is complete, else a relaxed read (9.7.13.15.16)."""
    at = len(path.events)
    asked = paths.operand(path, instruction.values[0])
    holds = mbarriers.is_parity_complete if instruction.parity else mbarriers.is_complete
    value = Value(1 << at | asked.needs, lambda reads: int(holds(reads[at], asked.of(reads))))
    other = path.copy()
    for way, complete in ((path, True), (other, False)):
        way.conditions.append((value, complete))
        way.control |= value.needs  # of those who use its result, which is known on this path
        order = instruction.order if complete else "relaxed"
        way.events.append(replace(event, kind="R", order=order, needs=event.needs | asked.needs, answer=int(complete)))
        way.registers[instruction.result] = constant(int(complete))
    return [path, other]


def _arrive_with_copies(path: Path, instruction: Mbarrier, event: Event) -> list[Path]:
    """cp.async.mbarrier.arrive: an arrival of its own behind all copies so far. What the thread executed
    before precedes the arrival itself, but not what acquires from it."""
    path.copies = replace(path.copies, agents=path.copies.agents + 1)
    if instruction.pends:
        path.events.append(updated(replace(event, order="relaxed"), path, "pend", [constant(1)]))
    behind = own_events(path)
    arrival = replace(event, agent=path.copies.agents, behind=behind, completes=path.copies.small.every)
    path.events.append(updated(arrival, path, "arrive", [constant(1)]))
    return [path]


# --- copies -----------------------------------------------------------------------------------------------------------


def _copy(paths: Paths, path: Path, instruction: Copy) -> list[Path]:
    to, source = (paths.place(path, instruction, place, instruction.size) for place in instruction.places[:2])
    path.copies = replace(path.copies, agents=path.copies.agents + 1)
    targets = _reached(paths, path, instruction, to, instruction.size)
    type_ = instruction.type or (paths.types[to[0]] if instruction.function else None)
    size = type_.bits // 8 if type_ is not None else 8
    for name, offset in (*targets, source):
        size = gcd(size, paths.types[name].bits // 8, offset or size, instruction.size)
    if instruction.order == "relaxed":
        size = _CHUNK
    count = instruction.size // size
    if count > MOST_ELEMENTS and instruction.function:
        refuse(paths.test.source, f"a reduction of {count} elements", instruction.span,
               f"at most {MOST_ELEMENTS} are modelled")  # fmt: skip
    if count > MOST_ELEMENTS:  # as one
        size = instruction.size
    parts = [(at, size) for at in range(0, instruction.size, size)]
    if instruction.mask is not None:
        parts = list(_chosen(paths, path, instruction, size))
    moves = [_Move((name, start + at), (source[0], source[1] + at), part)
             for at, part in parts for name, start in targets]  # fmt: skip
    told_of = [paths.place(path, instruction, place, WORD_BYTES) for place in instruction.places[2:]]
    _copied(path, instruction, moves, instruction.size, told_of, type_)
    return [path]


def _chosen(paths: Paths, path: Path, instruction: Copy, size: int) -> Iterator[tuple[int, int]]:
    """Offsets and bytes of what a mask leaves, in elements of at most this size."""
    assert instruction.mask is not None
    chosen = paths.operand(path, instruction.mask)
    if chosen.needs:
        refuse(paths.test.source, "a mask that depends on a read is not modelled", instruction.span)
    runs = [(match.start(), match.end()) for match in re.finditer("1+", f"{chosen.of(()) & 0xFFFF:016b}"[::-1])]
    for chunk in range(0, instruction.size, _CHUNK):
        for start, end in runs:
            part = gcd(min(size, _CHUNK), start or _CHUNK, end - start)
            yield from ((chunk + at, part) for at in range(start, end, part))


def _reached(
    paths: Paths, path: Path, instruction: Copy | RemoteStore, to: tuple[str, int], size: int
) -> list[tuple[str, int]]:
    """The places that one stands for: several, if it is a multi-address (8.2.3)."""
    if not instruction.multi:
        return [to]
    members = paths.test.locations[to[0]].members
    if not members:
        refuse(paths.test.source, f"'{to[0]}' is no multi-address", instruction.span)
    return [paths.place(path, instruction, (member, to[1]), size) for member in members]


def _tensor_copy(paths: Paths, path: Path, instruction: TensorCopy) -> list[Path]:
    """A read of the tensor map, and behind it the reads of a bulk copy (9.7.9.25)."""
    if paths.replaced is not None:  # only what becomes of maps is asked for
        return [path]
    path.copies = replace(path.copies, agents=path.copies.agents + 1)
    read = Event("R", path.steps, instruction, "weak", needs=path.control, agent=path.copies.agents,
                 behind=own_events(path))  # fmt: skip
    map_read, found = 1 << len(path.events), []
    for way, moved in transfers(paths, path, instruction, read):
        shared = paths.place(way, instruction, instruction.places[1], 0)
        told_of = [paths.place(way, instruction, place, WORD_BYTES) for place in instruction.places[2:]]
        tiles = [shared]
        if instruction.ctas is not None:
            ctas = instruction.ctas
            tiles, told_of = (
                [(name, offset) for first, offset in places for name in paths.peers(way, instruction, first, ctas)]
                for places in (tiles, told_of)
            )
        moves = _tensor_moves(paths, moved, tiles, instruction)
        if moves is not None:
            _copied(way, instruction, moves, moved.bytes, told_of, reduction_type(moved), map_read)
            found.append(way)
    return found


def _tensor_moves(
    paths: Paths, moved: Transfer, tiles: Sequence[tuple[str, int]], instruction: TensorCopy
) -> list[_Move] | None:
    """The accesses of a copy to or from such tiles; None if the tensor is in no location."""
    moves = []
    for distance, shared, size, fill, taken in elements(moved):
        tensor = paths.found_at(moved.address + distance, size) if distance >= 0 else None
        if tensor is None and distance >= 0:
            return None
        for name, offset in tiles:
            here = (name, offset + shared)
            if here[1] + (taken or size) > paths.extent(name):
                refuse(paths.test.source, f"the box leads out of '{name}'", instruction.span)
            if tensor is None:
                moves.append(_Move(here, None, size, int.from_bytes(fill, "little")))
            else:
                moves.append(_Move(here, tensor, size, convert=moved.convert) if instruction.loads
                             else _Move(tensor, here, size, convert=moved.convert, taken=taken))  # fmt: skip
    return moves


@dataclass(frozen=True, slots=True)
class _Move:
    """One element of a copy. source: None if a number is filled in; convert: what becomes of its bytes on their way;
    taken: the bytes of the source that become so many, if they are others."""

    to: tuple[str, int]
    source: tuple[str, int] | None
    size: int
    fill: int = 0
    convert: Convert | None = None
    taken: int = 0


def _copied(path: Path, instruction: Copy, moves: Sequence[_Move], bytes_: int, told_of: Sequence[tuple[str, int]],
            type_: Type | None, map_read: int = 0) -> None:  # fmt: skip
    """The reads and writes of a copy of so many bytes, and what is told of its end. map_read: the event that has read
    the tensor map, as a set."""
    copies = path.copies
    proxy = "async" if instruction.bulk else "generic"
    first, own = len(path.events), own_events(path)
    relaxed = instruction.order == "relaxed"
    event = Event("R", path.steps, instruction, instruction.order, instruction.scope if relaxed else "", proxy,
                  needs=path.control | map_read, agent=copies.agents, behind=own | map_read)  # fmt: skip
    reads: dict[tuple[str, int], int] = {}
    for move in moves:
        if move.source is not None and move.source not in reads:
            reads[move.source] = len(path.events)
            size = move.taken or move.size
            path.events.append(replace(event, location=move.source[0], offset=move.source[1], size=size))
    written = len(path.events)
    behind = own | mask(first, written) | map_read
    for move in moves:
        write = replace(event, location=move.to[0], offset=move.to[1], size=move.size, behind=behind)
        if move.source is None:
            path.events.append(replace(write, kind="W", value=constant(move.fill)))
        else:
            stored = _stored(write, instruction, type_, reads[move.source], len(path.events))
            path.events.append(_converted(stored, move) if move.convert is not None else stored)
    last = len(path.events)
    if not instruction.bulk:
        path.copies = replace(copies, small=copies.small.with_copy(mask(first, last)))
        return
    fence = Event("P", path.steps, instruction, proxy="async", agent=copies.agents)
    if map_read:  # completion is that of the read of the map as well
        path.events.append(replace(fence, proxy="tensormap", completes=map_read))
        map_read = 1 << last
        last += 1
    if not instruction.places[2:]:
        path.events += [replace(fence, completes=mask(first, written)), replace(fence, completes=mask(first, last))]
        done, whole = 1 << last | map_read, 2 << last | map_read
        path.copies = replace(copies, reads=copies.reads.with_copy(done), bulk=copies.bulk.with_copy(whole))
        return
    parts = max(len(told_of), 1)
    for part, (name, offset) in enumerate(told_of):  # each CTA's mbarrier is told of what the CTA got
        share = mask(first, written) | sum(1 << at for at in range(written + part, written + len(moves), parts))
        done = len(path.events)
        path.events.append(replace(fence, completes=share))
        told = Event("U", path.steps, instruction, "release", "cluster", "generic", name, offset, WORD_BYTES,
                     needs=path.control, returns=False, mbarrier=True, agent=copies.agents,
                     after=1 << done | map_read, behind=own)  # fmt: skip
        path.events.append(updated(told, path, "complete_tx", [constant(bytes_)]))


def _remote(paths: Paths, path: Path, instruction: RemoteStore) -> list[Path]:
    """Weak writes, or a relaxed atomic operation, through the generic proxy, and then a complete-tx operation.
    A release is behind what the thread has executed, as in program order, and in front of nothing."""
    copies = path.copies = replace(path.copies, agents=path.copies.agents + 1)
    size = instruction.type.bits // 8
    count = len(instruction.values)
    name, offset = paths.place(path, instruction, instruction.places[0], size * count)
    values = [paths.operand(path, value) for value in instruction.values]
    first = len(path.events)
    own, releases = own_events(path), instruction.order == "release"
    event = Event("W", path.steps, instruction, instruction.order, instruction.scope, size=size, location=name,
                  needs=path.control, agent=copies.agents, behind=0 if releases else own,
                  after=own if releases else 0)  # fmt: skip
    for at, value in enumerate(values):
        for location, start in _reached(paths, path, instruction, (name, offset + at * size), size):
            write = replace(event, location=location, offset=start, value=value, needs=event.needs | value.needs)
            path.events.append(_reduced(write, instruction, len(path.events)) if instruction.function else write)
    if releases:
        return [path]
    name, offset = paths.place(path, instruction, instruction.places[1], WORD_BYTES)
    told = Event("U", path.steps, instruction, "release", "cluster", "generic", name, offset, WORD_BYTES,
                 needs=path.control, returns=False, mbarrier=True, agent=copies.agents,
                 behind=own, completes=mask(first, len(path.events)))  # fmt: skip
    path.events.append(updated(told, path, "complete_tx", [constant(size * count)]))
    return [path]


def _reduced(write: Event, instruction: RemoteStore, at: int) -> Event:
    operand, function, type_ = write.value, instruction.function, instruction.type
    assert operand is not None
    needs = operand.needs | 1 << at
    value = Value(needs, lambda reads: computed(function, type_, [reads[at], operand.of(reads)], atomic=True))
    return replace(write, kind="U", returns=False, value=value, needs=write.needs | needs)


def _stored(write: Event, instruction: Copy, type_: Type | None, read: int, at: int) -> Event:
    """The write, or the relaxed atomic operation of a reduction (9.7.9.25.4.2), of what an event has read."""
    function, scope = instruction.function, instruction.scope
    if not function:
        return replace(
            write, kind="W", value=Value(1 << read, lambda reads: reads[read]), needs=write.needs | 1 << read
        )
    needs = 1 << read | 1 << at
    value = Value(needs, lambda reads: computed(function, type_, [reads[at], reads[read]], atomic=True))
    return replace(write, kind="U", order="relaxed", scope=scope, returns=False, value=value, needs=write.needs | needs)


def _converted(write: Event, move: _Move) -> Event:
    value, convert = write.value, move.convert
    assert value is not None
    assert convert is not None

    def changed(reads: Sequence[int]) -> int:
        return int.from_bytes(convert(value.of(reads).to_bytes(move.taken or move.size, "little")), "little")

    return replace(write, value=Value(value.needs, changed))


def _copy_group(paths: Paths, path: Path, instruction: CopyGroup) -> list[Path]:
    copies, kind = path.copies, instruction.kind
    if kind in ("commit", "all"):
        if instruction.bulk:
            copies = replace(copies, bulk=copies.bulk.committed(), reads=copies.reads.committed())
        else:
            copies = replace(copies, small=copies.small.committed())
        path.copies = copies
    if kind in ("wait", "all"):
        followed: Pending = copies.small if not instruction.bulk else copies.reads if instruction.reads else copies.bulk
        events = followed.waited_for(instruction.pending)
        event = Event("C", path.steps, instruction)
        path.events.append(replace(event, after=events) if instruction.bulk else replace(event, completes=events))
    return [path]


#: The class of an instruction -> what executes it.
ASYNCHRONOUS: dict[type[Instruction], Follow] = {
    Mbarrier: _mbarrier,
    Copy: _copy,
    CopyGroup: _copy_group,
    RemoteStore: _remote,
    TensorCopy: _tensor_copy,
    TensorMap: follow_tensor_map,
    Multimem: follow_multimem,
    Product: follow_product,
    TensorCore: follow_tensor_core,
}
