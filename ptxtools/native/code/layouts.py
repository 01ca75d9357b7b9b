"""Layouts of structures that the native code and Python share: fields, their offsets and IR types, and how Python reads
and writes them."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from ptxtools.program.program import ByteOffset
from ptxtools.records import dataclass, field

_SIZES = {
    "i8": 1, "i32": 4, "i64": 8, "ptr": 8, "[8 x i32]": 32, "[16 x i32]": 64, "[32 x i32]": 128,
    "[16 x i64]": 128, "<32 x i32>": 128,
}  # fmt: skip
#: How Python reads a field, and how it writes several at once (`filling`).
_FORMATS = {
    "i8": struct.Struct("<B"),
    "i32": struct.Struct("<I"),
    "i64": struct.Struct("<Q"),
    "ptr": struct.Struct("<Q"),
}
PACKED = {"i8": "b", "i32": "i", "i64": "q", "ptr": "Q"}


@dataclass(frozen=True, slots=True)
class Structure:
    """Offsets and IR types of the fields of one structure; pairs: of neighbouring fields that can be read as one."""

    name: str
    fields: dict[str, tuple[ByteOffset, str]]
    size: int
    pairs: dict[str, tuple[ByteOffset, str]] = field(default_factory=dict)

    def field(self, name: str) -> tuple[ByteOffset, str]:
        """Offset and IR type of a field or pair."""
        return self.pairs[name] if name in self.pairs else self.fields[name]

    def offset(self, name: str) -> ByteOffset:
        return self.fields[name][0]

    def read(self, memory: Any, at: int, name: str) -> int:
        """A field of the structure at an offset of some memory (a buffer), as an unsigned number."""
        offset, type_ = self.fields[name]
        return int(_FORMATS[type_].unpack_from(memory, at + offset)[0])

    def at_address(self, address: int, name: str) -> int:
        """A field of the structure at a host address."""
        offset, type_ = self.fields[name]
        return int.from_bytes(ctypes.string_at(address + offset, _SIZES[type_]), "little")

    def write(self, memory: Any, at: int, name: str, value: int) -> None:
        """Set a field likewise; a negative number in two's complement."""
        offset, type_ = self.fields[name]
        form = _FORMATS[type_]
        form.pack_into(memory, at + offset, value & (1 << 8 * form.size) - 1)

    def packed(self) -> struct.Struct:
        """All fields in order, which have no gaps between them: numbers are signed, addresses are not."""
        form = struct.Struct("<" + "".join(PACKED[type_] for _, type_ in self.fields.values()))
        return struct.Struct(f"{form.format}{self.size - form.size}x")


def size_of(type_: str) -> int:
    """Bytes of a field of this IR type."""
    return _SIZES[type_]


def structure(name: str, size: int, text: str, pairs: str = "", start: int = 0) -> Structure:
    """Fields in order, each at its natural alignment; `pairs`: i64 fields that read two i32 at once, the named one low.

    A pair is called by its first field's name with "_pair" behind. start: offset of the first field.
    """
    fields: dict[str, tuple[ByteOffset, str]] = {}
    at = start
    for line in text.strip().splitlines():
        type_, _, names = line.partition(": ")
        for one in names.split():
            step = _SIZES[type_.strip()]
            align = min(step, 64)
            at = -(-at // align) * align
            fields[one] = (ByteOffset(at), type_.strip())
            at += step
    assert at <= size, f"{name} needs {at} bytes"
    both = {f"{first}_pair": (fields[first][0], "i64") for first in pairs.split()}
    return Structure(name, fields, size, both)
