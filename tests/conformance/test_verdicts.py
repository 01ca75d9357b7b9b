"""ptx-lint against recorded verdicts of ptxas 13.0 to 13.5: a fixed sample here, all of them by `make sweep`."""

import re
import zlib
from collections import Counter
from functools import cache
from pathlib import Path

from tests.rows import rows
from tools.conformance import replay
from tools.conformance.oracle import release_of
from tools.conformance.record import Record, read_all

DATA = Path(__file__).parents[2] / "testdata" / "conformance"
REVIEWED = replay.deviations(DATA / "deviations")


@cache
def records() -> list[Record]:
    return list(read_all(DATA))


def topics() -> list[str]:
    return sorted({record.topic for record in records()})


def chosen(record: Record) -> bool:
    """One probe in twenty, always the same."""
    return zlib.crc32(record.text.encode()) % 20 == 0


def test_there_are_enough_probes() -> None:
    assert len(records()) >= 60_000
    assert sum(map(chosen, records())) >= 5_000
    assert 0.2 < sum(record.accepted for record in records()) / len(records()) < 0.8


def test_each_release_was_asked() -> None:
    asked = Counter(release_of(record.setting) for record in records())
    assert set(asked) == {f"13.{minor}" for minor in range(6)}
    assert min(asked.values()) > 1_000
    found = {r.setting: r.accepted for r in records() if r.text == "cvt.rn.bf16x2.e4m3x2 %r1, %h2;"}
    assert not found["9.1/sm_100f"] and found["9.2/sm_100f"] and found["9.5/sm_121f"]


@rows("topic", topics)
def test_we_say_what_ptxas_says(topic: str) -> None:
    sample = [record for record in records() if record.topic == topic and chosen(record)]
    found = [d for d in replay.differences(sample) if not any(deviation.covers(d) for deviation in REVIEWED)]
    assert not found, "\n".join(map(str, found[:20]))


def test_every_deviation_gives_its_section() -> None:
    lists = [*REVIEWED, *replay.deviations(DATA / "deviations" / "fresh")]
    assert len(lists) > len(REVIEWED)
    assert [d.text.pattern for d in lists if "(" not in d.reason or not any(c.isdigit() for c in d.reason)] == []


def test_every_deviation_covers_something() -> None:
    """By the table that the sweep over all probes wrote last."""
    page = (DATA.parents[1] / "docs" / "conformance.md").read_text()
    table = page.partition("## Reviewed deviations")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if re.match(r"\| \d+ \|", line)]
    assert [line for line in rows if line.startswith("| 0 |")] == []
    assert len(rows) == len(REVIEWED)
    assert [d.reason for d in REVIEWED if d.reason.replace("|", "\\|") not in table] == []


def test_a_difference_is_noticed() -> None:
    """The replay itself: a wrong verdict, a wrong requirement, and a right one."""
    good = Record("9.0/sm_90", "line", "modifier", "add.s32 %r1, %r2, %r3;", True)
    old = Record("3.0/sm_20", "line", "requirement", "redux.sync.add.s32 %r1, %r2, %r3;", False, "7.0 sm_80")
    wrong = [good._replace(accepted=False), old._replace(requires="8.0 sm_80"), old._replace(requires="7.0 sm_90")]
    assert list(replay.differences([good, old])) == []
    assert [d.record for d in replay.differences(wrong)] == wrong
