"""Instructions that run one behind the other: between labels, and up to what ends a path."""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.ir.nodes import Label

from .facts import ENDING, FunctionFacts, Line


def runs_of(facts: FunctionFacts) -> Iterator[list[Line]]:
    """The stretches of a function that control enters only at their first instruction; it may leave at guarded ones."""
    run: list[Line] = []
    for item in facts.items:
        if type(item) is Line:
            run.append(item)
            if item.plan.family not in ENDING or item.item.guard is not None:
                continue
        elif type(item) is not Label:
            continue
        if run:
            yield run
        run = []
    if run:
        yield run


def rounds_of(facts: FunctionFacts) -> Iterator[list[Line]]:
    """The runs of a function; and two rounds of each innermost loop that control only leaves at guarded branches."""
    yield from facts.runs
    for loop in facts.loops:
        if loop.innermost and not any(_turns(line) for line in loop.lines[:-1]):
            yield loop.lines * 2


def _turns(line: Line) -> bool:
    """Whether control goes elsewhere, so that what stands behind is not the next to run."""
    return line.plan.family in ENDING and line.item.guard is None
