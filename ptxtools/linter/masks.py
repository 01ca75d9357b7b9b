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


_LAST = 31


def source_lane(opcode: str, own: int, lane: int, bound: int) -> tuple[int, bool]:
    """The lane that shfl reads in a lane of its own, and whether that is inside of its segment (9.7.9.6). lane, bound:
    the operands b and c."""
    clamp, segments, step = bound & _LAST, bound >> 8 & _LAST, lane & _LAST
    highest, lowest = (own & segments) | (clamp & ~segments), own & segments
    if ".up" in opcode:
        return own - step, own - step >= highest
    if ".down" in opcode:
        return own + step, own + step <= highest
    if ".bfly" in opcode:
        return own ^ step, own ^ step <= highest
    source = lowest | (step & ~segments)
    return source, source <= highest
