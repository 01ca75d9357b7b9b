"""Words of a text: what each is, and as the protocol encodes them for colouring (semantic tokens).

A text is read line by line, and a line that was read before, in the same state, is not read again: so a change costs
the lines that it touches, and the client is sent what differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ptxtools.diagnostics import Span
from ptxtools.isa.index import CHAPTERS

from .positions import Positions

#: Comments and strings, dotted words, numbers, names with their component, and single signs.
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*(?s:.*?)(?:\*/|\Z))|(?P<string>\"[^\"\n]*\"?)|(?P<dotted>\.[A-Za-z_]\w*(?:::\w+)*)"
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
        for text in token.text.split("\n"):
            start, end = places.position(at), places.position(at + len(text.rstrip("\r")))
            at += len(text) + 1
            if end.character > start.character:
                moved = start.line - line
                data += [moved, start.character - (0 if moved else column), end.character - start.character, kind, 0]
                line, column = start.line, start.character
    return data


class Coloured:
    """A text's words, line by line. rows: of each stretch of lines that is read as one, its numbers; the first one says
    how far its first word is below the last one before. known: lines that were read before, of any text."""

    def __init__(self, text: str, encoding: str, known: dict[tuple[str, str, bool], Row]) -> None:
        if len(known) > _MOST:
            known.clear()
        self.rows: list[tuple[int, tuple[int, ...]]] = []
        lines = text.split("\n")
        before, opcode, number, last = ";", False, 0, 0
        while number < len(lines):
            line, count = lines[number], 1
            while number + count < len(lines) and (
                ("/*" in line and _open(line)) or (line[-1:] not in _ENDS and _LABEL.search(line))
            ):
                line, count = f"{line}\n{lines[number + count]}", count + 1
            row = known.get((line, before, opcode))
            if row is None:
                words = Words(before, opcode)
                data = tuple(encoded(list(words.of(line)), Positions(line, encoding)))
                end = sum(data[::_FIVE])
                row = known[line, before, opcode] = Row(data[:1], data[1:], end, words.before, words.opcode)
            first, others, end, before, opcode = row
            if first:
                self.rows.append((number + first[0] - last, others))
                last = number + end
            number += count

    def numbers(self, begin: int = 0, end: int | None = None) -> list[int]:
        """The encoding of some rows."""
        data: list[int] = []
        for first, others in self.rows[begin:end]:
            data.append(first)
            data += others
        return data

    def difference(self, older: Coloured) -> tuple[int, int, list[int]]:
        """What makes an older text's numbers this one's: from which on, how many are replaced, and by which."""
        mine, theirs = self.rows, older.rows
        most = min(len(mine), len(theirs))
        begin = next((n for n in range(most) if mine[n] != theirs[n]), most)
        same = next((n for n in range(most - begin) if mine[-1 - n] != theirs[-1 - n]), most - begin)
        replaced = len(older.numbers(begin, len(theirs) - same))
        return len(self.numbers(0, begin)), replaced, self.numbers(begin, len(mine) - same)


class Row(NamedTuple):
    """Lines that were read. first, others: their numbers, from the first line on; last: the line of the last word;
    before, opcode: the state of `Words` behind them."""

    first: tuple[int, ...]
    others: tuple[int, ...]
    last: int
    before: str
    opcode: bool


def _open(text: str) -> bool:
    """Whether a comment goes on behind a text."""
    found = [match[0] for match in _TOKEN.finditer(text) if match.lastgroup == "comment"]
    return bool(found) and found[-1][:2] == "/*" and not found[-1].endswith("*/", 2) and text.endswith(found[-1])
