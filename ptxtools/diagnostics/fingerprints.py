"""What identifies a finding from one state of a file to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

from .diagnostic import Diagnostic


def fingerprints(diagnostics: Sequence[Diagnostic]) -> list[str]:
    """Identify findings even after lines are inserted before them, by code, target and the words of the line; a number
    distinguishes findings that share all of these in a file, in order."""
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for d in diagnostics:
        words = " ".join(d.source.line(d.line).split()) if d.source else ""
        key = sha256("\0".join((d.code, d.target or "", words)).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        seen[d.file, key] += 1
        found.append(f"{key}:{seen[d.file, key]}")
    return found
