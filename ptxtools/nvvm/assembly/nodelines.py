"""Nodes of metadata that have a line each, and which are alike but for names, strings and numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, compress

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
        marked = any(one in region for one in _ALL_MARKS)
        parts = _VARIED.split(_ANY_MARK.sub(_OTHER, region) if marked else region)
        varied = parts[1::2]
        self.refers = frozenset([one for one in varied if one[0] == "!"])
        parts[1::2] = [_MARKS[one[0]] if one != '""' else _EMPTY for one in varied]
        self._lines = "".join(parts).split("\n")
        self._begin, self._sizes = begin, [len(line) for line in region.split("\n")]
        distinct = dict.fromkeys(self._lines)
        counts = {line: len(_ANY_MARK.findall(line)) for line in distinct}
        #: Where the first of what was left out of each line is among all.
        firsts = list(accumulate(map(counts.__getitem__, self._lines), initial=0))
        self._known = {line: Alike(found[1] or "", line) for line in distinct if (found := _SHAPE.fullmatch(line))}
        among = bytes(map(self._known.__contains__, self._lines))
        add = {line: alike.names.append for line, alike in self._known.items()}
        for line, first in zip(compress(self._lines, among), compress(firsts, among), strict=True):
            add[line](varied[first])
        first_lines = dict(zip(reversed(self._lines), range(len(self._lines) - 1, -1, -1), strict=True))
        passed = bytearray(among)
        for line in self._known:
            passed[first_lines[line]] = 0
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
