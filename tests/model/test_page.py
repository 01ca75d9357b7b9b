"""What docs/memory-model.md says of tests and of kernels is what the model says."""

import re
from pathlib import Path

import ptxtools
from ptxtools.model import MODELS
from ptxtools.model.executions import run
from tests.model.suite import FOLDER, loaded, verdicts
from tests.rows import rows

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "memory-model.md").read_text("utf-8")
CLASSICS = re.findall(r"^\| `(\w+\.toml)` \| .* \| (yes|no)\b.* \|$", PAGE, re.MULTILINE)
_VERDICT = "(–|allowed|forbidden)"
DIFFERENCES = re.findall(
    rf"^\| .* \| `([^`]+)` \| {_VERDICT} \| {_VERDICT} \| {_VERDICT} \|$", PAGE, re.MULTILINE
)  # fmt: skip


@rows(("name", "kept"), CLASSICS, ids=[name for name, _ in CLASSICS])
def test_locks_queues_and_pipelines(name, kept):
    """A condition with `exists` is what must not be."""
    outcomes = ptxtools.litmus_launch(ROOT / "examples" / "memory-model" / name)
    promised = not outcomes.allowed if outcomes.test.quantifier == "exists" else outcomes.holds
    assert promised == (kept == "yes") and not outcomes.incomplete


def test_every_launch_file_of_the_examples_is_there():
    files = {path.name for path in (ROOT / "examples" / "memory-model").glob("*.toml")}
    assert files == {name for name, _ in CLASSICS} | {"handoff.toml", "released.toml"}


@rows(("name", "old", "newer", "today"), DIFFERENCES, ids=[row[0] for row in DIFFERENCES])
def test_differences_of_the_models(name, old, newer, today):
    path = FOLDER / f"{name}.litmus"
    said = dict(zip(MODELS, (old, newer, today), strict=True))
    stated = verdicts(path.read_text("utf-8"))
    assert {model: "–" if one == "not modelled" else one for model, one in stated.items()} == said
    assert len(set(said.values())) > 1
    for model, one in said.items():
        if one != "–":
            assert run(loaded(path), model).allowed == (one == "allowed")


def test_there_are_differences_and_classics():
    assert len(DIFFERENCES) >= 18 and len(CLASSICS) >= 13


def test_every_test_that_the_page_names_is_there():
    named = set(re.findall(r"`([A-Z]\w*\+[\w.+-]+)`", PAGE))
    assert len(named) > 60 and not [name for name in named if not (FOLDER / f"{name}.litmus").is_file()]
