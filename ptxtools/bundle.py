"""The code of a command's modules in one file of the cache directory: a small file is linted in less time than it takes
to find, open and read 160 files of code.

What Python has compiled is copied from its `.pyc` files. The key covers names, sizes and times of the source files, as
those of `.pyc` files do. A module that is not in the bundle is loaded as ever.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import sys
import zlib
from importlib import machinery, util
from itertools import chain
from types import CodeType, ModuleType
from typing import Any

from . import cache

#: Bytes of a bundle, and the number of bundles: several installations, each with one.
_MOST_BYTES, _MOST = 1 << 25, 16
#: What stands before the code in a `.pyc` file: magic number, flags, time and size of the source.
_HEAD = 16
_FOLDER = f"{os.sep}__init__.py"
_PACKAGE = os.path.dirname(__file__)


class _Loader(machinery.SourceFileLoader):
    """Loads a module whose code is in the bundle."""

    def __init__(self, name: str, path: str, code: memoryview) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType | None:
        with contextlib.suppress(EOFError, ValueError, TypeError):
            code = marshal.loads(self._code)
            if isinstance(code, CodeType):
                return code
        return super().get_code(fullname)


class Bundle:
    """A finder (`sys.meta_path`) of modules in the packages of a key of `cache.MAKERS`."""

    def __init__(self, maker: str) -> None:
        self._maker = maker
        place = ascii((sys.version, sys.flags.optimize, _PACKAGE))
        number = zlib.crc32(place.encode())
        self._path = os.path.join(cache.directory(), "code", f"{maker}-{number:08x}.code")
        self._key = f"{place} {cache.code_state(maker)}"
        #: By a module's name: where its code begins and ends, and its source file.
        self._index: dict[str, tuple[int, int, str]] = {}
        self._code = memoryview(b"")
        content = cache.read_sealed(self._path, self._key, _MOST_BYTES)
        with contextlib.suppress(EOFError, ValueError, TypeError):
            if content:
                self._index = marshal.loads(content)  # which reads no further
                length = max((end for _, end, _ in self._index.values()), default=0)
                self._code = memoryview(content)[len(content) - length :]

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> machinery.ModuleSpec | None:
        """The module's spec, if its code is here."""
        place = self._index.get(name)
        if place is None:
            return None
        start, end, file = place
        folders = [os.path.dirname(file)] if file.endswith(_FOLDER) else None
        loader = _Loader(name, file, self._code[start:end])
        return util.spec_from_file_location(name, file, loader=loader, submodule_search_locations=folders)

    def leave(self) -> None:
        """Write a bundle if one lacks a module that this process has loaded."""
        packages = cache.MAKERS[self._maker]
        prefixes = tuple(f"{__package__}.{name}" for name in packages)
        lacking = {name for name in sys.modules if name.startswith(prefixes) and name not in self._index}
        if not lacking:
            return
        index, code = {}, bytearray()
        for path, size, time in chain.from_iterable(map(cache.sources, packages)):
            found = _compiled(file := os.path.join(_PACKAGE, path), size, time)
            if found:
                name = ".".join([__package__, *path.removesuffix(_FOLDER).removesuffix(".py").split(os.sep)])
                index[name] = (len(code), len(code) + len(found), file)
                code += found
        if lacking & index.keys() and cache.write_sealed(self._path, self._key, marshal.dumps(index) + code):
            cache.prune(os.path.dirname(self._path), ".code", _MOST)


def _compiled(file: str, size: int, time: int) -> bytes:
    """The code of a source file of this size and time (ns), as Python has stored it; empty if it has not."""
    with contextlib.suppress(OSError, NotImplementedError), open(util.cache_from_source(file), "rb") as stored:
        head, code = stored.read(_HEAD), stored.read()
        words = [int.from_bytes(head[at : at + 4], "little") for at in (4, 8, 12)]
        if head[:4] == util.MAGIC_NUMBER and words == [0, time // 10**9 & 0xFFFFFFFF, size & 0xFFFFFFFF]:
            return code
    return b""
