"""Matrices that the registers of warps make up, as a debugger shows them (9.7.14.5, 9.7.14.6, 9.7.15.5)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ptxtools.machine.registers import named
from ptxtools.program.program import LANES
from ptxtools.records import NamedTuple
from ptxtools.semantics.fragments import (
    Fragment,
    RegisterBits,
    accumulator,
    factor_a,
    factor_b,
    quad_accumulator,
    quad_factor_a,
    quad_factor_b,
    sparse_elements,
)

from .elements import BITS, check_type, choices, chosen, element_text, focused, grid
from .expressions import ExpressionError, Lane
from .looking import natural

if TYPE_CHECKING:
    from .debugger import Debugger

#: Warps whose fragments make up the 64 rows of a wgmma (9.7.15.5.1).
_GROUP = 4
_FRAGMENT = re.compile(
    r"([abcd])\s+(\d{1,4})x(\d{1,4})\s+(\w+)\s+(.+?)(?:\s+quad\s+([0-3])(?:\s+(row|col))?)?"
    r"(?:\s+sparse\s+(\S+)(?:\s+selector\s+([0-3]))?)?"
)
_USAGE = (
    "matrix a|b|c|d ROWSxCOLUMNS TYPE REGISTERS [quad 0-3 [row|col]] [sparse REGISTER [selector 0-3]], such as matrix "
    "d 16x8 f32 %f1-%f4"
)


class _Asked(NamedTuple):
    """What a command says of a matrix. quad: the product of m8n8k4, layout: of its factor; metadata, selector: of a
    sparse A."""

    role: str
    rows: int
    columns: int
    type_: str
    names: list[str]
    quad: int | None
    layout: str
    metadata: str | None
    selector: int


def _asked(text: str) -> _Asked:
    match = _FRAGMENT.fullmatch(text)
    if match is None:
        raise ExpressionError(_USAGE)
    role, layout = match[1], match[7] or ("col" if match[1] == "b" else "row")
    quad = None if match[6] is None else int(match[6])
    asked = _Asked(role, int(match[2]), int(match[3]), match[4], list(_names(match[5])), quad, layout, match[8],
                   int(match[9] or 0))  # fmt: skip
    if asked.metadata is not None and role != "a":
        raise ExpressionError(f"{role.upper()} is never sparse: A is")
    return asked


def matrix_lines(debugger: Debugger, rest: str) -> list[str]:
    """`a|b|c|d ROWSxCOLUMNS TYPE REGISTERS [quad N [row|col]] [sparse REGISTER [selector N]] [rows …] [columns …]`: the
    matrix that the registers of a warp make up; with 64 rows those of a warpgroup. quad: one of the four products of
    m8n8k4. sparse: an A of which half is stored, with its metadata. "-": a lane that has exited, or does not know the
    register; ".": an element that is not stored."""
    text, part = choices(rest)
    asked = _asked(text)
    at = focused(debugger)
    grouped = asked.rows == 16 * _GROUP and asked.role != "b"
    fragment = _fragment(asked, 16 if grouped else asked.rows)
    if len(asked.names) != fragment.registers:
        shape = f"{asked.role.upper()} of {asked.rows}x{asked.columns} {asked.type_}"
        raise ExpressionError(
            f"a fragment of {shape} has {fragment.registers} registers in each lane, not {len(asked.names)}"
        )
    first = at.view.warp // _GROUP * _GROUP if grouped else at.view.warp
    there = named(at.view)
    names = [*asked.names, *([asked.metadata] if asked.metadata else [])]
    for name in names:
        if name not in there:
            raise ExpressionError(f"no register {name} is known at this line")
    held = [_bits(debugger, at, first + n, names) for n in range(_GROUP if grouped else 1)]
    stored = [_stored(asked, fragment, words) for words in held] if asked.metadata else None

    def shown(row: int, column: int) -> str:
        warp, inner = divmod(row, fragment.rows)
        place = fragment.place(inner, column) if stored is None else stored[warp].get((inner, column))
        if place is None:
            return "."
        word = held[warp].get((place[0], asked.names[place[1]]))
        return "-" if word is None else element_text(word >> place[2], asked.type_)

    return grid(chosen(part, "rows", asked.rows), chosen(part, "columns", asked.columns), shown)


def _stored(
    asked: _Asked, fragment: Fragment, words: dict[tuple[int, str], int]
) -> dict[tuple[int, int], RegisterBits | None]:
    """Where the elements of a warp's sparse rows are, by row and logical column (9.7.14.6.1)."""
    found: dict[tuple[int, int], RegisterBits | None] = {}
    for one in sparse_elements(BITS[asked.type_], fragment.rows, asked.columns, asked.selector):
        metadata = words.get((one.lane, asked.metadata or ""))
        if metadata is not None:
            field = metadata >> one.bit + one.half & (1 if one.half else 3)
            found[one.row, one.base + one.step * field] = fragment.place(one.row, one.column)
    return found


