"""The three commands. No logic lives here: options in, library calls, text out."""

from __future__ import annotations

import sys
from types import TracebackType


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Ctrl-C while the commands are still being loaded ends them without a traceback; Python sets the status."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _report
