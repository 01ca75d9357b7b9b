"""Counts of who comes to instructions: additions to a row of `ctx.counters` (`program.Counter`).

In a run that goes round by itself, what is the same in each round is multiplied once at the end.
"""

from __future__ import annotations

from ptxtools.native.code.handler import Handler
from ptxtools.native.code.runs import Again, Step
from ptxtools.program.details import Counted


def count(h: Handler) -> None:
    """Some lanes of the warp are counted: those that run this operation."""
    row = h.code.value(f"getelementptr i8, ptr {h.code.field('ctx.counters')}, i64 {h.code.field('rec.imm')}")
    words = ["1", _lanes(h, "%m")]
    if h.op.of(Counted).what == "held":
        words.append(_flag(h, h.code.value("icmp eq i32 %m, %mask")))
    _add(h, row, words)
    h.go_on()


def step(h: Handler, done: Step, guard: str) -> None:
    """A count in a run. guard: its guard as a word of 32 flags, "" if it has none."""
    _add(h, _row(h, done), _words(h, done, "%m" if done.guard < 0 else _held(h, done, guard)))


def is_steady(step: Step, again: Again) -> bool:
    """Whether a count is the same in each round but the last: that of all lanes, or of those that go round."""
    return step.kind == "count" and (step.guard < 0 or step.guard == again[0])


def after_rounds(h: Handler, done: Step, guard: str, again: Again) -> None:
    """A steady count, behind %rounds rounds in which all lanes went back and a last one."""
    last = _words(h, done, "%m" if done.guard < 0 else _held(h, done, guard))
    before = _words(h, done, "%m", full=True)
    if done.guard >= 0 and done.negated == again[1]:
        before = ["0"] * len(last)
    sums = [
        h.code.value(f"add i64 {h.code.value(f'mul i64 %rounds, {earlier}')}, {late}")
        for earlier, late in zip(before, last, strict=True)
    ]
    _add(h, _row(h, done), sums)


def _words(h: Handler, done: Step, counted: str, *, full: bool = False) -> list[str]:
    """What one round adds to the row: as many words as the counter has. full: all lanes are counted."""
    detail = done.detail
    assert isinstance(detail, Counted)
    sure = full or counted == "%m"
    words = ["1" if sure else _flag(h, h.code.value(f"icmp ne i32 {counted}, 0")), _lanes(h, counted)]
    if detail.what == "held":
        words.append("1" if sure else _flag(h, h.code.value(f"icmp eq i32 {counted}, %m")))
    return words


def _held(h: Handler, done: Step, word: str) -> str:
    """The lanes for which the guard of a step holds."""
    flags = h.code.value(f"xor i32 {word}, -1") if done.negated else word
    return h.code.value(f"and i32 {flags}, %m")


def _row(h: Handler, done: Step) -> str:
    detail = done.detail
    assert isinstance(detail, Counted)
    return h.code.value(f"getelementptr i8, ptr {h.code.field('ctx.counters')}, i64 {detail.offset}")


def _lanes(h: Handler, mask: str) -> str:
    number = h.code.call("llvm.ctpop.i32", "i32", [("i32", mask)])
    return h.code.value(f"zext i32 {number} to i64")


def _flag(h: Handler, flag: str) -> str:
    return h.code.value(f"zext i1 {flag} to i64")


def _add(h: Handler, row: str, words: list[str]) -> None:
    for number, word in enumerate(words):
        place = h.code.value(f"getelementptr i64, ptr {row}, i64 {number}") if number else row
        old = h.code.value(f"load i64, ptr {place}")
        h.code.line(f"store i64 {h.code.value(f'add i64 {old}, {word}')}, ptr {place}")
