"""Tokens of LLVM assembly."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import accumulate, chain, islice

_NAME = r'(?:[-a-zA-Z$._][-a-zA-Z$._0-9]*|\d+|"[^"]*")'
#: Blanks and comments, then one token; any other character is a token that no rule takes. The end is an empty one.
_TOKEN = re.compile(
    r"(\s*(?:;[^\n]*\s*)*)("
    rf'[%@]{_NAME}|\$[-a-zA-Z$._"][-a-zA-Z$._0-9"]*|![-a-zA-Z$._\\0-9]*|[#^]\d+|c?"[^"]*"'
    r"|[-+]?\d+\.\d*(?:[eE][-+]?\d+)?(?![-a-zA-Z$._0-9:])|[us]?0x[KLMHR]?[0-9a-fA-F]+|-?\d+(?![-a-zA-Z$._0-9])"
    r"|[-a-zA-Z$._0-9]+|[^\s]|\Z)"
)
_WORD = re.compile(r'[%@!#]?(?:[-\w.$]+|"[^"]*")|\S')
_PLAIN = re.compile(r"[%@][-a-zA-Z$._][-a-zA-Z$._0-9]*")
#: Empty tokens behind the end: as many as a statement is looked ahead.
AHEAD = 8


def tokens(text: str, parts: Iterable[tuple[int, int]]) -> tuple[list[str], list[int]]:
    """The tokens of parts of a text, and where they begin; the last ones are empty, so that a look ahead finds
    something."""
    texts: list[str] = []
    starts: list[int] = []
    at = 0
    for begin, at in parts:
        found = _TOKEN.findall(text, begin, at)
        starts += islice(accumulate(map(len, chain.from_iterable(found)), initial=begin), 1, None, 2)
        if text.find('%"', begin, at) < 0 and text.find('@"', begin, at) < 0:
            texts += [token for _, token in found]
        else:
            texts += [unquoted(token) if token[:2] in ('%"', '@"') else token for _, token in found]
        while texts and not texts[-1]:
            del texts[-1], starts[-1]
    return texts + [""] * (AHEAD + 1), starts + [at] * (AHEAD + 1)


def unquoted(name: str) -> str:
    """A name without quotes that it does not need: `%"B0"` is `%B0`."""
    plain = name[:1] + name[2:-1]
    return plain if _PLAIN.fullmatch(plain) else name


def words(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


def word_end(text: str, at: int) -> int:
    """Where the word at an offset ends."""
    found = _WORD.match(text, at)
    return found.end() if found else at


def unescaped(token: str) -> str:
    r"""The characters of a quoted token: `\0A` is a line feed."""
    return placed(token)[0]


def placed(token: str) -> tuple[str, list[int]]:
    """The characters of a quoted token, and the offset in the token of each."""
    body = token[token.index('"') + 1 : -1]
    first = token.index('"') + 1
    if "\\" not in body:
        return body, list(range(first, first + len(body)))
    characters: list[str] = []
    places: list[int] = []
    at = 0
    while at < len(body):
        places.append(first + at)
        pair = body[at + 1 : at + 3]
        if body[at] == "\\" and body[at + 1 : at + 2] == "\\":
            characters.append("\\")
            at += 2
        elif body[at] == "\\" and len(pair) == 2 and all(one in "0123456789abcdefABCDEF" for one in pair):
            characters.append(chr(int(pair, 16)))
            at += 3
        else:
            characters.append(body[at])
            at += 1
    return "".join(characters), places
