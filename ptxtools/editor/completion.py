"""Completion: what may be written at a place, by the module's version and target."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxtools.ir import Function, Variable
from ptxtools.ir.symbols import Names
from ptxtools.isa.directives import DIRECTIVES
from ptxtools.isa.index import CHAPTERS
from ptxtools.isa.notation import Clause
from ptxtools.isa.opcode import forms, pages
from ptxtools.isa.registers import SPECIAL, lookup
from ptxtools.isa.spaces import SPACES
from ptxtools.isa.targets import FIRST_VERSION, OPTIONS, VERSIONS, provides_any, version_text
from ptxtools.isa.types import TYPES
from ptxtools.records import NamedTuple

from .document import Document

_OPCODE_SO_FAR = re.compile(r"(?:^|[;{}:])\s*(?:@!?\s*[\w$%]+\s+)?([a-z]\w*)((?:\.[\w:]*)*)\Z", re.ASCII)
_COMMENT = re.compile(r"/\*.*?\*/")
_WORD_SO_FAR = re.compile(r"[\w$%]*\Z", re.ASCII)
#: A dot behind a name, or one that begins a word.
_DOTTED_SO_FAR = re.compile(r"(%?[\w$]*)\.(\w*)\Z", re.ASCII)
_HEADER_SO_FAR = re.compile(r"\s*\.(version|target)\s[^;.]*(?:\.\d*)?\Z", re.ASCII)
_STATEMENT_SO_FAR = re.compile(r"[^;{},(]*\Z")
#: Characters above a place that are looked at for the beginning of its statement.
_FAR = 2000
_COMPONENTS = ("x", "y", "z", "w")
_OUTSIDE = {"module", "header"}


class Item(NamedTuple):
    """A completion. kind: "opcode", "modifier", "register", "variable", "label", "function", "special", "component",
    "type", "directive" or "value"."""

    text: str
    kind: str
    detail: str = ""


def complete(document: Document, offset: int) -> list[Item]:
    """What may follow the text before an offset: by the module's version and target."""
    line = _COMMENT.sub(" ", document.text[document.text.rfind("\n", 0, offset) + 1 : offset])
    if document.is_quiet(offset - 1):
        return []
    head = _OPCODE_SO_FAR.search(line)
    if head is not None and head[2]:
        return [Item(value, "modifier") for value in _modifiers(document, head[1], head[2])]
    if head is not None and document.function_at(offset) is not None:
        return [Item(name, "opcode") for name in CHAPTERS if name.startswith(head[1]) and _known(document, name)]
    header = _HEADER_SO_FAR.match(line)
    if header is not None:
        return list(_of_header(document, header[1]))
    dotted = _DOTTED_SO_FAR.search(line)
    if dotted is not None:
        return _after_dot(document, offset, dotted)
    word = _WORD_SO_FAR.search(line)
    start = word[0] if word is not None else ""
    found = [item for item in _names(document.names_at(offset)) if item.text.startswith(start)]
    for register in SPECIAL.values():
        if register.name.startswith(start) and _exists(document, register.ptx, register.target):
            found.append(Item(register.name, "special", f".{register.type}"))
            found += [Item(f"{register.name}.{c}", "special", f".{register.type}") for c in register.components]
    return list(dict.fromkeys(found))


def _after_dot(document: Document, offset: int, dotted: re.Match[str]) -> list[Item]:
    """What may stand behind a dot that belongs to no opcode: a component, a type, a directive."""
    before, start = dotted[1], dotted[2]
    if before:
        special = lookup(before)
        parts = special.register.components if special is not None else _COMPONENTS
        return [Item(part, "component") for part in parts if part.startswith(start)]
    statement = _STATEMENT_SO_FAR.search(document.text, max(offset - _FAR, 0), offset - len(start) - 1)
    words = statement[0].split() if statement is not None else []
    space = next((word[1:] for word in reversed(words) if word[1:] in SPACES), "")
    function = document.function_at(offset)
    inside = function is not None and function.body is not None and function.body.span[0] < offset
    if space:
        kinds = ("pred",) if space == "reg" else ("opaque",)
        types = [t for t in TYPES.values() if t.declarable or t.kind in kinds]
        found = [Item(t.name, "type") for t in types if space == "reg" or t.kind != "pred"]
        found += [Item(name, "type") for name in ("v2", "v4")]
        places = {"variable"}
    else:
        found, places = [], {"statement"} if inside else {"entry", "func"} if ")" in words[-1:] else _OUTSIDE
    found += [
        Item(directive.name[1:], "directive", f"PTX ISA {directive.section}")
        for directive in DIRECTIVES.values()
        if directive.places & places and directive.removed is None and directive.name[0] == "."
        and _exists(document, directive.ptx, directive.target)
    ]  # fmt: skip
    return [item for item in found if item.text.startswith(start)]


def _of_header(document: Document, directive: str) -> Iterator[Item]:
    """The versions; the targets that a version has, or all where it is not known, and their options."""
    version = document.module.version
    if directive == "version":
        yield from (Item(version_text(one), "value") for one in reversed(VERSIONS))
        return
    for name, first in (FIRST_VERSION | {option.name: option.ptx for option in OPTIONS.values()}).items():
        if first <= version or version == (0, 0):
            yield Item(name, "value", f"PTX {version_text(first)}")


def _exists(document: Document, ptx: tuple[int, int], target: str) -> bool:
    """Whether the module's version and target, as far as they are written, have something."""
    version = document.module.version
    return (ptx <= version or version == (0, 0)) and _has(document.module.target, (target,))


def _has(target: str, wanted: tuple[str, ...]) -> bool:
    """Whether a target, as far as it is written, is one of those wanted or provides one."""
    return target not in FIRST_VERSION or provides_any(target, wanted)


def _modifiers(document: Document, family: str, so_far: str) -> list[str]:
    """The modifiers that some form has beside those that are written, if the module's version and target have them."""
    given = [atom for atom in so_far.split(".")[1:-1] if atom]
    found: dict[str, None] = {}
    for form in forms(family):
        left = list(form.elements)
        for atom in given:
            place = next((e for e in left if atom in e.values), None)
            if place is None:
                break
            left.remove(place)
        else:
            for value in [value for element in left for value in element.values]:
                if _allowed(document, [c for c in form.page.needs if c.condition.is_word(value)]):
                    found[value] = None
    return list(found)


def _known(document: Document, family: str) -> bool:
    """Whether the module's version and target have some instruction of a family."""
    return any(_allowed(document, [c for c in page.needs if c.condition.always]) for page in pages(family))


def _allowed(document: Document, clauses: list[Clause]) -> bool:
    version, target = document.module.version, document.module.target
    return all((version >= clause.ptx or version == (0, 0)) and _has(target, clause.targets) for clause in clauses)


def _names(names: Names | None) -> Iterator[Item]:
    while names is not None:
        for name, symbol in names.declared.items():
            if isinstance(symbol, Variable):
                yield Item(name, "register" if symbol.space == "reg" else "variable", f".{symbol.space} .{symbol.type}")
            else:
                yield Item(name, "function" if isinstance(symbol, Function) else "label")
        for base, variable in names.ranges.items():
            yield Item(base, "register", f".{variable.type}, {variable.count} of them")
        names = names.parent
