"""Counting work, since no test measures time: how many function calls something takes, and the net below waits.

A count is the same on every machine and under any load. What a C function does inside itself does not show in it (one
`str.count` is one call, however long the text): such times stand in `make bench`, with their bounds.
"""

from __future__ import annotations

import cProfile
from collections.abc import Callable

#: Seconds after which a wait is given up: far more than any machine needs, there only so that a mistake which waits for
#: ever fails one test instead of stopping the run.
HANG = 600


def calls(action: Callable[[], object]) -> int:
    """How many calls of functions, of Python's and of C's, an action makes in this thread; each step of a generator is
    one as well."""
    profile = cProfile.Profile(subcalls=False, builtins=True)
    profile.runcall(action)
    return sum(entry.callcount for entry in profile.getstats())
