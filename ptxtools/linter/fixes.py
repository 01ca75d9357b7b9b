"""`--fix` and `--diff`: safe edits that come with findings."""

from __future__ import annotations

from collections.abc import Iterable

from ptxtools.diagnostics import Diagnostic


def apply_fixes(text: str, diagnostics: Iterable[Diagnostic]) -> tuple[str, int]:
    """The text with the fixes of these findings applied, and how many were. Of overlapping ones the first counts."""
    fixes = sorted((d.fix for d in diagnostics if d.fix is not None), key=lambda fix: fix.span)
    parts: list[str] = []
    at = count = 0
    for fix in fixes:
        start, end = fix.span
        if start < at or (start, end) == (0, 0):
            continue
        parts += [text[at:start], fix.text]
        at = end
        count += 1
    return "".join((*parts, text[at:])), count


def unified_diff(before: str, after: str, name: str) -> str:
    """The change as a patch."""
    from difflib import unified_diff as difference

    lines = difference(before.splitlines(keepends=True), after.splitlines(keepends=True), name, name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
