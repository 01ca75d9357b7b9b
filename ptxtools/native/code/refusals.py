"""Which loads and stores regions make, and why not the others (`runs`)."""

from __future__ import annotations

from ptxtools.program.operations import OPERATIONS
from ptxtools.program.program import Op
from ptxtools.semantics.types import bits_of

from .keys import effects_of

#: State spaces that regions access.
REGION_SPACES = frozenset({"global", "shared"})


def refusal(op: Op, widths: tuple[int, ...] = (1,)) -> str:
    """Why no region makes an access of the lanes, wherever it stands; empty for one that regions make: of one word, or
    so many, with no effects on others."""
    if OPERATIONS[op.kind].access == "atomic":
        return "atomic"
    if op.space not in REGION_SPACES:
        return f"{op.space} memory"
    effects = effects_of(op)
    if effects:
        return effects[-1]
    moved = (*zip(op.dst, op.dst_types, strict=True), *zip(op.src[1:], op.src_types[1:], strict=True))
    if len(moved) not in widths:
        return f"{len(moved)} elements"
    for ref, t in moved:
        if ref is None:
            return "nothing moved"
        if ref.type != "b32" or bits_of(t) != 32:
            return f"{bits_of(t)} bits"
    return ""
