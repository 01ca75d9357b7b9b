"""Finds the functions of a large text that have no fault: machine code looks at each line, Python at each shape of one.

A function that is not found need not have a fault: it is screened then, or read, with the same findings.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from ptxtools.diagnostics import Diagnostic

from ..assembly.nodes import Function
from ..compiled.buffers import Rows, words
from ..compiled.code import Code
from ..compiled.flow import BLOCK, EDGE, HERE, VALUE
from ..compiled.scan import (
    CLASSES,
    COUNTS,
    FUNCTION,
    LINES,
    LINES_END,
    NAMES_USED,
    REFERENCES_USED,
    ROW_KIND,
    ROW_MORE,
    SHAPES_USED,
    TEXT_USED,
)  # fmt: skip
from .context import Context
from .shapes import Shapes, has_prefix


def faultless(code: Code, context: Context, shapes: Shapes,
              functions: Sequence[Function]) -> list[list[Diagnostic] | None]:  # fmt: skip
    """For each function with a body, which has not been read, the findings about single lines, if nothing else is wrong
    with it; its parameters have their names then. Nothing for a text that is not ASCII."""
    if not context.source.text.isascii():
        return []
    scanned = _Scanned(code, context, functions)
    passed = scanned.followed(shapes)
    known = context.module.functions
    found: list[list[Diagnostic] | None] = []
    for number, function in enumerate(functions, 1):
        fine = passed[number] and known.get(function.name) is function and not shapes.full
        found.append(scanned.findings_in(number, shapes) if fine else None)
        if found[-1] is not None:
            _number(function)
    return found


def _number(function: Function) -> None:
    """Give the parameters without names their numbers."""
    if all(param.name for param in function.params):
        return
    number = 0
    for param in function.params:
        if not param.name:
            param.name = f"%{number}"
        if param.name[1:].isdecimal():
            number = int(param.name[1:]) + 1


class _Scanned:
    """The lines and names of functions."""

    def __init__(self, code: Code, context: Context, functions: Sequence[Function]) -> None:
        self._code, self._context, self._functions = code, context, functions
        text = context.source.text
        places = array("i", [at for name, (_, at) in context.module.types.items() if not has_prefix(name)])
        rows = array("i", (0, len(places), 0, 0, 0, 0, 0, 0))
        for one in functions:
            first = len(places)
            places.extend([param.at if param.name else -1 for param in one.params])
            rows.extend((first, len(places), *(one.body or (0, 0)), 0, 0, 0, 0))
        size, params = len(text), len(places)
        self._shapes, self._names = Rows(size // 64), Rows(size // 24 + params)
        self._number_count = size // 8 + params
        self._rows, self._counts = rows, array("i", [0] * COUNTS)
        self._lines, self._references = words(size // 2 + 1), words(size // 2 + params)
        self._line_places = words(size // 2 + 1)
        self._by_number, self._shape_text = words(self._number_count), words(size // 4 + 1)
        code.scan(text.encode(), size, CLASSES, rows, len(functions) + 1, places, int(context.modern),
                  *self._shapes.given, self._shape_text, *self._names.given, self._by_number, self._number_count,
                  self._lines, self._line_places, self._references, self._counts)  # fmt: skip

    def followed(self, shapes: Shapes) -> bytes:
        """For each function, the types first, whether it is without fault."""
        kinds = self._kinds(shapes)
        characters, columns = shapes.character, shapes.columns
        heads, params = array("i", (0, 0)), array("i")
        for one in self._functions:
            heads.extend((len(params), ord(characters(one.result))))
            params.extend([ord(characters(param.type)) for param in one.params])
        known, role, type = array("i"), 0, 0
        for kind, roles, types, result, given in zip(columns.kind, columns.roles, columns.types, columns.result,
                                                     columns.given, strict=True):  # fmt: skip
            known.extend((kind, role, len(roles), type, ord(result) if result else -1,
                          ord(characters(given)) if given else -1))  # fmt: skip
            role, type = role + len(roles), type + len(types)
        rows = self._rows
        most = max(map(int.__sub__, rows[LINES_END::FUNCTION], rows[LINES::FUNCTION])) + 2
        passed = bytearray(len(self._functions) + 1)
        references = self._counts[REFERENCES_USED]
        types_ = array("i", map(ord, "".join(columns.types)))
        self._code.flow(rows, len(passed), int(self._context.modern), heads, params, kinds, known,
                        b"".join(columns.roles) + b"\xff", types_, self._names.given[0], self._by_number,
                        self._number_count, self._undefined(), self._lines, self._references,
                        words(self._counts[NAMES_USED] * HERE), words((most + len(params)) * VALUE),
                        words(most * BLOCK), words(references * EDGE), words(references), passed)  # fmt: skip
        return bytes(passed)

    def _kinds(self, shapes: Shapes) -> array[int]:
        """For each shape of lines its number among all, -1 for one that is not known."""
        count, roles = self._counts[SHAPES_USED], shapes.columns.roles
        text = str(memoryview(self._shape_text)[: self._counts[TEXT_USED]], "latin-1")
        self._texts = self._shapes.texts(text, count)
        numbers = shapes.shapes_of(self._texts, self._shapes.column(ROW_MORE, count))
        self._known = array("i", [
            -1 if number is None or len(roles[number]) != names else number
            for number, names in zip(numbers, self._shapes.column(ROW_KIND, count), strict=True)
        ])  # fmt: skip
        self._particular = frozenset([at for at, one in enumerate(self._known) if one in shapes.particular])
        return self._known

    def findings_in(self, function: int, shapes: Shapes) -> list[Diagnostic] | None:
        """The findings about single lines of a function; None if there are others."""
        found: list[Diagnostic] = []
        if not self._particular:
            return found
        first, end = self._rows[function * FUNCTION + LINES], self._rows[function * FUNCTION + LINES_END]
        lines = memoryview(self._lines).cast("i")[first:end].tolist()
        if self._particular.isdisjoint(lines):
            return found
        places = memoryview(self._line_places).cast("i")
        for at, line in enumerate(lines, first):
            if line in self._particular:
                own = shapes.findings_in(self._texts[line], places[at], self._known[line])
                if own is None:
                    return None
                found += own
        return found

    def _undefined(self) -> bytes:
        """For each name, whether it is a node that is not defined."""
        count = self._counts[NAMES_USED]
        nodes, known = self._names.column(ROW_KIND, count), self._context.module.metadata
        if not any(nodes):
            return bytes(count)
        words_ = self._names.texts(self._context.source.text, count, 1)
        return bytes([bool(node) and word not in known for node, word in zip(nodes, words_, strict=True)])
