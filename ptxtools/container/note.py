"""The notes of a container: format version, tool, content hash."""

from __future__ import annotations

import hashlib
import struct

from .errors import Damage

OWNER = b"ptxtools\0"
NT_FORMAT, NT_TOOL, NT_SHA256 = 0x101, 0x102, 0x103
#: (major, minor): a reader accepts every minor of the majors it supports.
FORMAT = (3, 0)
#: A constant rather than the installed package's version: the same text gives the same bytes, installed or not.
TOOL = "ptxtools 0.1"
SECTION = ".note.ptxtools"
_HEAD = struct.Struct("<III")
_DIGEST_SIZE = 32


def encode_notes() -> bytes:
    """The section's content with a digest of zeros."""
    return (
        _note(NT_FORMAT, struct.pack("<HH", *FORMAT))
        + _note(NT_SHA256, bytes(_DIGEST_SIZE))
        + _note(NT_TOOL, TOOL.encode() + b"\0")
    )


def _note(kind: int, content: bytes) -> bytes:
    return _HEAD.pack(len(OWNER), len(content), kind) + _padded(OWNER) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def decode_notes(data: bytes) -> dict[int, tuple[int, bytes]]:
    """Offset and content of each of our notes, by type. Raises Damage."""
    notes: dict[int, tuple[int, bytes]] = {}
    at = 0
    while at + _HEAD.size <= len(data):
        name_size, size, kind = _HEAD.unpack_from(data, at)
        start = at + _HEAD.size + (name_size + 3 & ~3)
        if start + size > len(data):
            raise Damage("a note extends past its section")
        if data[at + _HEAD.size : at + _HEAD.size + name_size] == OWNER:
            notes[kind] = (start, data[start : start + size])
        at = start + (size + 3 & ~3)
    return notes


def digest(data: bytes | bytearray, place: int) -> bytes:
    """SHA-256 of the whole file, with zeros for the digest at `place`."""
    view = memoryview(data)
    state = hashlib.sha256(view[:place])
    state.update(bytes(_DIGEST_SIZE))
    state.update(view[place + _DIGEST_SIZE :])
    return state.digest()


def seal(data: bytes, offset: int) -> bytes:
    """Insert the digest into a file whose notes are at `offset`."""
    notes = decode_notes(data[offset : offset + len(encode_notes())])
    place = offset + notes[NT_SHA256][0]
    return data[:place] + digest(data, place) + data[place + _DIGEST_SIZE :]
