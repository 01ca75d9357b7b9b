"""What parsing keeps between runs: PLY's tables, and the templates of statement shapes."""

from __future__ import annotations

import contextlib
import marshal
import os
import sys
from typing import Any

from ptxtools import cache

#: The largest cache file that is read.
MOST_BYTES = 16 << 20


def _path(name: str, key: str) -> str:
    return os.path.join(cache.directory(), f"{name}-{sys.implementation.cache_tag}-{key[:24]}.bin")


def load(name: str, key: str) -> Any:
    """What `store` kept under this name and key; None if there is nothing usable."""
    data = cache.read_sealed(_path(name, key), key, MOST_BYTES)
    with contextlib.suppress(ValueError, EOFError, TypeError):
        return None if data is None else marshal.loads(data)
    return None


def store(name: str, key: str, value: Any) -> None:
    """Keep a value of plain types."""
    with contextlib.suppress(ValueError):
        cache.write_sealed(_path(name, key), key, marshal.dumps(value))
