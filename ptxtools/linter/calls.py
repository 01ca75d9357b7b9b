"""Calls, for the warning rules: what they call, and which of them ptxas cannot replace by the function's body."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from ptxtools.ir.nodes import Function, Name
from ptxtools.ir.references import is_runtime_function

from .facts import FunctionFacts, Line

#: The calls of each function that has a body, by the function's identity.
Calls: TypeAlias = dict[int, list[Line]]


def callee_of(line: Line) -> Function | None:
    """The function that a `call` names; None if it calls through a register."""
    callee = next((operand for operand in line.item.operands if isinstance(operand, Name)), None)
    symbol = line.names.lookup(callee.name) if callee is not None else None
    return symbol if isinstance(symbol, Function) else None


def stays_a_call(line: Line) -> bool:
    """Whether the body that a `call` runs is not in the module, or is known only when it runs."""
    callee = callee_of(line)
    return callee is None or callee.body is None


def calls_of(functions: Iterable[FunctionFacts]) -> Calls:
    """The calls of some functions."""
    return {id(facts.function): facts.of("call") for facts in functions}


def reached_from(function: Function, calls: Calls) -> Iterator[Function]:
    """The functions that a function calls, itself or by others, each once; itself among them if it calls itself."""
    waiting, seen = [function], set()
    while waiting:
        for line in calls.get(id(waiting.pop()), ()):
            callee = callee_of(line)
            if callee is not None and id(callee) not in seen:
                seen.add(id(callee))
                yield callee
                waiting.append(callee)


def why_it_stays(line: Line, calls: Calls, *, runtime: bool = True) -> str:
    """Why a call, or one in what it calls, cannot be replaced by the body; "" if all can. runtime: whether a call of a
    function of the CUDA runtime is such a reason."""
    waiting, seen = [line], {id(line)}
    while waiting:
        at = waiting.pop()
        callee = callee_of(at)
        if callee is None:
            return "it calls a function that is known only when it runs"
        if callee.body is None and not runtime and is_runtime_function(callee.name):
            continue
        if stays_a_call(at):
            return f"it calls '{callee.name}'"
        if any(one is callee for one in reached_from(callee, calls)):
            return f"it calls '{callee.name}', which calls itself"
        for inner in calls.get(id(callee), ()):
            if id(inner) not in seen:
                seen.add(id(inner))
                waiting.append(inner)
    return ""
