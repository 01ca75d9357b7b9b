"""Names that a module's items refer to, and renaming them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ptxtools.ir import (
    Address,
    Arguments,
    BranchTargets,
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

from .code import ordinals


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


def renamed_operand(operand: Any, names: Mapping[str, str]) -> Any:
    """The operand with its names replaced; the same object when nothing changes."""
    if not any(name in names for name in operand_names(operand)):
        return operand
    if isinstance(operand, (Name, SymbolOffset)):
        return replace(operand, name=names.get(operand.name, operand.name))
    if isinstance(operand, Element):
        register = operand.register and names.get(operand.register, operand.register)
        return replace(operand, name=names.get(operand.name, operand.name), register=register)
    if isinstance(operand, Address):
        extra = tuple(renamed_operand(part, names) for part in operand.extra)
        return replace(operand, base=renamed_operand(operand.base, names), extra=extra)
    if isinstance(operand, (Vector, Arguments)):
        return type(operand)(tuple(renamed_operand(part, names) for part in operand.items))
    if isinstance(operand, Negated):
        return replace(operand, operand=renamed_operand(operand.operand, names))
    return Pair(renamed_operand(operand.first, names), renamed_operand(operand.second, names))


def initializer_names(init: Initializer | None) -> Iterator[str]:
    """Variables and functions whose address an initialiser takes."""
    if isinstance(init, SymbolValue):
        yield init.name
    elif isinstance(init, list):
        for element in init:
            yield from initializer_names(element)


def renamed_initializer(init: Any, names: Mapping[str, str]) -> Any:
    if isinstance(init, SymbolValue):
        return replace(init, name=names.get(init.name, init.name))
    return [renamed_initializer(element, names) for element in init] if isinstance(init, list) else init


def local_names(function: Function) -> set[str]:
    """Names that mean something of the function's own inside it: parameters, declarations, labels."""
    names = {v.name for v in (*function.params, *function.returns)}
    if function.body is not None:
        for _, statement in ordinals(function.body):
            if isinstance(statement, (Variable, Label)):
                names.add(statement.name)
            elif not isinstance(statement, (Instruction, Loc)):
                label = getattr(statement, "label", None)
                if label is not None:
                    names.add(label)
    return names


def referenced(function: Function) -> dict[str, Any]:
    """Names used in a body that are not its own, with the first statement that uses each."""
    if function.body is None:
        return {}
    own = local_names(function)
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for _, statement in ordinals(function.body):
        for name in _statement_names(statement, seen):
            if name not in own:
                found.setdefault(name, statement)
    return found


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


def renamed_function(function: Function, names: Mapping[str, str], labels: Mapping[str, str]) -> Function:
    """A copy with module-scope names and labels replaced. names: what is not hidden by the function's own names."""
    own = local_names(function) if function.body is not None else set()
    used = {old: new for old, new in names.items() if old not in own} | dict(labels)
    body = None if function.body is None else _renamed_scope(function.body, used)
    return Function(function.kind, names.get(function.name, function.name), function.params, function.returns,
                    function.directives, body, function.linkage, function.attributes, function.variadic,
                    function.span, function.name_span)  # fmt: skip


def _renamed_scope(scope: Scope, names: Mapping[str, str]) -> Scope:
    return Scope([_renamed_statement(item, names) for item in scope.items], scope.span)


def _renamed_statement(item: Statement, names: Mapping[str, str]) -> Statement:
    if isinstance(item, Instruction):
        operands = tuple([renamed_operand(operand, names) for operand in item.operands])
        return Instruction(item.opcode, operands, item.guard, item.place)
    if isinstance(item, Scope):
        return _renamed_scope(item, names)
    if isinstance(item, Label):
        return Label(names.get(item.name, item.name), item.span)
    if isinstance(item, Variable) and item.init is not None:
        return replace(item, init=renamed_initializer(item.init, names))
    if isinstance(item, (BranchTargets, CallTargets)):
        return replace(item, targets=tuple(names.get(t, t) for t in item.targets))
    if isinstance(item, Loc) and item.function_name is not None and item.function_name in names:
        return replace(item, function_name=names[item.function_name])
    return item
