"""Small caches in the user's cache directory. Nothing here can fail: without a cache, work is done again."""

from __future__ import annotations

import contextlib
import marshal
import os
import sys
import zlib
from typing import Any

# No pathlib, tempfile and hashlib up here: their imports cost more than the cache saves on a small file.

#: The largest cache file that is read.
MOST_BYTES = 16 << 20

#: Bytes of the checksum at the start of a file.
_SEAL = 4


def directory() -> str:
    """`$PTXTOOLS_CACHE`, else `ptxtools` in the user's cache directory."""
    own = os.environ.get("PTXTOOLS_CACHE")
    return own or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ptxtools")


def _path(name: str, key: str) -> str:
    return os.path.join(directory(), f"{name}-{sys.implementation.cache_tag}-{key[:24]}.bin")


def load(name: str, key: str) -> Any:
    """What `store` kept under this name and key; None if there is nothing usable."""
    try:
        with open(_path(name, key), "rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            return None
        if data[:_SEAL] != _seal(key, data[_SEAL:]):
            return None
        return marshal.loads(data[_SEAL:])
    except (OSError, ValueError, EOFError, TypeError):
        return None


def _seal(key: str, data: bytes) -> bytes:
    """A checksum of key and content: a damaged file is no cache."""
    return zlib.crc32(data, zlib.crc32(key.encode())).to_bytes(_SEAL, "little")


def store(name: str, key: str, value: Any) -> None:
    """Keep a value of plain types. Readers see the old file or the new one, never a part."""
    import tempfile

    try:
        path = _path(name, key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=f".{name}-")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            data = marshal.dumps(value)
            file.write(_seal(key, data) + data)
        os.replace(temporary, path)
    except (OSError, ValueError):
        with contextlib.suppress(OSError):
            os.unlink(temporary)
