"""Run-time checkers: memcheck, initcheck, synccheck, racecheck, leakcheck, asynccheck.

`session.py` holds what they know during a launch, `looks.py` serves the looks that `program.passes.instrument` puts
into a program, and each checker has a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from ptxtools.diagnostics import LaunchError
from ptxtools.diagnostics.kinds import CHECKERS, TrapKind

__all__ = ["CHECKERS", "LOOKING", "parse_checks"]

#: Those that look at a program's accesses and barriers.
LOOKING = frozenset(CHECKERS) - {TrapKind.LEAKCHECK}


def parse_checks(names: str | Iterable[str]) -> frozenset[str]:
    """Checkers from "memcheck,racecheck", "all" or a list of names. Raises `LaunchError` for other names."""
    words = names.split(",") if isinstance(names, str) else names
    found: set[str] = set()
    for word in (str(word).strip() for word in words):
        if word == "all":
            found.update(CHECKERS)
        elif word in CHECKERS:
            found.add(word)
        elif word:
            raise LaunchError(f"there is no checker '{word}'; there are {', '.join(CHECKERS)} and all")
    return frozenset(found)
