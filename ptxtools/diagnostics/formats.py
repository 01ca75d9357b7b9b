"""Machine-readable findings: a JSON array and GitHub workflow annotations; SARIF is in `sarif`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from .diagnostic import Diagnostic, Severity
from .text import headline, notes


def to_json(diagnostics: Iterable[Diagnostic]) -> str:
    """One array, one element per line, so that runs can be compared with diff."""
    rows = [json.dumps(d.to_json()) for d in diagnostics]
    return "[\n " + ",\n ".join(rows) + "\n]" if rows else "[]"


def to_github(diagnostics: Iterable[Diagnostic]) -> str:
    """Workflow commands, one per line: `::error file=…,line=…,col=…,title=PTX203::message`."""
    return "\n".join(_annotation(d) for d in diagnostics)


def _annotation(d: Diagnostic) -> str:
    properties = {"file": d.file, "line": d.line, "col": d.column}
    if d.end_line == d.line:  # GitHub rejects endColumn on a range of several lines
        properties["endColumn"] = d.end_column
    else:
        properties["endLine"] = d.end_line
    properties["title"] = d.code
    message = "\n".join([headline(d), *(f"{head} {text}" for head, text in notes(d))])
    return workflow_command("notice" if d.severity is Severity.NOTE else d.severity.value, properties, message)


def workflow_command(kind: str, properties: Mapping[str, object], message: str) -> str:
    """One GitHub workflow command: `::error file=…,line=…::message`. kind: error, warning or notice."""
    listed = ",".join(f"{key}={_escape_property(str(value))}" for key, value in properties.items())
    return f"::{kind} {listed}::{_escape(message)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
