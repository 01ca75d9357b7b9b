"""`parse`: text to module."""

from __future__ import annotations

from ptxtools.diagnostics import Diagnostic, Source
from ptxtools.ir import Module
from ptxtools.ir.collector import CollectorOff
from ptxtools.records import NamedTuple

from .reader import Reader, Units
from .shapes import ShapeParser


class ParseResult(NamedTuple):
    """The module as far as it could be parsed, and the syntax errors (codes PTX1xx)."""

    module: Module
    diagnostics: list[Diagnostic]


def parse(text: str, name: str = "<stdin>", *, cache: bool = True) -> ParseResult:
    """Parse a module. Never raises on bad text: each error is a diagnostic, and the rest is still parsed.

    cache: rebuild statements of a known shape without the grammar (`shapes`), with the same result.
    """
    units = _units(cache)
    reader = Reader(Source(text, name), units)
    with CollectorOff():
        reader.read()
    units.close()
    found = reader.diagnostics
    if found:
        from .comments import with_open_comment

        found = with_open_comment(found, reader.source)
        found.sort(key=lambda diagnostic: diagnostic.span)
    return ParseResult(reader.module, found)


def _units(cache: bool) -> Units:
    if cache:
        return ShapeParser.again()
    from .units import shared_parser

    return shared_parser()
