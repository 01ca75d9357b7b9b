"""Each kind of trap, and each kind of waiting that a deadlock report names, has a test that meets it (`kinds.tsv`: one
with its parameters, so that few are run again)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from . import kinds

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("kinds.tsv")
#: Kinds that nothing can bring about from outside, and why the source has them all the same.
UNREACHED = {
    "for … in a loop that waits for …": "a limit must come while the lanes sleep: a matter of speed",
    "the launch of a child grid was refused: …": "the launch call has refused it before",
    "sparsity selector …: at most … is allowed for .…": "a constant, which is checked when a module is loaded",
    "for … bulk operations to …, among them …": "they always complete, so no report is made while they are waited for",
}


def table() -> dict[str, str]:
    """The test of each kind."""
    return dict(line.split("\t") for line in TABLE.read_text().splitlines())


def test_every_kind_has_a_test() -> None:
    known = kinds.traps() | kinds.waits()
    assert len(kinds.traps()) > 50 and len(kinds.waits()) > 8
    assert sorted(known - set(table()) - set(UNREACHED)) == []
    assert sorted(set(table()) - known) == []


def test_the_tests_meet_their_kinds(tmp_path: Path) -> None:
    """They are run by themselves, and what they have met is compared with the table."""
    file, wanted = tmp_path / "met.tsv", table()
    tests = sorted(set(wanted.values()))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.machine.recorder"]
    result = subprocess.run([*command, "--kinds-met", str(file), *tests], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-3000:]
    met = set()
    for line in file.read_text().splitlines():
        kind, test = line.split("\t")
        met.add((kind, test))
    assert sorted(set(wanted.items()) - met) == []
