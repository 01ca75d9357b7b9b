"""Convert a module's tree to a `Program`: the table of operations, operand layout, lowering, and the passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .program import Program

if TYPE_CHECKING:
    from .lowering import lower

__all__ = ["Program", "lower"]


def __getattr__(name: str) -> Any:
    """Lowering is loaded when a kernel is lowered: a kernel that is ready to run does not need it."""
    if name != "lower":
        raise AttributeError(f"module 'ptxtools.program' has no attribute '{name}'")
    from .lowering import lower

    return lower
