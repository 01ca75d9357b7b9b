"""What a choice of paths fixes: the events of all threads, their sets, and the relations that no run changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from ptxtools.records import dataclass

from .events import Event, Path
from .programs import GridControl, Instruction, Label, Test
from .relations import Events, Relation, Universe, members
from .tensor_cores import pipelined
from .terms import Structure

#: The instruction of the events that initialise memory.
_START = Label(text="initial write", name="")


@dataclass(slots=True)
class Node:
    """An event of an execution. thread: index of its thread, -1 for an initial write; at: its index in the path;
    memory: the bytes it accesses; start, size: bytes; pieces: the pieces of memory that it covers; space: the state
    space that it accesses, or that a proxy fence is limited to, "" if that is not known."""

    event: Event
    thread: int
    at: int
    memory: str = ""
    virtual: str = ""
    pieces: tuple[int, ...] = ()
    space: str = ""

    @property
    def start(self) -> int:
        return self.event.offset

    @property
    def end(self) -> int:
        return self.event.offset + self.event.size

    @property
    def instruction(self) -> Instruction:
        return self.event.instruction


@dataclass(slots=True)
class Skeleton:
    """nodes: the events, initial writes first; first: the number of each path's first event; pieces: of each memory
    object, its parts (start, end) between which no access begins or ends; slots: what reads choose: (read,
    piece); dependencies: those within threads (8.10.4)."""

    paths: Sequence[Path]
    nodes: list[Node]
    first: list[int]
    structure: Structure
    pieces: list[tuple[str, int, int]]
    slots: list[tuple[int, int]]
    writers: list[int]
    fences: list[tuple[int, int]]
    initial: dict[str, int]
    dependencies: Relation

    def follow(self, a: int, b: int) -> bool:
        """Whether one thread executes both itself, one after the other."""
        x, y = self.nodes[a], self.nodes[b]
        return x.thread == y.thread and not x.event.agent and not y.event.agent


def skeleton(test: Test, paths: Sequence[Path], initial: dict[str, int]) -> Skeleton:
    """initial: the initial value of each memory object, as an unsigned number of its bytes."""
    nodes: list[Node] = []
    first: list[int] = []
    used = {
        test.locations[event.location].memory for path in paths for event in path.events if event.location
    }  # fmt: skip
    objects = [name for name in initial if name in used]
    ends: dict[str, int] = dict.fromkeys(objects, 1)
    for path in paths:
        for event in path.events:
            if event.location:
                memory = test.locations[event.location].memory
                ends[memory] = max(ends[memory], event.offset + event.size)
    for name in objects:
        event = Event("W", 0, _START, location=name, size=ends[name])
        nodes.append(Node(event, -1, 0, name, ""))
    for index, path in enumerate(paths):
        first.append(len(nodes))
        for at, event in enumerate(path.events):
            location = test.locations.get(event.location)
            names = (location.memory, location.virtual) if location else ("", "")
            space = location.space if location else event.space.partition("::")[0]
            nodes.append(Node(event, index, at, *names, space=space))
    pieces = _pieces(nodes, objects)
    structure = _structure(nodes, paths)
    structure.given["covered"] = structure.universe.relation(_covered(test, nodes, paths))
    writers = [
        sum(1 << n for n, node in enumerate(nodes) if piece in node.pieces and node.event.kind in "WU")
        for piece in range(len(pieces))
    ]
    slots = [(n, piece) for n, node in enumerate(nodes) if node.event.kind in "RU" for piece in node.pieces]
    fences = [
        (a, b) for a, b in combinations(range(len(nodes)), 2)
        if structure.sets["F_SC"] >> a & 1 and structure.sets["F_SC"] >> b & 1
    ]  # fmt: skip
    return Skeleton(paths, nodes, first, structure, pieces, slots, writers, fences,
                    {name: n for n, name in enumerate(objects)}, structure.given["dep"])  # fmt: skip


def _pieces(nodes: list[Node], objects: list[str]) -> list[tuple[str, int, int]]:
    """Cut each object where an access begins or ends, and tell each event which pieces it covers."""
    found: list[tuple[str, int, int]] = []
    for name in objects:
        members = [node for node in nodes if node.memory == name]
        cuts = sorted({place for node in members for place in (node.start, node.end)} | {0})
        for start, end in pairwise(cuts):
            for node in members:
                if node.start <= start and end <= node.end:
                    node.pieces += (len(found),)
            found.append((name, start, end))
    return found


def _structure(nodes: list[Node], paths: Sequence[Path]) -> Structure:
    n = len(nodes)
    sets = dict.fromkeys(
        ("M", "R", "W", "RMW", "F", "F_SC", "F_REL", "F_ACQ", "REL", "ACQ", "STRONG", "GENERIC", "PROXY_FENCE",
         "ALIAS_FENCE", "T_BEFORE", "T_AFTER", "TCGEN05", "TO_PROXY_REL", "TO_PROXY_ACQ", "SHARED_REL",
         "SHARED_ACQ"), 0)  # fmt: skip
    sets["_"] = (1 << n) - 1
    for a, node in enumerate(nodes):
        for name in _kinds(node):
            sets[name] |= 1 << a
    given: dict[str, list[Events]] = {
        name: [0] * n for name in ("po", "issued", "completed", "dep", "scopes", "same-cta", "same-proxy", "overlap",
                                   "overlap-at-address", "overlap-completely", "barrier", "relaxed-barrier",
                                   "prerequisite", "initial", "launched", "piped", "paired")
    }  # fmt: skip
    _relate_memory(nodes, given)
    _relate_threads(nodes, paths, given)
    _relate_stages(nodes, given)
    for proxy in {node.event.proxy for node in nodes}:
        same = [a for a, node in enumerate(nodes) if node.event.proxy == proxy]
        limited = any(nodes[a].event.kind == "P" and nodes[a].space for a in same)
        every = sum(1 << a for a in same)
        for a in same:
            given["same-proxy"][a] = (
                sum(1 << b for b in same if _may_share(nodes[a], nodes[b])) if limited else every
            )  # fmt: skip
    universe = Universe(n)
    return Structure(universe, sets, {name: universe.packed(rows) for name, rows in given.items()})


def _relate_memory(nodes: list[Node], given: dict[str, list[Events]]) -> None:
    """How accesses overlap (8.2.1)."""
    places: dict[tuple[str, str, int, int], Events] = {}
    written = 0
    for a, x in enumerate(nodes):
        if x.memory:
            place = x.memory, x.virtual, x.start, x.end
            places[place] = places.get(place, 0) | 1 << a
            written |= (x.thread >= 0 and x.event.kind in "WU") << a
    for (memory, virtual, start, end), events in places.items():
        overlap = at_address = 0
        for (other, address, first, last), theirs in places.items():
            if other == memory and start < last and first < end:
                overlap |= theirs
                at_address |= theirs if address == virtual else 0
        for a in members(events):
            given["overlap"][a] = overlap & ~(1 << a)
            given["overlap-at-address"][a] = at_address & ~(1 << a)
            given["overlap-completely"][a] = events
            given["initial"][a] = overlap & written if nodes[a].thread < 0 else 0


def _relate_threads(nodes: list[Node], paths: Sequence[Path], given: dict[str, list[Events]]) -> None:
    """What follows from the events' threads: their orders (8.9.1), dependencies, scopes (8.5)."""
    threads = [path.thread for path in paths]
    of = [[a for a, node in enumerate(nodes) if node.thread == t] for t in range(len(threads))]
    #: The events of each thread, all of them and by scope.
    every = [sum(1 << a for a in mine) for mine in of]
    scoped: list[dict[str, Events]] = [{} for _ in threads]
    for t, mine in enumerate(of):
        for a in mine:
            scope = nodes[a].event.scope
            if scope:
                scoped[t][scope] = scoped[t].get(scope, 0) | 1 << a
    for s, first in enumerate(threads):
        cta = sum(every[t] for t, other in enumerate(threads) if first.shares("cta", other))
        included = {
            scope: sum(
                events for t, other in enumerate(threads) if first.shares(scope, other)
                for theirs, events in scoped[t].items() if other.shares(theirs, first)
            ) for scope in scoped[s]
        }  # fmt: skip
        for a in of[s]:
            x = nodes[a]
            given["same-cta"][a] = cta
            given["scopes"][a] = included.get(x.event.scope, 0)
            for t, later in enumerate(threads):
                if later.grid == first.grid + 1:
                    given["prerequisite"][a] |= sum(1 << b for b in of[t] if _waits_for_grid(nodes[b]))
            for b in of[s]:
                y = nodes[b]
                for name in _orders(x, y):
                    given[name][a] |= 1 << b
                if y.event.kind in "WU" and y.event.needs >> x.at & 1:
                    given["dep"][a] |= 1 << b


