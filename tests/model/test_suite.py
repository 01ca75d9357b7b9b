"""Every litmus test of the test data has the verdict that it states, and reasons for, under every model."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from ptxtools.diagnostics import PtxError
from ptxtools.model import MODELS
from ptxtools.model.executions import run
from ptxtools.model.nearest import nearest
from tests.model.suite import FILES, FOLDER, SMALL, loaded, read, verdicts
from tests.rows import rows

#: Forbidden, though no axiom is broken: no choice of reads, and no way to meet at a barrier, leads there.
NO_CANDIDATE = ("Atom+cas-fails", "Bar+count", "Bar+deadlock", "Bar+nobody", "Size+disjoint", "Bar+red-all",
                "Bar+red-count-none", "Bar+red-ctas", "Bar+red-ids", "Bar+red-LB-constant", "Bar+red-of-red",
                "Bar+red-phases", "Bar+red-popc", "Multi+float-red", "Multi+load", "Multi+red", "Multi+store",
                "Tcgen+multicast-other", "Tensor+2d-source-other-row", "Tensor+2d-store-outside",
                "Tensor+multicast-one", "Wgmma+accumulate", "Wgmma+negated", "Wgmma+product",
                "Wgmma+register", "Wgmma+scale")  # fmt: skip


@rows("path", FILES, ids=lambda path: path.stem, share=3)
def test_verdicts(path):
    """Under every model; cycles of four threads under one of them, each in turn. tools/sweep_litmus.py has them all."""
    text = path.read_text("utf-8")
    test = read(text, path.name)
    turn = MODELS if path in SMALL else (MODELS[FILES.index(path) // 2 % len(MODELS)],)
    for version, stated in verdicts(text).items():
        if version not in turn:
            continue
        if stated == "not modelled":
            with pytest.raises(PtxError):
                run(test, version)
            continue
        outcomes = run(test, version)
        assert not outcomes.cut and not outcomes.incomplete
        assert ("allowed" if outcomes.allowed else "forbidden") == stated, (version, outcomes.states)


@rows("path", FILES, ids=lambda path: path.stem)
def test_quantifiers_say_what_is_true_today(path):
    """`ptx-run --litmus testdata/litmus` reports no failure."""
    stated = verdicts(path.read_text("utf-8"))[MODELS[-1]]
    assert loaded(path).quantifier == ("exists" if stated == "allowed" else "~exists")


@pytest.mark.share(8)
@rows("path", SMALL, ids=lambda path: path.stem)
def test_what_is_forbidden_has_a_reason(path):
    """The nearest execution satisfies the condition and breaks an axiom, by a chain of steps that is a cycle."""
    test, stated = loaded(path), verdicts(path.read_text("utf-8"))
    for version in MODELS:
        if stated[version] != "forbidden":
            continue
        execution = nearest(test, version)
        if execution is None:
            assert path.stem in NO_CANDIDATE
            continue
        assert test.condition.decided(execution.state) is not False and execution.broken
        for axiom, steps in execution.broken:
            assert steps, axiom.name
            assert all(late == early for (_, _, late), (_, early, _) in pairwise(steps))
            assert axiom.kind == "empty" or steps[0][1] == steps[-1][2]


def test_there_are_tests():
    assert len(FILES) > 300 and len(SMALL) > 280


def test_the_table_of_the_documentation_is_right():
    page = (Path(__file__).resolve().parents[2] / "docs" / "memory-model.md").read_text("utf-8")
    rows_ = re.findall(r"^\| [^|]+ \| (yes|no) \| ([^|]+) \|$", page, re.MULTILINE)
    assert len(rows_) >= 20
    for answer, names in rows_:
        for name in re.findall(r"`([^`]+)`", names):
            outcomes = run(loaded(FOLDER / f"{name}.litmus"))
            assert outcomes.allowed == (answer == "yes"), name
