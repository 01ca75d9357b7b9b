"""Simpler forms of single parts of a module: each is smaller, or has a constant for a name, so that they come to an
end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ptxtools.ir import (
    Address,
    Directive,
    Element,
    Function,
    Immediate,
    Instruction,
    Loc,
    Module,
    Name,
    Negated,
    Operand,
    Pair,
    Pragma,
    Scope,
    Section,
    SymbolOffset,
    Variable,
    Vector,
)
from ptxtools.ir.cfg import scopes_of
from ptxtools.records import replace

from .edits import Opened

_ZERO, _ONE, _SINK = Immediate(0, "s64"), Immediate(1, "s64"), Name("_")


def nodes(module: Module) -> Iterator[Any]:
    """Items, and the statements of all functions: what `simpler` has forms for."""
    for item in module.items:
        yield item
        if isinstance(item, Function):
            for scope in scopes_of(item):
                yield from scope.items


def simpler(node: Any) -> Iterator[Any]:
    """Simpler forms of an item or statement, the simplest first."""
    if isinstance(node, Instruction):
        yield from _instruction(node)
    elif isinstance(node, Variable):
        yield from _variable(node)
    elif isinstance(node, Function):
        yield from _function(node)
    elif isinstance(node, Scope):
        yield Opened(node)
    elif isinstance(node, Pragma) and len(node.strings) > 1:
        for place in range(len(node.strings)):
            yield replace(node, strings=_but(node.strings, place))
    elif isinstance(node, Section) and node.lines:
        half = len(node.lines) // 2
        yield replace(node, lines=[])
        yield replace(node, lines=node.lines[:half])
        yield replace(node, lines=node.lines[half:]) if half else node
    elif isinstance(node, Loc) and node.function_name is not None:
        yield replace(node, function_name=None, function_offset=0, inlined_at=None)


def _but(items: tuple[Any, ...], place: int) -> tuple[Any, ...]:
    return (*items[:place], *items[place + 1 :])


def _instruction(item: Instruction) -> Iterator[Instruction]:
    opcode, operands, guard = item.opcode, item.operands, item.guard
    if guard is not None:
        yield Instruction(opcode, operands)
        if guard.negated:
            yield Instruction(opcode, operands, replace(guard, negated=False))
    words = opcode.split(".")
    for place in range(len(words) - 1, 0, -1):
        yield Instruction(".".join(words[:place] + words[place + 1 :]), operands, guard)
    if operands:
        yield Instruction(opcode, operands[:-1], guard)
    if words[0] in ("call", "bra", "brx"):
        return
    for place, operand in enumerate(operands):
        for new in _operand(operand):
            yield Instruction(opcode, (*operands[:place], new, *operands[place + 1 :]), guard)


def _operand(operand: Operand) -> Iterator[Operand]:
    if isinstance(operand, Name):
        if operand.name != "_":
            yield _ZERO
            yield _SINK
    elif isinstance(operand, Immediate):
        if operand.type[0] == "f":
            if operand.value:
                yield Immediate(0, operand.type)
        elif operand.value not in (0, 1):
            yield from (_ZERO, _ONE)
    elif isinstance(operand, SymbolOffset):
        yield Name(operand.name)
    elif isinstance(operand, Element):
        yield Name(operand.name)
        if operand.register is not None:
            yield Element(operand.name, operand.index)
        elif operand.index:
            yield Element(operand.name, 0)
    elif isinstance(operand, Negated):
        yield operand.operand
    elif isinstance(operand, Pair):
        yield operand.first
        yield operand.second
    elif isinstance(operand, Address):
        if operand.offset:
            yield replace(operand, offset=0)
        if operand.suffix:
            yield replace(operand, suffix="")
        for place, part in enumerate(operand.extra):
            yield replace(operand, extra=_but(operand.extra, place))
            for new in _operand(part):
                yield replace(operand, extra=(*operand.extra[:place], new, *operand.extra[place + 1 :]))
    elif isinstance(operand, Vector):
        for place, part in enumerate(operand.items):
            yield Vector(_but(operand.items, place)) if len(operand.items) > 1 else part
            for new in _operand(part):
                yield Vector((*operand.items[:place], new, *operand.items[place + 1 :]))


def _smaller(number: int) -> Iterator[int]:
    """Smaller numbers above 0: the smallest, and those that are nearer and nearer, each half as far away as the one
    before, so that the least one that will do is found in few steps."""
    distance = number - 1
    while distance > 0:
        yield number - distance
        distance //= 2


def _variable(variable: Variable) -> Iterator[Variable]:
    if variable.init is not None:
        yield replace(variable, init=None)
        if isinstance(variable.init, list) and len(variable.init) > 1:
            half = len(variable.init) // 2
            yield replace(variable, init=variable.init[:half])
            yield replace(variable, init=variable.init[half:])
    if variable.dims:
        yield replace(variable, dims=variable.dims[1:])
        for place, length in enumerate(variable.dims):
            for smaller in _smaller(length or 0):
                yield replace(variable, dims=(*variable.dims[:place], smaller, *variable.dims[place + 1 :]))
    for smaller in _smaller(variable.count or 0):
        yield replace(variable, count=smaller)
    if variable.align is not None:
        yield replace(variable, align=None)
    if variable.attributes:
        yield replace(variable, attributes=())
    if variable.ptr is not None:
        yield replace(variable, ptr=None)
    if variable.linkage:
        yield replace(variable, linkage="")
    if variable.vector > 1:
        yield replace(variable, vector=1)


def _function(function: Function) -> Iterator[Function]:
    if function.body is not None and function.body.items:
        yield replace(function, body=Scope([]))
        if function.kind == "func":
            kept: list[Directive | Pragma] = []
            yield replace(function, body=None, directives=kept)
    for place in range(len(function.directives)):
        yield replace(function, directives=function.directives[:place] + function.directives[place + 1 :])
    for place in range(len(function.params) - 1, -1, -1):
        yield replace(function, params=function.params[:place] + function.params[place + 1 :])
    for place, param in enumerate(function.params):
        for new in _variable(param):
            yield replace(function, params=[*function.params[:place], new, *function.params[place + 1 :]])
    if function.returns:
        yield replace(function, returns=[])
    if function.linkage:
        yield replace(function, linkage="")
    if function.attributes:
        yield replace(function, attributes=())
