"""Registers that an instruction accesses, for rules about asynchronous work that still uses them."""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.ir.nodes import Arguments

from .facts import Line, operand_names


def accessed(line: Line) -> Iterator[tuple[str, bool]]:
    """Names of the registers of an instruction, and whether it writes them; labels and variables are among them."""
    if line.item.guard is not None:
        yield line.item.guard.name, False
    writes = line.plan.writes
    if not line.plan.positional:  # a call
        writes = (len(line.item.operands) > 1 and isinstance(line.item.operands[0], Arguments),)
    for place, operand in enumerate(line.item.operands):
        write = writes[place] if place < len(writes) else False
        for name, inside in operand_names(operand):
            yield name, write and not inside
