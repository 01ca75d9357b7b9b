"""NVVM IR, text and bitcode of both dialects: held against its specification, and lowered to PTX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .lint import lint

if TYPE_CHECKING:
    from .lowering import Lowering, lower

__all__ = ["Lowering", "lint", "lower"]


def __getattr__(name: str) -> Any:
    """Lowering is loaded when a module is lowered: its check does not need it."""
    if name not in ("Lowering", "lower"):
        raise AttributeError(f"module 'ptxtools.nvvm' has no attribute '{name}'")
    from . import lowering

    return getattr(lowering, name)
