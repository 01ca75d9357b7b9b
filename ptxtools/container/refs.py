"""Renaming what a module's items refer to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptxtools.ir import (
    Address,
    Arguments,
    BranchTargets,
    CallTargets,
    Element,
    Function,
    Instruction,
    Label,
    Loc,
    Name,
    Negated,
    Pair,
    Scope,
    Statement,
    SymbolOffset,
    SymbolValue,
    Variable,
    Vector,
)
from ptxtools.ir.references import declared_names, operand_names, parameter_names
from ptxtools.records import replace


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


def renamed_initializer(init: Any, names: Mapping[str, str]) -> Any:
    if isinstance(init, SymbolValue):
        return replace(init, name=names.get(init.name, init.name))
    return [renamed_initializer(element, names) for element in init] if isinstance(init, list) else init


def renamed_function(function: Function, names: Mapping[str, str], labels: Mapping[str, str]) -> Function:
    """A copy with module-scope names and labels replaced, where no name of the function's own hides them."""
    own = parameter_names(function)
    used = {old: new for old, new in names.items() if old not in own}
    body = None if function.body is None else _renamed_scope(function.body, used, labels)
    return Function(function.kind, names.get(function.name, function.name), function.params, function.returns,
                    function.directives, body, function.linkage, function.attributes, function.variadic,
                    function.span, function.name_span)  # fmt: skip


def _renamed_scope(scope: Scope, names: Mapping[str, str], labels: Mapping[str, str]) -> Scope:
    own = declared_names(scope)
    names = {old: new for old, new in names.items() if old not in own}
    used = {**names, **labels} if labels else names
    items = [_renamed_scope(i, names, labels) if isinstance(i, Scope) else _renamed_statement(i, used)
             for i in scope.items]  # fmt: skip
    return Scope(items, scope.span)


def _renamed_statement(item: Statement, names: Mapping[str, str]) -> Statement:
    if isinstance(item, Instruction):
        operands = tuple([renamed_operand(operand, names) for operand in item.operands])
        return Instruction(item.opcode, operands, item.guard, item.place)
    if isinstance(item, Label):
        return Label(names.get(item.name, item.name), item.span)
    if isinstance(item, Variable) and item.init is not None:
        return replace(item, init=renamed_initializer(item.init, names))
    if isinstance(item, (BranchTargets, CallTargets)):
        return replace(item, targets=tuple(names.get(t, t) for t in item.targets))
    if isinstance(item, Loc) and item.function_name is not None and item.function_name in names:
        return replace(item, function_name=names[item.function_name])
    return item
