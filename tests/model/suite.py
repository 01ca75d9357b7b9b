"""The litmus tests of the test data, with the verdict that each states for each model."""

import re
from pathlib import Path

from ptxtools.diagnostics import Source
from ptxtools.model import MODELS
from ptxtools.model.litmus import read_litmus

FOLDER = Path(__file__).resolve().parents[2] / "testdata" / "litmus"
FILES = sorted(FOLDER.glob("*.litmus"))


def read(text, name="test.litmus"):
    return read_litmus(Source(text, name))


def verdicts(text):
    """model -> "allowed", "forbidden" or "not modelled", from the first quoted line."""
    stated = re.findall(r"(6\.0|7\.5|8\.x) (allowed|forbidden|not modelled)", text.split("\n")[1])
    assert tuple(version for version, _ in stated) == MODELS, text
    return dict(stated)


def loaded(path):
    return read(path.read_text("utf-8"), path.name)
