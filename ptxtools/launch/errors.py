"""Errors of what a user wrote on the command line or in a launch file."""

from __future__ import annotations

from collections.abc import Iterable


class SpecError(Exception):
    """A SPEC, an option or a launch file is malformed, or names a file that cannot be read."""


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known word that looks most like `word`, or nothing."""
    from difflib import get_close_matches

    found = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{found[0]}'?" if found else ""
