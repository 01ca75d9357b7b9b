"""Debugging data of several modules in one: file numbers, labels, sections of the same name (11.5)."""

from __future__ import annotations

from typing import Any

from ptxtools.ir import DataLine, Directive, File, Function, Label, Loc, Scope, Section, Statement
from ptxtools.ir.nodes import LOC_INTERMEDIATE, SOURCES
from ptxtools.records import replace

from .code import ordinals
from .refs import renamed_function


def merge_debug(items_of: list[list[Any]]) -> None:
    """Combine the debugging data of the modules for one module, in place.

    Equal files share a number, labels that DWARF refers to become distinct, and sections of the same name become one,
    with references to the section's start turned into references to the start of the module's part.
    """
    _merge_files(items_of)
    if sum(any(isinstance(i, Section) for i in items) for items in items_of) > 1:
        _separate_labels(items_of)
        _merge_sections(items_of)


# --- files ------------------------------------------------------------------------------------------------------------


def _merge_files(items_of: list[list[Any]]) -> None:
    numbers: dict[tuple[Any, ...], int] = {}
    used: set[int] = set()
    for n, items in enumerate(items_of):
        moved: dict[int, int] = {}
        kept: list[Any] = []
        for item in items:
            if not isinstance(item, File):
                kept.append(item)
                continue
            key = (item.name, item.timestamp, item.size)
            if key in numbers:
                moved[item.index] = numbers[key]
                continue
            number = item.index if item.index not in used else max(used) + 1
            used.add(number)
            numbers[key] = moved[item.index] = number
            kept.append(replace(item, index=number))
        changed = {old: new for old, new in moved.items() if old != new}
        items_of[n] = [_with_files(item, changed) for item in kept] if changed else kept


def _with_files(item: Any, numbers: dict[int, int]) -> Any:
    if isinstance(item, (Loc, Directive)):
        return _moved_loc(item, numbers)
    if not isinstance(item, Function) or item.body is None:
        return item
    body = _moved_scope(item.body, numbers)
    return Function(item.kind, item.name, item.params, item.returns, item.directives, body, item.linkage,
                    item.attributes, item.variadic, item.span, item.name_span)  # fmt: skip


def _moved_scope(scope: Scope, numbers: dict[int, int]) -> Scope:
    items: list[Statement] = []
    for item in scope.items:
        if isinstance(item, (Loc, Directive)):
            item = _moved_loc(item, numbers)
        elif isinstance(item, Scope):
            item = _moved_scope(item, numbers)
        items.append(item)
    return Scope(items, scope.span)


#: Where the arguments of a directive have numbers of files: the first of them, and the distance to the next.
_FILES = {LOC_INTERMEDIATE: (0, 3), SOURCES: (1, 3)}


def _moved_loc(loc: Loc | Directive, numbers: dict[int, int]) -> Loc | Directive:
    if isinstance(loc, Directive):
        args = list(loc.args)
        if loc.name in _FILES:
            first, step = _FILES[loc.name]
            args[first::step] = [numbers.get(arg, arg) if isinstance(arg, int) else arg for arg in args[first::step]]
        return replace(loc, args=tuple(args))
    at = loc.inlined_at
    if at is not None:
        at = (numbers.get(at[0], at[0]), at[1], at[2])
    return replace(loc, file=numbers.get(loc.file, loc.file), inlined_at=at)


# --- sections ---------------------------------------------------------------------------------------------------------


def _separate_labels(items_of: list[list[Any]]) -> None:
    taken: set[str] = set()
    for n, items in enumerate(items_of):
        mentioned = _mentioned(items)
        own = {line.values[0] for i in items if isinstance(i, Section) for line in i.lines if line.type == "label"}
        own |= {s.name for i in items if isinstance(i, Function) and i.body is not None
                for _, s in ordinals(i.body) if isinstance(s, Label) and s.name in mentioned}  # fmt: skip
        names: dict[str, str] = {}
        for name in sorted(str(label) for label in own):
            if name in taken:
                number = 1
                while f"{name}_{number}" in taken:
                    number += 1
                names[name] = f"{name}_{number}"
            taken.add(names.get(name, name))
        if names:
            items_of[n] = [_with_labels(item, names) for item in items]


def _mentioned(items: list[Any]) -> set[str]:
    """Names in the data of DWARF sections; of `a-b` and `a+1` both sides."""
    found: set[str] = set()
    for item in items:
        if isinstance(item, Section):
            for line in item.lines:
                for value in line.values:
                    if isinstance(value, str):
                        found.update(_split(value))
    return found


def _split(value: str) -> list[str]:
    return value.replace("-", " ").replace("+", " ").split()


def _replaced(value: int | str, names: dict[str, str]) -> int | str:
    if isinstance(value, int):
        return value
    if value in names:
        return names[value]
    for sign in "-+":
        left, found, right = value.partition(sign)
        if found:
            left, right = left.strip(), right.strip()
            return f"{names.get(left, left)}{sign}{names.get(right, right)}"
    return value


def _with_labels(item: Any, names: dict[str, str]) -> Any:
    if isinstance(item, Section):
        return _section_with(item, names)
    return renamed_function(item, {}, names) if isinstance(item, Function) and item.body is not None else item


def _section_with(section: Section, names: dict[str, str]) -> Section:
    lines = [DataLine(line.type, tuple([_replaced(v, names) for v in line.values])) for line in section.lines]
    return Section(section.name, lines, section.span)


def _merge_sections(items_of: list[list[Any]]) -> None:
    """Append sections to the first of their name."""
    first: dict[str, Section] = {}
    for n, items in enumerate(items_of):
        starts = {i.name: f"$L__{i.name.lstrip('.')}_start_{n}" for i in items
                  if isinstance(i, Section) and i.name in first}  # fmt: skip
        kept: list[Any] = []
        for item in items:
            if not isinstance(item, Section):
                kept.append(item)
                continue
            section = _section_with(item, starts)
            if item.name in first:
                first[item.name].lines += [DataLine("label", (starts[item.name],)), *section.lines]
            else:
                first[item.name] = section
                kept.append(section)
        items_of[n] = kept
