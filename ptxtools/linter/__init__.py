"""The warning rules PTX5xx to PTX7xx, and the engine that chooses among findings.

The engine is loaded when it is first asked for: settings, NVVM IR, and findings that are known, need none of it."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .engine import errors_within, findings_in_turn, findings_of, lint, lint_targets, warnings
    from .suppress import chosen, suppressed, without_echoes

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


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    home = "suppress" if name in ("chosen", "suppressed", "without_echoes") else "engine"
    return getattr(import_module(f"{__name__}.{home}"), name)
