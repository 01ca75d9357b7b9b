"""Observers: what looks at a run from outside (`machine.observers`): checkers, trace, coverage, profile, timeline.

`session.py` holds what the checkers of a launch share; each of them has a file of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.diagnostics.kinds import TrapKind

if TYPE_CHECKING:
    from ptxtools.machine.observers import Maker


def maker_of(name: str) -> Maker:
    """What makes a checker. All that look at grids are made together."""
    from ptxtools.machine.observers import Maker

    if name == TrapKind.LEAKCHECK:
        from .leakcheck import LeakCheck

        return Maker(LeakCheck, lambda name, trial=False: LeakCheck)
    from .session import Session, class_of

    return Maker(Session, class_of)
