"""Every example of the manual: ptx-lint and ptxas accept it, or a reviewed reason says why not."""

from collections import Counter

import pytest

from tools.conformance import examples
from tools.conformance.examples import Outcome, Review, Row

ROWS = examples.read(examples.EXAMPLES)
REVIEWED = examples.reviews(examples.REVIEWED)


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return [examples.outcome(row) for row in ROWS]


def test_the_manual_is_there() -> None:
    """All editions, and every chapter that has examples."""
    editions = Counter(row.where.split()[0] for row in ROWS)
    assert set(editions) == {"6.4", "7.8", "8.7", "9.0"} and len(ROWS) > 1300
    chapters = {".".join(row.where.split()[1].split(".")[:2]) for row in ROWS}
    assert {"4.3", "5.1", "5.3", "5.4", "6.4", "7.1", "9.7", "10.1", "11.1", "11.2", "11.4", "11.5"} <= chapters
    pages = {row.where.split()[1] for row in ROWS if row.where.split()[1].startswith("9.7.")}
    assert len(pages) > 180


def test_every_refusal_has_a_reason(outcomes: list[Outcome]) -> None:
    report = "\n".join(examples.report(outcomes, REVIEWED))
    print(report)
    assert not examples.unexplained(outcomes, REVIEWED), report


def test_every_reason_is_needed(outcomes: list[Outcome]) -> None:
    assert not examples.idle(outcomes, REVIEWED)
    assert [
        review.reason for review in REVIEWED if review.verdict in ("ours", "ptxas") and "(" not in review.reason
    ] == []


def test_what_ptxas_accepts_we_accept(outcomes: list[Outcome]) -> None:
    """Of old versions we do not read what `.loc` adds."""
    assert [o.row.text for o in outcomes if o.verdict == "ours" and "inlined_at" not in o.row.text] == []


def test_a_change_is_noticed() -> None:
    good = Row("8.7 9.7.1.1", "9.0/sm_90", True, "add.sat.s32 c, c, 1;")
    bad = good._replace(text="add.sat.u16 c, c, 1;")
    assert [examples.outcome(row).verdict for row in (good, bad)] == ["", "ours"]
    assert [examples.outcome(row._replace(accepted=False)).verdict for row in (good, bad)] == ["ptxas", "both"]
    outcomes = [examples.outcome(bad)]
    assert examples.unexplained(outcomes, []) == outcomes
    review = Review("ours", REVIEWED[0].text, "no reason")
    assert examples.idle(outcomes, [review]) == [review]
