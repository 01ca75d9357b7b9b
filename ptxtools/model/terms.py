"""Terms of relations, as axioms are written: evaluated over an execution, explained, and printed in the cat language.

    base = (program_order | synchronizes).plus()
    cause = base | (observation >> base)

`|`, `&`, `-` are those of sets, `a >> b` is composition (cat: a;b), `~a` the inverse, `on(S)` the identity on a set
([S]), `S * T` the product. A term knows when its value is fixed: by the program (PROGRAM), by what is observed and how
fences are ordered (CHOICE), or by all reads and the order of writes (ORDER). Values of an earlier time are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from . import relations as algebra
from .relations import Events, Rows

PROGRAM, CHOICE, ORDER = range(3)

#: One step of an explanation: the name of a relation, and two events that it relates.
Step: TypeAlias = tuple[str, int, int]


@dataclass(slots=True)
class Structure:
    """What terms are evaluated over: n events, named sets, named relations, and the values found so far, by time.

    parts: where accesses overlap partially, reads-from for each piece of memory, with the writes that cover it.
    """

    n: int
    sets: dict[str, Events]
    given: dict[str, Rows]
    parts: list[tuple[Rows, Events]] = field(default_factory=list)
    values: tuple[dict[Term, Rows], dict[Term, Rows], dict[Term, Rows]] = field(default_factory=lambda: ({}, {}, {}))

    def changed(self, time: int) -> None:
        """Relations of this time have new values: forget what was computed from them."""
        for later in self.values[time:]:
            later.clear()


# --- sets -------------------------------------------------------------------------------------------------------------


class Set:
    """A set of events."""

    def __init__(self, name: str, left: Set | None = None, sign: str = "", right: Set | None = None) -> None:
        self.name, self.left, self.sign, self.right = name, left, sign, right

    def bits(self, x: Structure) -> Events:
        if self.left is None or self.right is None:
            return x.sets[self.name]
        left, right = self.left.bits(x), self.right.bits(x)
        return left | right if self.sign == "|" else left & right if self.sign == "&" else left & ~right

    def cat(self, inner: bool = False) -> str:
        if self.left is None or self.right is None:
            return self.name
        text = f"{self.left.cat(True)} {self.sign} {self.right.cat(True)}"
        return f"({text})" if inner else text

    def __or__(self, other: Set) -> Set:
        return Set("", self, "|", other)

    def __and__(self, other: Set) -> Set:
        return Set("", self, "&", other)

    def __sub__(self, other: Set) -> Set:
        return Set("", self, "\\", other)

    def __mul__(self, other: Set) -> Term:
        return _Product(self, other)


# --- relations --------------------------------------------------------------------------------------------------------


class Term:
    """A relation between events. time: when its value is fixed."""

    time = PROGRAM

    def compute(self, x: Structure) -> Rows:
        raise NotImplementedError

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        """Steps of named relations that lead from a to b, which the term relates."""
        raise NotImplementedError

    def cat(self, inner: bool = False) -> str:
        raise NotImplementedError

    def rows(self, x: Structure) -> Rows:
        known = x.values[self.time]
        found = known.get(self)
        if found is None:
            found = known[self] = self.compute(x)
        return found

    def holds(self, x: Structure, a: int, b: int) -> bool:
        return bool(self.rows(x)[a] >> b & 1)

    def __or__(self, other: Term) -> Term:
        return _Pair("|", self, other)

    def __and__(self, other: Term) -> Term:
        return _Pair("&", self, other)

    def __sub__(self, other: Term) -> Term:
        return _Pair("\\", self, other)

    def __rshift__(self, other: Term) -> Term:
        return _Pair(";", self, other)

    def __invert__(self) -> Term:
        return _Inverse(self)

    def plus(self) -> Term:
        return _Plus(self)

    def maybe(self) -> Term:
        """This relation, or no step at all."""
        return _Maybe(self)


class Given(Term):
    """A relation that an execution comes with. meaning: its definition in the cat language, if it has one there."""

    def __init__(self, name: str, time: int = PROGRAM, meaning: str = "") -> None:
        self.name, self.time, self.meaning = name, time, meaning

    def rows(self, x: Structure) -> Rows:
        return x.given[self.name]

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        return [(self.name, a, b)]

    def cat(self, inner: bool = False) -> str:
        return self.name


class Early(Term):
    """A term whose value changes at fewer times than its parts: whoever changes them says so."""

    def __init__(self, time: int, term: Term) -> None:
        self.time, self.term = time, term

    def compute(self, x: Structure) -> Rows:
        return self.term.compute(x)

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        return self.term.proof(x, a, b)

    def cat(self, inner: bool = False) -> str:
        return self.term.cat(inner)


class Named(Term):
    """A definition of the chapter. whole: explanations take it as one step."""

    def __init__(self, name: str, section: str, term: Term, whole: bool = False) -> None:
        self.name, self.section, self.term, self.whole = name, section, term, whole
        self.time = term.time

    def rows(self, x: Structure) -> Rows:
        return self.term.rows(x)

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        return [(self.name, a, b)] if self.whole else self.term.proof(x, a, b)

    def cat(self, inner: bool = False) -> str:
        return self.name


class FromReads(Term):
    """8.9.7 (3): from a read to the writes that follow, in the coherence order, a write that it reads from, for some
    piece of memory that all three access."""

    def __init__(self, reads: Term, order: Term) -> None:
        self.reads, self.order, self.time = reads, order, ORDER

    def compute(self, x: Structure) -> Rows:
        order = self.order.rows(x)
        if not x.parts:
            found = algebra.chain(algebra.inverse(self.reads.rows(x)), order)
        else:
            found = [0] * x.n
            for reads, writes in x.parts:
                late = algebra.chain(algebra.inverse(reads), order)
                found = [a | b & writes for a, b in zip(found, late, strict=True)]
        return [row & ~(1 << a) for a, row in enumerate(found)]  # an atomic operation does not precede itself

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        return [("fr", a, b)]

    def cat(self, inner: bool = False) -> str:
        return f"({self.reads.cat(True)}^-1; {self.order.cat(True)}) \\ id"


class _Pair(Term):
    def __init__(self, sign: str, left: Term, right: Term) -> None:
        self.sign, self.left, self.right = sign, left, right
        self.time = max(left.time, right.time)

    def compute(self, x: Structure) -> Rows:
        if self.sign == ";":
            if isinstance(self.left, _On):
                events = self.left.events.bits(x)
                return [row if events >> a & 1 else 0 for a, row in enumerate(self.right.rows(x))]
            if isinstance(self.right, _On):
                events = self.right.events.bits(x)
                return [row & events for row in self.left.rows(x)]
            return algebra.chain(self.left.rows(x), self.right.rows(x))
        left, right = self.left.rows(x), self.right.rows(x)
        if self.sign == "|":
            return algebra.union(left, right)
        return algebra.common(left, right) if self.sign == "&" else algebra.without(left, right)

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        if self.sign == ";":
            into = algebra.inverse(self.right.rows(x))[b]
            through = next(algebra.members(self.left.rows(x)[a] & into))
            return self.left.proof(x, a, through) + self.right.proof(x, through, b)
        if self.sign == "|":
            return (self.left if self.left.holds(x, a, b) else self.right).proof(x, a, b)
        if self.sign == "&" and self.right.time > self.left.time:
            return self.right.proof(x, a, b)
        return self.left.proof(x, a, b)

    def cat(self, inner: bool = False) -> str:
        signs = {self.sign} if self.sign != "\\" else set()
        left, right = (
            side.cat(not (isinstance(side, _Pair) and side.sign in signs)) for side in (self.left, self.right)
        )
        text = f"{left}; {right}" if self.sign == ";" else f"{left} {self.sign} {right}"
        return f"({text})" if inner else text


class _On(Term):
    def __init__(self, events: Set) -> None:
        self.events = events

    def compute(self, x: Structure) -> Rows:
        return algebra.identity(self.events.bits(x), x.n)

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        return []

    def cat(self, inner: bool = False) -> str:
        return f"[{self.events.cat()}]"


class _Product(Term):
    def __init__(self, left: Set, right: Set) -> None:
        self.left, self.right = left, right

    def compute(self, x: Structure) -> Rows:
        return algebra.product(self.left.bits(x), self.right.bits(x), x.n)

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        return []

    def cat(self, inner: bool = False) -> str:
        text = f"{self.left.cat(True)} * {self.right.cat(True)}"
        return f"({text})" if inner else text


class _Inverse(Term):
    def __init__(self, term: Term) -> None:
        self.term, self.time = term, term.time

    def compute(self, x: Structure) -> Rows:
        return algebra.inverse(self.term.rows(x))

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        return [(f"{name}^-1", late, early) for name, early, late in reversed(self.term.proof(x, b, a))]

    def cat(self, inner: bool = False) -> str:
        return f"{self.term.cat(True)}^-1"


class _Plus(Term):
    def __init__(self, term: Term) -> None:
        self.term, self.time = term, term.time

    def compute(self, x: Structure) -> Rows:
        return algebra.closure(self.term.rows(x))

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        path = algebra.shortest(self.term.rows(x), a, b)
        return [step for early, late in pairwise(path) for step in self.term.proof(x, early, late)]

    def cat(self, inner: bool = False) -> str:
        return f"{self.term.cat(True)}+"


class _Maybe(Term):
    def __init__(self, term: Term) -> None:
        self.term, self.time = term, term.time

    def compute(self, x: Structure) -> Rows:
        return [row | 1 << a for a, row in enumerate(self.term.rows(x))]

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        return [] if a == b else self.term.proof(x, a, b)

    def cat(self, inner: bool = False) -> str:
        return f"{self.term.cat(True)}?"


def on(events: Set) -> Term:
    """[S]: each event of the set to itself."""
    return _On(events)


# --- axioms -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axiom:
    """What must not be: `term` is "empty", "irreflexive" or "acyclic"."""

    name: str
    section: str
    kind: str
    term: Term

    def allows(self, x: Structure) -> bool:
        rows = self.term.rows(x)
        if self.kind == "empty":
            return algebra.is_empty(rows)
        return algebra.is_irreflexive(rows) if self.kind == "irreflexive" else algebra.is_acyclic(rows)

    def violation(self, x: Structure) -> list[Step]:
        """The steps of a cycle, or of one pair of a relation that should be empty; none if the axiom holds."""
        rows = self.term.rows(x)
        if self.kind == "empty":
            return next((self.term.proof(x, a, b) for a, b in algebra.pairs(rows)), [])
        if self.kind == "irreflexive":
            return next((self.term.proof(x, a, a) for a, row in enumerate(rows) if row >> a & 1), [])
        path = algebra.cycle(rows)
        return [step for early, late in pairwise(path) for step in self.term.proof(x, early, late)]
