"""What happens to a function once its operations stand: improvement, and slots for its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..colouring import assign
from ..program import FunctionCode

if TYPE_CHECKING:
    from .function import FunctionLowering


def finish(f: FunctionLowering) -> FunctionCode:
    """Improve the blocks (if asked to), give out slots, and describe the function. Block numbers stay local."""
    for op in f.outgoing_local:
        op.imm += f.local_bytes
    frame = assign(f.blocks, f, start=f.slot_start, share=f.optimise)
    return FunctionCode(
        f.function.name, 0, frame.size, f.local_bytes, frame.constants, frame.launch_constants
    )
