"""What the shape of a line of a function says: its kind, and what the names in it are."""

from __future__ import annotations

from ptxtools.records import NamedTuple

from ..assembly.types import Type

#: Kinds of lines. A plain one has no result, that of a named one has a name, and that of an unnamed one a number that
#: is not written.
PLAIN, PHI, BRANCH, RETURN, END, LABEL, BLANK, UNNAMED, NAMED = range(9)
KINDS = {"phi": PHI, "br": BRANCH, "switch": BRANCH, "ret": RETURN, "unreachable": END}
#: What a name in a line is: an operand, one of a phi, the result, a node of metadata, where a terminator goes, where a
#: phi comes from, a value in metadata, or something else.
OPERAND, INCOMING, RESULT, NODE, TARGET, SOURCE, MENTIONED, OTHER = range(8)
#: Events of lines besides: the end of a block, and a phi.
CLOSES, MERGES = 8, 9
#: What happens at the end of a line of each kind.
BEHIND = {
    PHI: bytes((MERGES, RESULT)),
    **dict.fromkeys((NAMED, UNNAMED), bytes((RESULT,))),
    **dict.fromkeys((BRANCH, RETURN, END), bytes((CLOSES,))),
}
#: What stands for a name in a shape.
HOLE = "\0"
#: What stands for the end of a line within a statement.
JOINED = "\r"
#: What stands for values and symbols in templates of lines that differ in these.
VALUE, SYMBOL = "\1", "\2"


class Shape(NamedTuple):
    """A line without names. kind: of the line; roles: what each of its names is; types: of its operands that are names;
    result: the type of its result, None if it has none; given: what a `ret` returns."""

    kind: int
    roles: bytes = b""
    types: tuple[Type, ...] = ()
    result: Type | None = None
    given: Type | None = None
