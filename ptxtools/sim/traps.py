"""Complete a trap for users: the PTX file, line and text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.diagnostics import Trap

if TYPE_CHECKING:
    from ptxtools.program.program import Program

    from .program_lines import ProgramLines


def locate(trap: Trap, program: Program, places: ProgramLines) -> Trap:
    """Fill in file, line, text and source of a trap that names a place in `program` (`trap.where`)."""
    trap.kernel = trap.kernel or program.kernel
    if trap.where is not None and 0 <= trap.where < len(program.lines):
        _, _, text = program.lines[trap.where]
        trap.text = " ".join((trap.text or text).split())
        if trap.line is None and places.source is not None:
            trap.file, trap.line = places.line_of(program, trap.where)
            trap.source = places.source_of(program, trap.where)
            if trap.places:
                trap.details = tuple(
                    f"{where}: {text}" if (where := places.brief(program, place)) else text
                    for text, place in zip(trap.details, trap.places, strict=True)
                )
    trap.args = (trap.describe(),)
    return trap
