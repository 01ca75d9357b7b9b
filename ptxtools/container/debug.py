"""DWARF sections of a module as bytes (11.5.1)."""

from __future__ import annotations

from ptxtools.ir import Section

_WIDTHS = {"b8": 1, "b16": 2, "b32": 4, "b64": 8}


def section_image(section: Section) -> bytes:
    """The section's content; names of labels and sections stand as zeros, their places are in the section's record."""
    out = bytearray()
    for line in section.lines:
        width = _WIDTHS.get(line.type, 0)
        mask = (1 << 8 * width) - 1
        if width == 1 and all(isinstance(v, int) and 0 <= v < 256 for v in line.values):
            out += bytes(line.values)  # type: ignore[arg-type]
        elif width:
            for value in line.values:
                out += (value & mask if isinstance(value, int) else 0).to_bytes(width, "little")
    return bytes(out)
