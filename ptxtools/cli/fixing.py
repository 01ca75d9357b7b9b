"""`ptx-lint --fix` and `--diff`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from ptxtools.diagnostics import Diagnostic, PtxError
from ptxtools.diagnostics.decode import decode, encode
from ptxtools.linter.fixes import apply_fixes, unified_diff

from .checking import Report, Unreadable, fails, lint_data, report_of, shown
from .common import FINDINGS, OK, STDIN, USAGE, Failure, read_input, write_output
from .reporting import print_failures
from .settings import Settings, SettingsFinder

#: Leaves out the findings that are known.
_Left = Callable[[Sequence[Diagnostic]], Sequence[Diagnostic]]

#: A fix may enable another; real files need far fewer rounds.
_MOST_PASSES = 10


def show_fixes(
    names: Sequence[str], finder: SettingsFinder, failures: Sequence[Unreadable], baseline: str | None = None
) -> int:
    """Print the changes of `fix` as a patch; returns the exit status. Raises Failure."""
    status, unreadable, left_of = OK, list(failures), _unknown_to(baseline)
    for name in names:
        try:
            data = read_input(name)
        except Failure as error:
            unreadable.append(Unreadable(name, error.message))
            continue
        settings = finder.for_file(name)
        changed, count = _fixed(data, shown(name, settings), settings, left_of)
        if count:
            write_output(STDIN, unified_diff(data, changed, shown(name, settings)))
            status = FINDINGS
    print_failures(unreadable)
    return USAGE if unreadable else status


def fix(
    names: Sequence[str], finder: SettingsFinder, baseline: str | None = None
) -> tuple[list[Report], list[Unreadable]]:
    """Apply the fixes of each file, but for findings that a baseline has. Returns the remaining report of standard
    input, whose text goes to standard output, and the files that could not be read or written. Raises Failure."""
    left_of = _unknown_to(baseline)
    left: list[Report] = []
    unwritten: list[Unreadable] = []
    for name in names:
        settings = finder.for_file(name)
        try:
            data = read_input(name)
        except Failure as error:
            if name == STDIN:  # reported when the file is checked
                unwritten.append(Unreadable(name, error.message))
            continue
        changed, count = _fixed(data, shown(name, settings), settings, left_of)
        if name == STDIN:
            if _is_text(data):  # otherwise there is nothing to print
                write_output(STDIN, changed)
            report = report_of(changed, name, settings)
            findings = list(left_of(report.findings))
            left.append(report._replace(findings=findings, fails=fails(findings, settings)))
        elif count:
            try:
                write_output(name, changed)
            except Failure as error:
                unwritten.append(Unreadable(name, error.message))
                continue
            sys.stderr.write(f"{name}: {count} {'fix' if count == 1 else 'fixes'} applied\n")
    return left, unwritten


def _unknown_to(baseline: str | None) -> _Left:
    if baseline is None:
        return lambda findings: findings
    from .baseline import unknown_to

    return unknown_to(baseline)


def _fixed(data: bytes, label: str, settings: Settings, left_of: _Left) -> tuple[bytes, int]:
    """The bytes of a file after applying fixes until none are left, and the number of fixes."""
    total = 0
    for _ in range(_MOST_PASSES):
        try:
            text = decode(data, label)
        except PtxError:  # binary: no text to change
            break
        text, count = apply_fixes(text, left_of(lint_data(data, label, settings)))
        if not count:
            break
        data, total = encode(text, data), total + count
    return data, total


def _is_text(data: bytes) -> bool:
    try:
        decode(data, "")
    except PtxError:
        return False
    return True
