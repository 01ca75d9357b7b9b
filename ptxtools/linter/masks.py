"""Member masks of .sync instructions."""

from __future__ import annotations

from .facts import Line

#: The last operand is the mask; of `bar.warp.sync` the only one.
_FAMILIES = frozenset({"shfl", "vote", "match", "redux", "elect"})
#: The families of instructions that have a mask.
MASKED = _FAMILIES | {"bar", "barrier"}


def mask_operand(line: Line) -> int | None:
    """Which operand of an instruction is its member mask; None if it has none."""
    opcode, count = line.item.opcode, len(line.item.operands)
    if opcode.startswith(("bar.warp", "barrier.warp")) and count == 1:
        return 0
    if line.plan.family in _FAMILIES and ".sync" in opcode and count > 1:
        return count - 1
    return None
