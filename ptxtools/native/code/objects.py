"""Object code on disk, so that a handler is compiled once per machine.

Two kinds of files, in a folder whose name has the versions and the CPU in it:

    unit-*.o   what one compilation made: the functions that some program lacked
    *.pack     all that one program needs, units copied together: a warm start reads this file and nothing else

Behind the checksum that `ptxtools.cache` writes, both begin with text: a line for each object with its size and the
names in it; an empty line. The objects follow.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ptxtools import cache

#: A program whose functions are spread over more units than this is compiled again as one.
MOST_UNITS = 8
#: Suffix of packs.
PACK_SUFFIX = ".pack"
#: The most packs that are kept.
MOST_PACKS = 512

#: The largest file that is read.
MOST_BYTES = 1 << 30
_KEY = "objects"

#: Object code and the names of the functions in it.
Piece = tuple[list[str], bytes]


def fingerprint(parts: Iterable[str]) -> str:
    """A short digest of some texts."""
    digest = cache.blake2b(digest_size=10)
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


class Store:
    """The files for one generator on one CPU."""

    def __init__(self, root: Path, key: str) -> None:
        self.root = root / f"native-{key}"
        #: The units that are known, and the functions in them.
        self._units: dict[str, set[str]] = {}

    def pack(self, names: Iterable[str]) -> list[Piece] | None:
        """The pieces that make up a set of functions, if they were packed before."""
        return _read(self._pack_path(names))

    def has_pack(self, names: Iterable[str]) -> bool:
        """Whether there is a pack of these functions."""
        return self._pack_path(names).exists()

    def save_pack(self, names: Iterable[str], pieces: list[Piece]) -> None:
        self._write(self._pack_path(names), pieces)
        cache.prune(str(self.root), PACK_SUFFIX, MOST_PACKS)

    def save_unit(self, piece: Piece) -> None:
        self._write(self.root / f"unit-{fingerprint(piece[0])}.o", [piece])

    def units(self, names: Iterable[str]) -> list[Piece]:
        """A few units that together have as many of these functions as all units have."""
        wanted = set(names)
        self._look()
        candidates = sorted((file, have) for file, have in self._units.items() if not have.isdisjoint(wanted))
        found: list[Piece] = []
        while wanted and candidates:
            file, have = max(candidates, key=lambda c: len(c[1] & wanted))
            if not have & wanted:
                break
            candidates.remove((file, have))
            pieces = _read(self.root / file)
            if pieces is not None:
                found += pieces
                wanted -= have
        return found

    def _look(self) -> None:
        """Bring the list of units up to date; the functions in a unit never change, so each file is read once."""
        try:
            with os.scandir(self.root) as entries:
                there = {entry.name for entry in entries if entry.name.startswith("unit-")}
        except OSError:
            there = set()
        for file in self._units.keys() - there:
            del self._units[file]
        for file in there - self._units.keys():
            if have := _names(self.root / file):  # otherwise it is damaged, and may be written again
                self._units[file] = have

    def _pack_path(self, names: Iterable[str]) -> Path:
        return self.root / f"{fingerprint(sorted(names))}{PACK_SUFFIX}"

    def _write(self, path: Path, pieces: list[Piece]) -> None:
        lines = [f"{len(data)} {' '.join(names)}\n" for names, data in pieces]
        cache.write_sealed(str(path), _KEY, "".join(lines).encode() + b"\n" + b"".join(data for _, data in pieces))


def _names(path: Path) -> set[str]:
    """The names in a file, as its header says; nothing if it cannot be read."""
    found: set[str] = set()
    try:
        with path.open("rb") as file:
            file.seek(cache.SEAL_BYTES)
            while (line := file.readline(1 << 20)).strip():
                found.update(line.decode().split()[1:])
    except (OSError, UnicodeDecodeError):
        return set()
    return found


def _read(path: Path) -> list[Piece] | None:
    """The pieces in a file, or None if it is not there or not whole."""
    content = cache.read_sealed(str(path), _KEY, MOST_BYTES)
    if content is None:
        return None
    header, _, body = content.partition(b"\n\n")
    pieces: list[Piece] = []
    at = 0
    try:
        for line in header.decode().splitlines():
            size, *names = line.split()
            pieces.append((names, body[at : at + int(size)]))
            at += int(size)
    except ValueError:
        return None
    return pieces if pieces and at == len(body) else None
