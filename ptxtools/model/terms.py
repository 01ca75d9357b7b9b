"""Terms of relations, as axioms are written: evaluated over an execution, explained, and printed in the cat language.

    base = (program_order | synchronizes).plus()
    cause = base | (observation >> base)

`|`, `&`, `-` are those of sets, `a >> b` is composition (cat: a;b), `~a` the inverse, `on(S)` the identity on a set
([S]), `S * T` the product. A term knows when its value is fixed: by the program (PROGRAM), by what is observed and how
fences are ordered (CHOICE), or by all reads and the order of writes (ORDER). Values of an earlier time are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from ptxtools.records import dataclass, field

from .relations import Events, Relation, Universe, members

PROGRAM, CHOICE, ORDER = range(3)

#: One step of an explanation: the name of a relation, and two events that it relates.
Step: TypeAlias = tuple[str, int, int]
_Known: TypeAlias = "dict[Any, Any]"


@dataclass(slots=True)
class Structure:
    """What terms are evaluated over: events, named sets, named relations, and the values found so far, by time.

    parts: where accesses overlap partially, for each piece of memory the inverse of reads-from, and the pairs that end
    in a write that covers it.
    """

    universe: Universe
    sets: dict[str, Events]
    given: dict[str, Relation]
    parts: list[list[Relation]] = field(default_factory=list)
    values: tuple[_Known, _Known, _Known] = field(default_factory=lambda: ({}, {}, {}))

    def later_writes(self, order: Relation) -> Relation:
        """8.9.7 (3) where accesses overlap partially: for each piece of memory, reads to its writes that follow."""
        found = 0
        for read, writes in self.parts:
            found |= self.universe.chain(read, order) & writes
        return found

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
        return Product(self, other)


#: All events.
ALL = Set("_")


# --- relations --------------------------------------------------------------------------------------------------------


class Term:
    """A relation between events. time: when its value is fixed."""

    time = PROGRAM

    def compute(self, x: Structure) -> Relation:
        raise NotImplementedError

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        """Steps of named relations that lead from a to b, which the term relates."""
        raise NotImplementedError

    def cat(self, inner: bool = False) -> str:
        raise NotImplementedError

    def parts(self) -> tuple[Term, ...]:
        """The terms that the value is computed from, if it changes during a search."""
        return ()

    def rows(self, x: Structure) -> Relation:
        known = x.values[self.time]
        found: Relation | None = known.get(self)
        if found is None:
            found = known[self] = self.compute(x)
        return found

    def holds(self, x: Structure, a: int, b: int) -> bool:
        return x.universe.holds(self.rows(x), a, b)

    def __or__(self, other: Term) -> Term:
        return Pair("|", self, other)

    def __and__(self, other: Term) -> Term:
        return Pair("&", self, other)

    def __sub__(self, other: Term) -> Term:
        return Pair("\\", self, other)

    def __rshift__(self, other: Term) -> Term:
        if isinstance(self, On):
            return Restricted(other, self.events, None)
        return Restricted(self, None, other.events) if isinstance(other, On) else Pair(";", self, other)

    def __invert__(self) -> Term:
        return Inverse(self)

    def plus(self) -> Term:
        return Plus(self)

    def maybe(self) -> Term:
        """This relation, or no step at all."""
        return Maybe(self)


class Given(Term):
    """A relation that an execution comes with. meaning: its definition in the cat language, if it has one there."""

    def __init__(self, name: str, time: int = PROGRAM, meaning: str = "") -> None:
        self.name, self.time, self.meaning = name, time, meaning

    def rows(self, x: Structure) -> Relation:
        return x.given[self.name]

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        return [(self.name, a, b)]

    def cat(self, inner: bool = False) -> str:
        return self.name


class Early(Term):
    """A term whose value changes at fewer times than its parts: whoever changes them says so."""

    def __init__(self, time: int, term: Term) -> None:
        self.time, self.term = time, term

    def compute(self, x: Structure) -> Relation:
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

    def rows(self, x: Structure) -> Relation:
        return self.term.rows(x)

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        return [(self.name, a, b)] if self.whole else self.term.proof(x, a, b)

    def cat(self, inner: bool = False) -> str:
        return self.name


class FromReads(Term):
    """8.9.7 (3): from a read to the writes that follow, in the coherence order, a write that it reads from, for some
    piece of memory that all three access."""

    def __init__(self, reads: Term, read: Term, order: Term) -> None:
        """reads: reads-from; read: its inverse, which an execution comes with as well."""
        self.reads, self.read, self.order, self.time = reads, read, order, ORDER

    def compute(self, x: Structure) -> Relation:
        order, universe = self.order.rows(x), x.universe
        found = x.later_writes(order) if x.parts else universe.chain(self.read.rows(x), order)
        return found & ~universe.diagonal  # an atomic operation does not precede itself

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        return [("fr", a, b)]

    def cat(self, inner: bool = False) -> str:
        return f"({self.reads.cat(True)}^-1; {self.order.cat(True)}) \\ id"


def operation(term: Term, values: Sequence[str]) -> str:
    """Python text that computes a term from the values of its parts."""
    if isinstance(term, Pair):
        left, right = values
        return {";": f"chain({left}, {right})", "|": f"{left} | {right}", "&": f"{left} & {right}",
                "\\": f"{left} & ~{right}"}[term.sign]  # fmt: skip
    if isinstance(term, Restricted):
        return f"{values[0]} & {values[1]}"
    if isinstance(term, Plus):
        return f"closure({values[0]})"
    if isinstance(term, Maybe):
        return f"{values[0]} | diagonal"
    if isinstance(term, Inverse):
        return f"u.inverse({values[0]})"
    raise TypeError(f"{type(term).__name__} has a value of its own")


class Pair(Term):
    def __init__(self, sign: str, left: Term, right: Term) -> None:
        self.sign, self.left, self.right = sign, left, right
        self.time = max(left.time, right.time)

    def parts(self) -> tuple[Term, ...]:
        return self.left, self.right

    def compute(self, x: Structure) -> Relation:
        if self.sign == ";":
            return x.universe.chain(self.left.rows(x), self.right.rows(x))
        if self.sign == "|":
            return self.left.rows(x) | self.right.rows(x)
        left = self.left.rows(x)
        return left & self.right.rows(x) if self.sign == "&" else left & ~self.right.rows(x)

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        if self.sign == ";":
            after = members(x.universe.after(self.left.rows(x), a))
            through = next(y for y in after if self.right.holds(x, y, b))
            return self.left.proof(x, a, through) + self.right.proof(x, through, b)
        if self.sign == "|":
            return (self.left if self.left.holds(x, a, b) else self.right).proof(x, a, b)
        if self.sign == "&" and self.right.time > self.left.time:
            return self.right.proof(x, a, b)
        return self.left.proof(x, a, b)

    def cat(self, inner: bool = False) -> str:
        signs = {self.sign} if self.sign != "\\" else set()
        left, right = (
            side.cat(not ((isinstance(side, Pair) and side.sign in signs)
                          or (isinstance(side, Restricted) and self.sign == ";")))
            for side in (self.left, self.right)
        )  # fmt: skip
        text = f"{left}; {right}" if self.sign == ";" else f"{left} {self.sign} {right}"
        return f"({text})" if inner else text


class Restricted(Term):
    """[S]; r or r; [S]: the pairs that begin, or end, in a set."""

    def __init__(self, term: Term, first: Set | None, last: Set | None) -> None:
        self.term, self.first, self.last, self.time = term, first, last, term.time
        self.mask = (first or ALL) * (last or ALL)

    def parts(self) -> tuple[Term, ...]:
        return self.term, self.mask

    def compute(self, x: Structure) -> Relation:
        return self.term.rows(x) & self.mask.rows(x)

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        return self.term.proof(x, a, b)

    def cat(self, inner: bool = False) -> str:
        term = self.term.cat(not isinstance(self.term, Restricted) and not _is_chain(self.term))
        text = f"[{self.first.cat()}]; {term}" if self.first is not None else term
        text = f"{text}; [{self.last.cat()}]" if self.last is not None else text
        return f"({text})" if inner else text


def _is_chain(term: Term) -> bool:
    return isinstance(term, Pair) and term.sign == ";"


class On(Term):
    def __init__(self, events: Set) -> None:
        self.events = events

    def compute(self, x: Structure) -> Relation:
        return x.universe.identity(self.events.bits(x))

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        return []

    def cat(self, inner: bool = False) -> str:
        return f"[{self.events.cat()}]"


class Product(Term):
    def __init__(self, left: Set, right: Set) -> None:
        self.left, self.right = left, right

    def compute(self, x: Structure) -> Relation:
        return x.universe.product(self.left.bits(x), self.right.bits(x))

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        return []

    def cat(self, inner: bool = False) -> str:
        text = f"{self.left.cat(True)} * {self.right.cat(True)}"
        return f"({text})" if inner else text


class Inverse(Term):
    def __init__(self, term: Term) -> None:
        self.term, self.time = term, term.time

    def parts(self) -> tuple[Term, ...]:
        return (self.term,)

    def compute(self, x: Structure) -> Relation:
        return x.universe.inverse(self.term.rows(x))

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        return [(f"{name}^-1", late, early) for name, early, late in reversed(self.term.proof(x, b, a))]

    def cat(self, inner: bool = False) -> str:
        return f"{self.term.cat(True)}^-1"


class Plus(Term):
    def __init__(self, term: Term) -> None:
        self.term, self.time = term, term.time

    def parts(self) -> tuple[Term, ...]:
        return (self.term,)

    def compute(self, x: Structure) -> Relation:
        return x.universe.closure(self.term.rows(x))

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        path = x.universe.shortest(self.term.rows(x), a, b)
        return [step for early, late in pairwise(path) for step in self.term.proof(x, early, late)]

    def cat(self, inner: bool = False) -> str:
        return f"{self.term.cat(True)}+"


class Maybe(Term):
    def __init__(self, term: Term) -> None:
        self.term, self.time = term, term.time

    def parts(self) -> tuple[Term, ...]:
        return (self.term,)

    def compute(self, x: Structure) -> Relation:
        return self.term.rows(x) | x.universe.diagonal

    def proof(self, x: Structure, a: int, b: int) -> list[Step]:
        return [] if a == b else self.term.proof(x, a, b)

    def cat(self, inner: bool = False) -> str:
        return f"{self.term.cat(True)}?"


def on(events: Set) -> Term:
    """[S]: each event of the set to itself."""
    return On(events)


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
            return not rows
        return x.universe.is_irreflexive(rows) if self.kind == "irreflexive" else x.universe.is_acyclic(rows)

    def violation(self, x: Structure) -> list[Step]:
        """The steps of a cycle, or of one pair of a relation that should be empty; none if the axiom holds."""
        rows = self.term.rows(x)
        if self.kind == "empty":
            return next((self.term.proof(x, a, b) for a, b in x.universe.pairs(rows)), [])
        if self.kind == "irreflexive":
            return next((self.term.proof(x, a, b) for a, b in x.universe.pairs(rows) if a == b), [])
        path = x.universe.cycle(rows)
        return [step for early, late in pairwise(path) for step in self.term.proof(x, early, late)]
