"""Findings, their positions, their rendering, and the error classes. Imports no other package but `cache`."""

from .diagnostic import Diagnostic, Fix, LaunchError, PtxError, PtxWarning, Requires, Severity, Trap, shown
from .kinds import Cause, TrapKind
from .source import NO_SPAN, WHOLE, Place, Source, Span, span_at

__all__ = [
    "NO_SPAN",
    "WHOLE",
    "Cause",
    "Diagnostic",
    "Fix",
    "LaunchError",
    "Place",
    "PtxError",
    "PtxWarning",
    "Requires",
    "Severity",
    "Source",
    "Span",
    "Trap",
    "TrapKind",
    "shown",
    "span_at",
]
