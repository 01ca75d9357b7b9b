"""Counts of who comes to instructions: additions to a row of `ctx.counters` (`program.Counter`).

In a run that goes round by itself, sums stay in registers until its end; and what is the same in each round is
multiplied there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxtools.native.code.handler import Handler
from ptxtools.native.code.runs import Again, Step
from ptxtools.program.details import Counted

#: What a row gets: warps, lanes, and whole warps, which counts of those who reach a place leave out.
_Words = tuple[str, str, str]


def count(h: Handler) -> None:
    """The lanes that run this operation are counted."""
    row = row_of(h)
    whole = _flag(h, h.code.value("icmp eq i32 %m, %mask"))
    _add(h, row, h.op.of(Counted), ("1", lanes_of(h, "%m"), whole))
    h.go_on()


def row_of(h: Handler) -> str:
    """Address of the row that the record names."""
    return h.code.value(f"getelementptr i8, ptr {h.code.field('ctx.counters')}, i32 {h.code.field('rec.extra')}")


def step(h: Handler, done: Step, word: Callable[[int], str]) -> None:
    """A count in a run. word: the 32 flags of a guard."""
    if done.guard < 0:
        words = ("1", lanes_of(h, "%m"), "1")
    else:
        words = _of_flags(h, _held(h, word(done.guard), done.negated))
    _add(h, _row(h, done), _detail(done), words)


class RoundCounts:
    """The counts of a run that goes round by itself. Made in the handler's first block."""

    def __init__(self, h: Handler, steps: Sequence[Step], again: Again) -> None:
        self.handler, self.again = h, again
        self.steps = [step for step in steps if step.kind == "count"]
        guards = dict.fromkeys(step.guard for step in self.steps if step.guard not in (-1, again[0]))
        #: By guard, where the sums are for its being true; LLVM keeps them in registers.
        self.sums = {guard: [h.code.value("alloca i64") for _ in range(3)] for guard in guards}

    def begin(self) -> None:
        """Before the first round."""
        for place in [place for places in self.sums.values() for place in places]:
            self.handler.code.line(f"store i64 0, ptr {place}")

    def each(self, word: Callable[[int], str]) -> None:
        """At the end of each round."""
        h = self.handler
        for guard, places in self.sums.items():
            for place, more in zip(places, _of_flags(h, _held(h, word(guard), False)), strict=True):
                old = h.code.value(f"load i64, ptr {place}")
                h.code.line(f"store i64 {h.code.value(f'add i64 {old}, {more}')}, ptr {place}")

    def end(self, before: str, last: str) -> None:
        """Behind so many rounds, i64, in which all lanes went back, and a last one; last: the flags of the branch's
        guard in that one; empty if there is no last one."""
        e = self.handler.code
        rounds = e.value(f"add i64 {before}, 1") if last else before
        lanes = lanes_of(self.handler, "%m")
        whole = (rounds, e.value(f"mul i64 {rounds}, {lanes}"), rounds)
        back = (before, e.value(f"mul i64 {before}, {lanes}"), before)
        for done in self.steps:
            if done.guard < 0:
                words = whole
            elif done.guard == self.again[0]:
                words = self._of_way_back(done, last, back)
            else:
                some, held, full = (e.value(f"load i64, ptr {place}") for place in self.sums[done.guard])
                words = (some, held, full)
                if done.negated:
                    totals = zip(whole, (full, held, some), strict=True)
                    some, held, full = (e.value(f"sub i64 {total}, {others}") for total, others in totals)
                    words = (some, held, full)
            _add(self.handler, _row(self.handler, done), _detail(done), words)

    def _of_way_back(self, done: Step, last: str, back: _Words) -> _Words:
        """Of the guard of the branch behind the rounds."""
        h = self.handler
        words = _of_flags(h, _held(h, last, done.negated)) if last else ("0", "0", "0")
        if done.negated == self.again[1]:
            return words
        some, held, full = (h.code.value(f"add i64 {a}, {b}") for a, b in zip(back, words, strict=True))
        return some, held, full


def _held(h: Handler, word: str, negated: bool) -> str:
    """The lanes for which a guard holds."""
    flags = h.code.value(f"xor i32 {word}, -1") if negated else word
    return h.code.value(f"and i32 {flags}, %m")


def _of_flags(h: Handler, counted: str) -> _Words:
    some = _flag(h, h.code.value(f"icmp ne i32 {counted}, 0"))
    return some, lanes_of(h, counted), _flag(h, h.code.value(f"icmp eq i32 {counted}, %m"))


def _detail(done: Step) -> Counted:
    assert isinstance(done.detail, Counted)
    return done.detail


def _row(h: Handler, done: Step) -> str:
    return h.code.value(f"getelementptr i8, ptr {h.code.field('ctx.counters')}, i64 {_detail(done).row}")


def lanes_of(h: Handler, mask: str) -> str:
    number = h.code.call("llvm.ctpop.i32", "i32", [("i32", mask)])
    return h.code.value(f"zext i32 {number} to i64")


def _flag(h: Handler, flag: str) -> str:
    return h.code.value(f"zext i1 {flag} to i64")


def _add(h: Handler, row: str, detail: Counted, words: _Words) -> None:
    add(h, row, words if detail.what == "held" else words[:2])


def add(h: Handler, row: str, words: Sequence[str]) -> None:
    """Add words (i64) to the first ones of a row."""
    for number, word in enumerate(words):
        place = h.code.value(f"getelementptr i64, ptr {row}, i64 {number}") if number else row
        old = h.code.value(f"load i64, ptr {place}")
        h.code.line(f"store i64 {h.code.value(f'add i64 {old}, {word}')}, ptr {place}")
