"""Tables as plain text, the same in a terminal and in a file."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any


def plain(write: Callable[[Any], None], width: int) -> str:
    """What `write` prints on a console (rich) of so many columns, without colours and blanks at the ends of lines."""
    from rich.console import Console

    out = io.StringIO()
    write(Console(file=out, width=width, color_system=None, highlight=False, markup=False))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())
