"""Hover texts, outline, folding, hints and new names, for one state of a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from ptxtools.diagnostics import Span
from ptxtools.ir import Function, Instruction, Name, Scope, Section, Variable
from ptxtools.ir.references import operand_names
from ptxtools.ir.symbols import Symbol
from ptxtools.isa.errors import OpcodeError
from ptxtools.isa.opcode import forms, resolve
from ptxtools.isa.registers import lookup
from ptxtools.isa.targets import describe, version_text
from ptxtools.linter.requirements import requirements
from ptxtools.records import NamedTuple
from ptxtools.syntax.printer import print_statement

from .document import Document, labels_of
from .words import Token

_IDENTIFIER = re.compile(r"(?:[A-Za-z][\w$]*|[_$%][\w$]+)\Z", re.ASCII)
#: Forms of one mnemonic that a hover shows.
_MOST_FORMS = 12
_MOST_LINES = 12


class Entry(NamedTuple):
    """An entry of the outline. span: all of it; name_span: to be selected."""

    name: str
    kind: str
    span: Span
    name_span: Span
    children: tuple[Entry, ...] = ()


# --- hover ------------------------------------------------------------------------------------------------------------


def hover(document: Document, offset: int) -> tuple[str, Span] | None:
    """Markdown about the word at an offset, and where it stands."""
    token = document.token_at(offset)
    if token is None:
        return None
    if token.kind in ("opcode", "modifier"):
        item = document.instruction_at(offset)
        return None if item is None else (_about_opcode(item.opcode), token.span)
    special = lookup(token.text)
    if special is not None:
        register = special.register
        parts = f", components {' '.join(register.components)}" if register.components else ""
        text = f"`{register.name}`: special register, `.{register.type}`{parts}; PTX {version_text(register.ptx)}"
        return f"{text}, {describe((register.target,))}\n\nPTX ISA {register.section}", token.span
    meant = document.meaning(offset)
    return None if meant is None else (_about_name(document, token.text, meant[1]), token.span)


def _about_opcode(text: str) -> str:
    family = text.partition(".")[0]
    try:
        op = resolve(text)
    except OpcodeError as error:
        shown = [form.syntax for form in forms(family)][:_MOST_FORMS]
        return "\n".join([error.message, "", "```ptx", *shown, "```"])
    needs = [f"PTX {version_text(n.ptx)}{f', {describe(n.targets)}' if n.targets else ''}" for n in op.requirements]
    lines = ["```ptx", op.form.syntax, "```", *dict.fromkeys(f"- needs {need}" for need in needs)]
    lines += [f"- `.{e.name}`: {' '.join(e.values)}" for e in op.form.elements if not e.literal]
    return "\n".join([*lines, "", f"PTX ISA {op.section}"])


def _about_name(document: Document, name: str, symbol: Symbol) -> str:
    head = print_statement(symbol)
    if isinstance(symbol, Function):
        head = head.partition("\n{")[0]
    lines = ["```ptx", head, "```"]
    if isinstance(symbol, Variable) and symbol.space == "reg":
        lines += _uses(document, name, symbol)
    return "\n".join(lines)


def _uses(document: Document, name: str, symbol: Symbol) -> Iterator[str]:
    """Where a register is written and read: by the kinds of operands that its instructions have."""
    written: list[int] = []
    read: list[int] = []
    source = document.module.source
    assert source is not None
    for (at, _), result in uses(document, name, symbol):
        if result is not None:
            (written if result else read).append(at)
    for what, found in (("written on", written), ("read on", read)):
        lines = list(dict.fromkeys(map(source.line_of, found[: 2 * _MOST_LINES])))
        if lines:
            more = " …" if len(lines) > _MOST_LINES or len(found) > 2 * _MOST_LINES else ""
            shown = ", ".join(map(str, lines[:_MOST_LINES])) + more
            yield f"- {what} line{'s' if len(lines) > 1 else ''} {shown}"
    if written or read:
        first, last = (source.line_of(end(written + read)) for end in (min, max))
        yield f"- live within lines {first} to {last}"


def uses(document: Document, name: str, symbol: Symbol) -> list[tuple[Span, bool | None]]:
    """Wherever a name stands; of a register, whether it is written there, and None where it is declared."""
    spans = document.places(name, symbol)
    if not isinstance(symbol, Variable) or symbol.space != "reg":
        return [(span, None) for span in spans]
    found: list[tuple[Span, bool | None]] = []
    last = -1
    for span, item in zip(spans, document.instructions_at([start for start, _ in spans]), strict=True):
        # Of two places in an instruction that writes it, the first is the result.
        result = None if item is None else _writes(item, name) and last < item.span[0]
        if result:
            last = span[0]
        found.append((span, result))
    return found


def _writes(item: Instruction, name: str) -> bool:
    """Whether a register is among an instruction's results."""
    try:
        results = _results(item.opcode)
    except OpcodeError:
        return False
    for number in results:
        if number < len(item.operands):
            operand = item.operands[number]
            if operand.name == name if type(operand) is Name else name in operand_names(operand):
                return True
    return False


