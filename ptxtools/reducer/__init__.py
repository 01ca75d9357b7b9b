"""Makes a module smaller while it stays interesting, for bug reports: delta debugging over the tree."""

from __future__ import annotations

from .reduction import reduced
from .trial import Trial

__all__ = ["Trial", "reduced"]
