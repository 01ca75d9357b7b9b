"""The code of a command's modules in one file: a small file is linted in less time than it takes to find, open and read
160 files of code.

What Python has compiled is copied from its `.pyc` files, to the folder that has those of this package, or to the cache
directory if that folder cannot be written. The key covers names, sizes and times of the source files, as
those of `.pyc` files do. A module that is not in the bundle is loaded as ever.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import sys
import zlib
from importlib import machinery
from types import CodeType, ModuleType
from typing import Any

from . import cache

#: By command: the packages that a start of it may load. What is not listed is loaded as ever.
PACKAGES = {
    "lint": ("api", "cli", "files", *cache.MAKERS["linter"]),
    "run": ("api", "cache", "check", "cli", "container", "diagnostics", "files", "inputs", "ir", "isa", "launch",
            "machine", "native", "program", "records", "semantics", "sim", "syntax"),
}  # fmt: skip
#: Bytes of the index and of the code, and the number of bundles: several installations have one each.
_MOST_INDEX, _MOST_BYTES, _MOST = 1 << 18, 1 << 25, 16
#: What stands before the code in a `.pyc` file: magic number, flags, time and size of the source.
_HEAD = 16
_FOLDER = f"{os.sep}__init__.py"
_PACKAGE = os.path.dirname(__file__)


class _Loader(machinery.SourceFileLoader):
    """Loads a module whose code is in the bundle."""

    def __init__(self, name: str, path: str, code: bytes) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType | None:
        with contextlib.suppress(EOFError, ValueError, TypeError):
            code = marshal.loads(self._code)
            if isinstance(code, CodeType):
                return code
        return super().get_code(fullname)


class Bundle:
    """A finder (`sys.meta_path`) of modules that a command (a key of `PACKAGES`) may load."""

    def __init__(self, command: str) -> None:
        self._packages = PACKAGES[command]
        place = ascii((sys.version, sys.flags.optimize, _PACKAGE))
        self._places = cache.code_places(f"{command}-{zlib.crc32(place.encode()):08x}")
        self._key = f"{place} {cache.state_of(self._packages)}"
        #: By a module's name: where its code begins, its length and checksum, and its source file.
        self._index: dict[str, tuple[int, int, int, str]] = {}
        self._file = -1
        for path in self._places:
            content = cache.read_sealed(f"{path}.idx", self._key, _MOST_INDEX)
            with contextlib.suppress(OSError, EOFError, ValueError, TypeError):
                if content:
                    self._file = os.open(f"{path}.code", os.O_RDONLY | getattr(os, "O_BINARY", 0))
                    self._index = marshal.loads(content)
                    break

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> machinery.ModuleSpec | None:
        """The module's spec, if its code is here."""
        place = self._index.get(name)
        if place is None:
            return None
        start, length, checksum, file = place
        os.lseek(self._file, start, os.SEEK_SET)
        code = os.read(self._file, length)
        if len(code) != length or zlib.crc32(code) != checksum:
            return None
        spec = machinery.ModuleSpec(name, _Loader(name, file, code), origin=file)
        spec.has_location = True
        if file.endswith(_FOLDER):
            spec.submodule_search_locations = [os.path.dirname(file)]
        return spec

    def leave(self) -> None:
        """Write a bundle if one lacks a module that this process has loaded."""
        prefixes = tuple(f"{__package__}.{name}" for name in self._packages)
        lacking = {name for name in sys.modules if name.startswith(prefixes) and name not in self._index}
        if not lacking:
            return
        files: dict[str, tuple[str, int, int]] = {}
        for path, size, time in [one for package in self._packages for one in cache.sources(package)]:
            name = ".".join([__package__, *path.removesuffix(_FOLDER).removesuffix(".py").split(os.sep)])
            files[name] = (os.path.join(_PACKAGE, path), size, time)
        for path in self._places:
            folder = os.path.dirname(path)
            with contextlib.suppress(OSError):
                os.makedirs(folder, exist_ok=True)
            if os.access(folder, os.W_OK) and any(_compiled(*files[name]) for name in lacking & files.keys()):
                self._write(path, files)
                return

    def _write(self, path: str, files: dict[str, tuple[str, int, int]]) -> None:
        """Write a bundle of what Python has compiled of some modules, by name: file, size and time of the source."""
        index, parts, start = {}, [], 0
        for name, of in files.items():
            code = _compiled(*of)
            if code:
                index[name] = (start, len(code), zlib.crc32(code), of[0])
                parts.append(code)
                start += len(code)
        # who has the old index and the new code loads what does not agree as ever
        if start <= _MOST_BYTES and cache.write_whole(f"{path}.code", b"".join(parts), cache.CODE_MODE):
            cache.write_sealed(f"{path}.idx", self._key, marshal.dumps(index), cache.CODE_MODE)
        cache.prune(os.path.dirname(path), ".code", _MOST)
        cache.prune(os.path.dirname(path), ".idx", _MOST)


def _compiled(file: str, size: int, time: int) -> bytes:
    """The code of a source file of this size and time (ns), as Python has stored it; empty if it has not."""
    from importlib.util import MAGIC_NUMBER, cache_from_source

    with contextlib.suppress(OSError, NotImplementedError), open(cache_from_source(file), "rb") as stored:
        head, code = stored.read(_HEAD), stored.read()
        words = [int.from_bytes(head[at : at + 4], "little") for at in (4, 8, 12)]
        if head[:4] == MAGIC_NUMBER and words == [0, time // 10**9 & 0xFFFFFFFF, size & 0xFFFFFFFF]:
            return code
    return b""
