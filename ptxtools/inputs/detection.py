"""File types, detected by content."""

from __future__ import annotations

import struct

from ptxtools.container import elf

from .fatbin import MAGIC

#: First bytes of a static library.
_ARCHIVE = b"!<arch>\n"


def detect(data: bytes) -> str:
    """ "text", "ptxo" (ours), "fatbin", "elf" (a cubin, object, archive, library or executable), or "unknown"."""
    if data[:4] == elf.MAGIC:
        machine = struct.unpack_from("<H", data, 18)[0] if len(data) >= 20 and data[5:6] == b"\x01" else 0
        return "ptxo" if machine == elf.MACHINE else "elf"
    if len(data) >= 4 and struct.unpack_from("<I", data)[0] == MAGIC:
        return "fatbin"
    if data[:8] == _ARCHIVE:
        return "elf"
    return "unknown" if b"\0" in data[:64].rstrip(b"\0") else "text"
