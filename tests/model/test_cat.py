"""The axioms as `--format cat` prints them say what the terms say: an evaluator of that language, over executions that
are allowed and such that are not."""

import re

import pytest

from ptxtools.model import MODELS
from ptxtools.model.axioms import model
from ptxtools.model.cat import as_cat
from ptxtools.model.executions import run
from ptxtools.model.nearest import nearest
from ptxtools.model.relations import members
from ptxtools.model.terms import Axiom
from tests.model.suite import FOLDER, loaded

TESTS = ("MP", "SB", "LB", "IRIW", "2+2W", "WRC", "MP+narrow-flag", "MP+rel+acq", "MP+fences", "SB+fence.sc",
         "IRIW+fence.sc", "Chain+atom", "CoRR", "LB+data", "MP+bar", "Atom+inc", "Alias+fence", "Proxy+gen-sur-fence",
         "Copy+publish", "Bulk+load", "Tensor+map-replaced", "Restrict+MP", "OneSided+async-cluster", "Tcgen+mma-ld",
         "Tcgen+cp-mma-threads", "Grid+wait", "MP+barrier.cluster-relaxed-fence", "Wgmma+bulk",
         "Multi+torn")  # fmt: skip
_TOKEN = re.compile(r"\(\*.*?\*\)|\s+|([A-Za-z_][\w.-]*|\^-1|[][()|;\\&*+?=])", re.DOTALL)


class Cat:
    """herd's language, as far as it is used: `|` binds least, then `;`, `\\`, `&`, `*` between sets, and what stands
    behind a term. names: sets as frozensets of events, relations as frozensets of pairs."""

    def __init__(self, text, names, events):
        self.words = [word for word in _TOKEN.findall(text) if word]
        assert not _TOKEN.sub("", text).strip()
        self.at, self.names, self.events = 0, {**names, "id": frozenset((e, e) for e in events)}, events
        self.axioms = {}
        assert self.take() == "PTX"
        while self.at < len(self.words):
            kind = self.take()
            if kind == "let":
                name, _ = self.take(), self.take()
                self.names[name] = self.term()
                continue
            found = self.term()
            assert self.take() == "as"
            if kind == "acyclic":
                found = closure(found)
            self.axioms[self.take()] = all(a != b for a, b in found)

    def take(self):
        self.at += 1
        return self.words[self.at - 1]

    def next(self):
        return self.words[self.at] if self.at < len(self.words) else ""

    def term(self, level=0):
        signs = "|;\\&*"
        if level == len(signs):
            return self.postfix()
        left = self.term(level + 1)
        while self.next() == signs[level]:
            if signs[level] == "*" and self.words[self.at + 1] not in self.names:
                break  # not between two sets
            self.take()
            right = self.term(level + 1)
            left = {"|": left.__or__, "\\": left.__sub__, "&": left.__and__, ";": lambda r, a=left: chain(a, r),
                    "*": lambda r, a=left: frozenset((x, y) for x in a for y in r)}[signs[level]](right)  # fmt: skip
        return left

    def postfix(self):
        word = self.take()
        if word in "([":
            found = self.term()
            assert self.take() == {"(": ")", "[": "]"}[word]
            found = frozenset((e, e) for e in found) if word == "[" else found
        else:
            found = self.names[word]
        while self.next() in ("+", "?", "^-1"):
            sign = self.take()
            found = (
                closure(found) if sign == "+" else found | self.names["id"] if sign == "?"
                else frozenset((b, a) for a, b in found)
            )  # fmt: skip
        return found


def chain(left, right):
    after = {}
    for a, b in right:
        after.setdefault(a, set()).add(b)
    return frozenset((a, c) for a, b in left for c in after.get(b, ()))


def closure(relation):
    while not (more := chain(relation, relation)) <= relation:
        relation |= more
    return relation


@pytest.mark.parametrize("version", MODELS)
def test_the_export_says_what_the_terms_say(version, monkeypatch):
    """But for executions whose accesses overlap in part, where `fr` goes by pieces of memory."""
    chosen, text, allows = model(version), as_cat(version), Axiom.allows
    seen = {True: 0, False: 0}

    def compared(axiom, x):
        holds = allows(axiom, x)
        if axiom is chosen.axioms[0] and not x.parts:
            events = range(x.universe.n)
            names = {name: frozenset(members(found)) for name, found in x.sets.items()}
            names |= {name: frozenset(x.universe.pairs(found)) for name, found in x.given.items()}
            cat = Cat(text, names, events)
            for definition in chosen.definitions:
                assert cat.names[definition.name] == frozenset(x.universe.pairs(definition.rows(x))), definition.name
            for other in chosen.axioms:
                assert cat.axioms[other.name] == allows(other, x), other.name
            assert len(cat.axioms) == len(chosen.axioms)
            seen[all(cat.axioms.values())] += 1
        return holds

    monkeypatch.setattr(Axiom, "allows", compared)
    for name in TESTS:
        test = loaded(FOLDER / f"{name}.litmus")
        try:
            found = run(test, version)
        except Exception as error:  # not a part of the model
            assert version != "8.x", error
            continue
        if found.witness is None:
            nearest(test, version)
    assert seen[True] > 2 and seen[False] > 2, seen
