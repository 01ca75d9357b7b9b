"""How a kernel is computed: lowering to a `Program`, and the engines that run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxtools.machine.launch import AddressSpace, Launch, Outcome

from .program import Program

if TYPE_CHECKING:
    from .lowering import lower

__all__ = ["AddressSpace", "Launch", "Outcome", "Program", "lower"]


def __getattr__(name: str) -> Any:
    """Lowering is loaded when a kernel is lowered: a kernel that is ready to run does not need it."""
    if name != "lower":
        raise AttributeError(f"module 'ptxtools.engine' has no attribute '{name}'")
    from .lowering import lower

    return lower
