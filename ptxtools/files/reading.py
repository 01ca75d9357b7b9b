"""Read input that may be endless: a device, a pipe, standard input."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

#: The most bytes read from a pipe, and from a device. Larger PTX is not useful, and memory is finite.
MOST_BYTES, MOST_OF_DEVICE = 1 << 30, 1 << 26
_PIECE = 1 << 20


class Endless(OSError):  # noqa: N818 - what it is
    """The input is larger than any useful one."""

    def __init__(self, most: int) -> None:
        super().__init__(f"it is not a regular file, and has more than {most:,} bytes")
        self.strerror = str(self)


def read_all(file: BinaryIO) -> bytes:
    """Read all of a regular file, and a bounded amount of anything else. Raises `Endless`, `OSError`."""
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
