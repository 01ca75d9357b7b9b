"""DWARF sections of a module as bytes (11.5.1).

Names in the data are resolved for DWARF readers: a label to its offset in the section, a statement to its offset in the
function's code (of its number in the column of shapes), a variable to its address. Nothing is relocated afterwards: the
sections of a container have no addresses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from .nodes import DataLine, Section

_WIDTHS = {"b8": 1, "b16": 2, "b32": 4, "b64": 8}
#: A name with an offset, or the difference of two names.
_TERM = re.compile(r"\s*([^\s+-]+)\s*(?:([+-])\s*([^\s+-]+)\s*)?")


def section_labels(sections: Iterable[Section]) -> dict[str, int]:
    """Offsets of the labels in their sections; sections themselves begin at 0."""
    found: dict[str, int] = {}
    for section in sections:
        at = 0
        found.setdefault(section.name, 0)
        for line in section.lines:
            if line.type == "label":
                found.setdefault(str(line.values[0]), at)
            at += _WIDTHS.get(line.type, 0) * len(line.values)
    return found


def section_image(section: Section, value_of: Callable[[str], int]) -> bytes:
    """The section's content. value_of: the value of a name, 0 if unknown."""
    out = bytearray()
    for line in section.lines:
        width = _WIDTHS.get(line.type, 0)
        if width == 1 and _plain(line):
            out += bytes(line.values)  # type: ignore[arg-type]
        elif width:
            mask = (1 << 8 * width) - 1
            for value in line.values:
                number = value if isinstance(value, int) else _evaluate(value, value_of)
                out += (number & mask).to_bytes(width, "little")
    return bytes(out)


def _plain(line: DataLine) -> bool:
    return all(isinstance(v, int) and 0 <= v < 256 for v in line.values)


def _evaluate(text: str, value_of: Callable[[str], int]) -> int:
    term = _TERM.fullmatch(text)
    if term is None:
        return 0
    first, sign, second = term.groups()
    if sign is None:
        return value_of(first)
    right = int(second, 0) if second.isdigit() else value_of(second)
    return value_of(first) + (right if sign == "+" else -right)
