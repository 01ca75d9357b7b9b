"""The three commands. No logic lives here: options in, library calls, text out."""

from __future__ import annotations

import gc
import sys
from types import TracebackType

from ptxtools import expressions


def interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C caused an exception: Python wraps it in others if it arrives while a class is created."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Ctrl-C during the import of the commands gives no traceback; Python sets the status."""
    if not interrupted(error):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _report
# A module's tree lives until the end and has no cycles, as do the libraries' classes: frequent collections would only
# traverse them again.
gc.set_threshold(400_000, 20, 100)
expressions.use_table()
