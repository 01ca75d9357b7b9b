"""Each kind of trap, and each kind of waiting that a deadlock report names, has a test that meets it (`kinds.tsv`: one
with its parameters). A test that stands there fails if it does not meet its kinds (`tests/conftest.py`)."""

from __future__ import annotations

import pytest

from . import kinds, recorder

#: Kinds that nothing can bring about from outside, and why the source has them all the same.
UNREACHED = {
    "for … in a loop that waits for …": "a limit must come while the lanes sleep: a matter of speed",
    "the launch of a child grid was refused: …": "the launch call has refused it before",
    "sparsity selector …: at most … is allowed for .…": "a constant, which is checked when a module is loaded",
    "running": "the head of a summary that a signal asks for (tests/cli/run/test_ticking.py, in a process of its own)",
    "stopped": "the head of the report that Ctrl-C asks for (tests/machine/test_interrupts.py)",
    "for … bulk operations to …, among them …": "they always complete, so no report is made while they are waited for",
}


def test_every_kind_has_a_test() -> None:
    known = kinds.traps() | kinds.waits()
    assert len(kinds.traps()) > 50 and len(kinds.waits()) > 8
    assert sorted(known - set(recorder.table()) - set(UNREACHED)) == []
    assert sorted(set(recorder.table()) - known) == []


def test_the_tests_are_there(request: pytest.FixtureRequest) -> None:
    """Those of the files in this run, unless it was asked for some of their tests only."""
    config, there = request.config, {item.nodeid for item in request.session.items}
    if config.option.keyword or config.option.markexpr or config.option.deselect or "::" in "".join(config.args):
        return
    files = {test.partition("::")[0] for test in there}
    assert [test for test in recorder.kinds_of() if test.partition("::")[0] in files and test not in there] == []


@pytest.mark.parametrize("kind", ["trap instruction", "barrier … does not exist"])
def test_a_kind_that_is_not_met_is_missed(kind: str) -> None:
    assert recorder.missed([kind], []) == recorder.missed([kind], ["something else"]) == [kind]
    assert recorder.missed([kind], [kind.replace("…", "99")]) == []
