"""What a file is, told by its content. Nothing that reads such files is loaded for it."""

from __future__ import annotations

from ptxtools.container.magic import ELF, MACHINE

#: First bytes of a fatbin.
FATBIN = b"\x50\xed\x55\xba"
#: First bytes of a static library.
_ARCHIVE = b"!<arch>\n"


def detect(data: bytes) -> str:
    """ "text", "ptxo" (ours), "fatbin", "elf" (a cubin, object, archive, library or executable), or "unknown"."""
    if data[:4] == ELF:
        little = len(data) >= 20 and data[5:6] == b"\x01"
        return "ptxo" if little and int.from_bytes(data[18:20], "little") == MACHINE else "elf"
    if data[:4] == FATBIN:
        return "fatbin"
    if data[:8] == _ARCHIVE:
        return "elf"
    return "unknown" if b"\0" in data[:64].rstrip(b"\0") else "text"
