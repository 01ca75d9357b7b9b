"""Words of a text: what each is, and as the protocol encodes them for colouring (semantic tokens).

A text is read line by line, and a line that was read before, in the same state, is not read again: so a change costs
the lines that it touches, and the client is sent what differs.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from operator import itemgetter

from ptxtools.diagnostics import Span
from ptxtools.isa.index import CHAPTERS
from ptxtools.records import NamedTuple
from ptxtools.syntax.edited import common, edit_of

from .positions import Positions, lines_of

#: Comments and strings, dotted words, numbers, names with their component, and single signs.
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*(?s:.*?)(?:\*/|\Z))|(?P<string>\"[^\"\n]*\"?)|(?P<dotted>\.\w+(?:::\w+)*)"
    r"|(?P<number>\d[\w.]*)|(?P<name>[A-Za-z_$%][\w$]*)|(?P<sign>[^\s\w])",
    re.ASCII,
)
#: Kinds of words with the protocol's names.
KINDS = {
    "comment": "comment", "string": "string", "number": "number", "directive": "keyword", "modifier": "decorator",
    "opcode": "function", "label": "label", "name": "variable",
}  # fmt: skip
NAMES = list(dict.fromkeys(KINDS.values()))
_NUMBERS = {kind: NAMES.index(name) for kind, name in KINDS.items()}
#: A name at the end of a line, behind the end of a statement: a label, if a colon follows.
_LABEL = re.compile(r"(?:^|[;{}:)])\s*[A-Za-z_$%][\w$]*\s*\Z", re.ASCII)
_ENDS = frozenset(["", *";,:{}[]()"])
#: Lines that are remembered.
_MOST = 200_000
#: Numbers of a word in the protocol's encoding.
_FIVE = 5


class Token(NamedTuple):
    """kind: one of `KINDS`."""

    kind: str
    text: str
    span: Span


class Words:
    """Reads words; what one is may depend on those before it."""

    def __init__(self, before: str = ";", opcode: bool = False) -> None:
        self.before, self.opcode = before, opcode

    def of(self, text: str, start: int = 0) -> Iterator[Token]:
        """The words of a text from an offset on, signs left out."""
        for match in _TOKEN.finditer(text, start):
            kind, word = match.lastgroup or "", match[0]
            if kind == "comment":
                yield Token(kind, word, match.span())
                continue
            before = self.before
            if kind == "dotted":
                kind = "modifier" if self.opcode or before[-1:].isalnum() or before == "]" else "directive"
                if (
                    kind == "modifier"
                    and not self.opcode
                    and not text[max(match.start() - 1, 0) : match.start()].strip()
                ):
                    kind = "directive"
            elif kind == "name":
                if before[-1:].isdigit() and not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip():
                    before = ";"  # behind a directive that ends with its line
                if before in (";", "{", "}", ":", ")") and _is_label(text, match.end()):
                    kind = "label"
                elif word in CHAPTERS and _heads(text, match.end(), before):
                    kind = "opcode"
            self.opcode = kind == "opcode" or (self.opcode and kind == "modifier")
            self.before = word if kind != "name" or before != "@" else ";"
            self.before = "@" if self.before == "!" else self.before
            if kind != "sign":
                yield Token(kind, word, match.span())


def _is_label(text: str, at: int) -> bool:
    rest = text[at : at + 20].lstrip()
    return rest.startswith(":") and not rest.startswith("::")


def _heads(text: str, at: int, before: str) -> bool:
    """Whether a mnemonic begins an instruction: behind the end of a statement or a guard."""
    follows = text[at : at + 1]
    if before in (",", "[", "(", "@") or before[-1:].isalnum():
        return follows == "." and before != "@"
    return follows not in ("", ",", "}", "]", ")") if before == "{" else True


def encoded(tokens: Sequence[Token], places: Positions) -> list[int]:
    """Words with their kinds, each as its distance from the one before. A word of several lines is one for each."""
    data: list[int] = []
    line = column = 0
    for token in tokens:
        kind, at = _NUMBERS[token.kind], token.span[0]
        for text in lines_of(token.text):
            start, end = places.position(at), places.position(at + len(text.rstrip("\r\n")))
            at += len(text)
            if end.character > start.character:
                moved = start.line - line
                data += [moved, start.character - (0 if moved else column), end.character - start.character, kind, 0]
                line, column = start.line, start.character
    return data


class Row(NamedTuple):
    """Lines that are read as one. first, others: their numbers, from the first line on; last: the line of the last
    word; height: the number of lines; length: their characters; before, opcode: the state of `Words` behind them."""

    first: tuple[int, ...]
    others: tuple[int, ...]
    last: int
    height: int
    length: int
    before: str
    opcode: bool


_LENGTH, _NUMBERS_OF = itemgetter(4), itemgetter(0, 1)
_TOP = Row((), (), 0, 0, 0, ";", False)


class Coloured:
    """A text's words, row by row. known: rows that were read before, of any text, by their text and the state before
    them; older: an earlier text's words, from which those of rows that have not changed are taken."""

    def __init__(
        self, text: str, encoding: str, known: dict[tuple[str, str, bool], Row], older: Coloured | None = None
    ) -> None:
        if len(known) > _MOST:
            known.clear()
        self.text, self._encoding = text, encoding
        self.rows: list[Row] = []
        if older is None or older._encoding != encoding:
            self._read(known, 0, [], 0)
            return
        first, last = edit_of(older.text, text)
        starts = list(accumulate(map(_LENGTH, older.rows), initial=0))
        place = bisect_right(starts, first, hi=len(older.rows)) - 1
        self.rows = older.rows[:place]
        same = self._read(known, starts[place], starts, len(text) - len(older.text), last, older.rows)
        self.rows += older.rows[same:]

    def _read(
        self,
        known: dict[tuple[str, str, bool], Row],
        at: int,
        starts: Sequence[int],
        moved: int,
        last: int = 0,
        older: Sequence[Row] = (),
    ) -> int:
        """Read rows from an offset on, until one begins as an older text's row does, from which on both are the same;
        the number of that row. starts: where the older ones begin; moved: how far they are moved."""
        text, rows = self.text, self.rows
        state = rows[-1] if rows else _TOP
        while at <= len(text):
            if at - moved >= last and older:
                place = bisect_left(starts, at - moved)
                if place < len(older) and starts[place] == at - moved:
                    above = older[place - 1] if place else _TOP
                    if (above.before, above.opcode) == (state.before, state.opcode):
                        return place
            line = _row_at(text, at)
            key = line, state.before, state.opcode
            row = known.get(key)
            if row is None:
                row = known[key] = self._new_row(*key)
            rows.append(row)
            at += row.length
            state = row
        return len(older)

    def _new_row(self, line: str, before: str, opcode: bool) -> Row:
        words, places = Words(before, opcode), Positions(line + "\n", self._encoding)
        data = tuple(encoded(list(words.of(line)), places))
        height = places.position(len(line) + 1).line
        return Row(data[:1], data[1:], sum(data[::_FIVE]), height, len(line) + 1, words.before, words.opcode)

    def numbers(self, begin: int = 0, end: int | None = None) -> list[int]:
        """The encoding of some rows."""
        data: list[int] = []
        gap, place = 0, begin  # lines since the last word, or the beginning
        while place:
            place -= 1
            row = self.rows[place]
            gap += row.height
            if row.first:
                gap -= row.last
                break
        for first, others, last, height, *_ in self.rows[begin:end]:
            if first:
                data.append(gap + first[0])
                data += others
                gap = -last
            gap += height
        return data

    def difference(self, older: Coloured) -> tuple[int, int, list[int]]:
        """What makes an older text's numbers this one's: from which on, how many are replaced, and by which."""
        mine, theirs = self.rows, older.rows
        most, ends = min(len(mine), len(theirs)), (len(mine), len(theirs))
        begin = common(most, lambda a, b: mine[a:b] == theirs[a:b])
        same = common(most - begin, lambda a, b: mine[ends[0] - b : ends[0] - a] == theirs[ends[1] - b : ends[1] - a])
        while same and not mine[ends[0] - same].first:
            same -= 1
        same = max(same - 1, 0)  # how far its first word is from the one before may differ
        replaced = len(older.numbers(begin, ends[1] - same))
        return (
            sum(map(len, chain.from_iterable(map(_NUMBERS_OF, mine[:begin])))),
            replaced,
            self.numbers(begin, ends[0] - same),
        )


def _row_at(text: str, at: int) -> str:
    """The line that begins at an offset, and those behind it that are read with it."""
    end = text.find("\n", at)
    while end >= 0:
        line = text[at:end]
        if not ("/*" in line and _open(line)) and (line[-1:] in _ENDS or not _LABEL.search(line)):
            return line
        end = text.find("\n", end + 1)
    return text[at:]


def _open(text: str) -> bool:
    """Whether a comment goes on behind a text."""
    found = [match[0] for match in _TOKEN.finditer(text) if match.lastgroup == "comment"]
    return bool(found) and found[-1][:2] == "/*" and not found[-1].endswith("*/", 2) and text.endswith(found[-1])
