"""Nodes of metadata that have a line each, and which are alike but for names, strings and numbers."""

from __future__ import annotations

import re
from functools import cached_property
from itertools import accumulate, compress

from ptxtools.records import dataclass, field

from .outline import Extent

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
    lines there mention, the ones that they define among them."""

    def __init__(self, text: str, begin: int) -> None:
        region = text[begin:]
        self.refers = frozenset(_MENTION.findall(region))
        lines = region.split("\n")
        self._begin, self._sizes = begin, list(map(len, lines))
        shapes = _shapes(region)
        self._known = {
            shape: Alike(found[1] or "", shape) for shape in set(shapes) if (found := _SHAPE.fullmatch(shape))
        }
        self._lines = shapes
        among = bytes(map(self._known.__contains__, shapes))
        add = {shape: alike.names.append for shape, alike in self._known.items()}
        for shape, line in zip(compress(shapes, among), compress(lines, among), strict=True):
            add[shape](line[: line.index(" ")])
        firsts = dict(zip(reversed(shapes), range(len(shapes) - 1, -1, -1), strict=True))
        passed = bytearray(among)
        for shape in self._known:
            passed[firsts[shape]] = 0
        #: Where lines stand that are like an earlier one, neighbours as one.
        self.passed = [self._extent(found.start(), found.end()) for found in _PASSED.finditer(passed)]

    def groups(self) -> list[Alike]:
        return [one for one in self._known.values() if len(one.names) > 1]

    def others(self, group: Alike) -> list[Extent]:
        """The lines of a group but for the first."""
        lines = [number for number, line in enumerate(self._lines) if line == group.key]
        return [self._extent(number, number + 1) for number in lines[1:]]

    @cached_property
    def _places(self) -> list[int]:
        """Where lines begin."""
        return list(accumulate(self._sizes, lambda place, size: place + size + 1, initial=self._begin))

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
