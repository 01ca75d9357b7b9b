"""What a model allows of a test, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .executions import Execution, Outcomes
from .relations import members
from .structures import Node
from .terms import Axiom, Step

#: The relations of a witness that are reported.
SHOWN = ("rf", "co", "fr", "sc", "synchronizes")
#: The events of an asynchronous operation.
_PARTS = {"R": "reads", "W": "writes", "U": "updates", "P": "is complete"}
#: Final states that are printed.
_MOST_STATES = 40


def summary(outcomes: Outcomes) -> str:
    """One line: the verdict, and on what it rests."""
    parts = [outcomes.test.name]
    if outcomes.test.condition is not None:
        verdict = "undecided" if not outcomes.conclusive else "ok" if outcomes.holds else "FAILED"
        parts[0] += f": {verdict}"
        parts.append(f"{'allowed' if outcomes.allowed else 'forbidden'} ({outcomes.observation.lower()})")
    parts.append(f"{_count(outcomes.executions, 'execution')}, {_count(len(outcomes.states), 'state')}")
    parts.append(f"model {outcomes.version}")
    return ", ".join(parts)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def details(outcomes: Outcomes, against: Execution | None) -> Iterator[str]:
    """The lines below the summary. against: for a condition that nothing satisfies, the nearest execution."""
    condition = outcomes.test.condition
    if condition is not None:
        yield f"    {outcomes.test.quantifier} {condition.text}"
    rows = sorted(outcomes.states.items())
    for key, number in rows[:_MOST_STATES]:
        state = dict(zip(outcomes.names, key, strict=True))
        mark = "*" if condition is not None and condition.holds(state) else " "
        yield f"  {mark} {number:6}  " + "  ".join(f"{name}={value}" for name, value in state.items())
    if len(rows) > _MOST_STATES:
        yield f"    … and {len(rows) - _MOST_STATES} more states"
    yield from _notes(outcomes)
    if outcomes.witness is not None:
        yield "    for example:"
        yield from (f"      {line}" for line in _relations(outcomes.witness))
    elif against is not None and against.broken:
        axiom, steps = against.broken[0]
        yield f"    {axiom.name} ({axiom.section}) forbids it:"
        yield from (f"      {line}" for line in _steps(against, steps))


def _notes(outcomes: Outcomes) -> Iterator[str]:
    if outcomes.incomplete:
        yield f"    incomplete: counting has ended; there are more than {outcomes.executions} executions"
    if outcomes.cut:
        yield f"    paths on which an instruction is executed more than {outcomes.unroll} times are left out"
    if outcomes.left_over:
        yield f"    {_count(outcomes.left_over, 'execution')} with a thread left over at a barrier: it waits for ever"
    if outcomes.undefined:
        count = _count(outcomes.undefined, "execution")
        yield f"    {count} with an mbarrier that is not initialised, or beyond its counts: undefined (9.7.13.15)"
    if outcomes.mixed_races:
        yield "    accesses of different sizes race: the axioms do not hold for this program (8.7.2)"
    elif outcomes.races:
        yield f"    {_count(outcomes.races, 'execution')} with a data race (8.7.1)"


def place_of(execution: Execution, a: int) -> str:
    """An event as the test writes it, with its thread."""
    node = execution.nodes[a]
    if node.thread < 0:
        return f"initial {node.memory}"
    part = _PARTS.get(node.event.kind) if node.event.agent else None
    return f"{thread_of(execution, node)}: {node.instruction.text}{f' ({part})' if part else ''}"


def thread_of(execution: Execution, node: Node) -> str:
    return execution.threads[node.thread]


def _pairs(execution: Execution, name: str) -> Iterator[tuple[int, int]]:
    for a, row in enumerate(execution.relations[name]):
        for b in members(row):
            yield a, b


def _relations(execution: Execution) -> Iterator[str]:
    """A line for each pair, but for those that follow from others: the initial write precedes all, and of writes that
    are ordered one after the other, and of those later than what a read returned, the next one is enough."""
    order = execution.relations["co"]
    lines: dict[str, None] = {}
    for name in SHOWN:
        rows = execution.relations[name]
        for a, b in _pairs(execution, name):
            if name == "co" and execution.nodes[a].thread < 0:
                continue
            if name in ("co", "fr") and any(order[c] >> b & 1 for c in members(rows[a])):
                continue
            lines[f"{place_of(execution, a)}  --{name}-->  {place_of(execution, b)}"] = None
    yield from lines


def _steps(execution: Execution, steps: list[Step]) -> Iterator[str]:
    for name, a, b in steps:
        yield f"{place_of(execution, a)}  --{name}-->  {place_of(execution, b)}"


# --- JSON -------------------------------------------------------------------------------------------------------------


def as_json(outcomes: Outcomes, against: Execution | None) -> dict[str, Any]:
    """The object that `--format json` prints for a test."""
    test, condition = outcomes.test, outcomes.test.condition
    states = []
    for key, number in sorted(outcomes.states.items()):
        values = dict(zip(outcomes.names, key, strict=True))
        states.append({"values": values, "executions": number, "races": outcomes.racing.get(key, 0),
                       "satisfies": None if condition is None else condition.holds(values)})  # fmt: skip
    return {
        "file": test.source.name,
        "name": test.name,
        "model": outcomes.version,
        "quantifier": test.quantifier or None,
        "condition": None if condition is None else condition.text,
        "verdict": None if condition is None else "allowed" if outcomes.allowed else "forbidden",
        "observation": None if condition is None else outcomes.observation.lower(),
        "holds": outcomes.holds,
        "executions": outcomes.executions,
        "states": states,
        "unroll": outcomes.unroll,
        "cut": outcomes.cut,
        "incomplete": outcomes.incomplete,
        "left_over": outcomes.left_over,
        "undefined": outcomes.undefined,
        "races": outcomes.races,
        "mixed_size_races": outcomes.mixed_races,
        "witness": None if outcomes.witness is None else _execution(outcomes.witness),
        "forbidden_by": [] if against is None else [_broken(against, *each) for each in against.broken],
    }


def _execution(execution: Execution) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    for a, node in enumerate(execution.nodes):
        read, written = execution.values[a]
        thread = None if node.thread < 0 else thread_of(execution, node)
        line = None if node.thread < 0 else execution.lines[a]
        events.append({"event": a, "thread": thread, "text": place_of(execution, a).split(": ", 1)[-1], "line": line,
                       "kind": node.event.kind, "location": node.memory or None,
                       "read": read, "written": written})  # fmt: skip
    relations = {name: [list(pair) for pair in _pairs(execution, name)] for name in ("po", *SHOWN)}
    return {"events": events, "relations": relations, "state": execution.state}


def _broken(execution: Execution, axiom: Axiom, steps: list[Step]) -> dict[str, Any]:
    cycle = [{"relation": name, "from": place_of(execution, a), "to": place_of(execution, b)} for name, a, b in steps]
    return {"axiom": axiom.name, "section": axiom.section, "cycle": cycle}
