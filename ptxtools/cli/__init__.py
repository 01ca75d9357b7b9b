"""The three commands. No logic lives here: options in, library calls, text out."""

from __future__ import annotations

import sys
from types import TracebackType


def interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an exception: Python wraps it in others where it comes while a class is made."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Ctrl-C while the commands are still being loaded ends them without a traceback; Python sets the status."""
    if not interrupted(error):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _report
