"""The outcomes that the model allows of a launch, each with one execution that an engine can follow: what each access
of each thread reads and writes, and what memory holds in the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import gcd

from ptxtools import ir
from ptxtools.diagnostics import PtxError
from ptxtools.records import dataclass, field, replace

from . import DEFAULT_MODEL
from .axioms import model
from .events import Event, Path, Value
from .executions import Choices, Outcomes, complete, values_of
from .features import refuse_unknown
from .kernels import Launch, launch_test
from .paths import Paths
from .programs import (
    Barrier,
    Copy,
    CopyGroup,
    Fence,
    GridControl,
    Instruction,
    Mbarrier,
    Memory,
    ProxyFence,
    RemoteStore,
    Test,
    Thread,
    Type,
)
from .search import Search

#: Statements of a kernel, threads of a launch that are looked at, those of them that may access memory or wait, their
#: events, and the combinations of their paths.
MOST_STATEMENTS, MOST_LOOKED_AT, MOST_THREADS, MOST_EVENTS, MOST_PATHS = 400, 1024, 4, 64, 5_000
#: Outcomes; executions, and checks of the axioms, that are gone through at most.
MOST_OUTCOMES, MOST_EXECUTIONS, MOST_CHECKS = 5_000, 5_000, 20_000
#: How often an instruction is executed before a path is given up.
UNROLL = 3
#: Bytes of the largest element of a buffer.
_WORD = 8
#: What an engine does by itself on the way: it has nothing to be told.
_UNGUIDED = Fence | ProxyFence | Barrier | CopyGroup | GridControl
#: What an engine can follow.
_FOLLOWED = Memory | Mbarrier | Copy | RemoteStore | _UNGUIDED


@dataclass(frozen=True, slots=True)
class Place:
    """A buffer or variable in device memory: its address, and its bytes before the launch."""

    address: int
    data: bytes


@dataclass(slots=True)
class Step:
    """What an instruction does to memory. at: where its text begins; reads, writes: of each element, as unsigned bytes;
    places: their device addresses, -1 in shared memory; sizes: their bytes; answer: what an operation on an mbarrier
    returns."""

    at: int
    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    answer: int = 0


@dataclass(slots=True)
class Guide:
    """One execution. steps: of each thread, by CTA and number, in program order; final: device addresses, with what is
    there in the end; outcomes: how many the launch has, each of which has one; departure: how an engine that followed
    it found another value, "" if none did."""

    steps: dict[tuple[int, int], list[Step]]
    final: list[tuple[int, bytes]]
    outcomes: int = 0
    departure: str = ""


def guides(module: ir.Module, kernel: ir.Function, launch: Launch, places: Mapping[str, Place]) -> list[Guide]:
    """One execution for each outcome in device memory, in the order of the outcomes. places: of the buffers, and of the
    variables of the module. None at all where the launch is not modelled, has more threads, events or executions than
    are looked at, or accesses of different sizes race, so that the axioms do not apply (8.7.2)."""
    try:
        found = list(_guides(module, kernel, launch, places))
    except PtxError:
        return []
    for guide in found:
        guide.outcomes = len(found)
    return found


def _guides(module: ir.Module, kernel: ir.Function, launch: Launch, places: Mapping[str, Place]) -> Iterator[Guide]:
    launch.most = MOST_LOOKED_AT
    if kernel.body is None or len(kernel.body.items) > MOST_STATEMENTS:
        return
    test = launch_test(module, kernel, launch)
    if any(at.space in ("global", "const") and name not in places for name, at in test.locations.items()):
        return
    for name in launch.arrays:
        test.locations[name].type = Type("b", 8 * _WORD)
    places = {name: place for name, place in places.items() if name in test.locations}
    for name, place in places.items():
        test.locations[name].address = place.address
    paths = _relevant(test)
    places = _split(test, [event for path in paths for event in path.events], places, launch)
    for name, place in places.items():
        test.locations[name].initial = int.from_bytes(place.data, "little")
    paths = _relevant(test)
    owners = _owners(paths, places)
    events = [event for path in paths for event in path.events if event.location not in owners]
    refuse_unknown(test, DEFAULT_MODEL)
    elements = tuple(_written(test, events, places))
    results = _Results(test, owners, places)
    test.observed = (*elements, *results.names)
    if not test.observed or not all(isinstance(event.instruction, _FOLLOWED) for event in events):
        return
    outcomes = Outcomes(test, DEFAULT_MODEL, UNROLL, test.observed)
    choices, found = Choices(test, results), dict[tuple[int, ...], Guide]()
    at, steps = (-1, -1, -1), dict[tuple[int, int], list[Step]]()
    for search, state in complete(test, model(DEFAULT_MODEL), choices, outcomes, MOST_EXECUTIONS, MOST_CHECKS):
        key = tuple(state[name] for name in test.observed)
        if key not in found and all(path.unreached is None for path in search.found.paths):
            if len(found) == MOST_OUTCOMES:
                return
            if (*search.way, search.leaves) != at:
                at, steps = (*search.way, search.leaves), _steps(test, search, places, state)
            found[key] = Guide(steps, list(_final(test, state, places, results.names)))
    if not (outcomes.incomplete or outcomes.mixed_races or outcomes.undefined):
        yield from (found[key] for key in sorted(found))


def _relevant(test: Test) -> list[Path]:
    """All paths of the threads that have events; the others are no part of the test any more. None if it is too much
    to look at."""
    paths, threads, found, events, combinations = Paths(test, UNROLL), [], list[Path](), 0, 1
    for thread in test.threads:
        ways = paths.of(thread)
        if not ways or any(way.events for way in ways):
            threads.append(thread)
            events += max((len(way.events) for way in ways), default=0)
            combinations *= len(ways)
            most = len(threads) > MOST_THREADS or events > MOST_EVENTS or combinations > MOST_PATHS
            if most or not ways:  # or nothing is known of this thread
                test.threads = []
                return []
            found += ways
    test.threads = threads
    return found


def _owners(paths: list[Path], places: Mapping[str, Place]) -> dict[str, int]:
    """The locations that one thread writes, once and whole, and nobody else accesses, with its number."""
    users: dict[str, set[int]] = {}
    for path in paths:
        seen: set[str] = set()
        for event in path.events:
            place = places.get(event.location)
            if place is not None:
                once = event.kind == "W" and event.size == len(place.data) and event.location not in seen
                alone = once and isinstance(event.instruction, Memory)
                users.setdefault(event.location, set()).update((path.thread.number,) if alone else (-1, -2))
                seen.add(event.location)
    return {name: found.pop() for name, found in users.items() if len(found) == 1}


class _Results(Paths):
    """The paths without the stores to locations that only one thread writes, once, and nobody reads: these order
    nothing. What they write is in a register of that thread instead, so that the search need not look at it. owners:
    of these locations; names: of the registers, with address and bytes."""

    def __init__(self, test: Test, owners: dict[str, int], places: Mapping[str, Place]) -> None:
        super().__init__(test, UNROLL)
        self.owners, self.names = owners, dict[str, tuple[int, int]]()
        for name, number in owners.items():
            place = places[name]
            self.names[f"P{number}:{name}"] = place.address, len(place.data)
            test.registers[f"P{number}:{name}"] = int.from_bytes(place.data, "little")

    def of(self, thread: Thread) -> list[Path]:
        ways = super().of(thread)
        for way in ways:
            for at, event in enumerate(way.events):
                if event.location in self.owners:
                    assert event.value is not None
                    way.registers[event.location] = _bytes_of(event.value, event.size)
                    way.events[at] = Event("C", event.step, event.instruction, covers=(event.location, 0, event.size))
        return ways


def _bytes_of(value: Value, size: int) -> Value:
    return Value(value.needs, lambda reads: value.of(reads) & (1 << 8 * size) - 1)


def _split(test: Test, events: list[Event], places: Mapping[str, Place], launch: Launch) -> dict[str, Place]:
    """Make the parts of a buffer that no access joins locations of their own, which is quicker; not of one that is
    copied. Returns where all locations are."""
    found = dict(places)
    for name in launch.arrays:
        accesses = [event for event in events if event.location == name and event.size]
        if not all(isinstance(event.instruction, Memory) for event in accesses):
            continue
        address, data = places[name].address, places[name].data
        cuts = dict.fromkeys([0, *_joined(accesses), len(data)])
        for number, (start, end) in enumerate(pairwise(cuts)):
            own = f"{name}.{number}" if number else name
            test.locations[own] = replace(test.locations[name], name=own, memory=own, virtual=own, size=end - start,
                                          address=address + start)  # fmt: skip
            found[own] = Place(address + start, data[start:end])
    return found


def _joined(accesses: list[Event]) -> list[int]:
    """Where the parts begin and end that accesses join, in order. A vector is one access, aligned to its size."""
    cuts: list[int] = []
    for start, end in sorted({_whole(event, event.instruction) for event in accesses}):
        if cuts and start < cuts[-1]:
            cuts[-1] = max(cuts[-1], end)
        else:
            cuts += (start, end)
    return cuts


def _whole(event: Event, instruction: Instruction) -> tuple[int, int]:
    assert isinstance(instruction, Memory)
    count = {"ld": len(instruction.results), "st": len(instruction.values)}.get(instruction.kind, 1)
    start = event.offset - event.offset % (event.size * max(count, 1))
    return start, start + event.size * max(count, 1)


def _written(test: Test, events: list[Event], places: Mapping[str, Place]) -> Iterator[str]:
    """The names of all elements in device memory that something writes, of elements as large as accesses allow."""
    for name in places:
        location = test.locations[name]
        accessed = {(event.offset, event.size) for event in events if event.location == name and event.size}
        written = {(event.offset, event.size) for event in events if event.location == name and event.kind in "WU"}
        if not written:
            continue
        size = gcd(_WORD, *(number for access in accessed for number in access))
        location.type = Type("b", 8 * size)
        numbers = {at for offset, bytes_ in written for at in range(offset // size, (offset + bytes_) // size)}
        yield from (f"{name}[{number}]" for number in sorted(numbers))


def _final(
    test: Test, state: Mapping[str, int], places: Mapping[str, Place], results: Mapping[str, tuple[int, int]]
) -> Iterator[tuple[int, bytes]]:
    for asked, (address, size) in results.items():
        yield address, state[asked].to_bytes(size, "little")
    for asked in test.observed[: len(test.observed) - len(results)]:
        name, _, index = asked.partition("[")
        type_ = test.locations[name].type
        assert type_ is not None
        size = type_.bits // 8
        yield places[name].address + int(index[:-1]) * size, state[asked].to_bytes(size, "little")


def _steps(
    test: Test, search: Search, places: Mapping[str, Place], state: Mapping[str, int]
) -> dict[tuple[int, int], list[Step]]:
    if search.steps_found is None:
        values = values_of(search)
    else:
        search.complete()
        values = values_of(search)
        search.resume()
    found = {}
    for path, first in zip(search.found.paths, search.found.first, strict=True):
        steps: dict[int, Step] = {}
        for event, (read, written) in zip(path.events, values[first:], strict=False):
            if event.kind == "C" and event.covers:  # one of `_Results`
                name, _, size = event.covers
                written, event = state[f"{path.thread.name}:{name}"], replace(event, location=name, size=size)
            if event.location and not isinstance(event.instruction, _UNGUIDED):
                _add(steps.setdefault(event.step, Step(event.instruction.span[0])), event, read, written, test, places)
        found[path.thread.cta, _number(path)] = list(steps.values())
    return found


def _number(path: Path) -> int:
    return 32 * path.thread.warp + path.thread.lane


def _add(
    step: Step, event: Event, read: int | None, written: int | None, test: Test, places: Mapping[str, Place]
) -> None:
    place = places.get(test.locations[event.location].memory)
    step.places.append(-1 if place is None else place.address + event.offset)
    step.sizes.append(event.size)
    if read is not None:
        step.reads.append(read)
    if written is not None:
        step.writes.append(written)
    if isinstance(event.instruction, Mbarrier) and not event.agent:
        step.answer = (read or 0) if event.answer is None else event.answer
