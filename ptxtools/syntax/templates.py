"""Templates: parsed units with holes where names, numbers and strings were, kept by shape.

A shape is a text in which each hole is replaced by its kind. To make a template, the holes get names and numbers that
occur nowhere else, the grammar parses it, and each hole must appear exactly once in the node. If it does not, say
because a constant expression was folded, the shape is not regular, and its texts go to the grammar every time.
"""

from __future__ import annotations

import marshal
import re
import zlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ptxtools import ir
from ptxtools.cache import code_state
from ptxtools.ir import Immediate, Instruction, Layout, Name
from ptxtools.ir.positions import parts_of
from ptxtools.records import fields

from . import kept
from .constants import ConstantError, literal, unary

if TYPE_CHECKING:
    from .shapes import ShapeParser

#: The most templates of operands, and of units, in a process; with more, the input does not repeat itself.
#: A file with more is discarded: its content came from other inputs, and nothing could be added.
MOST_KEPT = 2000

# Words with a meaning in the grammar are not holes.
_HOLE = r"""(?<![\w$%.:])(?:
    (?!(?:generic|function_name|inlined_at|WARP_SZ|call|_)(?![\w$]))(?:[A-Za-z][\w$]*+|[_$%][\w$]++)(?:\.[a-z]\w*+)?+
  | \d[\w$.]*+
)"""
_OPERAND_HOLE = re.compile(f"({_HOLE})", re.VERBOSE | re.ASCII)
#: In units also strings.
_UNIT_HOLE = re.compile(rf'("[^"]*"|{_HOLE})', re.VERBOSE | re.ASCII)
#: A declaration of one variable with an initialiser of numbers in braces, which is one hole.
_INITIALIZED = re.compile(r"([^={}\"]*=\s*+)(\{(?:[\s{},]++|-?\d[\w.]*+)*+)(;)", re.ASCII)

_KINDS = {"s64": "N", "u64": "U", "f32": "F"}
_FIRST_NUMBER = 7_919_000_000

#: Program of a template: nested tuples of plain values, so that marshal can keep it. See `_Maker` and `_link`.
Program = tuple[Any, ...]
#: A segment, and an offset in it.
At = tuple[int, int]
#: Holes, starts of the segments, and who reads.
Builder = Callable[[Sequence[str], Sequence[int], "ShapeParser"], Any]


class NotRegularError(Exception):
    """A hole does not appear exactly once in the node."""


def shape_of_operand(text: str) -> tuple[str | None, list[str]]:
    """The shape of an operand, and its text split at the holes (odd places). None: it has none."""
    return _shape(_OPERAND_HOLE.split(text))


def shape_of_unit(text: str) -> tuple[str | None, list[str]]:
    """The shape of a whole unit, and its text split at the holes."""
    initialized = _INITIALIZED.fullmatch(text)
    if initialized is None:
        return _shape(_UNIT_HOLE.split(text))
    head, numbers, tail = initialized.groups()
    return _shape([*_UNIT_HOLE.split(head), numbers, tail])


def _shape(parts: list[str]) -> tuple[str | None, list[str]]:
    try:
        kinds = "".join(map(_kind, parts[1::2]))
    except ConstantError:
        return None, parts
    return kinds + "\0" + "\0".join(parts[::2]), parts


def _kind(hole: str) -> str:
    """One letter: plain name, name with component, string, list, or a class of numbers."""
    first = hole[0]
    if not first.isdigit():
        return "S" if first == '"' else "L" if first == "{" else "C" if "." in hole else "I"
    if len(hole) < 18 and hole.isdigit() and (first != "0" or len(hole) == 1):
        return "N"
    kind = literal(hole).type
    return _KINDS.get(kind) or ("D" if hole[1:2] in ("d", "D") else "R")


def _stand_in(index: int, hole: str) -> str:
    number = _FIRST_NUMBER + index
    return {
        "I": f"ptx_hole_{index}_",
        "C": f"ptx_hole_{index}_.x",
        "S": f'"ptx_hole_{index}_"',
        "L": f"{{{number}}}",
        "N": f"{number}",
        "U": f"{number}U",
        "F": f"0f{number & 0xFFFFFFFF:08x}",
        "D": f"0d{number:016x}",
        "R": f"{number}.5",
    }[_kind(hole)]


def placeholder(parts: list[str]) -> str:
    """The text with a stand-in of the same kind in each hole."""
    return "".join(_stand_in(i >> 1, part) if i & 1 else part for i, part in enumerate(parts))