def _names(text: str) -> Iterator[str]:
    """Registers such as "%f1-%f4 %f9"; commas and braces as in PTX are no difference."""
    for word in re.sub(r"[,{}]", " ", text).split():
        first, dash, last = word.partition("-")
        if not dash:
            yield word
            continue
        (head, low, _), (end, high, _) = natural(first), natural(last)
        if head != end or not 0 <= low <= high < low + 1024:
            raise ExpressionError(f"'{word}' is no range of registers, such as %f1-%f4")
        yield from (f"{head}{number}" for number in range(low, high + 1))


def _fragment(asked: _Asked, rows: int) -> Fragment:
    """The layout of `rows` rows in a warp's registers. Raises `ExpressionError` for one that no instruction has."""
    check_type(asked.type_)
    role, bits = asked.role, BITS[asked.type_]
    columns = asked.columns // 2 if asked.metadata else asked.columns
    step = 4 * max(32, bits) // bits  # elements that a register of four lanes holds
    mn, k = (columns, rows) if role == "b" else (rows, columns)
    made: Fragment | None = None
    if asked.quad is not None:
        made = _quad(asked, asked.quad, bits)
    elif role in "cd":
        if bits >= 16 and rows in (8, 16) and 0 < columns <= 256 and columns % 8 == 0:
            made = accumulator(rows, columns, bits)
    elif mn in ((8, 16) if role == "a" else range(8, 257, 8)) and 0 < k <= 16 * step and k % step == 0:
        sparse = asked.metadata is not None
        if not sparse or (rows == 16 and bits <= 32 and k * bits in (128, 256) and _selects(asked, k * bits)):
            made = (factor_a if role == "a" else factor_b)(rows, columns, bits)
    if made is None:
        special = " of m8n8k4" * (asked.quad is not None) + " that is sparse" * (asked.metadata is not None)
        raise ExpressionError(
            f"no instruction has a fragment of {role.upper()} of {asked.rows}x{asked.columns} {asked.type_}{special}"
        )
    return made


def _selects(asked: _Asked, stored: int) -> bool:
    """Whether a sparse A of `stored` bits in each row has such a sparsity selector (9.7.14.6.1)."""
    wide, narrow = stored == 256, BITS[asked.type_] < 16
    return asked.selector < (1 if wide and narrow else 2 if wide or narrow else 4)


def _quad(asked: _Asked, quad: int, bits: int) -> Fragment | None:
    """One of the four products of m8n8k4 (9.7.14.5.1)."""
    role, size = asked.role, (asked.rows, asked.columns)
    if role in "cd":
        return quad_accumulator(quad, bits) if size == (8, 8) and bits in (16, 32) else None
    if size != ((8, 4) if role == "a" else (4, 8)) or bits != 16 or asked.metadata:
        return None
    return (quad_factor_a if role == "a" else quad_factor_b)(quad, asked.layout)


def _bits(debugger: Debugger, at: Lane, warp: int, names: list[str]) -> dict[tuple[int, str], int]:
    """Registers of the lanes of a warp, as unsigned numbers."""
    found = {}
    for number in range(LANES):
        view = debugger.view(at.view.cta.place, warp, number)
        there = {} if view is None else named(view)
        for name in names:
            if view is not None and name in there:
                value: Any = view.values(there[name][0])
                value = value[0] if isinstance(value, tuple) else value
                found[number, name] = int.from_bytes(value[number].tobytes(), "little")
    return found
