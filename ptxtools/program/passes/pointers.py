"""Which pointers a kernel reads and writes global memory through, as far as its program says.

A pointer is followed through a kernel's registers, by what it was made of: parameters, by their offsets in the
parameter block, and addresses of variables. The program has events for observers before its accesses (`instrument`):
those accesses are looked at.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from ptxtools.program.details import Look
from ptxtools.program.operations import ADDRESSED, LANE_ACCESS
from ptxtools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ptxtools.program.program import Op, Program

#: Programs with more operations than this are not looked at.
_MOST_OPERATIONS = 20_000
#: Numbers from here on are addresses, below offsets of parameters.
_ADDRESSES = 1 << 32
_ELSEWHERE = frozenset({"shared", "cluster", "local", "param"})

Origins = frozenset[int]
_State = dict[int, Origins]
_NOTHING: Origins = frozenset()


class Pointers(NamedTuple):
    """What a kernel reads global memory through, and what it writes through: offsets of parameters, or addresses."""

    read: Origins
    written: Origins


def pointers_of(program: Program) -> Pointers | None:
    """None where that is not known."""
    if "pointers" not in program.cache:
        program.cache["pointers"] = _found(program)
    found: Pointers | None = program.cache["pointers"]
    return found


def places_of(origins: Origins, params: bytes, allocations: Sequence[tuple[int, int]]) -> set[int]:
    """Numbers of the allocations (address, bytes; ascending) that pointers made of parameters or addresses begin in."""
    starts, found = [start for start, _ in allocations], set()
    for origin in origins:
        data = params[origin : origin + 8]
        address = origin if origin >= _ADDRESSES else int.from_bytes(data, "little")
        place = bisect_right(starts, address) - 1
        if place >= 0 and address < starts[place] + allocations[place][1]:
            found.add(place)
    return found


def _found(program: Program) -> Pointers | None:
    blocks = program.blocks
    if len(program.functions) != 1 or sum(len(block.ops) for block in blocks) > _MOST_OPERATIONS:
        return None
    (function,) = program.functions
    first: _State = {one.slot: frozenset({one.offset}) for one in function.launch_constants if one.source == "param"}
    first.update((slot, frozenset({value})) for slot, _, value in function.constants if value >= _ADDRESSES)
    before: list[_State | None] = [None] * len(blocks)
    before[0], todo = first, [0]
    while todo:
        number = todo.pop()
        state = dict(before[number] or {})
        for op in blocks[number].ops:
            _step(op, state)
        for target in _next(program, number):
            joined = _joined(before[target], state)
            if joined is not None:
                before[target] = joined
                todo.append(target)
    read: set[int] = set()
    written: set[int] = set()
    for number, entry in enumerate(before):
        look = blocks[number].terminator.op
        if entry is None or look is None or look.kind not in ADDRESSED or look.space in _ELSEWHERE:
            continue
        state = dict(entry)
        for op in blocks[number].ops:
            _step(op, state)
        address = look.src[0]
        origins = frozenset({look.imm}) if address is None else state.get(address.slot, _NOTHING)
        if look.of(Look).action == "read":
            read |= origins
        elif not origins:
            return None
        else:
            written |= origins
    return Pointers(frozenset(read), frozenset(written))


def _step(op: Op, state: _State) -> None:
    """What an operation's results are made of."""
    origins = _NOTHING
    if op.kind == "ld" and op.space == "param" and op.src[0] is None:
        origins = frozenset({op.imm})
    elif op.kind not in LANE_ACCESS:
        origins = origins.union(*(state.get(ref.slot, _NOTHING) for ref in op.src if ref is not None))
    for ref in op.dst:
        if ref is not None:
            state[ref.slot] = origins | state.get(ref.slot, _NOTHING) if op.guard is not None else origins


def _next(program: Program, number: int) -> Iterator[int]:
    end = program.blocks[number].terminator
    yield from (target for target in (end.target, end.other, *end.targets) if target >= 0)


def _joined(known: _State | None, more: _State) -> _State | None:
    """Both; None where that is nothing new."""
    if known is None:
        return dict(more)
    new = {slot: origins for slot, origins in more.items() if not origins <= known.get(slot, _NOTHING)}
    if not new:
        return None
    return known | {slot: origins | known.get(slot, _NOTHING) for slot, origins in new.items()}