class _Maker:
    """Turns the node parsed from a placeholder into a program."""

    def __init__(self, parts: list[str]) -> None:
        stand_ins = [_stand_in(i, hole) for i, hole in enumerate(parts[1::2])]
        filled = [stand_ins[i >> 1] if i & 1 else part for i, part in enumerate(parts)]
        self._starts = list(accumulate(map(len, filled), initial=0))
        self._unused = set(range(len(stand_ins)))
        self._texts = {text.strip('"'): ("text" if text[0] != '"' else "string", i) for i, text in enumerate(stand_ins)}
        self._numbers: dict[object, tuple[str, int]] = {}
        for i, text in enumerate(stand_ins):
            if text[0].isdigit():
                value = literal(text)
                self._numbers[value] = ("constant", i)
                if value.type != "f32":
                    self._numbers[unary("-", value)] = ("negative", i)
                if value.type == "s64":
                    self._numbers[value.value], self._numbers[-value.value] = ("int", i), ("negative_int", i)
        self._lists = {i: literal(text[1:-1]) for i, text in enumerate(stand_ins) if text[0] == "{"}

    def finish(self, node: Any) -> Program:
        program = self._instruction(node) if isinstance(node, Instruction) else self.make(node, 0)
        if self._unused:
            raise NotRegularError
        return program

    def make(self, value: Any, begin: int = -1) -> Program:
        """begin: where a whole operand begins."""
        if isinstance(value, (Immediate, int, str)) and not isinstance(value, bool):
            return self._leaf(value)
        if value is None or isinstance(value, bool):
            return ("value", value)
        if isinstance(value, list):
            return self._list(value)
        if isinstance(value, tuple):
            return ("tuple", tuple(map(self.make, value)))
        if isinstance(value, ir.SymbolValue) and value.mask is not None:
            raise NotRegularError  # which masks are allowed depends on their value
        made = [self._field(field.name, getattr(value, field.name), field.compare, begin) for field in fields(value)]
        return ("node", type(value).__name__, tuple(made))

    def _field(self, name: str, value: Any, compare: bool, begin: int) -> Program:
        if compare:
            return self.make(value)
        if name != "extent":
            return self._span(value)
        if begin < 0 or not value:
            return ("value", ())
        return ("extent", self._place(begin), tuple(self._place(begin + at) for at in value))

    def _instruction(self, item: Instruction) -> Program:
        """A call: each has operands of its own."""
        parts = parts_of(item)
        operands = [self.make(operand, span[0]) for operand, span in zip(item.operands, parts.operands, strict=True)]
        made = (
            self.make(item.opcode), ("tuple", tuple(operands)), self.make(item.guard), self._span(item.span),
            self._layout(item, parts.opcode[0], [begin for begin, _ in parts.operands]),
        )  # fmt: skip
        return ("node", "Instruction", made)

    def _layout(self, item: Instruction, opcode: int, operands: list[int]) -> Program:
        layout = item.layout
        if layout is None or layout.guard or layout.pieces:
            raise NotRegularError
        starts = None if layout.starts is None else tuple(map(self._place, operands))
        return ("layout", self._place(item.span[0]), self._place(opcode), layout.gap, layout.between, starts)

    def _leaf(self, value: Any) -> Program:
        found = self._texts.get(value) if isinstance(value, str) else self._numbers.get(value)
        if found is not None:
            self._use(found[1])
            return found
        if isinstance(value, Immediate):
            return ("node", "Immediate", (("value", value.value), ("value", value.type)))
        if "ptx_hole_" in str(value) or str(_FIRST_NUMBER)[:4] in str(value):
            raise NotRegularError
        return ("value", value)

    def _list(self, items: list[Any]) -> Program:
        for index, number in self._lists.items():
            if items == [number]:
                self._use(index)
                return ("numbers", index)
        return ("list", tuple(map(self.make, items)))

    def _use(self, hole: int) -> None:
        if hole not in self._unused:
            raise NotRegularError
        self._unused.remove(hole)

    def _span(self, span: tuple[int, int]) -> Program:
        return ("span", *self._place(span[0]), *self._place(span[1]))

    def _place(self, at: int) -> At:
        """A place as a segment and an offset in it; never inside of a hole."""
        segment = bisect_right(self._starts, at) - 1
        offset = at - self._starts[segment]
        if segment & 1 and offset:
            raise NotRegularError
        return segment, offset


