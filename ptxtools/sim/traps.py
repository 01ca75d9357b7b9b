"""From where an engine stopped to what a user reads: the PTX file, line and text of a trap."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxtools.diagnostics import Source, Trap

if TYPE_CHECKING:
    from ptxtools.program.program import Program


def locate(trap: Trap, program: Program, find_source: Callable[[], Source | None]) -> Trap:
    """Fill in file, line and text of a trap that names a place in `program` (`trap.where`)."""
    trap.kernel = trap.kernel or program.kernel
    if trap.where is not None and 0 <= trap.where < len(program.lines):
        _, start, text = program.lines[trap.where]
        trap.text = " ".join((trap.text or text).split())
        source = find_source() if trap.line is None else None
        if source is not None:
            trap.file, trap.line = source.name_of(start), source.line_of(start)
            starts = [program.lines[place][1] if place >= 0 else None for place in trap.places]
            trap.details = (
                tuple(
                    text if start is None else f"line {source.line_of(start)}: {text}"
                    for text, start in zip(trap.details, starts, strict=True)
                )
                if starts
                else trap.details
            )
    trap.args = (trap.describe(),)
    return trap