def _relate_stages(nodes: list[Node], given: dict[str, list[Events]]) -> None:
    """Which tcgen05 operations execute in the order in which they were issued (9.7.16.6.2)."""
    staged = [(a, node.event.stage) for a, node in enumerate(nodes) if node.event.stage is not None]
    for a, first in staged:
        for b, second in staged:
            if pipelined(first, second):
                given["paired"][a] |= 1 << b


def _waits_for_grid(node: Node) -> bool:
    return isinstance(node.instruction, GridControl) and node.instruction.waits


def _covered(test: Test, nodes: list[Node], paths: Sequence[Path]) -> Iterator[tuple[int, int]]:
    """Between an operation and a one-sided fence that is not limited to other memory, both ways (9.7.13.4)."""
    for f, fence in enumerate(nodes):
        if fence.event.kind not in "FP" or not fence.event.order or (fence.event.kind == "F" and not fence.space):
            continue
        cta, covers = paths[fence.thread].thread.cta, fence.event.covers
        for a, node in enumerate(nodes):
            if not node.memory or node.thread < 0:
                continue
            if covers is not None:
                name, start, end = covers
                covered = node.virtual == test.locations[name].virtual and node.start < end and start < node.end
            elif fence.event.space == "shared::cta":
                covered = node.space == "shared" and test.owner(node.event.location) == cta
            else:
                covered = fence.event.space != "shared::cluster" or node.space == "shared"
            if covered:
                yield from ((a, f), (f, a))


