"""An operation that is executed later than it was issued: its operands keep their values, except those that it works
on."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ptxtools.machine.events import View
from ptxtools.program.program import Ref, Slot

from .numbers import Array


def issued(view: View, own: Array) -> View:
    """The view with copies of all source operands but the registers in `own` (slots), which are read and written when
    the operation is executed."""
    return cast(View, _Issued(view, own))


class _Issued:
    def __init__(self, view: View, own: Array) -> None:
        self._view = view
        kept = {int(slot) for slot in own}
        refs = (ref for ref in view.op.src if ref is not None and ref.slot not in kept)
        self._copies = {ref.slot: view.values(ref) for ref in refs}

    def __getattr__(self, name: str) -> Any:
        """Everything but operands comes from the view."""
        return getattr(self._view, name)

    def values(self, ref: Ref) -> Any:
        found = self._copies.get(ref.slot)
        return self._view.values(ref) if found is None else found

    def read(self, ref: Ref, lane: int) -> int:
        return int(self.values(ref)[lane])

    def block(self, slots: Array) -> Array:
        return np.stack([self.values(Ref(Slot(int(slot)), "b32")) for slot in slots])
