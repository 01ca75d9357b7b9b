"""Conditions on final states: `(P0:r0 == 1 /\\ ~(x = 2))`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any, TypeAlias

from ptxtools.records import dataclass

from .programs import Condition, State, Test
from .words import Reader, Word, register_name

_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": eq, "==": eq, "!=": ne, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge,
}  # fmt: skip
#: Parentheses inside each other that are read.
_DEEPEST = 60


@dataclass(frozen=True, slots=True)
class _Not:
    term: Term

    def __call__(self, state: State) -> bool | None:
        found = self.term(state)
        return None if found is None else not found


@dataclass(frozen=True, slots=True)
class _Any:
    terms: tuple[Term, ...]

    def __call__(self, state: State) -> bool | None:
        answers = [term(state) for term in self.terms]
        return True if True in answers else None if None in answers else False


@dataclass(frozen=True, slots=True)
class _Truth:
    value: bool

    def __call__(self, state: State) -> bool | None:
        return self.value


@dataclass(frozen=True, slots=True)
class _Compared:
    """Unsigned values compare with negative numbers as the same bits do."""

    sign: Callable[[Any, Any], bool]
    left: int | str
    right: int | str

    def __call__(self, state: State) -> bool | None:
        sign, a, b = self.sign, *(v if isinstance(v, int) else state.get(v) for v in (self.left, self.right))
        if a is None or b is None:
            return None
        if sign in (eq, ne) and a != b and (a < 0) != (b < 0):
            bits = 64 if max(a, b) >> 32 or min(a, b) < -(1 << 31) else 32
            return bool(sign((a - b) & ((1 << bits) - 1), 0))
        return bool(sign(a, b))


#: A part of a condition: whether a state satisfies it; None if it has no value for a name that matters.
Term: TypeAlias = "_Not | _Any | _Truth | _Compared"


def _names(term: Term) -> Iterator[str]:
    if isinstance(term, _Not):
        yield from _names(term.term)
    elif isinstance(term, _Any):
        for part in term.terms:
            yield from _names(part)
    elif isinstance(term, _Compared):
        yield from (value for value in (term.left, term.right) if isinstance(value, str))


def _ways(term: Term, wanted: bool) -> Iterator[Term]:
    """What each by itself makes the term true, or false."""
    if isinstance(term, _Not):
        yield from _ways(term.term, not wanted)
    elif isinstance(term, _Any) and wanted:
        for part in term.terms:
            yield from _ways(part, wanted=True)
    else:
        yield term if wanted else _Not(term)


def read_condition(
    reader: Reader, threads: Iterable[int], locations: Iterable[str], registers: Mapping[str, str] | None = None
) -> Condition:
    """The condition that begins at the next word. registers: names of registers without their threads -> with them; ""
    if several threads have that register."""
    start = reader.next.start
    read = _Conditions(reader, set(threads), set(locations), registers or {})
    decided = read.implication(0)
    end = reader.words[reader.at - 1].span[1]
    goals = {
        wanted: tuple((way, frozenset(_names(way))) for way in _ways(decided, wanted)) for wanted in (True, False)
    }  # fmt: skip
    text = " ".join(reader.source.text[start:end].split())
    return Condition(decided, tuple(dict.fromkeys(read.names)), text, goals)


def read_location(reader: Reader, locations: Iterable[str]) -> str:
    """The location or element that the next words name: `x`, `x[2]`, or `x@1`, that of CTA 1."""
    return _Conditions(reader, set(), set(locations), {}).location(reader.name("a location or a register"))


def owned_registers(test: Test) -> dict[str, str]:
    """The registers that instructions write, without their threads -> with them; "" if several threads write them."""
    found: dict[str, str] = {}
    for thread in test.threads:
        written = {register for i in thread.instructions
                   for register in (*getattr(i, "results", ()), getattr(i, "result", ""))}  # fmt: skip
        for register in written - {""}:
            found[register] = "" if register in found else f"{thread.name}:{register}"
    return found


class _Conditions:
    def __init__(self, reader: Reader, threads: set[int], locations: set[str], registers: Mapping[str, str]) -> None:
        self.reader, self.threads, self.locations, self.registers = reader, threads, locations, registers
        self.names: list[str] = []

    def implication(self, depth: int) -> Term:
        left = self.disjunction(depth)
        if self.arrow():
            right = self.implication(self.deeper(depth))
            return _Any((_Not(left), right))
        return left

    def arrow(self) -> bool:
        """`=>`, or `->`."""
        reader = self.reader
        if reader.accept("=>"):
            return True
        if reader.next.text == "-" and reader.peek().text == ">":
            reader.take(), reader.take()
            return True
        return False

    def disjunction(self, depth: int) -> Term:
        terms = [self.conjunction(depth)]
        while self.doubled("\\/", "|", "or"):
            terms.append(self.conjunction(depth))
        return terms[0] if len(terms) == 1 else _Any(tuple(terms))

    def conjunction(self, depth: int) -> Term:
        terms = [self.factor(depth)]
        while self.doubled("/\\", "&", "and"):
            terms.append(self.factor(depth))
        return terms[0] if len(terms) == 1 else _Not(_Any(tuple(_Not(term) for term in terms)))

    def doubled(self, sign: str, half: str, name: str) -> bool:
        reader = self.reader
        if reader.accept(sign, name):
            return True
        if reader.accept(half):
            reader.accept(half)
            return True
        return False

    def deeper(self, depth: int) -> int:
        if depth >= _DEEPEST:
            self.reader.fail("the condition is nested too deeply")
        return depth + 1

    def factor(self, depth: int) -> Term:
        reader = self.reader
        if reader.accept("~", "not", "!"):
            inner = self.factor(self.deeper(depth))
            return _Not(inner)
        if reader.accept("("):
            inner = self.implication(self.deeper(depth))
            reader.expect(")", "after the condition")
            return inner
        if reader.next.text in ("true", "false") and reader.next.kind == "word":
            return _Truth(reader.take().text == "true")
        left = self.value()
        if reader.accept("in"):
            return _Any(tuple(_Compared(eq, left, value) for value in self.set_of_numbers()))
        sign = _SIGNS.get(reader.next.text)
        if sign is None:
            reader.fail("expected a comparison")
        reader.take()
        right = self.value()
        return _Compared(sign, left, right)

    def set_of_numbers(self) -> list[int]:
        reader = self.reader
        reader.expect("{", "after 'in'")
        found = [reader.number("a number")]
        while not reader.accept("}"):
            reader.expect(",", "between numbers")
            found.append(reader.number("a number"))
        return found

    def value(self) -> int | str:
        reader = self.reader
        if reader.accept("["):
            name = self.location(reader.name("a location"))
            reader.expect("]", "after the location")
            return name
        word = reader.next
        thread = thread_number(word)
        if thread is not None and reader.peek().text == ":":
            return self.register(thread)
        if word.kind == "number" or word.text == "-":
            return reader.number("a number")
        reader.accept("*")
        return self.location(reader.name("a register, a location or a number"))

    def register(self, thread: int) -> str:
        reader = self.reader
        if thread not in self.threads:
            reader.fail(f"there is no thread P{thread}", reader.next)
        reader.take(), reader.take()
        name = f"P{thread}:{register_name(reader.name('a register').text)}"
        self.names.append(name)
        return name

    def location(self, word: Word) -> str:
        owned = self.registers.get(register_name(word.text))
        if owned is not None and word.text not in self.locations:
            if not owned:
                self.reader.fail(f"several threads have a register '{word.text}'", word)
            self.names.append(owned)
            return owned
        if word.text not in self.locations:
            self.reader.fail(f"there is no location '{word.text}'", word)
        name = word.text
        if self.reader.next.text == "@" and self.reader.peek().kind == "number":  # shared memory of another CTA
            self.reader.take()
            name = f"{name}@{self.reader.number('a number of a CTA')}"
            if name not in self.locations:
                self.reader.fail(f"there is no location '{name}'", word)
        if self.reader.next.text == "[" and self.reader.peek().kind == "number":
            self.reader.take()
            name = f"{name}[{self.reader.number('an index')}]"
            self.reader.expect("]", "after the index")
        self.names.append(name)
        return name


def thread_number(word: Word) -> int | None:
    """The thread that `P1`, `p1`, `T1` or `1` names."""
    named = word.kind == "word" and word.text[:1] in "PpTt"
    digits = word.text[1:] if named else word.text if word.kind == "number" else ""
    return int(digits) if digits.isdigit() and digits.isascii() and len(digits) < 6 else None
