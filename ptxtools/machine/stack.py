"""Dynamic stack allocation (9.7.17), downwards from the end of local memory.

Calls allocate from below (`program.STACK_POINTER`); each checks that it does not run into the other.
"""

from __future__ import annotations

import numpy as np

from ptxtools.program.details import StackMove
from ptxtools.program.program import LANES

from .events import Array, View, serves


@serves("stack")
def stack(view: View) -> None:
    tops = view.tops
    chosen = np.array([view.mask >> lane & 1 for lane in range(LANES)], np.bool_)
    move = view.op.of(StackMove)
    if move.action == "restore":
        wanted = view.source(0).astype(np.uint64)
        if view.op.opcode is not None:
            _check_restored(view, wanted, tops, chosen)
        np.copyto(tops, wanted, where=chosen)
        view.tops = tops
        return
    if move.action != "save":
        _allocate(view, tops, chosen, move.alignment)
        view.tops = tops
    if view.op.dst[0] is not None:
        view.result(0, tops if view.op.dst_types[0] == "u64" else tops.astype(np.uint32))


def _allocate(view: View, tops: Array, chosen: Array, alignment: int) -> None:
    sizes, frames = view.source(0).astype(np.uint64), view.source(1)
    mask = ~np.uint64(alignment - 1)
    lowest = frames + np.uint64(view.op.imm)
    for lane in np.flatnonzero(chosen):
        free = max(0, int(tops[lane]) - int(lowest[lane]))
        place = int(tops[lane]) - int(sizes[lane]) & int(mask)
        if int(sizes[lane]) > free or place < int(lowest[lane]):
            raise view.trap(f"stack overflow: {int(sizes[lane])} bytes requested, {free} are free", int(lane))
        tops[lane] = place


def _check_restored(view: View, wanted: Array, tops: Array, chosen: Array) -> None:
    """The stack only shrinks, to an earlier position, which is higher."""
    bad = np.flatnonzero(chosen & ((wanted < tops) | (wanted > np.uint64(view.local_bytes))))
    if len(bad):
        lane = int(bad[0])
        now = f"{int(tops[lane]):#x} to {view.local_bytes:#x} are in use"
        raise view.trap(f"stackrestore of {int(wanted[lane]):#x}, which is not a stack position: {now}", lane)
