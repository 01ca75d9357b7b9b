"""What each axiom alone forbids: the outcome is allowed without it, and forbidden with it, whatever the others say."""

import pytest

from ptxtools.model import MODELS
from ptxtools.model.axioms import model
from ptxtools.model.executions import run
from tests.model.suite import ASYNCHRONOUS, NO_CYCLES, SMALL, read, verdicts

AXIOMS = ("Coherence", "Fence-SC", "Single-Copy-Atomicity", "Atomicity", "No-Thin-Air", "SC-per-Location", "Causality")
#: Axioms that forbid outcomes of their own under every model, and under 6.0 only (docs/memory-model.md).
ALWAYS, ONLY_6_0 = {"Coherence", "No-Thin-Air", "Causality"}, {"SC-per-Location"}
#: Tests that are asked for by name below.
WELL_KNOWN = ("MP+rel+acq", "SB+fence.sc", "IRIW+fence.sc", "S+rel+acq", "2+2W+fence.sc", "LB+ctrl", "LB+guard", "CoRW",
              "CoWW", "CoWR")  # fmt: skip


def test_the_axioms_are_those_of_the_chapter():
    for version in MODELS:
        assert tuple(axiom.name for axiom in model(version).axioms) == AXIOMS
        for name in AXIOMS:
            assert name not in {axiom.name for axiom in model(version, name).axioms}


@pytest.fixture(scope="module")
def needed():
    """(model, axiom) -> the tests that are allowed only because the axiom is left out. The axioms of 8.x are those of
    7.5 (test_later_models_have_the_same_axioms): its model is asked only for tests that 7.5 does not have."""
    found = {}
    # Asynchronous operations rest on no axiom that others do not rest on; of the others, half are asked.
    others = [path for path in NO_CYCLES if path not in ASYNCHRONOUS]
    for path in [path for at, path in enumerate(others) if at % 2 or path.stem in WELL_KNOWN]:
        text = path.read_text("utf-8")
        test, stated = read(text), verdicts(text)
        for version in MODELS:
            if stated[version] != "forbidden" or (version == "8.x" and stated["7.5"] == "forbidden"):
                continue
            for name in AXIOMS:
                if run(test, version, without=name, first=True).allowed:
                    found.setdefault((version, name), []).append(path.stem)
    for name in AXIOMS:
        if ("7.5", name) in found:
            found.setdefault(("8.x", name), []).extend(found["7.5", name])
    return found


def test_later_models_have_the_same_axioms():
    for name in ("", *AXIOMS):
        old, new = model("7.5", name), model("8.x", name)
        assert [d.term.cat() for d in old.definitions] == [d.term.cat() for d in new.definitions]
        assert [(a.name, a.kind, a.term.cat()) for a in old.axioms] == [
            (a.name, a.kind, a.term.cat()) for a in new.axioms
        ]


def test_axioms_that_forbid_outcomes_of_their_own(needed):
    for version in MODELS:
        own = {name for name in AXIOMS if (version, name) in needed}
        assert own == (ALWAYS | ONLY_6_0 if version == "6.0" else ALWAYS), (version, needed)


def test_well_known_tests_rest_on_the_axiom_that_is_named_for_them(needed):
    for version in MODELS:
        assert {"MP+rel+acq", "SB+fence.sc", "IRIW+fence.sc"} <= set(needed[version, "Causality"])
        assert {"S+rel+acq", "2+2W+fence.sc"} <= set(needed[version, "Coherence"])
        assert {"LB+ctrl", "LB+guard"} <= set(needed[version, "No-Thin-Air"])
    assert {"CoRW", "CoWW", "CoWR"} <= set(needed["6.0", "SC-per-Location"])


def test_each_outcome_that_an_axiom_forbids_has_a_twin_that_is_allowed(needed):
    """A test whose name is the beginning of the forbidden one's, or that begins with its first part, is allowed."""
    allowed = {path.stem for path in SMALL if "allowed" in verdicts(path.read_text("utf-8")).values()}
    for (version, name), tests in needed.items():
        for test in tests:
            family = test.split("+")[0]
            assert any(twin.split("+")[0] == family or family.startswith("Co") for twin in allowed), (
                version,
                name,
                test,
            )


def test_fence_sc_forbids_executions_but_no_outcome():
    """It alone keeps the order of the fences of one thread from contradicting program order."""
    text = "PTX t\n{ x=0; }\nP0@cta 0,gpu 0 ;\n fence.sc.gpu ;\n fence.sc.gpu ;\n fence.sc.gpu ;\n"
    assert [run(read(text), version).executions for version in MODELS] == [1, 1, 1]
    assert [run(read(text), version, without="Fence-SC").executions for version in MODELS] == [6, 6, 6]
