"""Which lane each lane of a shfl reads (9.7.9.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxtools.program.program import LANES

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array

_LANES = np.arange(LANES, dtype=np.int64)
#: Places of the operands in what observers see of a shfl.
VALUE, _LANE, _CLAMP = 1, 2, 3


def sources(view: View) -> Array:
    """The number of the source lane of all 32 lanes; a lane's own where the source is out of its range."""
    opcode = view.op.opcode
    assert opcode is not None
    b, c = view.source(_LANE).astype(np.int64) & 31, view.source(_CLAMP).astype(np.int64)
    segment, clamp = c >> 8 & 31, c & 31
    first = _LANES & segment
    last = first | clamp & ~segment
    if opcode.has("up"):
        found = _LANES - b
        return np.where(found >= last, found, _LANES)
    if opcode.has("down"):
        found = _LANES + b
    elif opcode.has("bfly"):
        found = _LANES ^ b
    else:
        found = first | b & ~segment
    return np.where(found <= last, found, _LANES)
