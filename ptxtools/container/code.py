"""Function bodies: statements as a stream of shapes and operand numbers.

A statement is the number of its shape (opcode, number of operands, guarded or not; or label, scope, `.loc`, record); a
second column has its operands' numbers, a third its guard or its record. Scopes open and close in the stream.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any, TypeAlias

from ptxtools.diagnostics import Span, span_at
from ptxtools.ir import Instruction, Label, Loc, Name, Scope, Statement
from ptxtools.records import dataclass, field

from .codec import Strings, all_match, decode_numbers, encode_numbers, pack_column, unpack_column, width_for
from .errors import Damage
from .operands import Pool
from .pool import OperandPool

#: Flags of a row of `.ptx.functions`.
ENTRY, HAS_BODY = 1, 2
#: Kinds of shapes.
PLAIN, GUARDED, LABEL, OPEN, CLOSE, LOC, RECORD = range(7)
#: Not in the table of shapes: a complete instruction from the table of repeats.
REPEATED = 7
#: Kind, opcode, number of operand numbers of the statement.
Shape = tuple[int, str, int]
#: File, line and column of a plain `.loc`.
LocRow = tuple[int, int, int]

#: Nested scopes, with the same limit as in texts.
_MOST_SCOPES = 200
#: One per line.
_OPCODES = re.compile(r"(?:[A-Za-z]\w*+(?:(?:\.const\[\d++\])?+\.\w++(?:::\w++)*+)*+\n)*+", re.ASCII)
#: Numbers of operands of statements other than instructions.
_OPERANDS = {LABEL: 1, OPEN: 0, CLOSE: 0, LOC: 0, RECORD: 0}
#: Widths of the columns of shapes, operands and extras, unused; length of each column.
_HEADER = struct.Struct("<BBBxIII")
#: The same for format 1: one column for operands and extras.
_JOINED_HEADER = struct.Struct("<BBHII")


@dataclass(slots=True)
class Body:
    """The parts of a body: shapes, operand numbers, extras (records; guards as their complement until `finish`)."""

    heads: list[int] = field(default_factory=list)
    operands: list[int] = field(default_factory=list)
    extras: list[int] = field(default_factory=list)
    instructions: int = 0

    def finish(self, final: Sequence[int], first_guard: int) -> None:
        """Replace provisional numbers by final ones."""
        self.operands = [final[n] for n in self.operands]
        self.extras = [final[~n] - first_guard if n < 0 else n for n in self.extras]

    def encode(self) -> bytes:
        columns = self.heads, self.operands, self.extras
        widths = [width_for(column) for column in columns]
        header = _HEADER.pack(*widths, *map(len, columns))
        return header + b"".join(pack_column(c, w) for c, w in zip(columns, widths, strict=True))

    def statement_offset(self, index: int) -> int:
        """The offset in the encoded body of the shape of statement `index`."""
        return _HEADER.size + index * width_for(self.heads)

    def operand_offset(self, index: int) -> int:
        """The offset in the encoded body of the operand number `index`."""
        return _HEADER.size + len(self.heads) * width_for(self.heads) + index * width_for(self.operands)


class CodeWriter:
    """Collects shapes and `.loc` rows of all functions of a module."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.shapes: dict[Shape, int] = {}
        self.locs: list[LocRow] = []

    def shape(self, kind: int, opcode: str = "", operands: int = 0) -> int:
        return self.shapes.setdefault((kind, opcode, operands), len(self.shapes))

    def collect(self, body: Scope, record: Callable[[Any], int]) -> Body:
        """A body with provisional operand numbers. record stores statements other than instructions, labels and plain
        `.loc`."""
        found = Body()
        self._collect(body.items, found, record)
        return found

    def _collect(self, items: list[Statement], body: Body, record: Callable[[Any], int]) -> None:
        shapes, names, number, guard = self.shapes, self.pool.names, self.pool.number, self.pool.guard
        heads, operands, extras = body.heads, body.operands, body.extras
        for item in items:
            if type(item) is Instruction:
                body.instructions += 1
                parts, kind = item.operands, PLAIN
                if item.guard is not None:
                    kind = GUARDED
                    extras.append(~guard(item.guard))
                key = (kind, item.opcode, len(parts))
                head = shapes.get(key)
                heads.append(shapes.setdefault(key, len(shapes)) if head is None else head)
                for part in parts:
                    # Most operands are known registers: avoid a call for those.
                    known = names.get(part.name) if type(part) is Name else None
                    operands.append(number(part) if known is None else known)
            elif type(item) is Label:
                heads.append(self.shape(LABEL, operands=1))
                operands.append(self.pool.name(item.name))
            elif type(item) is Loc and _is_plain(item):
                heads.append(self.shape(LOC))
                self.locs.append((item.file, item.line, item.column))
            elif isinstance(item, Scope):
                heads.append(self.shape(OPEN))
                self._collect(item.items, body, record)
                heads.append(self.shape(CLOSE))
            else:
                heads.append(self.shape(RECORD))
                extras.append(record(item))

    def encode_shapes(self, strings: Strings) -> bytes:
        """The shape table: LEB128 triples of kind, opcode text, operands."""
        return encode_numbers(n for kind, opcode, count in self.shapes for n in (kind, strings(opcode), count))


