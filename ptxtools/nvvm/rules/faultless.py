"""Finds the functions of a large text that have no fault: machine code looks at each line, Python at each shape of one.

A function that is not found need not have a fault: it is screened then, or read, with the same findings.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import compress
from mmap import mmap

from ..assembly.nodes import Function
from ..compiled.code import Code
from ..compiled.flow import BLOCK, EDGE, HERE, VALUE
from ..compiled.scan import (
    CLASSES,
    FUNCTION,
    LINES,
    LINES_END,
    NAMES_USED,
    REFERENCES_USED,
    ROW,
    ROW_KIND,
    ROW_MORE,
    ROW_SIZE,
    ROW_TEXT,
    SHAPES_USED,
    TEXT_USED,
)  # fmt: skip
from .context import Context
from .shapes import Shapes, has_prefix

_WORD = 4


def faultless(code: Code, context: Context, shapes: Shapes, functions: Sequence[Function]) -> list[bool]:
    """For each function with a body, which has not been read, whether it is without fault. Its parameters have their
    names then. Nothing for a text that is not ASCII."""
    if not context.source.text.isascii():
        return []
    passed = _Scanned(code, context, functions).followed(shapes)
    known = context.module.functions
    found = [
        bool(one) and not shapes.full and known.get(function.name) is function
        for one, function in zip(passed[1:], functions, strict=True)
    ]
    for function, fine in zip(functions, found, strict=True):
        if fine:
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
        shapes, names = _entries(size // 64), _entries(size // 24 + params)
        self._number_count = size // 8 + params
        self._rows, self._counts = rows, array("i", bytes(6 * _WORD))
        self._lines, self._references = _words(size // 2 + 1), _words(size // 2 + params)
        self._names, self._shapes = _words(names * ROW), _words(shapes * ROW)
        self._by_number = _words(self._number_count)
        self._shape_text = _words(size // _WORD + 1)
        code.scan(text.encode(), size, CLASSES, rows, len(functions) + 1, places, int(context.modern), self._shapes,
                  _words(2 * shapes), 2 * shapes - 1, self._shape_text, self._names, _words(2 * names), 2 * names - 1,
                  self._by_number, self._number_count, self._lines, self._references, self._counts)  # fmt: skip

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
                        b"".join(columns.roles) + b"\xff", types_, self._names, self._by_number,
                        self._number_count, self._undefined(), self._lines, self._references,
                        _words(self._counts[NAMES_USED] * HERE), _words((most + len(params)) * VALUE),
                        _words(most * BLOCK), _words(references * EDGE), _words(references), passed)  # fmt: skip
        return bytes(passed)

    def _kinds(self, shapes: Shapes) -> array[int]:
        """For each shape of lines its number among all, -1 for one that does not hold for all lines."""
        count = self._counts[SHAPES_USED]
        words = memoryview(self._shapes).cast("i")[: count * ROW]
        text, roles = str(memoryview(self._shape_text)[: self._counts[TEXT_USED]], "latin-1"), shapes.columns.roles
        begins, sizes = words[ROW_TEXT::ROW].tolist(), words[ROW_SIZE::ROW].tolist()
        lines = [text[at : at + size] for at, size in zip(begins, sizes, strict=True)]
        numbers = shapes.shapes_of(lines, words[ROW_MORE::ROW].tolist())
        return array("i", [
            -1 if number is None or len(roles[number]) != names else number
            for number, names in zip(numbers, words[ROW_KIND::ROW].tolist(), strict=True)
        ])  # fmt: skip

    def _undefined(self) -> bytes:
        """For each name, whether it is a node that is not defined."""
        count, text = self._counts[NAMES_USED], self._context.source.text
        words = memoryview(self._names).cast("i")[: count * ROW]
        nodes = bytes(words[ROW_KIND::ROW].tolist())
        found = bytearray(count)
        if any(nodes):
            begins, sizes = words[ROW_TEXT::ROW].tolist(), words[ROW_SIZE::ROW].tolist()
            used = [text[at - 1 : at + size] for at, size in compress(zip(begins, sizes, strict=True), nodes)]
            known = map(self._context.module.metadata.__contains__, used)
            for name, defined in zip(compress(range(count), nodes), known, strict=True):
                found[name] = not defined
        return bytes(found)


def _words(count: int) -> mmap:
    """As many words, all 0; those that nobody writes take no memory."""
    return mmap(-1, (count + 1) * _WORD)


def _entries(count: int) -> int:
    """A power of two for about so many entries."""
    return 1 << max(10, count.bit_length())
