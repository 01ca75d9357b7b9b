"""The warning rules PTX5xx to PTX7xx, and the engine that chooses among findings."""

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
