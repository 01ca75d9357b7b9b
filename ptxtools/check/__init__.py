"""The validity rules: whether a module is valid PTX for its declared version and target (PTX1xx to PTX4xx)."""

from .checker import check, gather
from .linking import undefined

__all__ = ["check", "gather", "undefined"]
