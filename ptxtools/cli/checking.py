"""Lints files, in this process or in several."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

from ptxtools.diagnostics import Diagnostic, PtxError, Severity
from ptxtools.records import NamedTuple

from .common import STDIN, Failure, progress, read_input
from .settings import Settings

#: The number of files from which worker processes pay off.
_PARALLEL_FROM = 16
#: The bytes of a file from which several processes pay off for it alone, and how many at most do.
_LARGE = 200_000
_MOST_FOR_ONE = 4


class Unreadable(NamedTuple):
    """A file that cannot be read or written, or a folder that cannot be listed; `why` includes its name."""

    name: str
    why: str


class Report(NamedTuple):
    """The findings in one file; `failure` says why it could not be read, `fails` that the findings affect the
    status."""

    name: str
    findings: list[Diagnostic]
    fails: bool = False
    failure: str = ""
    seconds: float = 0.0


def lint_all(files: Sequence[tuple[str, Settings]], options: dict[str, Any]) -> list[Report]:
    jobs = options["jobs"] or (os.cpu_count() or 1 if len(files) >= _PARALLEL_FROM else 1)
    reports: list[Report] = []
    with progress("checking", len(files), options["quiet"]) as step:
        for report in _reports(files, min(jobs, len(files)), options["jobs"]):
            reports.append(report)
            step()
            if options["verbose"]:
                count = len(report.findings)
                what = f"{count} finding{'' if count == 1 else 's'}"
                sys.stderr.write(f"{report.name}: {what} in {report.seconds:.3f} s\n")
    return reports


def _reports(files: Sequence[tuple[str, Settings]], jobs: int, for_one: int | None) -> Iterable[Report]:
    if jobs < 2 or any(name == STDIN for name, _ in files):
        return (_report(file, for_one) for file in files)
    return _parallel(files, jobs)


def _processes(data: bytes, wanted: int | None) -> int:
    """How many processes work at one file."""
    if wanted == 1 or len(data) < _LARGE:
        return 1
    from ptxtools.linter.processes import available

    return min(wanted or _MOST_FOR_ONE, available())


def _parallel(files: Sequence[tuple[str, Settings]], jobs: int) -> Iterable[Report]:
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_report, files, chunksize=max(1, len(files) // (4 * jobs)))


def _report(file: tuple[str, Settings], processes: int | None = 1) -> Report:
    """Lint one file, possibly in a worker process. processes: how many may work at it; None: as many as pay off."""
    name, settings = file
    started = time.perf_counter()
    try:
        data = read_input(name)
    except Failure as error:
        return Report(shown(name, settings), [], failure=error.message)
    return report_of(data, name, settings, started, processes)


def report_of(data: bytes, name: str, settings: Settings, started: float = 0.0, processes: int | None = 1) -> Report:
    label = shown(name, settings)
    findings = lint_data(data, label, settings, processes)
    return Report(label, findings, fails(findings, settings), "", time.perf_counter() - started)


def fails(findings: Sequence[Diagnostic], settings: Settings) -> bool:
    """Whether findings affect the status."""
    counting = settings.strict or any(finding.severity is Severity.ERROR for finding in findings)
    return bool(findings) and counting and not settings.exit_zero


def shown(name: str, settings: Settings) -> str:
    return settings.stdin_name if name == STDIN else name


def lint_data(data: bytes, name: str, settings: Settings, processes: int | None = 1) -> list[Diagnostic]:
    """The findings in the bytes of one file. processes: as for `_report`."""
    if settings.spared:
        from ptxtools.diagnostics.comments import matches

        everything = lint_data(data, name, settings._replace(spared=()), processes)
        return [finding for finding in everything if not matches(finding.code, settings.spared)]
    from ptxtools.inputs import detect

    if settings.cached and detect(data) == "text":
        from ptxtools.linter.remembered import Remembered

        remembered = Remembered(data, name, (settings.targets, settings.version, settings.select, settings.ignore))
        found = remembered.recall()
        if found is None:
            found = _findings(data, name, settings, processes)
            remembered.store(found)
        return found
    return _findings(data, name, settings, processes)


def _findings(data: bytes, name: str, settings: Settings, processes: int | None) -> list[Diagnostic]:
    from ptxtools.api import is_nvvm, parsed

    if is_nvvm(data):
        from ptxtools.nvvm.lint import findings_in

        return findings_in(data, name, dialect=settings.dialect, targets=settings.targets, select=settings.select,
                           ignore=settings.ignore, processes=_processes(data, processes))  # fmt: skip
    from ptxtools.inputs import detect
    from ptxtools.linter import findings_of

    findings: list[Diagnostic] = []
    try:
        for module, syntax in parsed(data, name):
            findings += findings_of(
                module, syntax, targets=settings.targets, version=settings.version,
                select=settings.select, ignore=settings.ignore, processes=_processes(data, processes),
            )  # fmt: skip
    except PtxError as error:
        findings += error.diagnostics
    if any(finding.fix for finding in findings) and detect(data) in ("ptxo", "fatbin", "elf"):
        for finding in findings:  # positions refer to the text inside: there is no file text to change
            finding.fix = None
    return findings
