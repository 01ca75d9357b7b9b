"""Object code on disk, so that a handler is compiled once per machine.

Two kinds of files, in a folder whose name has the versions and the CPU in it:

    unit-*.o   what one compilation made: the functions that some program lacked
    pack-*.o   all that one program needs, units copied together: a warm start reads this file and nothing else

Both begin with text: a checksum of the rest; a line for each object with its size and the names in it; an empty line.
The objects follow. A file that is damaged, cannot be read, or cannot be written is as good as none. Files are written
aside and renamed, so processes cannot disturb one another.
"""

from __future__ import annotations

import hashlib
import os
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path

#: A program whose functions are spread over more units than this is compiled anew as one.
MOST_UNITS = 8
#: More packs than this, and the oldest go.
MOST_PACKS = 512

#: Object code and the names of the functions in it.
Piece = tuple[list[str], bytes]


def directory() -> Path:
    """Where ptxtools keeps what it can make again: $PTXTOOLS_CACHE, else the user's cache directory."""
    chosen = os.environ.get("PTXTOOLS_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ptxtools"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "ptxtools"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ptxtools"


def fingerprint(parts: Iterable[str]) -> str:
    """A short digest of some texts."""
    digest = hashlib.blake2b(digest_size=10)
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def source_state(folders: Iterable[Path], *, installed: bool) -> list[str]:
    """Sizes and times of the Python files that generate code: another generator has another cache. An installed
    package changes as a whole: the times of its folders say enough."""
    if installed:
        return [f"{folder}:{folder.stat().st_mtime_ns}" for folder in folders]
    found = []
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.endswith((".py", ".json")):
                        state = entry.stat()
                        found.append(f"{entry.name}:{state.st_size}:{state.st_mtime_ns}")
        except OSError:
            continue
    return sorted(found)


class Store:
    """The files for one generator on one CPU."""

    def __init__(self, root: Path, key: str) -> None:
        self.root = root / f"native-{key}"
        #: The units that are known, and the functions in them.
        self._units: dict[str, set[str]] = {}

    def pack(self, names: Iterable[str]) -> list[Piece] | None:
        """The pieces that make up a set of functions, if they were packed before."""
        return _read(self._pack_path(names))

    def save_pack(self, names: Iterable[str], pieces: list[Piece]) -> None:
        self._write(self._pack_path(names), pieces)
        self._prune()

    def save_unit(self, piece: Piece) -> None:
        self._write(self.root / f"unit-{fingerprint(piece[0])}.o", [piece])

    def units(self, names: Iterable[str]) -> list[Piece]:
        """Few units that hold as many of these functions as any do."""
        wanted = set(names)
        self._look()
        candidates = [(have, self.root / file) for file, have in sorted(self._units.items())]
        found: list[Piece] = []
        while wanted and candidates:
            have, path = max(candidates, key=lambda c: len(c[0] & wanted))
            if not have & wanted:
                break
            candidates.remove((have, path))
            pieces = _read(path)
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
            if have := _names(self.root / file):  # else it is damaged, and may be written again
                self._units[file] = have

    def _pack_path(self, names: Iterable[str]) -> Path:
        return self.root / f"pack-{fingerprint(sorted(names))}.o"

    def _write(self, path: Path, pieces: list[Piece]) -> None:
        import tempfile  # only when something is compiled

        lines = [f"{len(data)} {' '.join(names)}\n" for names, data in pieces]
        content = "".join(lines).encode() + b"\n" + b"".join(data for _, data in pieces)
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self.root)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(b"%08x\n" % zlib.crc32(content) + content)
                os.replace(temporary, path)
            except OSError:
                os.unlink(temporary)
        except OSError:
            return

    def _prune(self) -> None:
        """Keep the newest packs. An eighth more than needed goes, so that few calls have to ask for ages."""
        try:
            with os.scandir(self.root) as entries:
                packs = [entry.path for entry in entries if entry.name.startswith("pack-")]
            if len(packs) > MOST_PACKS:
                packs.sort(key=lambda path: os.stat(path).st_mtime)
                for path in packs[: len(packs) - MOST_PACKS * 7 // 8]:
                    os.unlink(path)
        except OSError:
            return


def _names(path: Path) -> set[str]:
    """The names in a file, as it says; nothing if it cannot be read."""
    found: set[str] = set()
    try:
        with path.open("rb") as file:
            file.readline()
            while (line := file.readline(1 << 20)).strip():
                found.update(line.decode().split()[1:])
    except (OSError, UnicodeDecodeError):
        return set()
    return found


def _read(path: Path) -> list[Piece] | None:
    """The pieces in a file, or None if it is not there or not whole."""
    try:
        check, _, content = path.read_bytes().partition(b"\n")
        if zlib.crc32(content) != int(check, 16):
            return None
        header, _, body = content.partition(b"\n\n")
        pieces: list[Piece] = []
        at = 0
        for line in header.decode().splitlines():
            size, *names = line.split()
            pieces.append((names, body[at : at + int(size)]))
            at += int(size)
    except (OSError, ValueError):
        return None
    return pieces if pieces and at == len(body) else None
