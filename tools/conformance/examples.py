"""The manual's examples as records: what ptxas said about each, what ptx-lint says, and why either refuses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ptxtools.check import check
from ptxtools.diagnostics import Diagnostic, Severity
from ptxtools.syntax import parse

from .blocks import blocks
from .manual import Example, examples
from .oracle import Oracle
from .surroundings import module_around

DATA = Path(__file__).parents[2] / "testdata" / "conformance"
EXAMPLES, REVIEWED = DATA / "examples.tsv", DATA / "examples-reviewed.tsv"
#: Where an example is tried; the first that accepts it stays.
_SETTINGS = (
    "9.0/sm_100a", "9.0/sm_90a", "9.0/sm_120a", "9.0/sm_75", "9.0/sm_103a", "9.0/sm_110a", "8.7/sm_100a", "6.2/sm_62",
    "2.0/sm_20", "1.3/sm_13",
)  # fmt: skip
_COMMENT = (
    "# Statements of the manual's examples: edition and section, version/target, accepted by ptxas 13.0 (+ or -), text"
    " (what it needs declared stands before it, behind \\n). Written by tools/manual_examples.py."
)


class Row(NamedTuple):
    """where: "edition section" of the manual; accepted: by ptxas; text: statements separated by `\\\\n`."""

    where: str
    setting: str
    accepted: bool
    text: str


class Outcome(NamedTuple):
    """What ptx-lint says about one example. verdict: who refuses it: "", "both", "ours" or "ptxas"."""

    row: Row
    said: tuple[Diagnostic, ...]

    @property
    def verdict(self) -> str:
        if self.said:
            return "ours" if self.row.accepted else "both"
        return "" if self.row.accepted else "ptxas"


class Review(NamedTuple):
    """Why an example is refused: by whom, which (a regular expression over its text), and the reason."""

    verdict: str
    text: re.Pattern[str]
    reason: str

    def covers(self, outcome: Outcome) -> bool:
        return outcome.verdict == self.verdict and self.text.fullmatch(outcome.row.text) is not None


def record(folder: Path, ptxas: str) -> Iterator[Row]:
    """Every example of the texts in `folder`, once, then whole blocks. Code lines outside of the examples count where
    anyone takes them: the rest of them is pseudo code."""
    oracle = Oracle(ptxas)
    found: dict[str, Example] = {}
    for example in examples(folder):
        known = found.get(example.text)
        if known is None or (example.in_examples and not known.in_examples):
            found[example.text] = example
    for example in found.values():
        row = _asked(oracle, example)
        if example.in_examples or outcome(row).verdict in ("", "ours"):
            yield row
    yield from (_asked(oracle, block) for block in blocks(folder))


def _asked(oracle: Oracle, example: Example) -> Row:
    """The row of an example: as its block declares things, else as its opcode wants them; at the setting that suits."""
    best: tuple[int, Row] | None = None
    for text in dict.fromkeys(("\\n".join([*example.given, example.text]), example.text)):
        for setting in _SETTINGS:
            row = Row(example.where, setting, False, text)
            ours = not outcome(row).said
            if best is not None and not ours and best[0] >= 0:
                continue
            lines, _ = module_around(setting, text)
            row = row._replace(accepted=oracle.accepts(setting, lines))
            rank = 2 * row.accepted + ours
            if best is None or rank > best[0]:
                best = (rank, row)
            if rank == 3:
                return row
    assert best is not None
    return best[1]


def outcome(row: Row) -> Outcome:
    """Lint one example in its surroundings."""
    lines, _ = module_around(row.setting, row.text)
    result = parse("\n".join(lines))
    said = [d for d in [*result.diagnostics, *check(result.module)] if d.severity is Severity.ERROR]
    return Outcome(row, tuple(said))


def write(path: Path, rows: Iterable[Row]) -> None:
    lines = ["\t".join((row.where, row.setting, "-+"[row.accepted], row.text)) for row in rows]
    path.write_text("\n".join([_COMMENT, *lines]) + "\n")


def read(path: Path) -> list[Row]:
    rows = [line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#")]
    return [Row(where, setting, verdict == "+", text) for where, setting, verdict, text in rows]


def reviews(path: Path) -> list[Review]:
    """The reviewed list: tab-separated verdict, text (a regular expression), reason."""
    rows = [line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [Review(verdict, re.compile(text), reason) for verdict, text, reason in rows]


def unexplained(outcomes: Iterable[Outcome], reviewed: list[Review]) -> list[Outcome]:
    return [o for o in outcomes if o.verdict and not any(review.covers(o) for review in reviewed)]


def idle(outcomes: list[Outcome], reviewed: list[Review]) -> list[Review]:
    """Reviews of nothing."""
    return [review for review in reviewed if not any(map(review.covers, outcomes))]


def report(outcomes: list[Outcome], reviewed: list[Review]) -> Iterator[str]:
    """Counts, every refusal with its reason, and what has none."""
    counts = Counter(o.verdict for o in outcomes)
    yield (
        f"{len(outcomes)} examples: {counts['']} accepted by ptx-lint and ptxas, {counts['both']} by neither, "
        f"{counts['ptxas']} by ptx-lint only, {counts['ours']} by ptxas only"
    )
    for o in outcomes:
        if o.verdict:
            reason = next((review.reason for review in reviewed if review.covers(o)), "NOT EXPLAINED")
            said = "; ".join(f"{d.code} {d.message}" for d in o.said[:2]) or "accepted by us"
            yield f"{o.row.where} [{o.verdict}] {o.row.text}\n    {said}\n    {reason}"
    for review in idle(outcomes, reviewed):
        yield f"covers nothing: {review.verdict} {review.text.pattern}"