def _link(program: Program) -> Builder:
    """The function that builds what a program says."""
    tag, *rest = program
    if tag == "node":
        return _link_node(*rest)
    if tag in ("tuple", "list"):
        make = tuple if tag == "tuple" else list
        items = [_link(item) for item in rest[0]]
        return lambda holes, starts, by: make([item(holes, starts, by) for item in items])
    if tag == "span":
        first, skip, last, more = rest
        return lambda holes, starts, by: (starts[first] + skip, starts[last] + more)
    if tag == "extent":
        (first, skip), places = rest
        return lambda holes, starts, by: by.extent(
            [starts[segment] + offset - starts[first] - skip for segment, offset in places]
        )
    if tag == "layout":
        return _link_layout(*rest)
    at = rest[0]
    leaf: dict[str, Builder] = {
        "value": lambda holes, starts, by: at,
        "text": lambda holes, starts, by: holes[at],
        "string": lambda holes, starts, by: holes[at][1:-1],
        "int": lambda holes, starts, by: literal(holes[at]).value,
        "negative_int": lambda holes, starts, by: -literal(holes[at]).value,
        "constant": lambda holes, starts, by: literal(holes[at]),
        "negative": lambda holes, starts, by: unary("-", literal(holes[at])),
        "numbers": lambda holes, starts, by: by.numbers(holes[at]),
    }
    return leaf[tag]


def _link_layout(start: At, opcode: At, gap: int, between: int, operands: tuple[At, ...] | None) -> Builder:
    def build(holes: Sequence[str], starts: Sequence[int], by: ShapeParser) -> Layout:
        begin = starts[start[0]] + start[1]
        places = None
        if operands is not None:
            places = tuple([starts[segment] + offset - begin for segment, offset in operands])
        return by.layout(Layout(starts[opcode[0]] + opcode[1] - begin, gap, between, places))

    return build


def _link_node(name: str, values: tuple[Program, ...]) -> Builder:
    kind = getattr(ir, name)
    if kind is Name and values[0][0] == "text" and values[1] == ("value", ()):
        hole = values[0][1]
        return lambda holes, starts, by: by.names[holes[hole]]
    builders = [_link(value) for value in values]
    return lambda holes, starts, by: kind(*[build(holes, starts, by) for build in builders])


class Template:
    """A shape's node with holes; `build` fills them in. `program` is marshalled, and linked on first use."""

    __slots__ = ("build", "program")

    def __init__(self, program: bytes) -> None:
        self.program = program
        self.build: Builder = self._first_build

    @classmethod
    def of(cls, node: Any, parts: list[str]) -> Template:
        """The template of the node parsed from `placeholder(parts)`. Raises `NotRegularError`."""
        return cls(marshal.dumps(_Maker(parts).finish(node)))

    def _first_build(self, holes: Sequence[str], starts: Sequence[int], by: ShapeParser) -> Any:
        self.build = _link(marshal.loads(self.program))
        return self.build(holes, starts, by)


class Store:
    """The templates of this process by shape; None: the shape is not regular."""

    def __init__(self) -> None:
        self.operands: dict[str, Template | None] = {}
        self.units: dict[str, Template | None] = {}
        self.key = _key()
        self._saved = 0
        found = kept.load("shapes", self.key)
        if found is not None and max(map(len, found)) <= MOST_KEPT:
            for programs, known in zip(found, (self.operands, self.units), strict=True):
                known.update((shape, program and Template(program)) for shape, program in programs.items())
        self._loaded = len(self.operands), len(self.units)
        self._saved = self._size()

    def _size(self) -> int:
        return len(self.operands) + len(self.units)

    def is_new(self, shape: str, known: dict[str, Template | None]) -> bool:
        """Whether to make a template for this shape."""
        return shape not in known and len(known) - self._loaded[known is self.units] < MOST_KEPT

    def save(self) -> None:
        """Write new templates to the cache file."""
        if self._saved < self._size():
            plain = [
                {shape: template and template.program for shape, template in known.items()}
                for known in (self.operands, self.units)
            ]
            kept.store("shapes", self.key, plain)
        self._saved = self._size()


@cache
def store() -> Store:
    """The store of this process."""
    return Store()


def _key() -> str:
    """Changes with the code that shapes a node."""
    return f"{zlib.crc32(code_state('syntax').encode()):08x}"
