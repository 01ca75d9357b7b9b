"""What a walk accesses before it has waited for the grid before (griddepcontrol)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts import Line
from ..values import Terms, Value

if TYPE_CHECKING:
    from .walker import Walker


class Grids:
    """Accesses of global memory in a kernel that waits for the grid before. waited: threads that know of its end."""

    def __init__(self, walker: Walker) -> None:
        self._walker = walker
        self._waits = "griddepcontrol.wait" in walker.program.opcodes
        self._waited = 0
        self._early: dict[Terms, list[tuple[Line, int, str]]] = {}
        self._kinds: dict[Terms, set[str]] = {}

    def wait(self, mask: int) -> None:
        self._waited |= mask

    def meet(self, mask: int) -> None:
        """A barrier of the threads of a mask."""
        if self._waited & mask:
            self._waited |= mask

    def note(self, line: Line, operand: int, address: Value, mask: int, kind: str) -> None:
        """An access of global memory."""
        if not self._waits:
            return
        self._kinds.setdefault(address.terms, set()).add(kind)
        if mask & ~self._waited and len(self._early) < 64:
            self._early.setdefault(address.terms, []).append((line, operand, kind))

    def end(self) -> None:
        """All has been seen: what is accessed early, and is both read and written, may still be in use."""
        for terms, early in self._early.items():
            kinds = self._kinds[terms]
            if "reads" in kinds and len(kinds) > 1:
                line, operand, kind = early[0]
                message = (
                    f"a thread {kind} this before anything has waited for the grid before, and the kernel both reads "
                    "and writes it: the same kernel in that grid may still use it"
                )
                self._walker.report("before the wait", line, operand, message)
