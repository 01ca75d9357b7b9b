"""The axioms of a model as two Python functions, made from its terms: the same values, without a call for each term.

The first computes what depends on observed reads and fences, the second the rest, and stops at the first axiom that is
broken. Values that the program fixes are computed once for each choice of paths. What is empty for a test (it has no
proxy fences, or no barriers) is left out, with all that it would lead to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from .terms import (
    ALL,
    CHOICE,
    ORDER,
    PROGRAM,
    Axiom,
    Early,
    FromReads,
    Given,
    Inverse,
    Maybe,
    Named,
    On,
    Pair,
    Plus,
    Product,
    Restricted,
    Set,
    Structure,
    Term,
    operation,
)


class Check:
    """Whether axioms allow a structure. kept: terms whose values the search asks for; they are left in `x.values`."""

    def __init__(self, axioms: Sequence[Axiom], kept: Sequence[Term], empty: frozenset[str] = frozenset()) -> None:
        self._simple = _Simplified(empty)
        self.fixed: list[Term] = []
        self._names: dict[Term, str] = {}
        self._lines: dict[int, list[str]] = {CHOICE: [], ORDER: []}
        self._kept: list[Term] = list(kept)
        for axiom in axioms:
            term = self._simple.of(axiom.term)
            if term is None:
                continue
            name = self._name(term)
            test = {"empty": name, "irreflexive": f"{name} & diagonal", "acyclic": f"closure({name}) & diagonal"}
            lines = self._lines[max(term.time, CHOICE)]
            lines.append(f"if {test[axiom.kind]}: return {'None' if lines is self._lines[CHOICE] else 'False'}")
        names = [self._name(simple) if (simple := self._simple.of(term)) is not None else "0" for term in self._kept]
        chosen = sorted(name for term, name in self._names.items() if term.time == CHOICE)
        shared = ", ".join(chosen) + "," if chosen else ""
        fixed = "".join(f"{self._names[term]}, " for term in self.fixed)
        head = ["chain, closure, diagonal = u.chain, u.closure, u.diagonal", f"({fixed}) = fixed"]
        ends = [f"values[{term.time}][kept[{at}]] = {name}" for at, (term, name) in
                enumerate(zip(self._kept, names, strict=True)) if term.time == ORDER]  # fmt: skip
        ends_early = [f"values[{term.time}][kept[{at}]] = {name}" for at, (term, name) in
                      enumerate(zip(self._kept, names, strict=True)) if term.time == CHOICE]  # fmt: skip
        self._choice = _function(
            "choice",
            "x, u, given, fixed, values, kept",
            [*head, *self._lines[CHOICE], *ends_early, f"return ({shared})"],
        )
        self._order = _function(
            "order", "x, u, given, fixed, chosen, values, kept",
            [*head, f"({shared}) = chosen", *self._lines[ORDER], *ends, "return True"],
        )  # fmt: skip

    def __call__(self, x: Structure) -> bool:
        """The choice of reads and the order of fences may have changed since the last call only if `x.changed` said
        so."""
        values = x.values
        fixed = values[PROGRAM].get(self)
        if fixed is None:
            fixed = values[PROGRAM][self] = [term.rows(x) for term in self.fixed]
        known = values[CHOICE].get(self, 0)
        if known == 0:
            known = values[CHOICE][self] = self._choice(x, x.universe, x.given, fixed, values, self._kept)
        if known is None:
            return False
        found: bool = self._order(x, x.universe, x.given, fixed, known, values, self._kept)
        return found

    def _name(self, term: Term) -> str:
        """The variable that holds the value of a term, which is computed before if need be."""
        found = self._names.get(term)
        if found is not None:
            return found
        if term.time == PROGRAM:
            self.fixed.append(term)
            name = f"p{len(self._names)}"
        else:
            text = self._text(term)
            name = f"{'c' if term.time == CHOICE else 'o'}{len(self._names)}"
            self._lines[term.time].append(f"{name} = {text}")
        self._names[term] = name
        return name

    def _text(self, term: Term) -> str:
        if isinstance(term, Given):
            return f"given[{term.name!r}]"
        if isinstance(term, FromReads):
            read, order = self._name(term.read), self._name(term.order)
            return f"(chain({read}, {order}) if not x.parts else x.later_writes({order})) & ~diagonal"
        if isinstance(term, Early):
            return operation(term.term, [self._early(part) for part in term.term.parts()])
        return operation(term, [self._name(part) for part in term.parts()])

    def _early(self, term: Term) -> str:
        """A part of a term whose value is taken before its time."""
        return f"given[{term.name!r}]" if isinstance(term, Given) and term.time == ORDER else self._name(term)


class _Simplified:
    """Terms without what is empty in a structure. empty: the names of empty sets and relations."""

    def __init__(self, empty: frozenset[str]) -> None:
        self.empty = empty
        self._known: dict[Term, Term | None] = {}

    def of(self, term: Term) -> Term | None:
        """The term, None if it is empty; equal for equal terms."""
        if term not in self._known:
            self._known[term] = self._made(term)
        return self._known[term]

    def _made(self, term: Term) -> Term | None:
        if isinstance(term, Named):
            return self.of(term.term)
        if isinstance(term, Given):
            return None if term.name in self.empty else term
        if isinstance(term, On):
            return None if self._is_empty(term.events) else term
        if isinstance(term, Restricted):
            inner = self.of(term.term)
            if inner is None or self._is_empty(term.first) or self._is_empty(term.last):
                return None
            return term if inner is term.term else Restricted(inner, term.first, term.last)
        if isinstance(term, Pair):
            return self._pair(term, self.of(term.left), self.of(term.right))
        if isinstance(term, FromReads):
            order = self.of(term.order)
            return None if order is None else FromReads(term.reads, term.read, order)
        if isinstance(term, Product):
            return term
        if isinstance(term, Early):
            inner = self.of(term.term)
            return None if inner is None else Early(term.time, inner)
        assert isinstance(term, (Maybe, Plus, Inverse))
        inner = self.of(term.term)
        if isinstance(term, Maybe):
            return Maybe(inner) if inner is not None else On(ALL)
        if inner is None:
            return None
        return type(term)(inner)

    def _pair(self, term: Pair, left: Term | None, right: Term | None) -> Term | None:
        if term.sign == "|":
            return (left | right) if left is not None and right is not None else left if right is None else right
        if left is None or (right is None and term.sign != "\\"):
            return None
        if right is None:
            return left
        return left >> right if term.sign == ";" else Pair(term.sign, left, right)

    def _is_empty(self, events: Set | None) -> bool:
        if events is None:
            return False
        if events.left is None or events.right is None:
            return events.name in self.empty
        if events.sign == "&":
            return self._is_empty(events.left) or self._is_empty(events.right)
        return self._is_empty(events.left) and (events.sign != "|" or self._is_empty(events.right))


def check_for(x: Structure, axioms: tuple[Axiom, ...], kept: tuple[Term, ...]) -> Check:
    """The check for structures with the same empty sets."""
    names = [name for name, events in x.sets.items() if not events]
    names += [
        name
        for name in ("barrier", "relaxed-barrier", "prerequisite", "covered", "dep", "issued", "completed")
        if not x.given[name]
    ]
    if not x.sets["F_SC"]:
        names.append("sc")
    return _made_check(axioms, kept, frozenset(names))


@lru_cache(maxsize=512)
def _made_check(axioms: tuple[Axiom, ...], kept: tuple[Term, ...], empty: frozenset[str]) -> Check:
    return Check(axioms, kept, empty)


def _function(name: str, parameters: str, lines: Sequence[str]) -> Callable[..., Any]:
    text = f"def {name}({parameters}):\n" + "".join(f"    {line}\n" for line in lines)
    scope: dict[str, Any] = {}
    exec(compile(text, f"<{name} of the memory model>", "exec"), scope)
    made: Callable[..., Any] = scope[name]
    return made
