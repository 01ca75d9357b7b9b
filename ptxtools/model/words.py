"""The words of a litmus test, with their positions."""

from __future__ import annotations

import re
from typing import NoReturn

from ptxtools.diagnostics import Diagnostic, PtxError, Source, Span
from ptxtools.records import dataclass

_WORD = re.compile(
    r"""(?P<skip>\s+|(?://|\#)[^\n]*|/\*.*?\*/|<<.*?>>)
      | (?P<nested>\(\*)
      | (?P<open>/\*|<<)
      | (?P<text>"[^"]*")
      | (?P<number>0[xX][0-9a-fA-F]+[uUlL]*(?![\w])|\d+[uUlL]*(?![\w]))
      | (?P<word>(?:[A-Za-z_$%]|\.(?=[A-Za-z_]))[\w$%]*(?:(?:\.|::)[\w$%]+(?:(?<=::\d):\d)?)*)
      | (?P<sign>/\\|\\/|[!=<>]=|=>|<>|[-=<>~!()\[\]{},;:|@&+*])""",
    re.VERBOSE | re.DOTALL,
)

_MARKS = re.compile(r"\(\*|\*\)")
_COMMENT = re.compile(r"\s+|//[^\n]*|\(\*.*?\*\)|/\*.*?\*/", re.DOTALL)
#: Words behind which a condition in parentheses may stand.
_BEFORE_PARENTHESES = frozenset(("exists", "forall", "final", "filter", "(", "~", "!", "not", "/\\", "\\/", "&", "|",
                                 "and", "or", "=>"))  # fmt: skip
_NAME = re.compile(r"[A-Za-z_]")

#: Longest test that is read, characters: a litmus test is a screen of text.
LONGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Word:
    """kind: "number", "word", "sign", "text", or "end" after the last."""

    kind: str
    text: str
    start: int

    @property
    def span(self) -> Span:
        return self.start, self.start + max(len(self.text), 1)


def refuse(source: Source, message: str, span: Span, help_: str = "") -> NoReturn:
    raise PtxError([Diagnostic("PTX100", message, span, source, help=(help_,) if help_ else ())])


def beginning(text: str) -> int:
    """Where a text begins behind blanks and comments."""
    at = int(text.startswith("\ufeff"))
    while (match := _COMMENT.match(text, at)) is not None:
        at = match.end()
    return at


def _comments(text: str, start: int, end: int) -> dict[int, int]:
    """Where the comments end that begin with `(*`, by their beginnings; some are inside of others."""
    found: dict[int, int] = {}
    begun: list[int] = []
    for mark in _MARKS.finditer(text, start, end):
        if mark[0] == "(*":
            begun.append(mark.start())
        elif begun:
            found[begun.pop()] = mark.end()
    return found


def words_of(source: Source, start: int = 0, end: int | None = None) -> list[Word]:
    """The words between two offsets, and an "end". Raises PtxError for what is no word."""
    text, at = source.text, start
    found: list[Word] = []
    end = len(text) if end is None else end
    comments: dict[int, int] | None = None
    if end - start > LONGEST:
        refuse(source, f"the test has more than {LONGEST} characters", (0, 1))
    while at < end:
        match = _WORD.match(text, at, end)
        if match is not None and match.lastgroup == "nested":
            if comments is None:
                comments = _comments(text, at, end)
            behind = comments.get(at)
            if behind is None and not (found and found[-1].text in _BEFORE_PARENTHESES and _NAME.match(text, at + 2)):
                refuse(source, "this comment or text has no end", (at, at + 1))
            if behind is None:  # no comment, but `exists (*x == 1)`
                found.append(Word("sign", "(", at))
            at = at + 1 if behind is None else behind
            continue
        if match is None or match.lastgroup == "open":
            endless = match is not None or text[at] == '"'
            refuse(source, "this comment or text has no end" if endless else "unexpected text", (at, at + 1))
        if match.lastgroup != "skip":
            found.append(Word(str(match.lastgroup), match.group(), at))
        at = match.end()
    found.append(Word("end", "", max(end - 1, 0)))
    return found


def register_name(text: str) -> str:
    """A register's name without the sign that it may begin with: `%r1`, `$r1` and `r1` are one."""
    return text.lstrip("%$")


class Reader:
    """Words one after the other."""

    def __init__(self, source: Source, words: list[Word]) -> None:
        self.source, self.words, self.at = source, words, 0

    @property
    def next(self) -> Word:
        return self.words[self.at]

    def peek(self, ahead: int = 1) -> Word:
        return self.words[min(self.at + ahead, len(self.words) - 1)]

    def take(self) -> Word:
        word = self.words[self.at]
        if word.kind != "end":
            self.at += 1
        return word

    def take_apart(self) -> None:
        """Make words of the parts of the next one, which begin with a dot each."""
        word, start = self.next, self.next.start
        parts = []
        for text in re.findall(r"\.[^.]*", word.text):
            parts.append(Word(word.kind, text, start))
            start += len(text)
        if sum(len(part.text) for part in parts) == len(word.text):
            self.words[self.at : self.at + 1] = parts

    def accept(self, *texts: str) -> Word | None:
        """The next word, if it is one of these."""
        return self.take() if self.next.text in texts and self.next.kind in ("sign", "word") else None

    def expect(self, text: str, where: str) -> Word:
        return self.accept(text) or self.fail(f"expected '{text}' {where}")

    def name(self, what: str) -> Word:
        return self.take() if self.next.kind == "word" else self.fail(f"expected {what}")

    def number(self, what: str) -> int:
        """An integer, maybe with a sign."""
        negative = self.accept("-") is not None
        if not negative and self.next.text == "+" and self.peek().kind == "number":
            self.take()
        if self.next.kind != "number":
            self.fail(f"expected {what}")
        word = self.take()
        digits = word.text.rstrip("uUlL")
        if len(digits) > 40:
            self.fail("this number is too long", word)
        value = int(digits, 16) if digits[:2] in ("0x", "0X") else int(digits)
        return -value if negative else value

    def fail(self, message: str, word: Word | None = None, help_: str = "") -> NoReturn:
        word = word or self.next
        found = "" if word is not self.next else ", found the end" if word.kind == "end" else f", found '{word.text}'"
        refuse(self.source, message + found, word.span, help_)
