"""Reductions of arrays into memory (9.7.9.25.4.2, 9.7.9.25.5.3, 9.7.13.7): each element by itself is atomic (relaxed,
gpu scope), also against what other workers do meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxtools.native.code import updates
from ptxtools.semantics.atomic import combine
from ptxtools.semantics.types import bits_of
from ptxtools.sim.tensormap.boxes import Array, Update

if TYPE_CHECKING:
    from ptxtools.machine.events import View


def update_of(view: View, operation: str, type_: str, *, flushes: bool = False, shared: bool = False) -> Update:
    """Memory = operation(memory, data), for bytes of whole elements in arrays of one shape.

    flushes: f32 subnormals count as zeros; shared: memory of the cluster, which no other worker touches.
    """
    if view.launch.threads > 1 and not shared:
        return lambda target, data: updates.reduce(operation, type_, target, data, flushes=flushes)
    algebra, word = view.algebra, f"u{bits_of(type_) // 8}"

    def update(target: Array, data: Array) -> None:
        old = np.ascontiguousarray(target).reshape(-1).view(word)
        new = combine(algebra, operation, type_, old, data.reshape(-1).view(word), flushes=flushes)
        target[...] = np.ascontiguousarray(new).astype(word, copy=False).view(np.uint8).reshape(target.shape)

    return update