def _may_share(x: Node, y: Node) -> bool:
    """A proxy fence that is limited to a state space does nothing for operations on another one (9.7.13.4)."""
    return x.space == y.space or not (x.space and y.space) or (x.event.kind != "P" and y.event.kind != "P")


def _orders(x: Node, y: Node) -> Iterator[str]:
    """How two events of one thread are ordered, the first before the second (8.9.1)."""
    own = not x.event.agent and not y.event.agent
    if y.event.limited:  # in front of it, not even by way of an initialisation, is nothing else
        if own and x.event.step < y.event.step and getattr(x.instruction, "kind", "") == "init":
            yield "completed"
        return
    if x.event.step < y.event.step if own else y.event.after >> x.at & 1:
        yield "po"
    if y.event.behind >> x.at & 1:
        yield "issued"
    if y.event.completes >> x.at & 1:
        yield "completed"
    if y.event.launched >> x.at & 1:
        yield "launched"
    if y.event.piped >> x.at & 1:
        yield "piped"


def _kinds(node: Node) -> Iterator[str]:
    """The sets of 8.4 that an event belongs to."""
    event = node.event
    if event.kind in "RWU":
        yield "M"
        if event.kind == "R" or (event.kind == "U" and event.returns):
            yield "R"
        if event.kind in "WU":
            yield "W"
        if event.kind == "U":
            yield "RMW"
        if event.order in ("relaxed", "acquire", "release", "acq_rel"):
            yield "STRONG"
        if event.order in ("release", "acq_rel"):
            yield "REL"
        if event.order in ("acquire", "acq_rel"):
            yield "ACQ"
    elif event.kind == "F" and event.space:
        yield from ("F", "STRONG", "SHARED_REL" if event.order == "release" else "SHARED_ACQ")
    elif event.kind == "F":
        yield from ("F", "STRONG")
        if event.order == "sc":
            yield "F_SC"
        if event.order in ("sc", "acq_rel", "release"):
            yield "F_REL"
        if event.order in ("sc", "acq_rel", "acquire"):
            yield "F_ACQ"
    if event.kind == "T":
        yield "T_BEFORE" if event.order == "before" else "T_AFTER"
    if event.stage is not None:
        yield "TCGEN05"
    if event.kind == "P" and event.order:
        yield from ("STRONG", "TO_PROXY_REL" if event.order == "release" else "TO_PROXY_ACQ")
    elif event.kind == "P":
        yield "ALIAS_FENCE" if event.proxy == "alias" else "PROXY_FENCE"
    elif event.proxy in ("generic", "tensor"):  # tensor memory has no other way to it
        yield "GENERIC"
