"""Findings for services that build and test: GitLab's code quality reports, and JUnit XML."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import PurePath
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from .diagnostic import Diagnostic, Severity
from .fingerprints import fingerprints
from .text import headline, notes

#: GitLab's words for how bad a finding is.
_GITLAB = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.NOTE: "info"}
#: Characters that XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_gitlab(diagnostics: Sequence[Diagnostic]) -> str:
    """A code quality report: an array of issues; paths are relative to the working directory if possible."""
    issues = []
    for d, mark in zip(diagnostics, fingerprints(diagnostics), strict=True):
        path = _relative(d.file)
        issues.append({
            "description": f"{headline(d)} [{d.code}]",
            "check_name": d.code,
            "fingerprint": sha256(f"{path}\0{mark}\0{d.code}".encode("utf-8", "surrogatepass")).hexdigest(),
            "severity": _GITLAB[d.severity],
            "location": {"path": path, "lines": {"begin": d.line, "end": d.end_line}},
        })  # fmt: skip
    return json.dumps(issues, indent=1)


def to_junit(files: Sequence[tuple[str, Sequence[Diagnostic]]], failures: Sequence[tuple[str, str]] = ()) -> str:
    """JUnit XML: a suite for each file, in it a failed case for each finding, or one that passed.

    failures: files that could not be read, each with the reason; their case is an error.
    """
    root = Element("testsuites", name="ptx-lint")
    for name, diagnostics in files:
        suite = _suite(root, name, max(len(diagnostics), 1), failures=len(diagnostics))
        for d in diagnostics:
            case = SubElement(suite, "testcase", classname=_xml(name), name=f"{d.code} line {d.line}")
            case.set("file", _xml(d.file))
            case.set("line", str(d.line))
            failure = SubElement(case, "failure", type=d.severity.value, message=_xml(headline(d)))
            failure.text = _xml(
                "\n".join([f"{d.file}:{d.line}:{d.column}: {headline(d)} [{d.code}]", *map(" ".join, notes(d))])
            )
        if not diagnostics:
            SubElement(suite, "testcase", classname=_xml(name), name="no findings")
    for name, why in failures:
        case = SubElement(_suite(root, name, 1, errors=1), "testcase", classname=_xml(name), name="cannot be read")
        SubElement(case, "error", type="unreadable", message=_xml(why))
    for key in ("tests", "failures", "errors"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode")


def _suite(root: Element, name: str, tests: int, failures: int = 0, errors: int = 0) -> Element:
    return SubElement(root, "testsuite", name=_xml(name), tests=str(tests), failures=str(failures), errors=str(errors))


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _relative(name: str) -> str:
    """A path below the working directory without it."""
    path = os.path.relpath(name) if os.path.isabs(name) else os.path.normpath(name)
    return name if path.startswith(os.pardir) else PurePath(path).as_posix()