@lru_cache(1000)
def _results(opcode: str) -> tuple[int, ...]:
    """The numbers of the operands that an instruction writes."""
    return tuple(number for number, spec in enumerate(resolve(opcode).operands) if spec.role == "dst")


# --- structure --------------------------------------------------------------------------------------------------------


def outline(item: Function | Variable) -> Entry:
    """A variable, or a function with its parameters and labels."""
    if isinstance(item, Variable):
        return Entry(item.name, "variable", item.span, item.name_span)
    parts = [Entry(v.name, "parameter", v.span, v.name_span) for v in item.params]
    parts += [Entry(label.name, "label", label.span, label.span) for label in labels_of(item)]
    return Entry(item.name, item.kind, item.span, item.name_span, tuple(parts))


def folds(document: Document) -> list[Span]:
    """What may be folded: bodies, scopes, sections, comments of several lines."""
    found = [item.span for item in document.module.items if isinstance(item, Section)]
    waiting = [f.body for f in document.module.functions if f.body is not None]
    while waiting:
        scope = waiting.pop()
        found.append(scope.span)
        waiting += [item for item in scope.items if isinstance(item, Scope)]
    found += document.remarks
    return sorted(span for span in found if "\n" in document.text[slice(*span)])


def hints(document: Document, span: Span) -> list[tuple[int, str]]:
    """What the lines need that force the module's version or target, and where accesses go, each at its line's end."""
    if document.has_errors:
        return []
    from .reached import reached

    source = document.module.source
    assert source is not None
    lines = {cause.line: cause.needs() for cause in requirements(document.module, document.name).because}
    places = [(source.line_span(line)[1], f"needs {needs}") for line, needs in lines.items()]
    return sorted((at, text) for at, text in [*places, *reached(document)] if span[0] <= at <= span[1])


# --- new names --------------------------------------------------------------------------------------------------------


class RenameError(Exception):
    """A name cannot be changed; the message says why."""


def renamed(document: Document, offset: int) -> tuple[Token, Symbol]:
    """The name at an offset and its declaration. Raises RenameError where it can have no new one."""
    meant = document.meaning(offset)
    if meant is None:
        raise RenameError("there is no declared name here")
    token, symbol = meant
    if document.has_errors:
        raise RenameError("the text has syntax errors")
    if isinstance(symbol, Variable) and symbol.count is not None:
        raise RenameError(f"{token.text} is one of {symbol.name}<{symbol.count}>")
    return token, symbol


def rename(document: Document, offset: int, new: str) -> list[Span]:
    """Where to write a new name. Raises RenameError where the text would then mean something else."""
    token, symbol = renamed(document, offset)
    if not _IDENTIFIER.match(new) or lookup(new) is not None:
        raise RenameError(f"'{new}' is not a name")
    places = document.places(token.text, symbol)
    if any(document.names_at(start).lookup(new) is not None for start, _ in places):
        raise RenameError(f"'{new}' means something else here")
    _check(document, places, new)
    return places


def _check(document: Document, places: list[Span], new: str) -> None:
    """Read the text with the new name: it has the same findings."""
    text = document.text
    for start, end in reversed(places):
        text = text[:start] + new + text[end:]
    after = Document(text, document.name)
    if [d.code for d in after.findings] != [d.code for d in document.findings]:
        raise RenameError(f"with the name '{new}' the module would mean something else")
