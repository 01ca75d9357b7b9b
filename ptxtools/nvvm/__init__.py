"""NVVM IR, text and bitcode of both dialects: held against its specification, and lowered to PTX."""

from .lint import lint
from .lower import Lowering, lower

__all__ = ["Lowering", "lint", "lower"]