def flatten(body: Scope) -> Iterator[tuple[int, Any]]:
    """(kind, statement) in stream order; a `.loc` with an inlined position, like any rare statement, is a record."""
    stack: list[Iterator[Statement]] = [iter(body.items)]
    while stack:
        for item in stack[-1]:
            kind = _KINDS.get(type(item), RECORD)
            if kind == OPEN:
                yield OPEN, item
                stack.append(iter(item.items))  # type: ignore[union-attr]
                break
            if kind == LOC and not _is_plain(item):  # type: ignore[arg-type]
                kind = RECORD
            yield kind, item
        else:
            stack.pop()
            if stack:
                yield CLOSE, None


def _is_plain(loc: Loc) -> bool:
    return loc.function_name is None and loc.inlined_at is None and not loc.function_offset and (
        0 <= loc.file < 1 << 32 and 0 <= loc.line < 1 << 32 and 0 <= loc.column < 1 << 32)  # fmt: skip


_KINDS: dict[type, int] = {Instruction: PLAIN, Label: LABEL, Loc: LOC, Scope: OPEN}


class Shapes:
    """The validated shapes of a container.

    `rows`: by number, the kind, opcode, and operands (without guards). `repeat` appends the repeated instructions:
    kind, their common content, 0.
    """

    def __init__(self, data: bytes, strings: Sequence[str], *, joined: bool) -> None:
        """joined: guards and records count among the operands (format 1)."""
        numbers = decode_numbers(data)
        if len(numbers) % 3:
            raise Damage("the shape table is truncated")
        self.rows: list[tuple[int, Any, int]] = []
        opcodes: list[str] = []
        for kind, text, count in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
            opcode = strings[text]
            count -= joined and kind in (GUARDED, RECORD)
            if kind > RECORD or count != _OPERANDS.get(kind, max(count, 0)):
                raise Damage("a statement of an impossible shape")
            if kind <= GUARDED:
                opcodes.append(opcode)
            elif opcode:
                raise Damage("an unexpected opcode")
            self.rows.append((kind, opcode, count))
        if not all_match(_OPCODES, opcodes):
            raise Damage("an invalid opcode")

    def repeat(self, instructions: Iterable[Any]) -> None:
        """Assign these the numbers after those of the shapes. Raises Damage."""
        for i in instructions:
            if type(i) is not Instruction:
                raise Damage("a repeated item is not an instruction")
            self.rows.append((REPEATED, (i.opcode, i.operands, i.guard), 0))


#: The columns of a body: shapes of its statements, operand numbers, and numbers of guards and of records.
Columns = tuple[Sequence[int], Sequence[int], Sequence[int]]


