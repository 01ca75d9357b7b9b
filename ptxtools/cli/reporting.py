"""Output of ptx-lint: findings in each format, counts, and read errors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from ptxtools.diagnostics import Diagnostic, Severity
from ptxtools.diagnostics.colour import Style, style_for
from ptxtools.diagnostics.text import printable

from .checking import Report, Unreadable
from .common import FINDINGS, OK, USAGE, tool_version


def print_reports(reports: list[Report], options: dict[str, Any], format_: str, failures: Sequence[Unreadable]) -> int:
    """Print findings and read errors; returns the exit status."""
    findings = [finding for report in reports for finding in report.findings]
    unreadable = [*failures, *(Unreadable(report.name, report.failure) for report in reports if report.failure)]
    style = style_for(options["color"], sys.stdout)
    if options["statistics"]:
        sys.stdout.write(_statistics(findings, format_))
    elif format_ == "sarif":
        sys.stdout.write(_sarif(findings, unreadable))
    elif format_ == "junit":
        sys.stdout.write(_junit(reports, unreadable))
    else:
        _PRINTERS[format_](findings, style)
        if format_ == "text" and findings and not options["quiet"]:
            sys.stdout.write(_summary(findings, style))
    print_failures(unreadable)
    return USAGE if unreadable else FINDINGS if any(report.fails for report in reports) else OK


def print_failures(failures: Sequence[Unreadable]) -> None:
    """Print read and write errors on standard error."""
    for failure in failures:
        sys.stderr.write(f"ptx-lint: error: {printable(failure.why)}\n")


def _print_text(findings: list[Diagnostic], style: Style) -> None:
    from ptxtools.diagnostics.text import render

    sys.stdout.write("".join(f"{render(finding, style)}\n" for finding in findings))


def _print_json(findings: list[Diagnostic], _: Style) -> None:
    from ptxtools.diagnostics.formats import to_json

    sys.stdout.write(to_json(findings) + "\n")


def _print_github(findings: list[Diagnostic], _: Style) -> None:
    from ptxtools.diagnostics.formats import to_github

    sys.stdout.write(to_github(findings) + "\n" if findings else "")


def _sarif(findings: list[Diagnostic], failures: Sequence[Unreadable]) -> str:
    from ptxtools.diagnostics.sarif import to_sarif
    from ptxtools.pages import describe

    return to_sarif(findings, describe, tool_version(), failures) + "\n"


def _print_gitlab(findings: list[Diagnostic], _: Style) -> None:
    from ptxtools.diagnostics.services import to_gitlab

    sys.stdout.write(to_gitlab(findings) + "\n")


def _junit(reports: Sequence[Report], failures: Sequence[Unreadable]) -> str:
    from ptxtools.diagnostics.services import to_junit

    return to_junit([(report.name, report.findings) for report in reports if not report.failure], failures) + "\n"


_PRINTERS: dict[str, Callable[[list[Diagnostic], Style], None]] = {
    "text": _print_text,
    "json": _print_json,
    "github": _print_github,
    "gitlab": _print_gitlab,
}


def _summary(findings: list[Diagnostic], style: Style) -> str:
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    warnings = len(findings) - errors
    counts = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in ((errors, "error"), (warnings, "warning")) if n]
    files = len({finding.source.name if finding.source else finding.file for finding in findings})
    text = f"Found {' and '.join(counts)} in {files} file{'' if files == 1 else 's'}."
    mended = sum(finding.fix is not None for finding in findings)
    more = f"--fix can mend {mended} of them.\n" if mended else ""
    return f"{style.paint(text, 'bold')}\n{more}"


def _statistics(findings: list[Diagnostic], format_: str) -> str:
    from collections import Counter

    from ptxtools.pages import describe

    counts = Counter(finding.code for finding in findings).most_common()
    if format_ == "json":
        import json

        rows = [{"code": code, "count": count, "title": describe(code)[0]} for code, count in counts]
        return json.dumps(rows, indent=1) + "\n"
    return "".join(f"{count:>7}  {code}  {describe(code)[0]}\n" for code, count in counts)
