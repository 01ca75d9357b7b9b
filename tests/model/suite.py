"""The litmus tests of the test data, with the verdict that each states for each model."""

import re
from pathlib import Path

from ptxtools.diagnostics import Source
from ptxtools.launch.litmus import TensorMaps
from ptxtools.model import MODELS
from ptxtools.model.litmus import read_litmus

FOLDER = Path(__file__).resolve().parents[2] / "testdata" / "litmus"
FILES = sorted(FOLDER.glob("*.litmus"))
#: All without the cycles of four threads, which tools/sweep_litmus.py goes through in full; and without all cycles.
SMALL = [path for path in FILES if not path.stem.startswith("C4-")]
ASYNCHRONOUS = [path for path in FILES if path.stem.startswith(("Async", "Bulk", "Copy", "Mbar"))]
NO_CYCLES = [path for path in SMALL if not path.stem.startswith("C3-")]


def read(text, name="test.litmus"):
    return read_litmus(Source(text, name), TensorMaps)


def verdicts(text):
    """model -> "allowed", "forbidden" or "not modelled", from the first quoted line."""
    stated = re.findall(r"(6\.0|7\.5|8\.x) (allowed|forbidden|not modelled)", text.split("\n")[1])
    assert tuple(version for version, _ in stated) == MODELS, text
    return dict(stated)


def loaded(path):
    return read(path.read_text("utf-8"), path.name)
