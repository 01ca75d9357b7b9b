"""Modules as text, in one canonical layout close to nvcc's. `parse(print_module(m)).module == m`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ptxtools.ir import (
    Alias,
    BranchTargets,
    CallPrototype,
    CallTargets,
    Directive,
    File,
    Function,
    Header,
    Immediate,
    Initializer,
    Instruction,
    Item,
    Label,
    Loc,
    Member,
    Module,
    Pragma,
    Scope,
    Section,
    Statement,
    SymbolValue,
    Variable,
)
from ptxtools.ir.nodes import LOC_INTERMEDIATE, SOURCES
from ptxtools.ir.text import immediate_text, instruction_text, offset_text

from .sources import sources_text


def print_module(module: Module) -> str:
    """The text of a module."""
    lines: list[str] = []
    last: type | None = None
    for item in module.items:
        if last is not None and (type(item) is not last or isinstance(item, (Function, Section))):
            lines.append("")
        last = type(item)
        _item(item, lines)
    lines.append("")
    return "\n".join(lines)


def print_statement(statement: Statement | Item) -> str:
    """The text of one statement, declaration, directive or function, without indentation or final line break."""
    lines: list[str] = []
    if isinstance(statement, (Function, Section)):
        _item(statement, lines)
    else:
        _statement(statement, "", lines)
    return "\n".join(lines)


def _item(item: Item, lines: list[str]) -> None:
    if isinstance(item, Function):
        _function(item, lines)
    elif isinstance(item, Section):
        lines.append(f".section {item.name} {{")
        for line in item.lines:
            values = ", ".join(map(str, line.values))
            lines.append(f"{values}:" if line.type == "label" else f"\t.{line.type} {values}")
        lines.append("}")
    else:
        _statement(item, "", lines)


# --- statements -------------------------------------------------------------------------------------------------------


def _instruction(instruction: Instruction) -> str:
    return instruction_text(instruction, " \t") + ";"


def _loc(loc: Loc) -> str:
    text = f".loc {loc.file} {loc.line} {loc.column}"
    if loc.inlined_at is not None:
        inlined = " ".join(map(str, loc.inlined_at))
        text += f", function_name {loc.function_name}{offset_text(loc.function_offset)}, inlined_at {inlined}"
    return text


def _pragma(pragma: Pragma) -> str:
    return f".pragma {', '.join(_string(text) for text in pragma.strings)};"


def _string(text: str) -> str:
    return f'"{text}"'


def _prototype(prototype: CallPrototype) -> str:
    returns = f"({_parameters(prototype.returns)}) " if prototype.returns else ""
    text = f"{prototype.label}: .callprototype {returns}_ ({_parameters(prototype.params)})"
    return " ".join([text, *map(_directive, prototype.directives)]) + ";"


def _parameters(parameters: Iterable[Variable]) -> str:
    return ", ".join(map(_declaration, parameters))


def _directive(directive: Directive | Pragma) -> str:
    if isinstance(directive, Pragma):
        return _pragma(directive)
    if directive.name == SOURCES:
        return sources_text(directive)
    if not directive.args:
        return directive.name
    if directive.name == LOC_INTERMEDIATE:
        return f"{directive.name} {' '.join(map(str, directive.args))}"
    return f"{directive.name} {', '.join(map(str, directive.args))}"


def _declaration(variable: Variable) -> str:
    """A variable or parameter, without `;`."""
    words = [f".{variable.linkage}"] if variable.linkage else []
    words.append(f".{variable.space}" if variable.bank is None else f".{variable.space}[{variable.bank}]")
    if variable.align is not None:
        words.append(f".align {variable.align}")
    if variable.attributes:
        words.append(_attributes(variable.attributes))
    if variable.vector != 1:
        words.append(f".v{variable.vector}")
    words.append(f".{variable.type}")
    if variable.ptr is not None:
        space, align = variable.ptr
        words += [".ptr", *([f".{space}"] if space else []), *([f".align {align}"] if align is not None else [])]
    name = variable.name if variable.count is None else f"{variable.name}<{variable.count}>"
    words.append(name + "".join("[]" if size is None else f"[{size}]" for size in variable.dims))
    if variable.init is not None:
        words.append(f"= {_initializer(variable.init)}")
    return " ".join(words)


def _attributes(attributes: tuple[tuple[str, tuple[int | str, ...]], ...]) -> str:
    texts = [f"{name}({', '.join(map(str, args))})" if args else name for name, args in attributes]
    return f".attribute({', '.join(texts)})"


def _initializer(value: Initializer) -> str:
    if isinstance(value, list):
        return f"{{{', '.join(map(_initializer, value))}}}"
    if isinstance(value, Immediate):
        return immediate_text(value)
    if isinstance(value, Member):
        text = value.value if isinstance(value.value, str) else immediate_text(value.value)
        return f"{value.name} = {text}"
    return _symbol_value(value)


def _symbol_value(value: SymbolValue) -> str:
    text = f"generic({value.name})" if value.generic else value.name
    text += offset_text(value.offset)
    return text if value.mask is None else f"{value.mask:#x}({text})"


def _file(file: File) -> str:
    text = f".file {file.index} {_string(file.name)}"
    return ", ".join([text, *(str(n) for n in (file.timestamp, file.size) if n is not None)])


_STATEMENTS: dict[type, Callable[[Any], str]] = {
    Instruction: _instruction,
    Variable: lambda s: f"{_declaration(s)};",
    Label: lambda s: f"{s.name}:",
    Loc: _loc,
    Pragma: _pragma,
    Directive: _directive,
    BranchTargets: lambda s: f"{s.label}: .branchtargets {', '.join(s.targets)};",
    CallTargets: lambda s: f"{s.label}: .calltargets {', '.join(s.targets)};",
    CallPrototype: _prototype,
    Alias: lambda s: f".alias {s.name}, {s.target};",
    File: _file,
    Header: lambda s: f"{s.name} {', '.join(s.args)}",
}


def _statement(statement: Statement | Item, indent: str, lines: list[str]) -> None:
    kind = type(statement)
    if kind is Scope:
        _scope(statement, indent, lines)  # type: ignore[arg-type]
    else:
        margin = "" if kind is Label else indent
        lines.append(margin + _STATEMENTS[kind](statement))


def _scope(scope: Scope, indent: str, lines: list[str]) -> None:
    """A scope: labels at the margin with a blank line before them, and one after the declarations."""
    lines.append(indent + "{")
    last: type | None = None
    for item in scope.items:
        kind = type(item)
        if last is not None and ((last is Variable) != (kind is Variable) or kind is Label is not last):
            lines.append("")
        last = kind
        _statement(item, indent + "\t", lines)
    lines.append(indent + "}")


def _function(function: Function, lines: list[str]) -> None:
    words = [f".{function.linkage}"] if function.linkage else []
    words.append(f".{function.kind}")
    if function.attributes:
        words.append(_attributes(function.attributes))
    if function.returns:
        words.append(f"({_parameters(function.returns)})")
    if function.params:
        lines.append(f"{' '.join(words)} {function.name}(")
        lines.extend(f"\t{_declaration(parameter)}," for parameter in function.params[:-1])
        lines.append(f"\t{_declaration(function.params[-1])}")
        lines.append(")")
    else:
        lines.append(f"{' '.join(words)} {function.name}()")
    lines.extend(_directive(directive) for directive in function.directives)
    if function.body is None:
        lines[-1] += ";"
    else:
        _scope(function.body, "", lines)
