"""Elements and tables of the matrices that a debugger shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from .expressions import SIZES, ExpressionError, Lane, decode
from .looking import natural, numbers, table_lines

if TYPE_CHECKING:
    from .debugger import Debugger

#: Bits of the element types that are shown; those below a byte are whole numbers.
BITS = {**{name: 8 * size for name, size in SIZES.items() if size <= 8}, "u4": 4, "s4": 4, "b4": 4, "b1": 1}
_PART = re.compile(r"\b(rows|columns|lanes)\s+([\d,-]+)")


def choices(text: str) -> tuple[str, dict[str, str]]:
    """The text without its choices of rows, columns or lanes, and those."""
    return _PART.sub("", text).strip(), {match[1]: match[2] for match in _PART.finditer(text)}


def focused(debugger: Debugger) -> Lane:
    at = debugger.lane()
    if at is None:
        raise ExpressionError("no lane is in focus")
    return at


def element_text(bits: int, type_: str) -> str:
    """A value from its bits."""
    width = BITS[type_]
    bits &= (1 << width) - 1
    if width >= 8:
        return str(decode(bits.to_bytes(width // 8, "little"), type_))
    return str(bits - (1 << width) if type_[0] == "s" and bits >> width - 1 else bits)


def check_type(type_: str) -> None:
    if type_ not in BITS:
        raise ExpressionError(f"'{type_}' is no element type; there are {', '.join(sorted(BITS, key=natural))}")


def grid(rows: list[int], columns: list[int], text: Callable[[int, int], str]) -> list[str]:
    """A table with the numbers of its rows and columns."""
    return table_lines(
        ["", *map(str, columns)], [[str(row), *(text(row, column) for column in columns)] for row in rows]
    )


def chosen(parts: dict[str, str], what: str, size: int) -> list[int]:
    return numbers(parts[what], size - 1) if what in parts else list(range(size))
