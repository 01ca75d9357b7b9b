"""Reductions of arrays into memory (9.7.9.25.4.2, 9.7.9.25.5.3, 9.7.13.7): each element by itself is atomic (relaxed,
gpu scope), also against what other workers do meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.sim.tensormap.boxes import Update

if TYPE_CHECKING:
    from ptxtools.machine.events import View


def update_of(view: View, operation: str, type_: str, *, flushes: bool = False, shared: bool = False) -> Update:
    """Memory = operation(memory, data), for bytes of whole elements in arrays of one shape.

    flushes: f32 subnormals count as zeros; shared: memory of the cluster, which no other worker touches.
    """
    launch = view.launch
    return launch.products.update(operation, type_, flushes=flushes, alone=launch.threads == 1 or shared)
