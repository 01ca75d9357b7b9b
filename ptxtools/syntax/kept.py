"""Parsing data kept between runs: PLY's tables, and the templates of statement shapes."""

from __future__ import annotations

import contextlib
import marshal
import os
import sys
from typing import Any

from ptxtools import cache

#: The size limit of a cache file.
MOST_BYTES = 16 << 20


def _path(name: str, key: str) -> str:
    return os.path.join(cache.directory(), f"{name}-{sys.implementation.cache_tag}-{key[:24]}.bin")


def load(name: str, key: str) -> Any:
    """The value stored by `store` under this name and key; None if there is none."""
    data = cache.read_sealed(_path(name, key), key, MOST_BYTES)
    with contextlib.suppress(ValueError, EOFError, TypeError):
        return None if data is None else marshal.loads(data)
    return None


def store(name: str, key: str, value: Any) -> None:
    """Store a value of plain types."""
    with contextlib.suppress(ValueError):
        cache.write_sealed(_path(name, key), key, marshal.dumps(value))
