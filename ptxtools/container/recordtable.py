"""The table `records` of a container: its nodes by number, decoded as they are needed."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from ptxtools.diagnostics import Span
from ptxtools.ir import BranchTargets, CallPrototype, CallTargets, Directive, Loc, Pragma, Section, Variable
from ptxtools.records import fields

from .code import cumulative
from .codec import Cursor, decode_numbers, leading_numbers, unpack_column
from .data import image_reader
from .errors import Damage
from .records import KINDS, read_record

_HEAD = struct.Struct("<III")
#: Statements whose fields never change, so that nodes can share them.
_FLAT = (Variable, Directive, Pragma, Loc, BranchTargets, CallTargets)
#: What may stand in a body beside instructions, labels and scopes.
_STATEMENTS = (*_FLAT, CallPrototype)


class RecordTable(dict[int, Callable[[Span], Any]]):
    """As a mapping: what makes a new node of a statement's record, given its span.

    Declarations repeat from function to function: what was decoded once is kept.
    """

    def __init__(self, data: memoryview, strings: Sequence[str], content: Callable[[int], memoryview]) -> None:
        """content: of the section of a number. Raises Damage."""
        self.strings, self._content = strings, content
        self._patterns: dict[int, tuple[Any, ...]] = {}
        #: Items of the module; theirs are the first records.
        self.count, count, width = _HEAD.unpack_from(data)
        end = _HEAD.size + count * width
        if end + count > len(data):  # every record has a byte
            raise Damage("the records are truncated")
        self._starts = cumulative(unpack_column(data[_HEAD.size : end], width))
        self._bytes = data[end:]
        if len(self._starts) != count + 1 or self._starts[-1] != len(self._bytes) or self.count > count:
            raise Damage("the records are truncated")

    def cursor(self, number: int) -> Cursor:
        """For reading a record."""
        starts = self._starts
        return Cursor(decode_numbers(bytes(self._bytes[starts[number] : starts[number + 1]])), self.strings)

    def is_section(self, number: int) -> bool:
        """Whether the record is a `.section`."""
        start = self._starts[number]
        return self._bytes[start] == KINDS[Section]

    def section_name(self, number: int) -> str:
        start = self._starts[number]
        (_, name), _ = leading_numbers(self._bytes[start:], 2)
        return self.strings[name]

    def node(self, number: int) -> Any:
        """A new node."""
        return read_record(self.cursor(number), image_reader(self._content))

    def pattern(self, number: int) -> tuple[Any, ...]:
        """All fields but the name of the parameters that a record describes."""
        known = self._patterns.get(number)
        if known is None:
            node = self.node(number)
            if not isinstance(node, Variable) or node.init is not None:
                raise Damage("a parameter that is not a plain variable")
            known = self._patterns[number] = _values(node)[1:]
        return known

    def __missing__(self, number: int) -> Callable[[Span], Any]:
        node = self.node(number)
        kind: Any = type(node)
        if kind not in _STATEMENTS:
            raise Damage("an invalid statement")
        if kind not in _FLAT or getattr(node, "init", None) is not None:
            return partial(_placed, node)
        make = self[number] = partial(kind, *_values(node))
        return make


def _values(node: Any) -> tuple[Any, ...]:
    """The fields of a node but its spans, which come last."""
    kind: Any = type(node)
    return tuple([getattr(node, name) for name in _field_names(kind)])


@cache
def _field_names(kind: Any) -> list[str]:
    return [field.name for field in fields(kind) if field.compare]


def _placed(node: Any, span: Span) -> Any:
    node.span = span
    return node
