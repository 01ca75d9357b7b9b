"""What a file is, told by its content."""

from __future__ import annotations

import struct

from . import elf

#: First bytes of a fatbin, and of its wrapper's pointer target; kinds of entries.
FATBIN_MAGIC = 0xBA55ED50


def detect(data: bytes) -> str:
    """ "text", "ptxo" (a container of ours), "fatbin", "elf" (a cubin, object, library or executable), "unknown"."""
    if data[:4] == elf.MAGIC:
        machine = struct.unpack_from("<H", data, 18)[0] if len(data) >= 20 and data[5:6] == b"\x01" else 0
        return "ptxo" if machine == elf.MACHINE else "elf"
    if len(data) >= 4 and struct.unpack_from("<I", data)[0] == FATBIN_MAGIC:
        return "fatbin"
    return "unknown" if b"\0" in data[:64].rstrip(b"\0") else "text"
