"""Structural differences of two modules, whatever their registers and labels are called: `ptx-as --compare`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ptxtools.ir import Function, Instruction, Item, Label, Loc, Module, Scope, Section, Variable
from ptxtools.ir.symbols import Names, module_names, walk
from ptxtools.ir.text import operands_text
from ptxtools.matching import Matcher
from ptxtools.records import NamedTuple

from .printer import print_statement
from .reformat import canonical_opcode

_NAME = re.compile(r"[A-Za-z_$%][\w$]*", re.ASCII)


#: A register or label: its declaration's identity, since scopes may declare a name again, and the name.
_Named = tuple[int, str]


class Difference(NamedTuple):
    """Lines of one module that the other has not, or has otherwise. where: the function, or "" for the module; before,
    after: the lines with their numbers (0 without a source)."""

    where: str
    before: tuple[tuple[int, str], ...]
    after: tuple[tuple[int, str], ...]


class _Line(NamedTuple):
    """shape: the text without names of registers and labels, which are `names`; text: as it is printed."""

    shape: str
    names: tuple[_Named, ...]
    text: str
    number: int


def compare(before: Module, after: Module) -> list[Difference]:
    """What differs, in the order of the first module. Not looked at: comments, blanks, names of registers and labels,
    how registers are declared, the order of modifiers, and source locations."""
    found = _differences("", _module_lines(before), _module_lines(after))
    names, others = module_names(before), module_names(after)
    bodies, left = _bodies(before), _bodies(after)
    for name, function in bodies.items():
        other = left.pop(name, None)
        lines = list(_lines(function, names, before))
        found += _differences(name, lines, list(_lines(other, others, after)) if other is not None else [])
    for name, function in left.items():
        found += _differences(name, [], list(_lines(function, others, after)))
    return found


def _bodies(module: Module) -> dict[str, Function]:
    return {f.name: f for f in module.functions if f.body is not None}


def _module_lines(module: Module) -> list[_Line]:
    """Headers, variables, and functions without their bodies, in no order of their own."""
    lines = [_plain(_head(item), module, item.span[0]) for item in module.items if not isinstance(item, (Loc, Section))]
    return sorted(lines, key=lambda line: line.shape)


def _head(item: Item) -> str:
    if not isinstance(item, Function):
        return print_statement(item)
    return " ".join(print_statement(item).partition("\n{\n")[0].split())


def _plain(text: str, module: Module, at: int) -> _Line:
    return _Line(text, (), text, module.source.line_of(at) if module.source is not None else 0)


def _lines(function: Function, known: Names, module: Module) -> Iterator[_Line]:
    for statement, names in walk(function, known):
        if isinstance(statement, (Loc, Scope)) or (isinstance(statement, Variable) and statement.space == "reg"):
            continue
        text = print_statement(statement)
        shape = text
        found: list[_Named] = []
        if isinstance(statement, Instruction):
            guard = f"@{'!' * statement.guard.negated}{statement.guard.name} " if statement.guard is not None else ""
            operands = _shaped(operands_text(statement.operands), names, found)
            shape = f"{_shaped(guard, names, found)}{canonical_opcode(statement.opcode)} {operands}"
        elif not isinstance(statement, Variable):
            shape = _shaped(text, names, found)
        number = module.source.line_of(statement.span[0]) if module.source is not None else 0
        yield _Line(shape, tuple(found), text.replace(" \t", " "), number)


def _shaped(text: str, names: Names, found: list[_Named]) -> str:
    """A text in which registers are their types, and labels `:`; their names go to `found`."""

    def shape(match: re.Match[str]) -> str:
        symbol = names.lookup(match[0])
        if isinstance(symbol, Variable) and symbol.space == "reg":
            found.append((id(symbol), match[0]))
            return f"<{symbol.vector}{symbol.type}>"
        if not isinstance(symbol, Label):
            return match[0]
        found.append((id(symbol), match[0]))
        return "<:>"

    return _NAME.sub(shape, text)


def _differences(where: str, before: Sequence[_Line], after: Sequence[_Line]) -> list[Difference]:
    """Lines that have no partner of the same shape, and partners that name other registers than those before them."""
    found: list[Difference] = []
    there: dict[_Named, _Named] = {}
    back: dict[_Named, _Named] = {}
    matcher = Matcher([line.shape for line in before], [line.shape for line in after])
    for tag, start, end, begin, stop in matcher.get_opcodes():
        if tag != "equal":
            found.append(_difference(where, before[start:end], after[begin:stop]))
            continue
        for one, other in zip(before[start:end], after[begin:stop], strict=True):
            pairs = list(zip(one.names, other.names, strict=True))
            if any(there.setdefault(a, b) != b or back.setdefault(b, a) != a for a, b in pairs):
                found.append(_difference(where, [one], [other]))
    return found


def _difference(where: str, before: Sequence[_Line], after: Sequence[_Line]) -> Difference:
    return Difference(where, *(tuple((line.number, line.text) for line in lines) for lines in (before, after)))
