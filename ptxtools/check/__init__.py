"""The validity rules: whether a module is valid PTX for its declared version and target (PTX1xx to PTX4xx)."""

from .checker import check, gather
from .linking import is_runtime_function, undefined

__all__ = ["check", "gather", "is_runtime_function", "undefined"]
