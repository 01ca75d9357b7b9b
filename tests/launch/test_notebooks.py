"""What notebooks show of buffers."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from typing import Any

import ml_dtypes
import numpy as np

import ptxtools
from tests.rows import rows


def shown(array: Any) -> str:
    return ptxtools.Device("sm_80", memory=1 << 20).upload(array)._repr_html_()


def pixels(page: str) -> np.ndarray:
    """The pixels of the picture in a page, from the chunks of its PNG file, whose sums are checked."""
    match = re.search(r'src="data:image/png;base64,([^"]+)"', page)
    assert match is not None
    data = base64.b64decode(match[1])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = dict[bytes, bytes](), 8
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size]) == (zlib.crc32(kind + body),)
        chunks[kind] = body
        at += 12 + size
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    columns, height, *rest = struct.unpack(">2I5B", chunks[b"IHDR"])
    assert rest == [8, 0, 0, 0, 0]
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, columns + 1)
    assert not lines[:, 0].any()
    return lines[:, 1:]


def test_two_dimensions_are_a_picture_and_a_table() -> None:
    page = shown(np.arange(8 * 16, dtype=np.float32).reshape(8, 16))
    assert pixels(page).tolist() == np.rint(np.arange(128) * 255 / 127).reshape(8, 16).tolist()
    assert "black 0, white 127" in page and "<td>7.0</td><td>…</td></tr>" in page and "float32[8, 16]" in page


@rows(("array", "size"), [
    (np.full((8, 9), 3, np.int8), (8, 9)),
    (np.array([[np.nan, np.inf] * 4] * 8 + [[1.0, 2.0] * 4]), (9, 8)),
    (np.array([[-1.7e308, 1.7e308] * 4] * 8), (8, 8)),
    (np.zeros((1000, 8), ml_dtypes.bfloat16), (250, 8)),
    (np.zeros((2, 3, 8, 8), np.uint16), (8, 8)),
])  # fmt: skip
def test_pictures_of_any_numbers(array: Any, size: tuple[int, int]) -> None:
    assert pixels(shown(array)).shape == size


def test_extremes_do_not_overflow() -> None:
    assert np.unique(pixels(shown(np.array([[-1.7e308, 1.7e308] * 4] * 8)))).tolist() == [0, 255]


@rows(("array", "text"), [
    (np.arange(9, dtype=np.int32), "<td>7</td><td>…</td>"), (np.zeros(0, np.int32), "int32[0]"),
    (np.full((9, 9), np.nan), "<td>nan</td>"), (np.zeros((8, 8), "c8"), "<td>0j</td>"), (np.float32(2), "<td>2.0</td>"),
    (np.zeros((8, 8), [("a", "i4")]), "<td>(0,)</td>"),
])  # fmt: skip
def test_what_has_no_picture_is_a_table(array: Any, text: str) -> None:
    page = shown(array)
    assert text in page and "<img" not in page


def test_a_freed_buffer_says_so() -> None:
    buffer = ptxtools.Device("sm_80", memory=1 << 20).alloc(64)
    buffer.free()
    assert buffer._repr_html_() == "<code>&lt;Buffer uint8[64] freed&gt;</code>"
