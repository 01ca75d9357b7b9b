"""Positions in a module read from a container.

Its nodes have spans without a text: an offset identifies a statement of an item. The canonical disassembly is generated
and parsed, and the statement found in it, only when a line is requested. So it costs nothing to load.

    bits 48…  item number plus one; below 2**48 an offset counts characters of the canonical text
    bits 20…  statement of a function in stream order, from 1; 0 is the item itself, NAME_PART its name
    bits 0…   characters from the statement's start, at most to its end
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ptxtools.diagnostics import NO_SPAN, WHOLE, Source, Span, span_at
from ptxtools.ir import Function, Module, Variable

from .code import ordinals

ITEM_SHIFT, STATEMENT_SHIFT = 48, WHOLE.bit_length()
STATEMENT_MASK = (1 << ITEM_SHIFT - STATEMENT_SHIFT) - 1
NAME_PART = STATEMENT_MASK

#: Statements of an original line that stand further right than this follow each other without their distance.
_WIDEST = 400

#: Gives the same module parsed from its canonical text: with real spans and `source`.
Canonical = Callable[[Module], Module]
#: For each item the name of its text, and line, column and length of its statements there, the item itself first.
Origins = list[tuple[str, Sequence[tuple[int, int, int]]]]


def span_of(item: int, statement: int = 0) -> Span:
    """The span that stands for a statement (0: the item itself)."""
    return span_at(item + 1 << ITEM_SHIFT | statement << STATEMENT_SHIFT)


def places_of_body(item: int, count: int) -> range:
    """Where all statements of a function's body are."""
    start, step = span_of(item, 1)[0], 1 << STATEMENT_SHIFT
    return range(start, start + count * step, step)


class ContainerSource(Source):
    """The canonical disassembly, generated on first use."""

    __slots__ = ("_bodies", "_canonical", "_made", "_module")

    def __init__(self, name: str, module: Callable[[], Module], canonical: Canonical | None) -> None:
        """module: makes the module anew."""
        self.name = name
        self._starts = None
        self._module = module
        self._canonical = canonical
        self._made: Module | None = None
        self._bodies: dict[int, dict[int, Any]] = {}

    @property
    def text(self) -> str:  # type: ignore[override]
        source = self._parsed().source
        return source.text if source else ""

    def _parsed(self) -> Module:
        if self._made is None:
            self._made = Module(source=Source("", self.name))
            if self._canonical is not None:
                module = self._module()
                module.source = self._made.source
                self._made = self._canonical(module)
        return self._made

    def real(self, offset: int) -> int:
        """The offset in the canonical text."""
        if offset >> ITEM_SHIFT == 0:
            return offset
        start, end = self._real_span((offset >> ITEM_SHIFT) - 1, offset >> STATEMENT_SHIFT & STATEMENT_MASK)
        return min(start + (offset & WHOLE), end)

    def real_span(self, span: Span) -> Span:
        """The span in the canonical text."""
        return self.real(span[0]), self.real(span[1])

    def _real_span(self, number: int, statement: int) -> Span:
        items = self._parsed().items
        if number >= len(items):
            return NO_SPAN
        item = items[number]
        if statement == NAME_PART:
            return item.name_span if isinstance(item, (Function, Variable)) else item.span
        if statement == 0 or not isinstance(item, Function) or item.body is None:
            return item.span
        if number not in self._bodies:
            self._bodies[number] = dict(ordinals(item.body))
        found = self._bodies[number].get(statement)
        return item.span if found is None else found.span

    def excerpt(self, span: Span) -> str:
        return ""

    def position(self, offset: int) -> tuple[int, int]:
        source = self._parsed().source
        return source.position(self.real(offset)) if source else (1, 1)

    def line_of(self, offset: int) -> int:
        return self.position(offset)[0]

    def line(self, number: int) -> str:
        source = self._parsed().source
        return source.line(number) if source else ""


class OriginalSource(ContainerSource):
    """Positions in the text that was assembled with `-g`; the text of lines is canonical."""

    __slots__ = ("_lines", "_origins")

    def __init__(self, name: str, module: Callable[[], Module], canonical: Canonical | None,
                 origins: Callable[[], Origins]) -> None:  # fmt: skip
        super().__init__(name, module, canonical)
        self._origins = origins
        self._lines: dict[int, str] | None = None

    def position(self, offset: int) -> tuple[int, int]:
        item = (offset >> ITEM_SHIFT) - 1
        if item < 0:
            return super().position(offset)
        rows = self._origins()[item][1]
        statement = offset >> STATEMENT_SHIFT & STATEMENT_MASK
        if not rows:
            return super().position(offset)
        line, column, length = rows[statement if statement < len(rows) else 0]
        return (line, column + min(offset & WHOLE, length)) if line else super().position(offset)

    def name_of(self, offset: int) -> str:
        item = (offset >> ITEM_SHIFT) - 1
        return self._origins()[item][0] if item >= 0 else self.name

    def line(self, number: int) -> str:
        """The statements that began on that line of the original, in canonical form, at their column."""
        if self._lines is None:
            self._lines, text = {}, self.text + "\n"
            for item, (name, rows) in enumerate(self._origins()):
                for statement, (line, column, _) in enumerate(rows):
                    if line and name == self.name and (statement or len(rows) == 1):
                        start = self.real(span_of(item, statement)[0])
                        before = self._lines.get(line, "").ljust(min(column - 1, _WIDEST))
                        self._lines[line] = before + text[start : text.find("\n", start)]
        return self._lines.get(number, "")


class LinkedSource(Source):
    """The sources of a linked module: each item keeps that of its input."""

    __slots__ = ("_items", "_of")

    joined = True

    def __init__(self, of: dict[int, Source], items: list[Any]) -> None:
        """of: sources by identity of the items, which are kept alive here."""
        first = next((of[id(item)] for item in items if id(item) in of), None)
        super().__init__("", first.name if first else "<linked>")
        self._of, self._items = of, items

    def of(self, item: Any) -> Source | None:
        return self._of.get(id(item))
