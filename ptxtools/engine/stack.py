"""Memory that threads take from their stack as they run (9.7.17): the end of local memory, from above."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .events import View, serves
from .program import LANES

if TYPE_CHECKING:
    import numpy.typing as npt


@serves("stack")
def stack(view: View) -> None:
    """`op.detail`: "save", "restore", or ("allocate", alignment)."""
    tops = _tops(view)
    chosen = np.array([view.mask >> lane & 1 for lane in range(LANES)], np.bool_)
    action = view.op.detail
    if action == "restore":
        wanted = view.source(0).astype(np.uint64)
        np.copyto(tops, wanted, where=chosen)
        return
    if action != "save":
        _allocate(view, tops, chosen, action[1])
    if view.op.dst[0] is not None:
        view.result(0, tops if view.op.dst_types[0] == "u64" else tops.astype(np.uint32))


def _allocate(view: View, tops: npt.NDArray[Any], chosen: npt.NDArray[Any], alignment: int) -> None:
    sizes, frames = view.source(0).astype(np.uint64), view.source(1)
    mask = ~np.uint64(alignment - 1)
    lowest = frames + np.uint64(view.op.imm)
    for lane in np.flatnonzero(chosen):
        free = max(0, int(tops[lane]) - int(lowest[lane]))
        place = int(tops[lane]) - int(sizes[lane]) & int(mask)
        if int(sizes[lane]) > free or place < int(lowest[lane]):
            raise view.trap(f"stack overflow: {int(sizes[lane])} bytes asked for, {free} are free", int(lane))
        tops[lane] = place


def _tops(view: View) -> npt.NDArray[Any]:
    """Where the stacks of a warp end: below lies what is free."""
    warps: dict[int, npt.NDArray[Any]] = view.cta.state.setdefault("stack", {})
    found = warps.get(view.warp)
    if found is None:
        found = warps[view.warp] = np.full(LANES, view.local_bytes & ~7, np.uint64)
    return found
