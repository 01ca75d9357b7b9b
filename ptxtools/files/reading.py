"""Reading input that may have no end: a device, a pipe, standard input."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

#: The most that is read of a pipe, and of a device. No PTX of that size is of use, and memory has an end.
MOST_BYTES, MOST_OF_DEVICE = 1 << 30, 1 << 26
_PIECE = 1 << 20


class Endless(OSError):  # noqa: N818 - what it is
    """There is more to read than there is use for."""

    def __init__(self, most: int) -> None:
        super().__init__(f"more than {most:,} bytes come, and it is no regular file")
        self.strerror = str(self)


def read_all(file: BinaryIO) -> bytes:
    """All of a regular file; of anything else as much as is of use. Raises `Endless`, `OSError`."""
    most = _limit(file)
    if most is None:
        return file.read()
    found = bytearray()
    while piece := file.read(_PIECE):
        found += piece
        if len(found) > most:
            raise Endless(most)
    return bytes(found)


def _limit(file: BinaryIO) -> int | None:
    try:
        mode = os.fstat(file.fileno()).st_mode
    except (OSError, ValueError):  # a stream without a file
        return MOST_BYTES
    return None if stat.S_ISREG(mode) else MOST_OF_DEVICE if stat.S_ISCHR(mode) else MOST_BYTES
