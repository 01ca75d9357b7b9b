"""Annotations of kernels that stand line by line, and are alike but for the node and the kernel."""

from __future__ import annotations

import re

from .nodes import Node, Value

_KERNEL = '!"kernel"'
#: A node, and a function of a type that has no name in quotes.
_LINE = re.compile(rf'(!\d+) = !\{{([^@"{{}};\n]+ )(@[-\w$.]+), {_KERNEL}, i32 1\}}$', re.MULTILINE)

#: A line: the node, the type and the function, with their places.
Line = re.Match[str]


def annotation_lines(text: str, begin: int) -> list[list[Line]]:
    """The first lines in a row behind an offset that say of a function that it is a kernel, by the function's type."""
    found: dict[str, list[Line]] = {}
    at = text.rfind("\n", begin, max(begin, text.find(_KERNEL, begin))) + 1
    line = _LINE.match(text, at) if at > begin else None
    while line:
        found.setdefault(line[2], []).append(line)
        line = _LINE.match(text, line.end() + 1)
    return list(found.values())


def like(node: Node, line: Line) -> Node | None:
    """The node of a line. node: of a line that is alike; None if it is not that."""
    known = node.operands
    if len(known) != 3 or known[0] is None or known[0].kind != "global":
        return None
    symbol = Value("global", line[3], known[0].type, line.start(3))
    shift = line.end(3) - known[0].end
    others = [one and Value(one.kind, one.text, one.type, one.at + shift, one.parts, one.extra) for one in known[1:]]
    return Node(line[1], line.start(), node.kind, [symbol, *others])
