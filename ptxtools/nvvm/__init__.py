"""NVVM IR, text and bitcode of both dialects: lowered to PTX."""

from .lower import Lowering, lower

__all__ = ["Lowering", "lower"]
