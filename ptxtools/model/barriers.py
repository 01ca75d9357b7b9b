"""How the threads of an execution meet at barriers (8.9.4, 9.7.13.1, 9.7.13.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from .programs import Barrier
from .relations import Relation, members
from .structures import Node, Skeleton

#: Threads that hold a row of a matrix together, and room for what one of them holds: four registers, and metadata.
ROW, ROW_BITS = 4, 5 * 32


def barrier_orders(found: Skeleton) -> Iterator[tuple[Relation, Relation]]:
    """Each way in which arrivals meet waits (8.9.4), as the relations "barrier" and "relaxed-barrier". Executions in
    which a thread waits for ever have none, unless it was left over at a barrier at which others have met.

    A barrier without a count waits for the threads of the CTA that use it: their k-th arrivals meet each other. One
    with a count is complete whenever so many threads have arrived.
    """
    ends = [
        first + len(path.events) - 1 for path, first in zip(found.paths, found.first, strict=True)
        if path.unreached is not None
    ]  # fmt: skip
    if any(len(met) != ROW for met in row_meetings(found).values()):
        return  # threads of a row that do not execute the instruction together
    keys = dict.fromkeys(
        (n.event.barrier, n.event.count) for n in found.nodes if n.event.kind in "AB" and not _is_of_row(n)
    )
    ways: list[list[tuple[int, int]]] = [[]]
    for key, count in keys:
        threads = []
        for thread in range(len(found.paths)):
            mine = [
                a for a, node in enumerate(found.nodes)
                if node.thread == thread and node.event.kind in "AB"
                and (node.event.barrier, node.event.count) == (key, count)
            ]  # fmt: skip
            if mine:
                threads.append(_turns(found, mine))
        over = {a for a in ends if (found.nodes[a].event.barrier, found.nodes[a].event.count) == (key, count)}
        phases = _counted(threads, count, over) if count is not None else _together(threads)
        ways = [way + more for way in ways for more in phases]
        if len(ways) > 10_000:
            ways = ways[:10_000]
    universe = found.structure.universe
    for way in ways:
        if universe.is_acyclic(universe.relation(way) | found.structure.given["po"]):
            relaxed = universe.relation((a, b) for a, b in way if not found.nodes[a].event.ordering)
            yield universe.relation((source, b) for a, b in way for source in _releases(found, a, b)), relaxed


def _releases(found: Skeleton, a: int, b: int) -> list[int]:
    """What synchronises with the wait b by the arrival a: the arrival; if it is relaxed, the fences in front of it that
    release prior operations, as far as their scope goes (9.7.13.3)."""
    nodes = found.nodes
    if nodes[a].event.ordering:
        return [a]
    threads = [path.thread for path in found.paths]
    arriving, waiting = threads[nodes[a].thread], threads[nodes[b].thread]
    return [
        n for n, node in enumerate(nodes)
        if found.structure.sets["F_REL"] >> n & 1 and node.thread == nodes[a].thread
        and node.event.step < nodes[a].event.step and arriving.shares(node.event.scope, waiting)
    ]  # fmt: skip


def row_meetings(found: Skeleton) -> dict[int, list[int]]:
    """The arrivals that each wait of the threads of a row meets, by lanes: the k-th ones meet each other."""
    meetings: dict[tuple[object, ...], list[int]] = {}
    waits: dict[int, tuple[object, ...]] = {}
    counts: dict[tuple[object, ...], int] = {}
    for a, node in enumerate(found.nodes):
        if node.event.kind in "AB" and _is_of_row(node):
            mine = node.thread, node.event.kind, node.event.barrier
            key = node.event.barrier, counts.setdefault(mine, 0)
            counts[mine] += 1
            if node.event.kind == "A":
                meetings.setdefault(key, []).append(a)
            else:
                waits[a] = key
    lane = {a: found.paths[found.nodes[a].thread].thread.lane for met in meetings.values() for a in met}
    return {b: sorted(meetings.get(key, ()), key=lane.__getitem__) for b, key in waits.items()}


def _is_of_row(node: Node) -> bool:
    return isinstance(node.instruction, Barrier) and node.instruction.place == "row"


def arrivals(found: Skeleton, wait: int) -> list[int]:
    """The arrivals that a wait at a barrier meets, in the way in which threads meet now."""
    if _is_of_row(found.nodes[wait]):
        return row_meetings(found)[wait]
    nodes, barrier = found.nodes, found.structure.given["barrier"]
    holds = found.structure.universe.holds
    return [a for a, node in enumerate(nodes) if node.event.kind == "A" and holds(barrier, a, wait)]


def reductions(found: Skeleton) -> list[int]:
    """The waits whose thread gets a result."""
    return [
        b for b, node in enumerate(found.nodes)
        if node.event.kind == "B" and isinstance(node.instruction, Barrier) and node.instruction.reduction
    ]  # fmt: skip


def dependencies(found: Skeleton) -> Relation:
    """Those of threads (8.10.4), and from what the predicates of a barrier's reduction depend on to what depends on its
    result (9.7.13.1)."""
    pending = {b: arrivals(found, b) for b in reductions(found)}
    order = found.dependencies
    if not pending:
        return order
    nodes, universe = found.nodes, found.structure.universe
    sources: dict[int, set[int]] = {}
    while pending:  # no result depends on itself: a barrier's predicates are there before it is complete
        for b, theirs in list(pending.items()):
            needed = {found.first[nodes[a].thread] + at for a in theirs for at in members(nodes[a].event.needs)}
            if needed.isdisjoint(pending):
                sources[b] = needed.union(*(sources.get(n, ()) for n in needed))
                del pending[b]
    return order | universe.relation(
        (a, w) for b, needed in sources.items() for w in members(universe.after(order, b)) for a in needed
    )  # fmt: skip


def _turns(found: Skeleton, events: list[int]) -> list[tuple[list[int], list[int]]]:
    """The arrivals and waits of a thread at one barrier, one pair of lists a phase."""
    turns: list[tuple[list[int], list[int]]] = []
    for a in events:
        if found.nodes[a].event.kind == "A":
            turns.append(([a], []))
        elif turns and not turns[-1][1]:
            turns[-1][1].append(a)
        else:
            turns.append(([], [a]))  # waits without having arrived: for ever
    return turns


_Turn = tuple[list[int], list[int]]


def _edges(phase: Sequence[_Turn]) -> list[tuple[int, int]]:
    return [(a, b) for arrives, _ in phase for a in arrives for _, waits in phase for b in waits]


def _together(threads: list[list[_Turn]]) -> list[list[tuple[int, int]]]:
    longest = max(map(len, threads))
    edges: list[tuple[int, int]] = []
    for k in range(longest):
        phase = [turns[k] for turns in threads if k < len(turns)]
        if any(waits and not arrives for arrives, waits in phase):
            return []
        edges += _edges(phase)
    return [edges]


def _counted(threads: list[list[_Turn]], count: int, over: set[int]) -> list[list[tuple[int, int]]]:
    """over: arrivals of threads that are left over."""
    found: dict[tuple[tuple[int, int], ...], None] = {}
    stack: list[tuple[tuple[int, ...], tuple[tuple[int, int], ...]]] = [((0,) * len(threads), ())]
    seen = set(stack)
    while stack:
        at, edges = stack.pop()
        ready = [t for t, turns in enumerate(threads) if at[t] < len(turns)]
        waiting = any(waits for t in ready for _, waits in threads[t][at[t] :])
        if not waiting and (not over or (any(at) and len(ready) < count)):
            found[edges] = None
        for chosen in combinations(ready, count) if 0 < count <= len(ready) else ():
            phase = [threads[t][at[t]] for t in chosen]
            if any((waits and not arrives) or over.intersection(arrives) for arrives, waits in phase):
                continue
            later = tuple(k + (t in chosen) for t, k in enumerate(at))
            state = (later, tuple(sorted((*edges, *_edges(phase)))))
            if state not in seen:
                seen.add(state)
                stack.append(state)
    return [list(edges) for edges in found]
