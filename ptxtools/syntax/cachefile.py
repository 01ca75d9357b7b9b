"""Small caches in the user's cache directory. Nothing here can fail: without a cache, work is done again."""

from __future__ import annotations

import contextlib
import marshal
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

#: The largest cache file that is read.
MOST_BYTES = 16 << 20


def directory() -> Path:
    """`$PTXTOOLS_CACHE_DIR`, else `ptxtools` in the user's cache directory."""
    own = os.environ.get("PTXTOOLS_CACHE_DIR")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "ptxtools"


def _path(name: str, key: str) -> Path:
    return directory() / f"{name}-{sys.implementation.cache_tag}-{key[:24]}.bin"


def load(name: str, key: str) -> Any:
    """What `store` kept under this name and key; None if there is nothing usable."""
    try:
        path = _path(name, key)
        if path.stat().st_size > MOST_BYTES:
            return None
        stored_key, value = marshal.loads(path.read_bytes())
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return value if stored_key == key else None


def store(name: str, key: str, value: Any) -> None:
    """Keep a value of plain types. Readers see the old file or the new one, never a part."""
    try:
        path = _path(name, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{name}-")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(marshal.dumps((key, value)))
        os.replace(temporary, path)
    except (OSError, ValueError):
        with contextlib.suppress(OSError):
            os.unlink(temporary)
