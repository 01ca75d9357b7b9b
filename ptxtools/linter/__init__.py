"""The warning rules PTX5xx to PTX7xx, and the engine that chooses among findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .suppress import chosen, suppressed, without_echoes

if TYPE_CHECKING:
    from .engine import errors_within, findings_in_turn, findings_of, lint, lint_targets, warnings

__all__ = [
    "chosen",
    "errors_within",
    "findings_in_turn",
    "findings_of",
    "lint",
    "lint_targets",
    "suppressed",
    "warnings",
    "without_echoes",
]


def __getattr__(name: str) -> Any:
    """The engine is loaded when PTX is checked: settings, and NVVM IR, do not need it."""
    if name not in __all__:
        raise AttributeError(f"module 'ptxtools.linter' has no attribute '{name}'")
    from . import engine

    return getattr(engine, name)
