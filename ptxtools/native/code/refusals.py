"""Which loads and stores regions make, and why not the others (`runs`)."""

from __future__ import annotations

from ptxtools.program.operations import OPERATIONS
from ptxtools.program.program import Op
from ptxtools.semantics.types import bits_of

from .keys import effects_of

#: State spaces that regions access.
REGION_SPACES = frozenset({"global", "shared"})


def refusal(op: Op) -> str:
    """Why no region makes an access of the lanes, wherever it stands; empty for one that regions make: of one word,
    with no effects on others."""
    if OPERATIONS[op.kind].access == "atomic":
        return "atomic"
    if op.space not in REGION_SPACES:
        return f"{op.space} memory"
    effects = effects_of(op)
    if effects:
        return effects[-1]
    moved = (*zip(op.dst, op.dst_types, strict=True), *zip(op.src[1:], op.src_types[1:], strict=True))
    if len(moved) != 1:
        return f"{len(moved)} elements"
    ((ref, t),) = moved
    if ref is None:
        return "nothing moved"
    return "" if ref.type == "b32" and bits_of(t) == 32 else f"{bits_of(t)} bits"
