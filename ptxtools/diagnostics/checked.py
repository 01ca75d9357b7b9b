"""The reports of run-time checkers for other programs: JSON, SARIF and GitHub workflow commands."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from .formats import workflow_command
from .kinds import CHECKERS, TrapKind
from .sarif import artifact, generated_from, log_of

if TYPE_CHECKING:
    from .findings import Finding, Site

#: What each checker looks for.
TITLES: dict[str, str] = {
    TrapKind.MEMCHECK: "an access outside of what it may reach",
    TrapKind.INITCHECK: "a read of what nobody wrote",
    TrapKind.SYNCCHECK: "a barrier or a collective instruction that threads do not meet at as they must",
    TrapKind.RACECHECK: "two accesses that nothing orders",
    TrapKind.LEAKCHECK: "something that is never given back",
    TrapKind.ASYNCCHECK: "a use of what asynchronous work has not finished with",
}
FINGERPRINT = "ptxRunLine/v1"


def to_json(
    findings: Sequence[Finding], verdict: dict[str, Any] | None = None, explored: dict[str, Any] | None = None
) -> str:
    """One object: "reports", one of them per line; "racecheck", its verdict, where there is one; and "explored", what
    further schedules have shown, where they were run."""
    rows = ",\n ".join(json.dumps(finding.to_json()) for finding in findings)
    reports = f"[\n {rows}\n]" if findings else "[]"
    more = "" if verdict is None else f', "racecheck": {json.dumps(verdict)}'
    more += "" if explored is None else f', "explored": {json.dumps(explored)}'
    return f'{{"reports": {reports}{more}}}'


def to_sarif(findings: Sequence[Finding], version: str) -> str:
    """A SARIF 2.1.0 log with one run; version: the tool's."""
    rules = [{"id": str(name), "shortDescription": {"text": TITLES[name]}} for name in CHECKERS]
    driver = {"name": "ptx-run", "version": version, "rules": rules}
    seen: Counter[str] = Counter()
    return log_of(driver, {"executionSuccessful": True}, [_result(finding, seen) for finding in findings])


def to_github(findings: Sequence[Finding]) -> str:
    """Workflow commands, one per line; where a report has no line, GitHub shows it at the file."""
    return "\n".join(
        workflow_command(
            "error",
            {
                "file": finding.file,
                **({} if finding.line is None else {"line": finding.line}),
                "title": ", ".join(finding.checkers),
            },
            "\n".join([finding.message, *finding.below()]),
        )
        for finding in findings
    )


def _result(finding: Finding, seen: Counter[str]) -> dict[str, Any]:
    where = [{"physicalLocation": _location(finding)}] if finding.line is not None else []
    words = "\0".join((finding.checker, finding.kind, finding.file, " ".join(finding.text.split())))
    mark = sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    seen[mark] += 1
    result: dict[str, Any] = {
        "ruleId": str(finding.checker),
        "ruleIndex": CHECKERS.index(TrapKind(finding.checker)),
        "level": "error",
        "message": {"text": "\n".join([finding.message, *finding.below()])},
        "locations": where,
        "partialFingerprints": {FINGERPRINT: f"{mark}:{seen[mark]}"},
        "occurrenceCount": finding.count,
    }
    related = [generated_from(n, place) for n, place in enumerate(finding.source.chain)] if finding.source else []
    for other in finding.others:
        if other.line is not None:
            message = {"text": "the other side of it"}
            related.append({"id": len(related), "physicalLocation": _location(other), "message": message})
    if related:
        result["relatedLocations"] = related
    return result


def _location(at: Finding | Site) -> dict[str, Any]:
    return {"artifactLocation": artifact(at.file), "region": {"startLine": at.line}}
