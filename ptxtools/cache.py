"""Where caches are stored and what they depend on; no other module knows either.

A cache holds data that can be recreated. Its key covers everything that decides its content: the input, the state of
every package involved (`code_state`), the versions of libraries, the CPU. Nothing here can fail: a file that is
missing, damaged or not writable counts as absent.
"""

from __future__ import annotations

import contextlib
import os
import sys
import zlib
from collections.abc import Iterable
from importlib._bootstrap_external import cache_from_source
from itertools import count

# No pathlib, tempfile and hashlib up here: their imports cost more than the cache saves on a small file.
try:
    from _blake2 import blake2b  # hashlib loads OpenSSL
except ImportError:
    from hashlib import blake2b

__all__ = [
    "blake2b",
    "code_places",
    "code_state",
    "directory",
    "prune",
    "read_sealed",
    "scan",
    "sources",
    "state_of",
    "write_sealed",
    "write_whole",
]

#: The packages that decide the content of a cache: its maker, and everything the maker may import
#: (tests/test_architecture.py compares this with the table of layers).
MAKERS = {
    "syntax": ("cache", "diagnostics", "ir", "isa", "matching", "records", "syntax"),
    "linter": ("cache", "check", "container", "diagnostics", "inputs", "ir", "isa", "linter",
               "matching", "records", "syntax"),
    "nvvm": ("cache", "check", "diagnostics", "ir", "isa", "linter", "matching", "nvvm", "records",
             "syntax"),
    "native": ("cache", "diagnostics", "ir", "isa", "machine", "native", "program", "records",
               "semantics"),
    "sim": ("cache", "check", "container", "diagnostics", "inputs", "ir", "isa", "machine", "matching", "program",
            "records", "semantics", "sim", "syntax"),
}  # fmt: skip

#: The mode of files at `code_places`: whoever may run the code may read them.
CODE_MODE = 0o644
#: Bytes of the checksum at the start of a file.
SEAL_BYTES = 4
_PACKAGE = os.path.join(os.path.dirname(__file__), "")
_states: dict[str, str] = {}
#: Of the files that this process writes.
_numbers = count()


def directory() -> str:
    """`$PTXTOOLS_CACHE`, else `ptxtools` in the user's cache directory."""
    chosen = os.environ.get("PTXTOOLS_CACHE")
    if chosen:
        return chosen
    if sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    elif sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "ptxtools")


def code_places(name: str) -> list[str]:
    """Paths for a file that is made of compiled code of this package alone, the first one preferred: the folder where
    Python keeps that code, unless it is to write none, and the cache directory."""
    places = [os.path.join(directory(), "code", name)]
    with contextlib.suppress(NotImplementedError):
        folder = os.path.dirname(cache_from_source(__file__))
        if not sys.dont_write_bytecode and os.path.isdir(folder):
            places.insert(0, os.path.join(folder, name))
    return places


def code_state(maker: str) -> str:
    """The state of all code that decides the output of `maker` (a key of `MAKERS`); it changes when any file does."""
    return state_of(MAKERS[maker])


def state_of(packages: Iterable[str]) -> str:
    """The state of the code of some packages."""
    return " ".join(_states.get(name) or _states.setdefault(name, _state(name)) for name in packages)


def _state(package: str) -> str:
    """A short text that changes with the files of a package (or module)."""
    found = sources(package)
    return f"{zlib.crc32(repr(sorted(found)).encode()):08x}{len(found):x}"


def sources(package: str) -> list[tuple[str, int, int]]:
    """Names, sizes and times (ns) of the Python and data files of a package (or module)."""
    path = os.path.join(_PACKAGE, package)
    return scan(path) if os.path.isdir(path) else [_entry(path + ".py", os.stat(path + ".py"))]


def scan(folder: str) -> list[tuple[str, int, int]]:
    """Names, sizes and times (ns) of the Python and JSON files below a folder; unreadable ones are skipped."""
    found: list[tuple[str, int, int]] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name.endswith((".py", ".json")):
                found.append(_entry(entry.path, entry.stat()))
            elif "." not in name and name != "__pycache__" and entry.is_dir():
                found += scan(entry.path)
    return found


def _entry(path: str, state: os.stat_result) -> tuple[str, int, int]:
    return path.removeprefix(_PACKAGE), state.st_size, state.st_mtime_ns


def read_sealed(path: str, key: str, most: int) -> bytes | None:
    """The content of a file that `write_sealed` wrote for this key; None if there is none, or more than `most`
    bytes."""
    try:
        with open(path, "rb") as file:
            data = file.read(most + SEAL_BYTES + 1)
    except OSError:
        return None
    content = data[SEAL_BYTES:]
    return content if len(content) <= most and data[:SEAL_BYTES] == _seal(key, content) else None


def write_sealed(path: str, key: str, content: bytes, mode: int = 0o600) -> bool:
    """Write a file under a checksum of key and content, as `write_whole` does."""
    return write_whole(path, _seal(key, content) + content, mode)


def write_whole(path: str, content: bytes, mode: int = 0o600) -> bool:
    """Write a file; whether that was possible. Readers see the old file or the new one, never a part."""
    folder, temporary = os.path.dirname(path), f"{path}.{os.getpid()}-{next(_numbers)}~"
    try:
        os.makedirs(folder, exist_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    except OSError:
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        return False
    return True


def prune(folder: str, suffix: str, most: int) -> None:
    """Keep the newest files of a kind. Removes an eighth more than needed, so that few calls need to look at file
    times."""
    with contextlib.suppress(OSError):
        with os.scandir(folder) as entries:
            files = [entry.path for entry in entries if entry.name.endswith(suffix)]
        if len(files) > most:
            files.sort(key=lambda path: os.stat(path).st_mtime)
            for path in files[: len(files) - most * 7 // 8]:
                os.unlink(path)


def _seal(key: str, data: bytes) -> bytes:
    return zlib.crc32(data, zlib.crc32(key.encode())).to_bytes(SEAL_BYTES, "little")
