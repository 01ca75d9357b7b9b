"""What the warning rules see of the seeded bugs in testdata/bugs without a run; of their corrections nothing."""

from __future__ import annotations

import pytest

from ptxtools.linter import lint
from ptxtools.syntax import parse
from tests.observe import bugs

FILES = sorted(bugs.FOLDER.glob("*.bugs"))
#: By file, how many bugs the rules see.
SEEN = {"barriers": 20, "bounds": 21, "clusters": 5, "copies": 20, "global_races": 11, "heap_and_uninitialised": 10,
        "maps_and_proxies": 6, "masks": 26, "registers": 9, "shared_races": 12, "tcgen05": 13, "wgmma": 11}  # fmt: skip


def hazards(pair: bugs.Pair, sign: str) -> list[str]:
    size = f".param .u64 b) .reqntid {pair.number('block', 64)} {{"  # what the launch says
    found = parse(pair.text(sign).replace(".param .u64 b) {", size), "k.ptx")
    assert not found.diagnostics
    return [d.code for d in lint(found.module) if d.code.startswith("PTX5")]


@pytest.mark.share(3)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_bugs_are_seen_and_corrections_are_not(path) -> None:
    seen = 0
    for pair in bugs.read(path):
        bug, correction = hazards(pair, "-"), hazards(pair, "+")
        assert set(correction) <= {"PTX520"}, (pair.name, correction)  # the frame's registers
        seen += len(bug) > len(correction)
    print(f"{path.stem}: {seen} of {len(bugs.read(path))} bugs are seen")
    assert seen >= SEEN.get(path.stem, 0)
