"""LLVM assembly as text: tokens, types and a tree with positions, for both dialects of NVVM IR."""

from .parser import parse

__all__ = ["parse"]
