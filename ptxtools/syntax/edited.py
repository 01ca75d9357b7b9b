"""A text that was parsed, and edited in one place: only what stands there is read again.

The tree of the text before is changed: it gets the new statements, and the positions behind them move. Whatever is not
certainly an edit inside the statements of one scope is read again from the end of one function to the beginning of
another: edits of declarations outside of functions, of braces, and of comments that go over lines. If that does not
end as it did before, the whole text is to be parsed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from ptxtools.diagnostics import Diagnostic, Source, Span
from ptxtools.ir import Function, Instruction, Label, Module, Scope, Section
from ptxtools.ir.collector import CollectorOff
from ptxtools.ir.nodes import Node
from ptxtools.records import NamedTuple, fields, replace

from .comments import open_comment
from .limits import MOST_FAULTS
from .parser import ParseResult
from .reader import PROBE, Reader, binary_at, foreign
from .shapes import ShapeParser

#: What may reach beyond the statements that are read again.
_FAR = re.compile(r'/\*|\*/|@@|["#\v]')
#: Faults after which the rest of the text may be read differently.
_NESTING = frozenset({"PTX102", "PTX116", "PTX117", "PTX118", "PTX120", "PTX121"})
#: Statements behind the edit that have to be read as before.
_AGAIN = 3
#: Of those that are, so many have to be read as before.
_ALIKE = 2
#: Characters that are read as soon as it is known that no other part of the text has to be.
_LARGE = 300_000
#: A mark at the beginning of the text.
_MARK = "\ufeff"
#: Characters behind the last statement of a scope that an error there may name.
_AHEAD = 400


class Edited(NamedTuple):
    """What parsing a text gives. inside: it differs from the earlier text inside the statements of one scope alone."""

    module: Module
    diagnostics: list[Diagnostic]
    inside: bool


def parse_edited(before: ParseResult, text: str) -> Edited | None:
    """What `parse(text)` gives, from what it gave for an earlier text, whose tree is changed.

    None if the whole text has to be parsed: then the tree is as it was.
    """
    module, source = before.module, before.module.source
    if source is None or module.unnamed:
        return None
    first, last = edit_of(source.text, text)
    if first < PROBE and binary_at(text) is not None:
        return None
    faults = [d for d in before.diagnostics if not d.subject]  # those about characters are found anew
    inside = True
    found = _inside_a_scope(ParseResult(module, faults), text, first, last)
    if found is None:
        found, inside = _between_functions(ParseResult(module, faults), text, first, last), False
    if found is None or len(found) >= MOST_FAULTS:
        return None
    assert module.source is not None
    found += foreign(module.source, found)
    return Edited(module, sorted(found, key=lambda d: d.span), inside)


def _inside_a_scope(before: ParseResult, text: str, first: int, last: int) -> list[Diagnostic] | None:
    """Read the statements again that an edit inside of a scope touches, and some behind them."""
    module, source = before.module, before.module.source
    assert source is not None
    moved = len(text) - len(source.text)
    function, scopes = _around(module, first, last)
    if function is None or function.span[0] in module.unread:
        return None
    scope = scopes[-1]
    (head, start), (tail, end) = _window(scope, first, last, before.diagnostics)
    kept = [d for d in before.diagnostics if not start <= d.span[0] < end]
    if not all(_apart(d, source.text, start, end) for d in kept):
        return None
    if not (_closed(source.text[start:end]) and _closed(text[start : end + moved])):
        return None
    read = _read(text, source.name, function.name, (start, end + moved), tail == len(scope.items))
    if read is None:
        return None
    reader, items = read
    again = scope.items[max(head, tail - _AGAIN) : tail] if tail < len(scope.items) else []
    behind = min(sum(_start(item) > last for item in again), _ALIKE)
    if behind and not _as_before(again[-behind:], items[-behind:], moved):
        return None
    _move_behind(module, function, scopes, end, moved)
    _move_all(scope.items[tail:], moved)
    scope.items[head:tail] = items
    return _taken(module, reader, kept, (start, end), moved)


def _between_functions(before: ParseResult, text: str, first: int, last: int) -> list[Diagnostic] | None:
    """Read the parts of the module again from the end of a function before the edit on, up to another one behind it."""
    module, source = before.module, before.module.source
    assert source is not None
    moved = len(text) - len(source.text)
    items = module.items
    bodies = [at for at, item in enumerate(items) if isinstance(item, Function) and item.body is not None]
    ahead = max((at + 1 for at in bodies if items[at].span[1] < first), default=0)
    behind = next((at for at in bodies if items[at].span[0] > last), len(items))
    start = items[ahead - 1].span[1] if ahead else int(text.startswith(_MARK))
    end = items[behind].span[0] if behind < len(items) else len(source.text)
    if text.startswith(_MARK) != source.text.startswith(_MARK) or module.braces_wrong:
        return None
    if any(isinstance(item, Section) for item in items[ahead:behind]) or end - start > _LARGE:
        return None
    within = [d for d in before.diagnostics if start <= d.span[0] < end]
    kept = [d for d in before.diagnostics if not start <= d.span[0] < end]
    if not all(_apart(d, source.text, start, end) and _in_body(d, module) for d in kept):
        return None
    units = ShapeParser.again()
    reader = Reader(Source(text, source.name), units)
    with CollectorOff():
        made = reader.read_parts(items[:ahead], start, end + moved)
    units.close()
    fresh = reader.diagnostics
    if made is None or reader.module.unnamed:
        return None
    if not (_ends_apart(within, source.text, end) and _ends_apart(fresh, text, end + moved)):
        return None
    if (kept or fresh) and open_comment(text) is not None:
        return None
    _move_all(items[behind:], moved)
    items[ahead:behind] = made
    return _taken(module, reader, kept, (start, end), moved)


def _in_body(d: Diagnostic, module: Module) -> bool:
    """Whether a fault is in the body of a function that was read."""
    bodies = (function.body for function in module.functions)
    return any(body is not None and body.span[0] < d.span[0] < body.span[1] for body in bodies)


def _ends_apart(faults: Iterable[Diagnostic], text: str, end: int) -> bool:
    """Whether faults before an offset have nothing to do with what stands behind it."""
    return all(d.code not in _NESTING and "\n" in text[d.span[0] : end] for d in faults)


def _taken(module: Module, reader: Reader, kept: Sequence[Diagnostic], span: Span, moved: int) -> list[Diagnostic]:
    """Give a tree the new text; the faults of the parts that were read, and those that are kept. span: of the old text,
    what was read again."""
    start, end = span
    module.source = fresh = reader.source
    unread = {at + moved * (at >= end): names for at, names in module.unread.items() if not start <= at < end}
    module.unread = unread | reader.module.unread
    return [*(moved_finding(d, moved * (d.span[0] >= end), fresh) for d in kept), *reader.diagnostics]


# --- where ------------------------------------------------------------------------------------------------------------


def edit_of(old: str, new: str) -> Span:
    """The span of the old text that the new one has something else for."""
    most = min(len(old), len(new))
    first = common(most, lambda a, b: old[a:b] == new[a:b])
    ends = len(old), len(new)
    same = common(most - first, lambda a, b: old[ends[0] - b : ends[0] - a] == new[ends[1] - b : ends[1] - a])
    return first, len(old) - same


def common(most: int, same: Any) -> int:
    """How many characters are the same, by halves; same(a, b): whether those from a to b are."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if same(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _around(module: Module, first: int, last: int) -> tuple[Function | None, list[Scope]]:
    """The function whose body an edit is in, and the scopes that it is in, the innermost last."""
    for item in module.items:
        if isinstance(item, Function) and item.body is not None and _inside(item.body, first, last):
            scopes = [item.body]
            while True:
                items = scopes[-1].items
                place = bisect_left(items, first, key=_start) - 1
                inner = items[place] if place >= 0 else None
                if not isinstance(inner, Scope) or not _inside(inner, first, last):
                    return item, scopes
                scopes.append(inner)
    return None, []


