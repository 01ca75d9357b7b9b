"""`ptx-lint --baseline FILE`: findings that a file has are known, and do not count."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

from ptxtools.diagnostics import Diagnostic
from ptxtools.diagnostics.fingerprints import fingerprints

from .checking import Report, fails
from .common import Failure, write_output
from .settings import Settings

#: The key that tells such a file, and the number of its format.
_MARK, _VERSION = "ptx-lint-baseline", 1

_Known = set[tuple[str, str, str]]


def without_known(reports: Sequence[Report], settings: Sequence[Settings], path: str) -> tuple[list[Report], int]:
    """The reports without the findings that the baseline has; if there is none, it is made of all of them. The number
    of findings that it was made of, -1 if it existed.

    settings: of each report's file. A file that could not be read is no part of a new baseline, which is not made then.
    Raises Failure.
    """
    found = _read(path)
    made = -1
    if found is None:
        if any(report.failure for report in reports):
            return list(reports), -1
        found = {key for report in reports for key in _keys(report.findings, path)}
        _write(found, path)
        made = sum(len(report.findings) for report in reports)
    left = []
    for report, how in zip(reports, settings, strict=True):
        new = _new(report.findings, path, found)
        left.append(report._replace(findings=new, fails=fails(new, how)))
    return left, made


def unknown_to(path: str | None) -> Callable[[Sequence[Diagnostic]], Sequence[Diagnostic]]:
    """What leaves out the findings that a baseline has; nothing is left out if there is none. Raises Failure."""
    found = _read(path) if path else None
    return lambda findings: findings if path is None or found is None else _new(findings, path, found)


def _new(findings: Sequence[Diagnostic], path: str, known: _Known) -> list[Diagnostic]:
    keys = _keys(findings, path)
    return [finding for finding, key in zip(findings, keys, strict=True) if key not in known]


def _keys(findings: Sequence[Diagnostic], path: str) -> list[tuple[str, str, str]]:
    """File, code and fingerprint of each finding. Files are named from the baseline's folder on."""
    folder = os.path.dirname(os.path.abspath(path))
    prints = fingerprints(findings)
    files = {d.file: PurePath(os.path.relpath(d.file, folder)).as_posix() for d in findings}
    return [(files[d.file], d.code, mark) for d, mark in zip(findings, prints, strict=True)]


def _read(path: str) -> _Known | None:
    """What the baseline has; None if there is none."""
    try:
        with open(path, "rb") as file:
            data: Any = json.loads(file.read())
        if data[_MARK] != _VERSION:
            raise Failure(f"{path}: a baseline of another version of ptx-lint ({data[_MARK]})")
        return {(str(row["file"]), str(row["code"]), str(row["fingerprint"])) for row in data["findings"]}
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Failure(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Failure(f"{path}: this is no baseline of ptx-lint") from None


def _write(known: _Known, path: str) -> None:
    rows = [{"file": file, "code": code, "fingerprint": mark} for file, code, mark in sorted(known)]
    lines = ",\n ".join(json.dumps(row) for row in rows)
    content = (
        f'{{"{_MARK}": {_VERSION}, "findings": [\n {lines}\n]}}\n'
        if rows
        else (f'{{"{_MARK}": {_VERSION}, "findings": []}}\n')
    )
    write_output(path, content.encode("utf-8", "surrogateescape"))
