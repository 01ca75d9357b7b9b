"""Nodes of metadata that have a line each, and which are alike but for names, strings and numbers."""

from __future__ import annotations

import re
from array import array
from functools import cached_property
from itertools import accumulate, compress
from typing import TYPE_CHECKING

from ptxtools.records import dataclass, field

from ..compiled import code_for
from .outline import Extent

if TYPE_CHECKING:
    from ..compiled.code import Code

#: What lines may differ in: strings, nodes, and numbers that fit all fields of numbers but for enumerations, or all of
#: 32 bits.
_VARIED = re.compile(r'(!\d+|"[^"\n]*"|:(?<=ine:|ize:) \d{1,9}(?=[,)])|:(?<!Kind:)(?<!lity:) \d{1,4}(?=[,)]))')
#: What stands for it, by its first character; for an empty string; and for what looks like that in the text.
_NODE, _EMPTY, _OTHER = "\0", "\3", "\4"
_MARKS = {"!": _NODE, '"': "\1", ":": "\2"}
_ALL_MARKS = (*_MARKS.values(), _EMPTY, _OTHER)
_ANY_MARK = re.compile("[\0-\3]")
#: A node of debug information, or a list of nodes, with marks.
_SHAPE = re.compile(r"\0 = (?:distinct )?!(?:(DI\w+|GenericDINode)\([^;\4]*\)|\{(?:(?:\0|null)(?:, (?!\})|(?=\})))*\})")
_MENTION = re.compile(r"!\d+")
#: Which digits are there does not matter to what lines may differ in.
_ZEROS = str.maketrans(dict.fromkeys("123456789", "0"))
_PASSED = re.compile(b"\1+")


@dataclass(slots=True)
class Alike:
    """Lines that are alike. kind: of the nodes, "" for lists; names: of the nodes; key: what is alike."""

    kind: str
    key: str
    names: list[str] = field(default_factory=list)


class NodeLines:
    """The lines behind an offset with nodes of debug information, or with lists of nodes. refers: all nodes that the
    lines there mention, the ones that they define among them; passed: where lines stand that are like an earlier one,
    neighbours as one."""

    refers: frozenset[str]
    passed: list[Extent]

    def __init__(self, text: str, begin: int) -> None:
        self._begin, self._region = begin, text[begin:]
        self._known: dict[str, Alike] = {}
        if not self._scanned():
            self._find()

    def _find(self) -> None:
        lines, shapes = self._region.split("\n"), self._lines
        self.refers = frozenset(_MENTION.findall(self._region))
        for shape in set(shapes):
            self._know(shape)
        among = bytes(map(self._known.__contains__, shapes))
        add = {shape: alike.names.append for shape, alike in self._known.items()}
        for shape, line in zip(compress(shapes, among), compress(lines, among), strict=True):
            add[shape](line[: line.index(" ")])
        firsts = dict(zip(reversed(shapes), range(len(shapes) - 1, -1, -1), strict=True))
        passed = bytearray(among)
        for shape in self._known:
            passed[firsts[shape]] = 0
        self.passed = [self._extent(found.start(), found.end()) for found in _PASSED.finditer(passed)]

    def _know(self, shape: str) -> bool:
        """Whether lines of a shape can be passed over; they have a group then."""
        found = _SHAPE.fullmatch(shape)
        if found:
            self._known[shape] = Alike(found[1] or "", shape)
        return bool(found)

    def _scanned(self) -> bool:
        """Let machine code find all that, if there is much of it and machine code."""
        region = self._region
        size = len(region)
        code = code_for(size)
        if code is None or not region.isascii() or any(one in region for one in _ALL_MARKS):
            return False
        return self._scan(code, region, size)

    def _scan(self, code: Code, region: str, size: int) -> bool:
        from ..compiled import nodes
        from ..compiled.buffers import Rows, column, words
        from ..compiled.scan import COUNTS, LINES_USED, NAMES_USED, SHAPES_USED, TEXT_USED

        data, counts, text = region.encode(), array("i", [0] * COUNTS), words(size // 4 + 1)
        lines, shapes, names = words((size + 2) * nodes.LINE), Rows(size // 64), Rows(size // 16)
        code.nodes(data, size, *shapes.given, text, *names.given, lines, counts)
        if not counts[LINES_USED]:
            return False
        self.refers = frozenset(names.texts(region, counts[NAMES_USED], 1))
        found = shapes.texts(str(memoryview(text)[: counts[TEXT_USED]], "latin-1"), counts[SHAPES_USED])
        known = bytes(map(self._know, found))
        group, extents = words(len(found) * nodes.GROUP), words(counts[LINES_USED] * nodes.EXTENT)
        passed = words((counts[LINES_USED] + 1) * nodes.EXTENT)
        code.groups(data, size, lines, counts[LINES_USED], known, len(found), group, extents, passed)
        begins, ends = (column(extents, one, nodes.EXTENT, counts[LINES_USED]) for one in (nodes.BEGINS, nodes.ENDS))
        for shape, count, first in zip(
            found, *(column(group, one, nodes.GROUP, len(found)) for one in (0, 1)), strict=True
        ):
            if shape in self._known:
                places = zip(begins[first : first + count], ends[first : first + count], strict=True)
                self._known[shape].names = [region[begin:end] for begin, end in places]
        count, begin = column(passed, 0, 1, 1)[0] + 1, self._begin
        places = zip(*(column(passed, one, nodes.EXTENT, count)[1:] for one in (nodes.BEGINS, nodes.ENDS)), strict=True)
        self.passed = [(begin + first, begin + end) for first, end in places]
        return True

    @cached_property
    def _lines(self) -> list[str]:
        """The shapes of all lines."""
        return _shapes(self._region)

    def groups(self) -> list[Alike]:
        return [one for one in self._known.values() if len(one.names) > 1]

    def others(self, group: Alike) -> list[Extent]:
        """The lines of a group but for the first."""
        lines = [number for number, line in enumerate(self._lines) if line == group.key]
        return [self._extent(number, number + 1) for number in lines[1:]]

    @cached_property
    def _places(self) -> list[int]:
        """Where lines begin."""
        sizes = map(len, self._region.split("\n"))
        return list(accumulate(sizes, lambda place, size: place + size + 1, initial=self._begin))

    def _extent(self, first: int, end: int) -> Extent:
        """The place of lines, without the last one's end."""
        return self._places[first], self._places[end] - 1


def _shapes(region: str) -> list[str]:
    """What each line is without what lines may differ in."""
    if any(one in region for one in _ALL_MARKS):
        return _marked(_ANY_MARK.sub(_OTHER, region).split("\n"))
    lines, alike = region.split("\n"), region.translate(_ZEROS).split("\n")
    distinct = list(dict.fromkeys(alike))
    shapes = dict(zip(distinct, _marked(distinct), strict=True))
    if any("0" in shape for shape in shapes.values()):  # a digit that is no part of what lines may differ in
        exact = {line: line for line, shape in shapes.items() if "0" in shape}
        own = list({line for line, one in zip(lines, alike, strict=True) if one in exact})
        shapes.update(zip(own, _marked(own), strict=True))
        alike = [line if one in exact else one for line, one in zip(lines, alike, strict=True)]
    return list(map(shapes.__getitem__, alike))


def _marked(lines: list[str]) -> list[str]:
    """Lines with marks for what they may differ in."""
    parts = _VARIED.split("\n".join(lines))
    parts[1::2] = [_MARKS[one[0]] if one != '""' else _EMPTY for one in parts[1::2]]
    return "".join(parts).split("\n")
