"""What chips computed (testdata/golden, made by tools/record_golden.py) against our semantics and the native engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxtools import isa
from tools.golden import recording, runners

FOLDER = Path(__file__).parents[2] / "testdata" / "golden"
RECORDINGS = recording.recordings(FOLDER)
#: Every so many forms are compared over a block of all inputs.
SHARE = 12

if not RECORDINGS:
    pytest.skip(
        "no GPU recordings in testdata/golden; tools/record_golden.py makes one where there is a GPU",
        allow_module_level=True,
    )


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_forms(path: Path) -> None:
    differences = list(recording.Recording(path).differences())
    assert not differences, "\n".join(differences[:40])


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_all_inputs(path: Path) -> None:
    read = recording.Recording(path)
    chosen = [isa.resolve(text) for text in list(read.meta["hashes"])[::SHARE]]
    differences = list(read.hash_differences(runners.EngineRunner(), chosen, range(0x3F, 0x40)))
    assert not differences, "\n".join(differences)
