"""What each release from PTX 9.1 on brought: recorded verdicts of the releases of ptxas beside ours."""

from __future__ import annotations

from pathlib import Path

from ptxtools.isa.targets import FIRST_VERSION, VERSIONS, version_text
from tests.rows import rows
from tools.conformance import additions, replay
from tools.conformance.additions import ADDITIONS, Addition
from tools.conformance.record import Record, read

RECORDS = read(Path(__file__).parents[2] / "testdata" / "conformance" / "releases.xz")
VERDICTS = {(record.setting, record.text): record for record in RECORDS}


def test_every_probe_is_recorded() -> None:
    assert {(probe.setting, probe.text) for probe in additions.probes()} == set(VERDICTS)
    assert {version_text(addition.version) for addition in ADDITIONS} == {f"9.{n}" for n in range(1, 6)}


def dates(addition: Addition) -> tuple[Record, Record | None]:
    """The verdicts of its own version, and of the one before if that has the target."""
    text = additions.line_of(addition)[1]
    before = VERSIONS[VERSIONS.index(addition.version) - 1]
    own, earlier = (VERDICTS.get((f"{version_text(at)}/{addition.target}", text)) for at in (addition.version, before))
    assert own is not None
    return own, earlier if FIRST_VERSION[addition.target] <= before else None


@rows("addition", ADDITIONS, ids=lambda addition: addition.text[:60])
def test_the_release_brought_it(addition: Addition) -> None:
    """ptxas takes it from this version on, and the newest release still does."""
    own, earlier = dates(addition)
    assert own.accepted
    assert earlier is None or not earlier.accepted


def test_we_say_what_the_releases_say() -> None:
    found = list(replay.differences(RECORDS))
    assert not found, "\n".join(map(str, found[:20]))
