"""PTX613 names the releases of ptxas that cannot compile a form, and says nothing of what they compile."""

import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from ptxtools.check import check
from ptxtools.linter import lint
from ptxtools.linter.facts import ModuleFacts
from ptxtools.linter.failing import FORMS, RELEASES, failing
from ptxtools.syntax import parse
from tools.conformance.record import read as records_of
from tools.conformance.recorded import FOLDER, read
from tools.conformance.replay import findings
from tools.conformance.setting import module_of

ROWS = read(FOLDER / "failing.tsv")
RECORDS = FOLDER / "verdicts.xz"
#: What may be one of the forms, in recorded probes.
OPCODES = re.compile("|".join(f"(?:{form.opcode.pattern.removesuffix('$')}[^ ]*)" for form in FORMS))


def said(setting: str, text: str) -> list[str]:
    """The messages of PTX613 about a statement."""
    lines, _ = module_of(setting, "line", [text])
    return [one.message for one in lint(parse("\n".join(lines)).module) if one.code == "PTX613"]


def failing_of(setting: str, texts: list[str]) -> Iterator[str]:
    """Those of some statements that the table has."""
    lines, first = module_of(setting, "line", texts)
    parsed = parse("\n".join(lines))
    for line in (line for body in ModuleFacts(parsed.module).functions for line in body.lines):
        if failing(line, (9, 0)) is not None:
            yield texts[parsed.module.source.line_of(line.item.span[0]) - 1 - first]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.written[:40])
def test_what_releases_cannot_compile_is_named_with_them(row):
    refusing = {release for release, verdict in row.by_release.items() if verdict != "accepts"}
    assert refusing and set(row.by_release) == set(RELEASES)
    (message,) = said(row.setting, row.written)
    assert {release for release in RELEASES if release in message} == refusing
    assert ("without a message" in message) == ("crashes" in row.by_release.values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.instead[:40])
def test_nothing_is_said_of_what_they_compile(row):
    assert not said(row.setting, row.instead)
    for text in (row.written, row.instead):
        lines, _ = module_of(row.setting, "line", [text])
        parsed = parse("\n".join(lines))
        assert not [*parsed.diagnostics, *check(parsed.module)]  # the manual has both


def test_each_form_has_a_row():
    assert all(any(form.opcode.match(row.written.split()[0]) for row in ROWS) for form in FORMS)


def test_what_ptxas_accepted_is_not_reported():
    """Among the recorded verdicts of ptxas 13.0, and of what ptx-lint takes for valid."""
    probes: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for record in records_of(RECORDS):
        if record.place == "line" and OPCODES.match(record.text):
            probes[record.setting, record.accepted].append(record.text)
    refused = 0
    for (setting, accepted), texts in probes.items():
        for part in batched(texts):
            for text in failing_of(setting, part):
                if accepted:
                    assert findings(setting, "line", [text])[0], text
                refused += not accepted
    assert refused > 100


def batched(texts: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), 200):
        yield texts[start : start + 200]


def test_versions_that_no_failing_release_reads():
    row = next(row for row in ROWS if row.by_release["13.5"] == "accepts")
    assert said("9.2/sm_100,texmode_independent", row.written) and not said(
        "9.3/sm_100,texmode_independent", row.written
    )
