"""What a file is, told by its content. Nothing that reads such files is loaded for it."""

from __future__ import annotations

import re

from ptxtools.container.magic import ELF, MACHINE

#: First bytes of a fatbin.
FATBIN = b"\x50\xed\x55\xba"
#: First bytes of a static library.
_ARCHIVE = b"!<arch>\n"
#: First bytes of LLVM's bitcode, and of the wrapper that some compilers put around it.
_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
#: Blanks and comments of LLVM assembly.
_BEFORE = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s+|;[^\n]*(?:\n|\Z))*")
#: How a text of LLVM assembly begins behind them. `@x =` and `%x =` tell it from PTX, where `@p bra` may stand.
_ASSEMBLY = re.compile(
    rb"target\s+(?:datalayout|triple)\b|source_filename\s*=|(?:define|declare|uselistorder)\s|module\s+asm\b|"
    rb'attributes\s+#|(?:[@%!$](?:[-\w$.]+|"[^"\n]*")|\^\d+)\s*='
)


def detect(data: bytes) -> str:
    """ "text" (PTX), "ptxo" (ours), "fatbin", "elf" (a cubin, object, archive, library or executable), "ll" or "bc"
    (NVVM IR as LLVM assembly or bitcode), or "unknown"."""
    if data[:4] == ELF:
        little = len(data) >= 20 and data[5:6] == b"\x01"
        return "ptxo" if little and int.from_bytes(data[18:20], "little") == MACHINE else "elf"
    if data[:4] == FATBIN:
        return "fatbin"
    if data[:8] == _ARCHIVE:
        return "elf"
    if data[:4] in _BITCODE:
        return "bc"
    if b"\0" in data[:64].rstrip(b"\0"):
        return "unknown"
    return "ll" if is_assembly(data) else "text"


def is_assembly(data: str | bytes) -> bool:
    """Whether a text is LLVM assembly, and not PTX: a comment of LLVM's comes first, or what only LLVM has."""
    begin = data if isinstance(data, bytes) else data.encode("utf-8", "replace")
    before = _BEFORE.match(begin)
    behind = before.end() if before else 0
    return b";" in begin[:behind] or _ASSEMBLY.match(begin, behind) is not None
