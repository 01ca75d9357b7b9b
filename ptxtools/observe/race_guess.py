"""Which buffers a grid only reads, as far as its program says: a guess that racecheck's first look makes, and its
closer one.

Nothing has to be noted of reads of memory that nobody writes, through whatever proxy. So a look lets reads of such
buffers pass, and is told of each write to them, before it is made: with the first one the guess was wrong, and the look
begins again without it.

A pointer is followed through a kernel's registers, by what it was made of: parameters, by their offsets in the
parameter block, and addresses of variables. Whatever is written through something else leaves nothing to guess.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ptxtools.machine.filters import stretches
from ptxtools.machine.observers import Guessed
from ptxtools.program.details import Look
from ptxtools.program.operations import ADDRESSED, LANE_ACCESS
from ptxtools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access, Array
    from ptxtools.program.program import Op, Program

#: Programs with more operations than this are not looked at.
_MOST_OPERATIONS = 20_000
#: Numbers from here on are addresses, below offsets of parameters.
_ADDRESSES = 1 << 32
#: In a program's cache: a guess was wrong.
_WRONG = "wrong guess of what is only read"
#: Whole pieces of memory, whatever accesses have for their sizes.
_UNIT = 16
_ELSEWHERE = frozenset({"shared", "cluster", "local", "param"})

_Origins = frozenset[int]
_State = dict[int, _Origins]
_NOTHING: _Origins = frozenset()


class ReadOnly:
    """The guess of one look. stretches: of memory that is only read, ascending: first byte, and the byte behind the
    last; none before it is made."""

    def __init__(self, program: Program, *, possible: bool = True) -> None:
        self._program = program
        self.open = possible and not program.cache.get(_WRONG, False)
        self.stretches: list[tuple[int, int]] = []

    def make(self, launch: Launch, live: Iterable[tuple[int, int]], constants: tuple[int, int]) -> None:
        """live: allocations, and their sizes; constants: where those of the module are."""
        if not self.open:
            return
        found = only_read(launch, live)
        first, after = constants[0], _up(constants[1])
        if first < after and first % _UNIT == 0 and not any(a < after and first < b for a, b in found):
            found = sorted([*found, (first, after)])
        self.stretches = found

    def rows(self, memory: tuple[int, int], word_of: Callable[[int], int]) -> tuple[Array, Array]:
        """Stretches of global memory for reads and for writes (`machine.filters.Bounds`). word_of: where the words of a
        byte are."""
        noted, at = [], memory[0]
        for first, after in [*self.stretches, (memory[1], 0)]:
            noted.append((at, first, word_of(at)))
            at = after
        return stretches(sorted([*noted, *((*one, 0) for one in self.stretches)])), stretches(noted)

    def touched(self, starts: Array, size: int) -> bool:
        """Whether any access from some addresses (u64) on, of `size` bytes each, touches what is only read."""
        first, after = self._ends()
        return bool(((starts[:, None] + np.uint64(size) > first) & (starts[:, None] < after)).any())

    def holds(self, access: Access) -> bool:
        """Whether all lanes access what is only read."""
        first, after = self._ends()
        start = access.addresses[:, None]
        return bool(((start >= first) & (start + np.uint64(access.size) <= after)).any(axis=1).all())

    def check(self, access: Access) -> None:
        """An access to global memory is about to be made. Raises `Guessed` where it writes what is only read."""
        if access.writes and self.touched(access.addresses, access.size):
            self.wrong()

    def _ends(self) -> Array:
        ends: Array = np.array(self.stretches, np.uint64).reshape(-1, 2).T
        return ends

    def wrong(self) -> NoReturn:
        self._program.cache[_WRONG] = True
        raise Guessed


class Pointers(NamedTuple):
    """What a kernel reads global memory through, and what it writes through: offsets of parameters, or addresses."""

    read: _Origins
    written: _Origins


def pointers_of(program: Program) -> Pointers | None:
    """None where that is not known."""
    if "race pointers" not in program.cache:
        program.cache["race pointers"] = _found(program)
    found: Pointers | None = program.cache["race pointers"]
    return found


def only_read(launch: Launch, live: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches of memory that a grid probably reads and does not write, ascending: first byte, and the byte after the
    last. live: allocations, and their sizes."""
    pointers = pointers_of(launch.program)
    if pointers is None:
        return []
    allocations = sorted(live)
    starts = [start for start, _ in allocations]

    def places(origins: _Origins) -> set[int]:
        found = set()
        for origin in origins:
            data = launch.params[origin : origin + 8]
            address = origin if origin >= _ADDRESSES else int.from_bytes(data, "little")
            place = bisect_right(starts, address) - 1
            if place >= 0 and address < starts[place] + allocations[place][1]:
                found.add(place)
        return found

    chosen = sorted(places(pointers.read) - places(pointers.written))
    found = [(starts[place], _up(starts[place] + allocations[place][1])) for place in chosen]
    return [one for one in found if one[0] % _UNIT == 0]


def _up(address: int) -> int:
    return -(-address // _UNIT) * _UNIT


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
