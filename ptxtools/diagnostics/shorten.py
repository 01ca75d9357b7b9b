"""Shorten user text for messages: a word may have megabytes."""

from __future__ import annotations

import re

#: The longest word shown whole; names of C++ templates get this long.
_WORD = 1000
#: Longest message.
_MESSAGE = 8000
_LONG_WORD = re.compile(rf"\S{{{_WORD + 1},}}")


def shortened(text: str) -> str:
    """A message without the middle of very long words, and without its own middle if it is still too long."""
    if len(text) <= _WORD:
        return text
    text = _LONG_WORD.sub(lambda found: _cut(found[0], 160), text)
    return text if len(text) <= _MESSAGE else _cut(text, _MESSAGE)


def line_around(line: str, at: int = 0, width: int = 160) -> str:
    """At most `width` characters of a line, including the one at `at`."""
    if len(line) <= width:
        return line
    first = max(0, min(at - width // 4, len(line) - width))
    end = first + width
    return ("…" if first else "") + line[first:end] + ("…" if end < len(line) else "")


def _cut(text: str, length: int) -> str:
    tail = length // 4
    return f"{text[: length - tail - 1]}…{text[-tail:]}"
