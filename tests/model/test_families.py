"""Families of tests, each decided by a rule from the manual, under all models."""

from ptxtools.model import MODELS
from ptxtools.model.executions import run
from tests.model.families import FAMILIES
from tests.model.suite import read
from tests.rows import rows


@rows("family", FAMILIES, ids=lambda family: family.__name__, share=3)
def test_the_rule_decides(family):
    """Each model in turn: the rules do not differ between them."""
    wrong, both = [], set()
    for at, (text, forbidden) in enumerate(family()):
        version = MODELS[at % len(MODELS)]
        both.add(forbidden)
        if run(read(text), version).allowed == forbidden:
            wrong.append((version, text))
    assert not wrong, (len(wrong), wrong[:2])
    assert both == {True, False}


def test_there_are_many():
    assert sum(1 for family in FAMILIES for _ in family()) > 1500
