"""Operands while the grammar puts them together, with their places in the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxtools.diagnostics import Span
from ptxtools.ir import Arguments, Name, Operand, Vector
from ptxtools.ir.layout import extent_of
from ptxtools.records import NamedTuple


class Placed(NamedTuple):
    """An operand, and where it and its parts stand, in the order of `extent_of`."""

    node: Operand
    spans: tuple[Span, ...]

    def measured(self) -> Operand:
        """The operand, which knows its extent."""
        extent = extent_of(self.spans)
        if not (isinstance(self.node, Name) and extent == (len(self.node.name),)):
            self.node.extent = extent
        return self.node


def spans_of(operands: Sequence[Placed]) -> Iterator[Span]:
    """The spans of all of them and their parts."""
    return (span for operand in operands for span in operand.spans)


def listed(kind: type[Vector | Arguments], items: Sequence[Placed], whole: Span) -> Placed:
    """Operands in brackets."""
    return Placed(kind(tuple([item.node for item in items])), (whole, *spans_of(items)))
