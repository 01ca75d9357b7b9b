"""PTX text inside NVIDIA's binaries: fatbins, cubins, objects, libraries and executables; and writing a fatbin.

The layout is NVIDIA's, undocumented but stable since CUDA 5; docs/container.md lists what is known of it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from ptxtools.container import elf
from ptxtools.container.errors import COMPRESSION, DAMAGE, DAMAGED, NO_PTX, Damage, fail
from ptxtools.container.magic import ELF
from ptxtools.records import dataclass

from .detection import FATBIN

_BEGINNING = FATBIN + struct.pack("<HH", 1, 16)
#: Magic, version, header size, bytes of all entries.
_HEADER = struct.Struct("<4sHHQ")
#: Kind, version, header size, payload bytes (padded), compressed bytes, offset of options, PTX version minor and
#: major, architecture, offset and length of the name, flags, zero, bytes when decompressed.
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_KIND_PTX, _KIND_MACHINE_CODE = 1, 2
_FLAG_64BIT, _FLAG_DEBUG, _FLAG_LINUX, _FLAG_LZ4, _FLAG_ZSTD = 1, 2, 0x10, 0x2000, 0x8000
_FLAG_ARCH, _FLAG_FAMILY = 0x10_0000, 0x20_0000
#: The section with the PTX of a cubin built for debugging: lines terminated by NUL.
_CUBIN_SECTION = ".nv_debug_ptx_txt"
#: The size limit of a text.
MAX_TEXT = 512 << 20


@dataclass(frozen=True, slots=True)
class Embedded:
    """One PTX text found in a binary. target: "sm_90a", or "" when unknown; version: (0, 0) when unknown."""

    text: bytes
    target: str
    version: tuple[int, int]
    name: str = ""


def embedded(data: bytes, name: str) -> list[Embedded]:
    """All PTX texts in a binary file, in file order.

    Raises PtxError if there is none, the file is damaged, or an entry cannot be decompressed.
    """
    found: list[Embedded] = []
    try:
        starts = list(_fatbins(data))
        for start in starts:
            found += _entries(data, start, name, _KIND_PTX)
        if not found:  # debugging data of machine code may contain its PTX
            for start in starts:
                found += _entries(data, start, name, _KIND_MACHINE_CODE)
        if not found and data[:4] == ELF:
            found = _from_cubin(data)
    except DAMAGE as error:
        why = str(error) if isinstance(error, Damage) else "its content is invalid"
        fail(DAMAGED, f"the binary is damaged: {why}", name)
    if not found:
        fail(NO_PTX, "the binary contains no PTX text", name, "build it with PTX embedded, such as `-arch=compute_90`")
    return found


def _fatbins(data: bytes) -> Iterator[int]:
    """Where fatbins start. They are looked for in the whole file: stripped executables have no section names."""
    at = data.find(_BEGINNING)
    while at >= 0:
        end = at + 16
        if len(data) - at >= 16:
            size = _HEADER.unpack_from(data, at)[3]
            if end + size <= len(data):
                yield at
                end += size
            elif at == 0:
                raise Damage(f"the fatbin has {size} bytes of entries, but the file only {len(data) - 16}")
        elif at == 0:
            raise Damage("the file ends within its header")
        at = data.find(_BEGINNING, end)


def _entries(data: bytes, start: int, name: str, wanted: int) -> Iterator[Embedded]:
    """The PTX in the entries of one kind."""
    at = start + 16
    end = at + _HEADER.unpack_from(data, start)[3]
    while at < end:
        if at + _ENTRY.size > end:
            raise Damage("a fatbin entry is truncated")
        fields = _ENTRY.unpack_from(data, at)
        kind, head, size = fields[0], fields[2], fields[3]
        if head < _ENTRY.size or at + head + size > end:
            raise Damage("a fatbin entry extends past its fatbin")
        if kind == wanted == _KIND_PTX:
            yield _ptx_entry(data, at, fields, name)
        elif kind == wanted and size:
            yield from _machine_code(data, at, fields, name)
        at += head + size


def _ptx_entry(data: bytes, at: int, fields: tuple[int, ...], name: str) -> Embedded:
    head, minor, major, arch, name_at, name_size, flags = fields[2], *fields[6:12]
    payload = _payload(data, at, fields, name)
    suffix = "a" if flags & _FLAG_ARCH else "f" if flags & _FLAG_FAMILY else ""
    label = data[at + name_at : at + name_at + name_size] if name_at and name_at + name_size <= head else b""
    return Embedded(payload.rstrip(b"\0"), f"sm_{arch}{suffix}", (major, minor), label.decode("utf-8", "replace"))


def _machine_code(data: bytes, at: int, fields: tuple[int, ...], name: str) -> list[Embedded]:
    payload = _payload(data, at, fields, name)
    return _from_cubin(payload) if payload[:4] == ELF else []


def _payload(data: bytes, at: int, fields: tuple[int, ...], name: str) -> bytes:
    """The content of an entry, decompressed."""
    head, size, packed, flags, unpacked = fields[2], fields[3], fields[4], fields[11], fields[13]
    payload = data[at + head : at + head + size]
    if flags & _FLAG_LZ4:
        return _lz4(payload[:packed], unpacked, name)
    return _zstd(payload[:packed], unpacked, name) if flags & _FLAG_ZSTD else payload


def _check_size(packed: bytes, unpacked: int, most: int) -> None:
    if unpacked > MAX_TEXT or unpacked > most * len(packed) + 4096:
        raise Damage(f"an entry of {len(packed)} bytes claims to contain {unpacked}")


def _lz4(packed: bytes, unpacked: int, name: str) -> bytes:
    _check_size(packed, unpacked, 256)
    try:
        from lz4.block import LZ4BlockError, decompress
    except ImportError:
        fail(COMPRESSION, "the PTX is compressed with LZ4, and the package lz4 is missing", name, "pip install lz4")
    try:
        return bytes(decompress(packed, uncompressed_size=unpacked))
    except LZ4BlockError as error:
        raise Damage(f"an LZ4 entry cannot be decompressed: {error}") from None


def _zstd(packed: bytes, unpacked: int, name: str) -> bytes:
    _check_size(packed, unpacked, 1 << 16)
    try:
        import zstandard
    except ImportError:
        fail(COMPRESSION, "the PTX is compressed with Zstandard, and the package zstandard is missing", name,
             "pip install zstandard")  # fmt: skip
    try:
        said = zstandard.get_frame_parameters(packed).content_size
        if said not in (0, unpacked, zstandard.CONTENTSIZE_UNKNOWN):
            raise Damage(f"a Zstandard entry contains {said} bytes instead of {unpacked}")
        machine = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        return bytes(machine.decompress(packed, max_output_size=unpacked))
    except zstandard.ZstdError as error:
        raise Damage(f"a Zstandard entry cannot be decompressed: {error}") from None


def _from_cubin(data: bytes) -> list[Embedded]:
    found = []
    for section in elf.parse_elf(data).sections:
        if section.name == _CUBIN_SECTION:
            text = bytes(section.data).strip(b"\0").replace(b"\0", b"\n") + b"\n"
            found.append(Embedded(text, _declared_target(text), (0, 0)))
    return found


def _declared_target(text: bytes) -> str:
    declared = re.search(rb"^\s*\.target\s+(sm_\d+[af]?)", text, re.MULTILINE)
    return declared[1].decode() if declared else ""


def best(entries: list[Embedded], target: str | None = None) -> list[Embedded]:
    """The entries for one architecture: `target`, else the newest; several if a file contains several modules."""
    wanted = target or max((e.target for e in entries), key=_rank)
    return [e for e in entries if e.target == wanted]


def _rank(target: str) -> tuple[int, str]:
    digits = "".join(c for c in target if c.isdigit())
    return int(digits or 0), target


def write_fatbin(text: str, target: str, version: tuple[int, int], *, address_size: int = 64, debug: bool = False,
                 compress: bool = False) -> bytes:  # fmt: skip
    """A fatbin with one PTX entry, in the layout of NVIDIA's `fatbinary`. target: "sm_90a"."""
    number = re.match(r"(?:sm|compute)_(\d+)([af]?)$", target)
    if number is None:
        raise ValueError(f"unknown target {target!r}")
    flags = _FLAG_LINUX | (_FLAG_64BIT if address_size == 64 else 0) | (_FLAG_DEBUG if debug else 0)
    flags |= {"a": _FLAG_ARCH, "f": _FLAG_FAMILY}.get(number[2], 0)
    payload = text.encode() + b"\0"
    packed = unpacked = 0
    if compress:
        from lz4.block import compress as pack

        unpacked, payload = len(payload), pack(payload, mode="high_compression", store_size=False)
        packed, flags = len(payload), flags | _FLAG_LZ4
    payload += bytes(-len(payload) % 8)
    head = _ENTRY.size + 16
    entry = _ENTRY.pack(_KIND_PTX, 0x101, head, len(payload), packed, _ENTRY.size, version[1], version[0],
                        int(number[1]), 0, 0, flags, 0, unpacked)  # fmt: skip
    options = struct.pack("<II8x", _ENTRY.size + 8, 0)
    content = entry + options + payload
    return _HEADER.pack(FATBIN, 1, 16, len(content)) + content
