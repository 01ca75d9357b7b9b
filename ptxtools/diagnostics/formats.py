"""Findings for machines: the JSON array, GitHub workflow annotations, SARIF 2.1.0."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .diagnostic import Diagnostic, Severity
from .text import headline, notes

if TYPE_CHECKING:
    from .origin import Origin

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def to_json(diagnostics: Iterable[Diagnostic]) -> str:
    """One array, one element a line, so that a diff of two runs reads well."""
    rows = [json.dumps(d.to_json()) for d in diagnostics]
    return "[\n " + ",\n ".join(rows) + "\n]" if rows else "[]"


def to_github(diagnostics: Iterable[Diagnostic]) -> str:
    """Workflow commands, one a line: `::error file=…,line=…,col=…,title=PTX203::message`."""
    return "\n".join(_annotation(d) for d in diagnostics)


def _annotation(d: Diagnostic) -> str:
    properties = {"file": d.file, "line": d.line, "col": d.column}
    if d.end_line == d.line:  # GitHub rejects endColumn on a range of several lines
        properties["endColumn"] = d.end_column
    else:
        properties["endLine"] = d.end_line
    properties["title"] = d.code
    listed = ",".join(f"{key}={_escape_property(str(value))}" for key, value in properties.items())
    message = "\n".join([headline(d), *(f"{head} {text}" for head, text in notes(d))])
    kind = "notice" if d.severity is Severity.NOTE else d.severity.value
    return f"::{kind} {listed}::{_escape(message)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")


def to_sarif(diagnostics: Sequence[Diagnostic], describe: Callable[[str], tuple[str, str]], version: str) -> str:
    """A SARIF 2.1.0 log with one run.

    describe: title and explanation (Markdown) of a code; version: that of the tool.
    """
    codes = sorted({d.code for d in diagnostics})
    rules = []
    for code in codes:
        title, page = describe(code)
        rules.append({"id": code, "shortDescription": {"text": title}, "help": {"text": page, "markdown": page}})
    driver = {"name": "ptx-lint", "version": version, "rules": rules}
    index = {code: n for n, code in enumerate(codes)}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(d, index[d.code]) for d in diagnostics],
    }
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2)


def _result(d: Diagnostic, rule_index: int) -> dict[str, Any]:
    text = "\n".join([headline(d), *(f"{head} {text}" for head, text in notes(d))])
    region = {"startLine": d.line, "startColumn": d.column, "endLine": d.end_line, "endColumn": d.end_column}
    place = {"artifactLocation": {"uri": _uri(d.file)}, "region": region}
    result: dict[str, Any] = {
        "ruleId": d.code,
        "ruleIndex": rule_index,
        "level": d.severity.value,
        "message": {"text": text},
        "locations": [{"physicalLocation": place}],
    }
    if d.origin is not None:
        result["relatedLocations"] = [_generated_from(n, place) for n, place in enumerate(d.origin.chain)]
    if d.target:
        result["properties"] = {"target": d.target}
    return result


def _generated_from(number: int, place: Origin) -> dict[str, Any]:
    region = {"startLine": place.line, **({"startColumn": place.column} if place.column else {})}
    text = "inlined here" if number else "the source of this line"
    return {
        "id": number,
        "physicalLocation": {"artifactLocation": {"uri": _uri(place.file)}, "region": region},
        "message": {"text": text},
    }


def _uri(name: str) -> str:
    path = PurePath(name)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
