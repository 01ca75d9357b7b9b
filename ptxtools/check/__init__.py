"""The validity rules: whether a module is valid PTX for its declared version and target (PTX1xx to PTX4xx).

What ptxas accepts beyond the manual is a warning, PTX610."""

from .checker import check, errors_of, gather
from .linking import undefined

__all__ = ["check", "errors_of", "gather", "undefined"]
