"""Probes that are modules, or all of a function."""

from __future__ import annotations

from .instructions import Probe
from .setting import HOME, LINES

#: A function with nothing in it.
KERNEL = ".entry k() { ret; }"


def probe(*lines: str, setting: str = HOME) -> Probe:
    """A module of these lines, without its headers unless it begins with .version."""
    return Probe(setting, LINES, "module", "\\n".join(lines))


def body(*lines: str, setting: str = HOME, before: tuple[str, ...] = (), head: str = ".entry k()") -> Probe:
    """A function with these statements, and what stands before it."""
    return probe(*before, head, "{", *lines, "ret;", "}", setting=setting)
