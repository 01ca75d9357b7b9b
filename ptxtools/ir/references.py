"""Names that functions and initialisers refer to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .nodes import (
    Address,
    Arguments,
    CallTargets,
    Element,
    Function,
    Initializer,
    Instruction,
    Label,
    Loc,
    Name,
    Negated,
    Operand,
    Pair,
    Scope,
    Statement,
    SymbolOffset,
    SymbolValue,
    Variable,
    Vector,
)

#: Functions that the CUDA runtime defines itself, and the prefix of a family of them.
RUNTIME = frozenset({"vprintf", "malloc", "free", "__assertfail"})
_RUNTIME_PREFIX = "__cudaCDP2"


def is_runtime_function(name: str) -> bool:
    """Whether the runtime itself defines this function."""
    return name in RUNTIME or name.startswith(_RUNTIME_PREFIX)


def statements(scope: Scope) -> Iterator[Statement]:
    """All statements in source order, those of nested scopes included; the scopes themselves are not."""
    for item in scope.items:
        if isinstance(item, Scope):
            yield from statements(item)
        else:
            yield item


def operand_names(operand: Operand) -> Iterator[str]:
    """Every name in an operand, registers and labels included."""
    if isinstance(operand, (Name, SymbolOffset)):
        yield operand.name
    elif isinstance(operand, Element):
        yield operand.name
        if operand.register is not None:
            yield operand.register
    else:
        for part in _parts(operand):
            yield from operand_names(part)


def _parts(operand: Operand) -> tuple[Operand, ...]:
    if isinstance(operand, Address):
        return (operand.base, *operand.extra)
    if isinstance(operand, (Vector, Arguments)):
        return operand.items
    if isinstance(operand, Negated):
        return (operand.operand,)
    return (operand.first, operand.second) if isinstance(operand, Pair) else ()


def initializer_names(init: Initializer | None) -> Iterator[str]:
    """Variables and functions whose address an initialiser takes."""
    if isinstance(init, SymbolValue):
        yield init.name
    elif isinstance(init, list):
        for element in init:
            yield from initializer_names(element)


def local_names(function: Function) -> set[str]:
    """Names with a meaning local to the function: parameters, declarations, labels."""
    names = parameter_names(function)
    waiting = [function.body] if function.body is not None else []
    while waiting:
        scope = waiting.pop()
        names |= declared_names(scope)
        waiting += [item for item in scope.items if isinstance(item, Scope)]
    return names


def parameter_names(function: Function) -> set[str]:
    """Names of parameters and results."""
    return {v.name for v in (*function.params, *function.returns)}


def declared_names(scope: Scope) -> set[str]:
    """Names declared by a scope: variables, labels and labelled directives."""
    names: set[str] = set()
    for item in scope.items:
        if isinstance(item, (Variable, Label)):
            names.add(item.name)
        elif not isinstance(item, (Instruction, Loc, Scope)):
            label = getattr(item, "label", None)
            if label is not None:
                names.add(label)
    return names


def referenced(function: Function) -> dict[str, Any]:
    """Non-local names used in a body, each with the first statement that uses it."""
    found: dict[str, Any] = {}
    if function.body is not None:
        _note_references(function.body, parameter_names(function), found)
    return found


def _note_references(scope: Scope, hidden: set[str], found: dict[str, Any]) -> None:
    hidden = hidden | declared_names(scope)
    seen: set[int] = set()
    for item in scope.items:
        if isinstance(item, Scope):
            _note_references(item, hidden, found)
            continue
        for name in _statement_names(item, seen):
            if name not in hidden:
                found.setdefault(name, item)


def _statement_names(statement: Any, seen: set[int]) -> Iterator[str]:
    if isinstance(statement, Instruction):
        for operand in statement.operands:
            if id(operand) not in seen:  # operands are shared: one look at each is enough
                seen.add(id(operand))
                yield from operand_names(operand)
    elif isinstance(statement, CallTargets):
        yield from statement.targets
    elif isinstance(statement, Variable):
        yield from initializer_names(statement.init)