def decode_columns(data: memoryview) -> Columns:
    """The columns of an encoded body. Raises Damage."""
    head_width, operand_width, extra_width, heads, operands, extras = _HEADER.unpack_from(data)
    first = _HEADER.size + heads * head_width
    second = first + operands * operand_width
    end = second + extras * extra_width
    if end > len(data):
        raise Damage("a function body extends past its section")
    return (unpack_column(data[_HEADER.size : first], head_width), unpack_column(data[first:second], operand_width),
            unpack_column(data[second:end], extra_width))  # fmt: skip


def decode_joined_columns(data: memoryview, shapes: Shapes, pool: OperandPool) -> Columns:
    """The columns of a body of format 1, which has guards and records among the operands."""
    head_width, operand_width, _, heads, operands = _JOINED_HEADER.unpack_from(data)
    middle = _JOINED_HEADER.size + heads * head_width
    end = middle + operands * operand_width
    if end > len(data):
        raise Damage("a function body extends past its section")
    head_column = unpack_column(data[_JOINED_HEADER.size : middle], head_width)
    numbers = iter(unpack_column(data[middle:end], operand_width))
    plain: list[int] = []
    extras: list[int] = []
    for head in head_column:
        kind, _, count = shapes.rows[head]
        if kind in (GUARDED, RECORD):
            guards, first = len(pool.guards), next(numbers) - len(pool.operands)
            if first < 0 or (first < guards) != (kind == GUARDED):
                raise Damage("an invalid guard or record")
            extras.append(first if kind == GUARDED else pool.records[first - guards])
        plain += islice(numbers, count)
    return head_column, [*plain, *numbers], extras


#: Creates a new node for each record, given its span.
Records: TypeAlias = "Mapping[int, Callable[[Span], Any]]"


def build_items(columns: Columns, shapes: Shapes, pool: OperandPool, locs: Iterable[LocRow],
                records: Records, places: Iterable[int]) -> list[Any]:  # fmt: skip
    """The statements of a body. locs: the function's rows."""
    heads, numbers, extras = columns
    operands, guards = tuple(map(pool.operands.__getitem__, numbers)), pool.guards
    items: list[Any] = []
    stack: list[list[Any]] = []
    add, blank = items.append, object.__new__
    rows, unread = iter(locs), iter(extras)
    extra = unread.__next__
    at = 0
    # This loop is most of the cost of decoding. Setting the fields of a blank node is faster than calling its class.
    for (kind, opcode, count), place in zip(map(shapes.rows.__getitem__, heads), places, strict=False):
        end = at + count
        if kind == REPEATED:
            item = blank(Instruction)
            item.opcode, item.operands, item.guard = opcode
            item.place = place
            item.layout = None
            add(item)
        elif kind <= GUARDED:
            item = blank(Instruction)
            item.opcode = opcode
            item.operands = operands[at:end]
            item.guard = guards[extra()] if kind else None
            item.place = place
            item.layout = None
            add(item)
        elif kind == RECORD:
            add(records[extra()](span_at(place)))
        elif kind == LABEL:
            if type(operands[at]) is not Name:
                raise Damage("an invalid label")
            add(Label(operands[at].name, span_at(place)))
        elif kind == LOC:
            file, line, column = next(rows)
            add(Loc(file, line, column, None, 0, None, span_at(place)))
        elif kind == OPEN and len(stack) < _MOST_SCOPES:
            scope = Scope([], span_at(place))
            add(scope)
            stack.append(items)
            items = scope.items
            add = items.append
        elif kind == CLOSE:
            items = stack.pop()
            add = items.append
        else:
            raise Damage("scopes are nested too deeply")
        at = end
    if stack or at != len(operands) or next(unread, None) is not None:
        raise Damage("a function body is incomplete")
    return items


def ordinals(body: Scope) -> Iterator[tuple[int, Any]]:
    """(ordinal, statement) in stream order, counted from 1; the end of a nested scope counts too."""
    for ordinal, (kind, item) in enumerate(flatten(body), 1):
        if kind != CLOSE:
            yield ordinal, item


def cumulative(lengths: Sequence[int]) -> list[int]:
    """The start of each part, and the end of the last."""
    return [0, *accumulate(lengths)]
