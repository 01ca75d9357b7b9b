"""Where the functions of a text stand, found without reading them, and which have the same heads but for names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate
from operator import attrgetter

from ptxtools.records import NamedTuple, fields

from .nodes import Function, Param, Word

#: The offsets of a part of a text.
Extent = tuple[int, int]

_STRING = re.compile(r'"[^"]*(?:"|\Z)')
_BEGIN, _END = "\ndefine ", "\n}"
#: Where a definition may begin and end, and what does not stand inside one.
_EDGES = re.compile(r"\n(?:define |}|declare )")
#: The names in a head: of the function, of parameters (behind a type), of nodes of metadata.
_NAME = re.compile(r"(@[-\w$.]+|%(?<=[\w*)\]>}\"] %)(?:[-a-zA-Z$._][-a-zA-Z$._0-9]*|\d+)(?=[,)])|!\d+)")
_SLOTS = [one.name for one in fields(Function)]
_VALUES = attrgetter(*_SLOTS)
_ASSIGN = [getattr(Function, slot).__set__ for slot in _SLOTS]


class Outline(NamedTuple):
    """A definition. begin: of its head; brace: before its body; end: the closing brace."""

    begin: int
    brace: int
    end: int

    @property
    def body(self) -> Extent:
        return self.brace + 1, self.end


def outlines(text: str) -> tuple[list[Outline], bool]:
    """The definitions that have a line `define … {`, or two, and end with a line that begins with `}`, as LLVM's tools
    and llvmlite write them. Others are not found; nor is any if a string goes over lines, which may look like these.
    And whether all is regular: whether each such begin has its end, so that none of them is in what is not found."""
    found: list[Outline] = []
    if '"' in text and any("\n" in one for one in _STRING.findall(text)):
        return found, True
    at, regular = 0 if text.startswith(_BEGIN[1:]) else -1, True
    for edge in _EDGES.finditer(text):
        regular = regular and (edge[0] == _END) == (at >= 0)
        if edge[0] == _END and at >= 0:
            line = text.index("\n", at)
            head = text[at:line].rstrip()
            brace = at + len(head) - 1 if head[-1:] == "{" else line + 1 if text.startswith("{\n", line + 1) else 0
            if brace and ";" not in head:
                found.append(Outline(at, brace, edge.start() + 1))
        at = edge.start() + 1 if edge[0] == _BEGIN else -1
    return found, regular and at < 0


def between(extents: Iterable[Extent], end: int) -> Iterator[Extent]:
    """The parts of a text that are not in these. end: of the text."""
    at = 0
    for begin, until in extents:
        yield at, begin
        at = until
    yield at, end


class Head(NamedTuple):
    """A head. shape: without names; symbol: the name of the function; names: of parameters and nodes; all names with
    their places."""

    outline: Outline
    shape: str
    symbol: Word
    names: list[Word]

    @classmethod
    def of(cls, text: str, outline: Outline) -> Head:
        parts = _NAME.split(text[outline.begin : outline.brace])
        places = accumulate(map(len, parts), initial=outline.begin)
        names = list(zip(parts, places, strict=False))[1::2]
        kinds = "".join([name[0] for name in parts[1::2]])
        symbol = names.pop(kinds.index("@")) if "@" in kinds else ("", 0)
        return cls(outline, "\0".join([*parts[::2], kinds]), symbol, names)

    @property
    def numbered(self) -> bool:
        """Whether the number of a parameter is written."""
        return any(name[1:].isdecimal() for name, _ in self.names if name[0] == "%")

    def like(self, other: Function) -> Function | None:
        """The function whose head this is. other: one of the same shape in whose head the rules find no fault, so that
        no more is known of this one's places than those of names. None if the names need a look."""
        params = [one for one in self.names if one[0][0] == "%"]
        nodes = [one for one in self.names if one[0][0] == "!"]
        named = sum(bool(param.name) for param in other.params)
        if len(params) != named or len(nodes) != len(other.metadata) or len(self.names) != len(params) + len(nodes):
            return None
        made: Function = object.__new__(Function)
        for assign, value in zip(_ASSIGN, _VALUES(other), strict=True):
            assign(made, value)
        made.name, made.at = self.symbol
        given = iter(params)
        made.params = [Param(param.type, *(next(given) if param.name else ("", self.outline.begin)), param.attributes)
                       for param in other.params]  # fmt: skip
        made.metadata = [(key, node) for (key, _), node in zip(other.metadata, nodes, strict=True)]
        made.body, made.end, made.blocks = self.outline.body, self.outline.end, []
        return made
