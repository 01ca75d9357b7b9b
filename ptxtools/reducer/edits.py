"""Edits of a module's tree: what is dropped or replaced takes with it whatever refers to a name that is then gone.

The tree that an edit starts from stays as it is; the parts that it does not concern are shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from ptxtools.ir import (
    Alias,
    BranchTargets,
    CallTargets,
    Function,
    Instruction,
    Label,
    Loc,
    Module,
    Scope,
    Statement,
    Variable,
)
from ptxtools.ir.references import initializer_names, operand_names, parameter_names, statements
from ptxtools.records import replace

#: New nodes by the id of those that they replace; None: dropped.
Changes: TypeAlias = Mapping[int, Any]

_DIGITS = "0123456789"


def edited(module: Module, changes: Changes) -> Module:
    """A module with some of its items and statements replaced or dropped."""
    gone = _declared(item for item in module.items if id(item) in changes)
    items: list[Any] = []
    for item in module.items:
        new = changes.get(id(item), item)
        if isinstance(new, Function) and new.body is not None:
            new = _function(item, new, changes, gone)
        elif gone and isinstance(new, Variable) and gone & set(initializer_names(new.init)):
            new = replace(new, init=None)
        elif gone and isinstance(new, Alias) and new.target in gone:
            new = None
        if new is not None:
            items.append(new)
    # A name that is declared more than once is gone only with its last declaration.
    if gone & _declared(items):
        return _kept_names(module, changes)
    return Module(items)


def _kept_names(module: Module, changes: Changes) -> Module:
    """The module without what is dropped, and with all that refers to it."""
    items = [changes.get(id(item), item) for item in module.items]
    return Module([
        _function(item, item, changes, frozenset()) if isinstance(item, Function) and item.body is not None else item
        for item in items if item is not None
    ])  # fmt: skip


def _function(old: Any, new: Function, changes: Changes, gone: frozenset[str]) -> Function:
    assert new.body is not None
    if old is not new and isinstance(old, Function):
        gone |= frozenset(parameter_names(old) - parameter_names(new))
    if changes:
        dropped = (s for s in statements(new.body) if id(s) in changes)
        gone |= frozenset(s.name for s in dropped if isinstance(s, Label))
    body = _scope(new.body, changes, gone)
    return new if body is new.body else replace(new, body=body)


def _scope(scope: Scope, changes: Changes, gone: frozenset[str]) -> Scope:
    missing = [item for item in scope.items if id(item) in changes]
    if missing:
        kept = _declared(changes[id(item)] for item in missing)
        gone |= _declared(missing) - kept
    items: list[Statement] = []
    for item in scope.items:
        new: Any = changes.get(id(item), item)
        if new is None:
            continue
        if isinstance(new, Opened):
            items += _scope(new.scope, changes, gone).items
            continue
        if isinstance(new, Scope):
            new = _scope(new, changes, gone)
        elif gone and new is item:
            new = _without(new, gone)
        if new is not None:
            items.append(new)
    same = len(items) == len(scope.items) and all(a is b for a, b in zip(items, scope.items, strict=True))
    return scope if same else Scope(items)


class Opened:
    """Stands for the statements of a scope, in place of the scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope


def _without(statement: Any, gone: frozenset[str]) -> Any:
    """A statement when names are gone; None if it cannot stay."""
    if isinstance(statement, (BranchTargets, CallTargets)):
        left = tuple(name for name in statement.targets if name not in gone)
        return statement if left == statement.targets else replace(statement, targets=left) if left else None
    if isinstance(statement, Loc):
        return None if statement.function_name in gone else statement
    if isinstance(statement, (Instruction, Variable)):
        return None if gone.intersection(_uses(statement)) else statement
    return statement


def _uses(statement: Instruction | Variable) -> Iterator[str]:
    """Names in a statement; the registers of a range also by the range's name."""
    if isinstance(statement, Variable):
        yield from initializer_names(statement.init)
        return
    if statement.guard is not None:
        yield from _spellings(statement.guard.name)
    for operand in statement.operands:
        for name in operand_names(operand):
            yield from _spellings(name)


def _spellings(name: str) -> Iterator[str]:
    if "." in name:
        name = name.partition(".")[0]
    yield name
    if name[-1:].isdigit():
        yield name.rstrip(_DIGITS) + "<"


def _declared(items: Any) -> frozenset[str]:
    """The names that items declare; of ranges with a mark, since `%r` is none of the registers of `%r<9>`."""
    found = set()
    for item in items:
        name = getattr(item, "label", None) or getattr(item, "name", None)
        if isinstance(name, str):
            found.add(f"{name}<" if isinstance(item, Variable) and item.count is not None else name)
    return frozenset(found)
