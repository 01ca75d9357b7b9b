"""Errors in user input: on the command line, in a launch file, or in a Python call."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import Any

from ptxtools.diagnostics import LaunchError


class SpecError(Exception):
    """A SPEC, an option or a launch file is malformed, or names a file that cannot be read.

    located: the message begins with the launch file and the key.
    """

    def __init__(self, message: str, *, located: bool = False) -> None:
        super().__init__(message)
        self.located = located


class WrongTypeError(LaunchError, TypeError):
    """An option of a launch has a value of the wrong type."""


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known word most similar to `word`, or nothing."""
    from difflib import get_close_matches

    found = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{found[0]}'?" if found else ""


def demand(value: Any, kinds: type | tuple[type, ...], what: str, wanted: str) -> None:
    """Raise TypeError ("`what` must be `wanted`, not …") for an argument of another type."""
    if not isinstance(value, kinds):
        raise TypeError(f"{what} must be {wanted}, not {_kind(value)}")


def whole(value: Any, what: str) -> int:
    """A whole number, including NumPy's; raises TypeError for everything else, including booleans."""
    try:
        if not isinstance(value, bool):
            return index(value)
    except TypeError:
        pass
    raise TypeError(f"{what} must be a whole number, not {_kind(value)}")


def number(value: Any, what: str) -> float:
    """A number, including NumPy's; raises TypeError for everything else, including booleans."""
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError(f"{what} must be a number, not {_kind(value)}")
    return float(value)


def _kind(value: Any) -> str:
    """Such as "a str", "an int", "None"."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"a{'n' if name[0] in 'aeiou' else ''} {name}"
