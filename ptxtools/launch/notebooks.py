"""What notebooks show of a buffer: its first elements as a table and, of numbers in two dimensions, a picture."""

from __future__ import annotations

import base64
import struct
import zlib
from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .host import Array

#: Rows and columns that a table shows; pixels that a picture has at most in each direction, and elements at least.
_SHOWN, _PIXELS, _LEAST = 8, 256, 8


def array_html(title: str, array: Array) -> str:
    """A heading, the picture if there is one, and the table of the first elements. Of more than two dimensions the last
    two are shown, at the first place of the others."""
    index = (0,) * (array.ndim - 2) if array.size else ()
    flat = array[index] if array.ndim > 2 and array.size else array
    at = f"<br>[{', '.join(map(str, index))}, …]" if index else ""
    return f"<div><code>{escape(title)}</code>{at}{_picture(flat)}{_table(flat)}</div>"


def _table(array: Array) -> str:
    if not array.size:
        return ""
    part = np.atleast_2d(array)[:_SHOWN, :_SHOWN]
    rows, columns = np.atleast_2d(array).shape
    more = "<td>…</td>" if columns > _SHOWN else ""
    lines = ["".join(f"<td>{escape(str(value))}</td>" for value in row) + more for row in part]
    lines += ["<td>…</td>"] if rows > _SHOWN else []
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _picture(array: Array) -> str:
    """An image in grey from the least value, black, to the greatest; what is not finite is black. Large arrays: every
    so many elements."""
    if array.ndim != 2 or min(array.shape) < _LEAST or array.dtype.kind == "c" or array.dtype.names is not None:
        return ""
    rows, columns = (-(-extent // _PIXELS) for extent in array.shape)
    values = array[::rows, ::columns].astype(np.float64)
    finite = np.isfinite(values)
    if not finite.any():
        return ""
    low, high = float(values[finite].min()), float(values[finite].max())
    middle = np.where(finite, values, low) / 2 - low / 2  # halves, since high - low may overflow
    pixels = np.rint(255 * (middle / (high / 2 - low / 2))) if high > low else np.zeros_like(middle)
    data = base64.b64encode(png(pixels.astype(np.uint8))).decode()
    step = f", one of {rows}x{columns} elements" if rows * columns > 1 else ""
    text = escape(f"black {low:g}, white {high:g}{step}")
    return f'<figure><img alt="{text}" src="data:image/png;base64,{data}"><figcaption>{text}</figcaption></figure>'


def png(pixels: Array) -> bytes:
    """A PNG file of grey pixels, u8[rows, columns] (RFC 2083)."""
    rows, columns = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)  # each begins with its filter: none
    header = struct.pack(">2I5B", columns, rows, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(lines)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
