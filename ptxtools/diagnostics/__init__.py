"""Findings, their positions, their rendering, and the error classes. Stands on nothing."""

from .diagnostic import Diagnostic, Fix, LaunchError, PtxError, Requires, Severity, Trap
from .source import NO_SPAN, Source, Span

__all__ = [
    "NO_SPAN",
    "Diagnostic",
    "Fix",
    "LaunchError",
    "PtxError",
    "Requires",
    "Severity",
    "Source",
    "Span",
    "Trap",
]
