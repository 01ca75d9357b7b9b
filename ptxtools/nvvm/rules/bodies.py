"""Bodies of functions as LLVM's verifier demands them: definitions, uses, blocks, phis, dominance."""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.ir.dominators import DominatorTree

from ..assembly.instructions import TERMINATORS
from ..assembly.nodes import Block, Function, Instruction, Value
from ..assembly.types import LABEL, VOID, Type
from .constants import check_constant
from .context import Context
from .dominance import comes_before, dominators_of
from .typing import MISMATCH, TYPING

#: Behind all instructions of a block.
_LAST = 1 << 60
UNDEFINED, REDEFINED, BLOCKS, PHI, DOMINANCE = "NVVM110", "NVVM110", "NVVM113", "NVVM114", "NVVM115"


class Body:
    """A function's definitions: name -> type, and where; blocks by name, in order, with their predecessors."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.types: dict[str, Type | None] = {}
        self.homes: dict[str, tuple[int, int]] = {}
        self.blocks: dict[str, int] = {}
        self.before: list[list[int]] = [[] for _ in function.blocks]


def check_body(context: Context, function: Function) -> None:
    body = Body(function)
    _define_heads(context, body)
    for number, block in enumerate(function.blocks):
        for place, one in enumerate(block.instructions):
            find = TYPING.get(one.op)
            one.type = find(context, one) if find else VOID
            if one.name:
                _define(context, body, one.name, one.type, one.named_at, (number, place))
    _check_blocks(context, body)
    if context.counts_silently:
        _check_labels(context, body)
    tree = dominators_of(body.before)
    for number, block in enumerate(function.blocks):
        for place, one in enumerate(block.instructions):
            _check_uses(context, body, one, (number, place), tree)
            if one.op == "phi":
                _check_phi(context, body, block, number, place, tree)
            elif one.op == "ret":
                _check_return(context, function, one)


def _check_labels(context: Context, body: Body) -> None:
    """A label that is a number is a name to LLVM 7, and `%1` is not that block."""
    function = body.function
    aims = {aim.text for block in function.blocks for one in block.instructions for aim in one.extra.get("blocks", ())}
    for block in function.blocks:
        name = block.name.replace('"', "")
        meant = name in aims and (name == block.name or name not in body.blocks)
        if meant and context.source.text[block.at : block.at + 1].isdecimal():
            message = f"to LLVM 7 the label {name[1:]} is a name, and {name} is another block"
            context.at_name("NVVM103", block.at, name[1:], message, "give it a name, or leave the label out")


def _define_heads(context: Context, body: Body) -> None:
    for param in body.function.params:
        _define(context, body, param.name, param.type, param.at, (-1, 0))
    for number, block in enumerate(body.function.blocks):
        _define(context, body, block.name, LABEL, block.at, (number, -1))
        body.blocks.setdefault(block.name, number)


def _define(context: Context, body: Body, name: str, type: Type | None, at: int, home: tuple[int, int]) -> None:
    if name in body.types:
        context.at_name(REDEFINED, at, name, f"redefinition of '{name}'")
        return
    body.types[name], body.homes[name] = type, home


def _check_blocks(context: Context, body: Body) -> None:
    function = body.function
    for number, block in enumerate(function.blocks):
        last = block.instructions[-1] if block.instructions else None
        if (last is None or last.op not in TERMINATORS) and not function.broken:
            at = last.at if last else block.at
            context.at_name(BLOCKS, at, last.op if last else block.name[1:],
                            f"block '{block.name}' does not end in a terminator")  # fmt: skip
        for target in last.extra.get("blocks", ()) if last and last.op in TERMINATORS else ():
            reached = body.blocks.get(target.text)
            if reached is None:
                named = context.counts_silently and f'%"{target.text[1:]}"' in body.blocks  # as `_check_labels` says
                if not function.broken and not named:
                    context.at_value(UNDEFINED, target, f"use of undefined label '{target.text}'")
            elif reached == 0:
                context.at_value(BLOCKS, target, "the entry block has no predecessors, and this branches to it")
            else:
                body.before[reached].append(number)


def _operands(values: tuple[Value, ...] | list[Value]) -> Iterator[Value]:
    for value in values:
        yield value
        if value.parts:
            yield from _operands(value.parts)


def _check_uses(context: Context, body: Body, one: Instruction, here: tuple[int, int], tree: DominatorTree) -> None:
    known, functions, variables = body.types, context.module.functions, context.module.variables
    for value in one.operands:
        if value.kind == "local":
            name = value.text
            if name not in known:
                if not body.function.broken:
                    context.at_value(UNDEFINED, value, f"use of undefined value '{name}'")
                continue
            type = known[name]
            if type is not None and type is not value.type:
                context.at_value(MISMATCH, value, f"'{name}' is defined with type {type}, and is used as {value.type}")
            elif one.op != "phi" and not _dominates(body, body.homes[name], here, tree):
                context.at_value(DOMINANCE, value, f"'{name}' is not defined on every way to its use")
        elif value.kind == "global":
            if value.text not in functions and value.text not in variables:
                context.at_value(UNDEFINED, value, f"use of undefined value '{value.text}'")
            elif value is not one.operands[0] or one.op != "call":
                check_constant(context, value)
        elif value.kind != "int" or not _fits_any(value.type) or len(value.text) > 2:
            check_constant(context, value, body.types)


def _fits_any(type: Type) -> bool:
    """Whether all integers of two characters are constants of a type."""
    return type.kind == "int" and type.bits >= 8


def _check_phi(context: Context, body: Body, block: Block, number: int, place: int, tree: DominatorTree) -> None:
    one = block.instructions[place]
    if place and block.instructions[place - 1].op != "phi":
        context.at_name(PHI, one.at, "phi", "a phi stands at the begin of its block")
    comes = {value.text for value in one.extra["blocks"]}
    if one.type is not None and one.type.kind in ("void", "label", "function"):
        context.at_name(PHI, one.at, "phi", f"a phi has no type {one.type}")
    if body.function.broken:
        return
    names = {body.function.blocks[before].name for before in body.before[number]}
    for value in one.extra["blocks"]:
        if value.text not in names:
            context.at_value(PHI, value, f"'{value.text}' is no predecessor of '{block.name}'")
    for value, source in zip(one.operands, one.extra["blocks"], strict=False):
        before, home = body.blocks.get(source.text), body.homes.get(value.text, (-1, 0))
        if value.kind == "local" and before is not None and not _dominates(body, home, (before, _LAST), tree):
            context.at_value(
                DOMINANCE, value, f"'{value.text}' is not defined on every way to the end of '{source.text}'"
            )
    for missing in sorted(names - comes):
        context.at_name(PHI, one.at, "phi", f"the phi has no value for the predecessor '{missing}'")


def _check_return(context: Context, function: Function, one: Instruction) -> None:
    given = one.operands[0].type if one.operands else VOID
    if given is not function.result:
        context.error(MISMATCH, (one.at, one.end), f"{function.name} returns {function.result}, not {given}")


def _dominates(body: Body, home: tuple[int, int], here: tuple[int, int], tree: DominatorTree) -> bool:
    """Whether a definition comes before a use on all ways."""
    if home[0] < 0 or (home[0] == here[0] and home[1] < here[1]):
        return True
    return comes_before(tree, home[0], here[0])