def _inside(scope: Scope, first: int, last: int) -> bool:
    return scope.span[0] < first and last < scope.span[1]


def _window(
    scope: Scope, first: int, last: int, faults: Sequence[Diagnostic]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """The statements to read again, as the index of the first and where it begins, and the same behind the last."""
    items = scope.items
    head = bisect_left(items, first, key=_start) - 1
    # A faulty statement is no item; what is wrong with it may depend on the one behind it.
    while head >= 0 and (not _begins(items, head) or _fault_between(faults, items, head)):
        head -= 1
    start = _start(items[head]) if head >= 0 else scope.span[0] + 1
    tail, more = bisect_right(items, last, key=_start), _AGAIN
    while tail < len(items) and (more or not _begins(items, tail)):
        more -= bool(more)
        tail += 1
    end = _start(items[tail]) if tail < len(items) else scope.span[1] - 1
    return (max(head, 0), start), (tail, end)


def _fault_between(faults: Sequence[Diagnostic], items: Sequence[Any], place: int) -> bool:
    """Whether a fault stands between an item and the one before it; where the item begins, it is about that one."""
    before = _start(items[place - 1]) if place else 0
    return any(before <= d.span[0] <= _start(items[place]) for d in faults)


def _apart(d: Diagnostic, text: str, start: int, end: int) -> bool:
    """Whether a fault that stays has nothing to do with what is read again: not the nesting, nor the same line."""
    low, high = (d.span[1], start) if d.span[0] < start else (end, d.span[0])
    return d.code not in _NESTING and "\n" in text[low:high]


def _begins(items: Sequence[Any], place: int) -> bool:
    """Whether a statement of its own begins with an item: a declaration may be several items."""
    return type(items[place]) in (Instruction, Label, Scope)


def _start(item: Any) -> int:
    start: int = item.span[0]
    return start


def _closed(text: str) -> bool:
    """Whether braces, comments and strings of a text end in it."""
    if _FAR.search(text) or "//" in text[text.rfind("\n") + 1 :]:
        return False
    depth = 0
    for mark in re.findall(r"//[^\n]*|[{}]", text):
        depth += (mark == "{") - (mark == "}")
        if depth < 0:
            return False
    return depth == 0


# --- reading ----------------------------------------------------------------------------------------------------------


def _read(text: str, name: str, function: str, span: Span, ends: bool) -> tuple[Reader, list[Any]] | None:
    """Read the statements of a span, behind which another one begins, or the scope ends."""
    units = ShapeParser.again()
    reader = Reader(Source(text, name), units)
    items = reader.read_body(function, text[: span[1] + _AHEAD * ends], *span)
    units.close()
    return None if items is None or reader.module.unnamed else (reader, items)


def _as_before(old: Sequence[Any], new: Sequence[Any], moved: int) -> bool:
    """Whether statements were read again as they had been."""
    return len(old) == len(new) and all(
        type(a) is type(b) and a.span[0] + moved == b.span[0] and a == b for a, b in zip(old, new, strict=True)
    )


# --- positions --------------------------------------------------------------------------------------------------------


def _move_behind(module: Module, function: Function, scopes: Sequence[Scope], end: int, moved: int) -> None:
    """Move what stands behind the innermost scope's changed statements: the rest of the outer scopes and the module."""
    for outer, inner in pairwise(scopes):
        _move_all(outer.items[_index(outer.items, inner) + 1 :], moved)
    for scope in scopes:
        scope.span = (scope.span[0], scope.span[1] + moved)
    function.span = (function.span[0], function.span[1] + moved)
    _move_all(module.items[_index(module.items, function) + 1 :], moved)


def _index(nodes: Iterable[Node], node: Node) -> int:
    """Where a node itself stands: others may be equal."""
    return next(place for place, other in enumerate(nodes) if other is node)


def _move(node: Any, by: int) -> None:
    """Move a node that is no instruction, and the nodes in it."""
    kind: Any = type(node)
    for name, span in _parts(kind):
        value = getattr(node, name)
        if span:
            if value != (0, 0):
                setattr(node, name, (value[0] + by, value[1] + by))
        elif isinstance(value, list):
            _move_all(value, by)
        elif isinstance(value, Node):
            _move(value, by)


def moved_finding(d: Diagnostic, by: int, source: Source) -> Diagnostic:
    """A fault in the new text."""
    fix = d.fix and replace(d.fix, span=(d.fix.span[0] + by, d.fix.span[1] + by))
    return replace(d, span=(d.span[0] + by, d.span[1] + by), source=source, fix=fix)


def _move_all(nodes: Iterable[Any], by: int) -> None:
    """Move nodes; an instruction's operands count from where it begins."""
    for node in nodes:
        if type(node) is Instruction:
            first, last = node.place  # type: ignore[misc]  # a span, where a text was read
            node.place = first + by, last + by
        elif isinstance(node, Node):
            _move(node, by)


@cache
def _parts(kind: type) -> list[tuple[str, bool]]:
    """The fields of a node that hold positions, directly or in nodes, and whether directly."""
    found = []
    for field in fields(kind):
        if field.name in ("span", "name_span"):
            found.append((field.name, True))
        elif "list[" in str(field.type) or "Scope" in str(field.type):
            found.append((field.name, False))
    return found
