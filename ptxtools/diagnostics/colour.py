"""ANSI colour without a library: printing a plain finding should not import one."""

from __future__ import annotations

import os
from typing import IO, Any

_CODES = {"bold": "1", "dim": "2", "red": "1;31", "green": "1;32", "yellow": "1;33", "blue": "1;34", "cyan": "36"}


class Style:
    """Paints text with ANSI sequences, or leaves it alone."""

    __slots__ = ("enabled",)

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled

    def paint(self, text: str, colour: str) -> str:
        """`text` in `colour`: bold, dim, red, green, yellow, blue or cyan."""
        return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if self.enabled and text else text


PLAIN = Style(False)


def style_for(mode: str, stream: IO[Any]) -> Style:
    """The style for `--color mode` ("auto", "always", "never") on a stream; `NO_COLOR` and `TERM=dumb` are obeyed."""
    if mode == "always":
        return Style(True)
    if mode == "never" or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return PLAIN
    return Style(is_terminal(stream))


def is_terminal(stream: IO[Any]) -> bool:
    """Whether a stream is an interactive terminal; a closed stream is not."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False
