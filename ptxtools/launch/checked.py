"""What checkers reported, as a file for other programs (`--check-report`)."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ptxtools.diagnostics import LaunchError, Trap
from ptxtools.diagnostics.checked import to_json, to_sarif
from ptxtools.diagnostics.findings import Exploration, Finding, Verdict, says_again
from ptxtools.files.writing import reason, write_whole

from .errors import SpecError

#: Endings of such files.
ENDINGS = (".json", ".sarif")


def check_name(path: str) -> None:
    """Raise `SpecError` for a file whose name does not say what it is to be."""
    if not path.endswith(ENDINGS):
        raise SpecError(f"--check-report {path}: the name must end in {' or '.join(ENDINGS)}")


def write_report(
    path: str, findings: Sequence[Finding], version: str, verdict: Verdict | None = None,
    explored: Exploration | None = None,
) -> None:  # fmt: skip
    """Write findings as JSON or SARIF, by the name's ending; raises `SpecError` if that is not possible."""
    more = [None if one is None else one.to_json() for one in (verdict, explored)]
    text = to_sarif(findings, version) if path.endswith(".sarif") else to_json(findings, *more)
    _write(path, f"{text}\n".encode("utf-8", "backslashreplace"))


def add_suppressions(path: str, findings: Sequence[Finding]) -> None:
    """Add findings to a file of known reports (`--check-suppressions`), which may not be there yet, but for those that
    it describes already. Raises `SpecError` for a file that cannot be read or written, or is no such file."""
    from ptxtools.diagnostics.suppressions import parse_suppressions, read_text, written

    try:
        before = read_text(path) if os.path.exists(path) else ""
        known = parse_suppressions(before, path)
    except LaunchError as error:
        raise SpecError(str(error)) from None
    more = written(finding for finding in findings if not known.silences(finding))
    if not more and before:
        return
    gap = "" if not before or before.endswith("\n\n") else "\n" * (1 + (not before.endswith("\n")))
    _write(path, f"{before}{gap}{more}".encode())


def _write(path: str, data: bytes) -> None:
    try:
        write_whole(path, lambda file: file.write(data))
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: cannot be written: {reason(error)}") from None


def reported(trap: Trap) -> list[Finding]:
    """What checkers found before the trap that ended a run; it may be a checker's finding itself."""
    found = list(trap.findings)
    if trap.kind.is_checker and not any(says_again(trap, finding) for finding in found):
        details = tuple(line for line in trap.details if not line.startswith("reported before: "))
        who = trap.kernel, trap.cta, trap.thread
        found.append(Finding(trap.kind, trap.reason, *who, trap.file, trap.line, trap.text, details, trap.source))
    return found
