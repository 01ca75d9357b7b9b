"""Findings as a SARIF 2.1.0 log."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .diagnostic import Diagnostic, Fix
from .fingerprints import fingerprints
from .source import Source, Span
from .text import headline, notes

if TYPE_CHECKING:
    from .origin import Origin

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
#: The name of our fingerprints; the number changes with their ingredients.
FINGERPRINT = "ptxLintLine/v1"


def to_sarif(
    diagnostics: Sequence[Diagnostic],
    describe: Callable[[str], tuple[str, str]],
    version: str,
    failures: Sequence[tuple[str, str]] = (),
) -> str:
    """A SARIF 2.1.0 log with one run.

    describe: title and explanation (Markdown) of a code; version: the tool's; failures: files that could not be read,
    each with the reason. They mark the run as unsuccessful.
    """
    codes = sorted({d.code for d in diagnostics})
    rules = []
    for code in codes:
        title, page = describe(code)
        rules.append({"id": code, "shortDescription": {"text": title}, "help": {"text": page, "markdown": page}})
    driver = {"name": "ptx-lint", "version": version, "rules": rules}
    index = {code: n for n, code in enumerate(codes)}
    invocation: dict[str, Any] = {"executionSuccessful": not failures}
    if failures:
        invocation["toolExecutionNotifications"] = [_notification(name, why) for name, why in failures]
    prints = fingerprints(diagnostics)
    results = [_result(d, index[d.code], mark) for d, mark in zip(diagnostics, prints, strict=True)]
    return log_of(driver, invocation, results)


def log_of(driver: dict[str, Any], invocation: dict[str, Any], results: list[dict[str, Any]]) -> str:
    """A log with one run."""
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _notification(name: str, why: str) -> dict[str, Any]:
    place = {"artifactLocation": artifact(name)}
    return {"level": "error", "message": {"text": why}, "locations": [{"physicalLocation": place}]}


def _result(d: Diagnostic, rule_index: int, fingerprint: str) -> dict[str, Any]:
    text = "\n".join([headline(d), *(f"{head} {text}" for head, text in notes(d))])
    region = {"startLine": d.line, "startColumn": d.column, "endLine": d.end_line, "endColumn": d.end_column}
    place = {"artifactLocation": artifact(d.file), "region": region}
    result: dict[str, Any] = {
        "ruleId": d.code,
        "ruleIndex": rule_index,
        "level": d.severity.value,
        "message": {"text": text},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {FINGERPRINT: fingerprint},
    }
    if d.fix is not None and d.source is not None:
        result["fixes"] = [_fix(d.fix, d.source, d.file)]
    if d.origin is not None:
        result["relatedLocations"] = [generated_from(n, place) for n, place in enumerate(d.origin.chain)]
    if d.target:
        result["properties"] = {"target": d.target}
    return result


def generated_from(number: int, place: Origin) -> dict[str, Any]:
    """A location that a line was generated from; number: how many calls it was inlined through."""
    region = {"startLine": place.line, **({"startColumn": place.column} if place.column else {})}
    text = "inlined here" if number else "the source of this line"
    return {
        "id": number,
        "physicalLocation": {"artifactLocation": artifact(place.file), "region": region},
        "message": {"text": text},
    }


def _fix(fix: Fix, source: Source, name: str) -> dict[str, Any]:
    replacement = {"deletedRegion": _region(source, fix.span), "insertedContent": {"text": fix.text}}
    change = {"artifactLocation": artifact(name), "replacements": [replacement]}
    return {"description": {"text": fix.title or "apply the fix"}, "artifactChanges": [change]}


def _region(source: Source, span: Span) -> dict[str, int]:
    (line, column), (end_line, end_column) = map(source.position, span)
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def artifact(name: str) -> dict[str, str]:
    """A file's place."""
    path = PurePath(name)
    return {"uri": path.as_uri() if path.is_absolute() else quote(os.fsencode(path.as_posix()))}
