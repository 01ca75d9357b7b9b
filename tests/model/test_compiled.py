"""The compiled axioms against the terms that they were made from, at every step of the searches of the suite."""

from ptxtools.model import MODELS, executions, interleavings
from ptxtools.model.axioms import model
from ptxtools.model.search import Search
from tests.model.suite import FILES, loaded, verdicts
from tests.rows import rows

#: Nothing is chosen in them: nobody leaves a barrier, and program order alone orders the writes.
WITHOUT_CHOICES = ("Bar+count", "Bar+deadlock", "Bar+nobody", "CoWW")


@rows("path", FILES[::4], ids=lambda path: path.stem, share=3)
def test_the_same_answer_at_every_step(path, monkeypatch):
    answers = set()

    def both(search):
        found = search.check(search.x)
        assert found == all(axiom.allows(search.x) for axiom in search.axioms)
        if found:
            assert search.x.values[1].get(search.chosen.cause.term) == search.chosen.cause.term.compute(search.x)
        answers.add(found)
        return found

    monkeypatch.setattr(Search, "_allowed", both)
    monkeypatch.setattr(interleavings, "MOST_PREFIXES", 0)
    for version in MODELS:
        if verdicts(path.read_text("utf-8"))[version] != "not modelled":
            executions.run(loaded(path), version)
    assert answers or path.stem in WITHOUT_CHOICES


def test_no_axiom_is_lost():
    """Every model has all seven, and leaving one out leaves the others."""
    for version in MODELS:
        assert len(model(version).axioms) == 7
        assert all(len(model(version, axiom.name).axioms) in (6, 7) for axiom in model(version).axioms)
