"""Lines that the rules take for one another.

They differ in an operation among those of one sort, in its flags, in an alignment, in how many values a phi or cases a
switch has, or in whether nodes of metadata stand behind them.
"""

from __future__ import annotations

import re
from itertools import product
from typing import TypeVar

from ptxtools.records import NamedTuple

from .calls import takes_any_value
from .shape import HOLE, VALUE

_One = TypeVar("_One")

_FLAGS = ("", "contract ", "fast ")
_ORDER = ("gt", "ge", "lt", "le")
#: Operations of one sort, with the flags that each may have: what is wrong with one of them is wrong with all.
_SORTS = (
    [
        *map("".join, product(("add ", "sub ", "mul ", "shl "), ("", "nuw ", "nsw ", "nuw nsw "))),
        *map("".join, product(("udiv ", "sdiv ", "lshr ", "ashr "), ("", "exact "))),
        "urem ", "srem ", "and ", "or ", "xor ",
    ],
    list(map("".join, product(("fadd ", "fsub ", "fmul ", "fdiv ", "frem "), _FLAGS))),
    ["icmp eq ", "icmp ne ", *(f"icmp {sign}{one} " for sign, one in product("us", _ORDER))],
    [f"fcmp {flag}{sign}{one} " for flag, sign, one in product(_FLAGS, "ou", ("eq", "ne", *_ORDER))],
    ["zext ", "sext "], ["uitofp ", "sitofp "], ["fptoui ", "fptosi "],
)  # fmt: skip
_FIRST = {one: sort[0] for sort in _SORTS for one in sort}
_LONGEST_FIRST = "|".join(sorted(_FIRST, key=len, reverse=True))
_OPERATION = re.compile(rf"(\s*[{HOLE}{VALUE}] = )({_LONGEST_FIRST})(?=(?:i\d+|half|float|double)[ *{VALUE}])")
_ALIGNED = re.compile(rf"(\s*(?:[{HOLE}{VALUE}] = )?(?:load|store|alloca) .*, align )(?:1|2|4|8|16|32|64|128)\Z")
#: Nodes of which no rule asks more than that they are there.
_NODES = re.compile(rf"(?:, !(?:dbg|tbaa|llvm\.loop|alias\.scope|noalias){VALUE})+\Z")
#: A phi and a switch, with what is repeated in them.
_PHI = re.compile(rf"(\s*[{HOLE}{VALUE}] = phi [^,\[\]]+)( \[{VALUE},{VALUE} \])((?:,\2)*)\Z")
_SWITCH = re.compile(rf"(\s*switch i\d+{VALUE}, label{VALUE} \[)(\s+i\d+{VALUE}, label{VALUE})((?:\2)*)\s+\]\Z")
_BEFORE_REPEATED = {"phi": 1, "switch": 2}
_INTRINSIC = re.compile(r"@(llvm\.[-\w$.]+)")
#: Instructions to which a value is no more than that.
_ANY_VALUE = re.compile(
    rf"\s*(?:[{HOLE}{VALUE}] = )?(?:f?add|f?sub|f?mul|[usf]div|[usf]rem|shl|[la]shr|and|x?or|[if]cmp|select|store|ret|"
    r"phi|getelementptr|(?:tail )?call|load|alloca|br|switch|trunc|[sz]ext|fptrunc|fpext|[us]itofp|fpto[us]i|bitcast)\b"
)


class Family(NamedTuple):
    """What is known of one line holds for the family. name: what stands for its lines; of: "phi" or "switch" if
    something is repeated, and how often; nodes: how many nodes are behind the line."""

    name: str
    of: str = ""
    times: int = 1
    nodes: int = 0

    def spread(self, each: list[_One], node: _One) -> list[_One]:
        """What there is for each mark of the line, given that for the marks of the name, and that for a node."""
        first = _BEFORE_REPEATED.get(self.of, len(each))
        return [*each[:first], *each[first:] * self.times, *[node] * self.nodes]

    def single(self, each: list[_One], node: _One) -> list[_One] | None:
        """The reverse of `spread`; None if it is not of that form."""
        first = _BEFORE_REPEATED.get(self.of, 0)
        found = each[: first + (len(each) - self.nodes - first) // self.times]
        return found if self.spread(found, node) == each else None


def family_of(line: str, modern: bool) -> Family | None:
    """The family of a line that has marks for symbols, and for values with the blank before each. None if values are
    more to it than that: structs, some intrinsics and inline assembly look at them, and addresses of members have
    their numbers."""
    if not _ANY_VALUE.match(line) or any(one in line for one in ("{", '"', "asm", "metadata")):
        return None
    if "getelementptr" in line and "%" in line:
        return None
    if "@llvm." in line and not all(takes_any_value(one, modern) for one in _INTRINSIC.findall(line)):
        return None
    nodes = 0
    if "!" in line:
        line, behind = _split(line)
        nodes = behind.count(VALUE)
    repeated = _PHI.match(line) or _SWITCH.match(line)
    if repeated:
        of = "phi" if "=" in repeated[1] else "switch"
        return Family(repeated[1] + repeated[2], of, 1 + repeated[3].count(VALUE) // 2, nodes)
    found = _OPERATION.match(line)
    if found:
        line = found[1] + _FIRST[found[2]] + line[found.end() :]
    elif ", align " in line:
        line = _ALIGNED.sub(r"\g<1>4", line)
    return Family(line, nodes=nodes)


def _split(line: str) -> tuple[str, str]:
    found = _NODES.search(line)
    return (line[: found.start()], found[0]) if found else (line, "")
