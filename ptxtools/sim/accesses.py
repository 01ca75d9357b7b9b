"""Accesses that a function of `sim` makes for lanes: observers are told of them as of those in the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.machine.events import View
from ptxtools.program.operations import strength

Array: TypeAlias = npt.NDArray[Any]


def tell(
    view: View, space: str, action: str, size: int, lanes: Sequence[int] | Array, addresses: Sequence[int] | Array
) -> None:
    """Lanes are about to access `size` bytes, each at its own address ("read", "write" or "atomic")."""
    listeners = view.launch.observers
    if listeners is None or not listeners.hear("access"):
        return
    from ptxtools.machine.observers import Access

    made = Access(space, np.array(lanes), np.array(addresses, np.uint64), size, action, strength(view.op.opcode))
    listeners.tell("access", view, made)
