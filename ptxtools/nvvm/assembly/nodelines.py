"""Nodes of metadata that have a line each, and which are alike but for names, strings and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate

from .outline import Extent

_HOLE = "\0"
#: What lines may differ in: strings, nodes, and numbers that fit all fields of numbers but for enumerations, or all of
#: 32 bits.
_VARIED = re.compile(r'(!\d+|"[^"\n]*"|:(?<=ine:|ize:) \d{1,9}(?=[,)])|:(?<!Kind:)(?<!lity:) \d{1,4}(?=[,)]))')
#: A node of debug information, or a list of nodes, without these.
_NODE = re.compile(r"\0 = (?:distinct )?!(?:(DI\w+|GenericDINode)\([^;]*\)|\{(?:(?:\0|null)(?:, (?!\})|(?=\})))*\})")


@dataclass(slots=True)
class Alike:
    """Lines that are alike. kind: of the nodes, "" for lists; holes: the first characters of what they may differ in,
    "e" for an empty string;
    names, extents: of the nodes and of their lines."""

    kind: str
    holes: str
    names: list[str] = field(default_factory=list)
    extents: list[Extent] = field(default_factory=list)


class NodeLines:
    """The lines behind an offset with nodes of debug information, or with lists of nodes. refers: all nodes that the
    lines there mention, the ones that they define among them."""

    def __init__(self, text: str, begin: int) -> None:
        region = text[begin:]
        parts = _VARIED.split(region)
        self._varied = parts[1::2]
        self.refers = frozenset([one for one in self._varied if one[0] == "!"])
        self._known: dict[str, Alike | None] = {}
        varied, known, at = self._varied, self._known, 0
        #: The first characters of what was left out, in one text.
        kinds = "".join([one[0] if one != '""' else "e" for one in varied])
        places = accumulate(map(len, region.split("\n")), lambda end, size: end + size + 1, initial=begin - 1)
        last = begin - 1
        next(places)
        for line, end in zip(_HOLE.join(parts[::2]).split("\n"), places, strict=True):
            alike = known.get(line)
            if alike is None:
                count = line.count(_HOLE)
                if line[:1] == _HOLE and line not in known:
                    alike = known[line] = _first(line, kinds[at : at + count])
            else:
                count = len(alike.holes)
            if alike is not None and kinds.startswith(alike.holes, at):
                alike.names.append(varied[at])
                alike.extents.append((last + 1, end))
            at += count
            last = end

    def groups(self) -> list[Alike]:
        return [one for one in self._known.values() if one is not None and len(one.names) > 1]


def _first(line: str, holes: str) -> Alike | None:
    """The first line of its kind; None if it is no node that others may be like."""
    found = _NODE.fullmatch(line)
    good = found and holes[0] == "!" and (found[1] or not holes.strip("!"))
    return Alike(found[1] or "", holes) if found and good else None


def joined(extents: Iterable[Extent]) -> list[Extent]:
    """Lines in order, neighbours as one."""
    found: list[Extent] = []
    for begin, end in extents:
        if found and found[-1][1] == begin - 1:
            found[-1] = found[-1][0], end
        else:
            found.append((begin, end))
    return found
