"""Function bodies: statements as a stream of shapes and operand numbers.

A statement is the number of its shape (opcode, number of operands, guarded or not; or label, scope, `.loc`, record)
followed, in a second column, by its operands' numbers. Nested scopes are opened and closed in the stream.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

from ptxtools.diagnostics import Span
from ptxtools.ir import Guard, Instruction, Label, Loc, Name, Scope, Statement

from .codec import Strings, decode_numbers, encode_numbers, pack_column, unpack_column, width_for
from .errors import Damage
from .operands import Pool

#: The tables that every container has, in file order, behind the note.
TABLES = (".ptx.strings", ".ptx.functions", ".ptx.records", ".ptx.operands", ".ptx.shapes", ".ptx.lines")
#: Names and line numbers of the original text (`-g`).
ORIGINS = ".ptx.origins"
#: Flags of a row of `.ptx.functions`.
ENTRY, HAS_BODY = 1, 2
#: Kinds of shapes.
PLAIN, GUARDED, LABEL, OPEN, CLOSE, LOC, RECORD = range(7)
#: Kind, opcode, operand numbers that the statement takes (a guard is the first of them).
Shape = tuple[int, str, int]
#: File, line and column of a plain `.loc`.
LocRow = tuple[int, int, int]

#: Width of the shape column, width of the operand column, unused, statements, operands.
_HEADER = struct.Struct("<BBHII")


class CodeWriter:
    """Collects shapes and `.loc` rows of all functions of a module."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.shapes: dict[Shape, int] = {}
        self.locs: list[LocRow] = []

    def shape(self, kind: int, opcode: str = "", operands: int = 0) -> int:
        return self.shapes.setdefault((kind, opcode, operands), len(self.shapes))

    def collect(self, body: Scope, record: Callable[[Any], int]) -> tuple[list[int], list[int], int]:
        """Shapes and provisional operand numbers of a body, and how many instructions it has.

        record files any statement but instructions, labels and plain `.loc` lines.
        """
        heads: list[int] = []
        operands: list[int] = []
        return heads, operands, self._collect(body.items, heads, operands, record)

    def _collect(self, items: list[Statement], heads: list[int], operands: list[int],
                 record: Callable[[Any], int]) -> int:  # fmt: skip
        shapes, names, number, guard = self.shapes, self.pool.names, self.pool.number, self.pool.guard
        count = 0
        for item in items:
            if type(item) is Instruction:
                count += 1
                parts, kind = item.operands, PLAIN
                if item.guard is not None:
                    kind = GUARDED
                    operands.append(guard(item.guard))
                key = (kind, item.opcode, len(parts) + kind)
                head = shapes.get(key)
                heads.append(shapes.setdefault(key, len(shapes)) if head is None else head)
                for part in parts:
                    # Most operands are registers that are known already: no call for those.
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
                count += self._collect(item.items, heads, operands, record)
                heads.append(self.shape(CLOSE))
            else:
                heads.append(self.shape(RECORD, operands=1))
                operands.append(self.pool.record(record(item)))
        return count

    def encode_shapes(self, strings: Strings) -> bytes:
        """The shape table: LEB128 triples of kind, opcode text, operands."""
        return encode_numbers(n for kind, opcode, count in self.shapes for n in (kind, strings(opcode), count))


def encode_body(heads: Sequence[int], operands: Sequence[int]) -> bytes:
    head_width, operand_width = width_for(heads), width_for(operands)
    header = _HEADER.pack(head_width, operand_width, 0, len(heads), len(operands))
    return header + pack_column(heads, head_width) + pack_column(operands, operand_width)


def operand_offset(heads: Sequence[int], operands: Sequence[int], index: int) -> int:
    """Where in the encoded body the operand number `index` stands."""
    return _HEADER.size + len(heads) * width_for(heads) + index * width_for(operands)


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


def decode_shapes(data: bytes, strings: Sequence[str]) -> list[Shape]:
    numbers = decode_numbers(data)
    if len(numbers) % 3:
        raise Damage("the shape table is cut off")
    triples = zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
    return [(kind, strings[opcode], count) for kind, opcode, count in triples]


def decode_columns(data: memoryview) -> tuple[Sequence[int], Sequence[int]]:
    """Shapes and operand numbers of an encoded body. Raises Damage."""
    head_width, operand_width, _, heads, operands = _HEADER.unpack_from(data)
    middle = _HEADER.size + heads * head_width
    end = middle + operands * operand_width
    if end > len(data):
        raise Damage("a function body reaches beyond its section")
    head_column = unpack_column(data[_HEADER.size : middle], head_width)
    return head_column, unpack_column(data[middle:end], operand_width)


def build_items(heads: Sequence[int], operands: tuple[Any, ...], shapes: Sequence[Shape], locs: Iterable[LocRow],
                record: Callable[[int], Any], spans: Iterable[Span]) -> list[Any]:  # fmt: skip
    """The statements of a body. operands: decoded; locs: those of the function; record(number): its node."""
    items: list[Any] = []
    stack: list[list[Any]] = []
    rows = iter(locs)
    at = 0
    # This loop is most of what decoding costs.
    for (kind, opcode, count), span in zip(map(shapes.__getitem__, heads), spans, strict=False):
        end = at + count
        if kind == PLAIN:
            items.append(Instruction(opcode, operands[at:end], None, span))
        elif kind == GUARDED:
            name, negated = operands[at]
            items.append(Instruction(opcode, operands[at + 1 : end], Guard(name, negated), span))
        elif kind == LABEL:
            items.append(Label(operands[at].name, span))
        elif kind == LOC:
            file, line, column = next(rows)
            items.append(Loc(file, line, column, span=span))
        elif kind == RECORD:
            node = record(operands[at])
            node.span = span
            items.append(node)
        elif kind == OPEN:
            scope = Scope([], span)
            items.append(scope)
            stack.append(items)
            items = scope.items
        elif kind == CLOSE:
            items = stack.pop()
        else:
            raise Damage(f"statements of unknown kind {kind}")
        at = end
    if stack or at != len(operands):
        raise Damage("a function body ends in the middle")
    return items


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector from running while many nodes, none of them garbage, are made."""
    import gc

    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def ordinals(body: Scope) -> Iterator[tuple[int, Any]]:
    """(ordinal, statement) in stream order, counted from 1; the end of a nested scope counts too."""
    for ordinal, (kind, item) in enumerate(flatten(body), 1):
        if kind != CLOSE:
            yield ordinal, item


def cumulative(lengths: Sequence[int]) -> list[int]:
    """Start of each part, and the end of the last."""
    return [0, *accumulate(lengths)]
