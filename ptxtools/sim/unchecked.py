"""A module from a container, which was checked when it was written, but not in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxtools.ir import Module
from ptxtools.program.variant import PLAIN, Variant

from .tree import TreeModule

if TYPE_CHECKING:
    from ptxtools.program.program import Program

    from .image import Image


class UncheckedModule(TreeModule):
    """Checks the tree before the first kernel is lowered, so loading stays fast, and a forged container is never
    compiled."""

    def __init__(self, ready: TreeModule, check: Callable[[Module], object]) -> None:
        """check raises `PtxError` for a module with errors."""
        self.tree, self._ready, self.contents = ready.tree, ready._ready, ready.contents
        self._check: Callable[[Module], object] | None = check

    def lower(self, kernel: str, image: Image, variant: Variant = PLAIN) -> Program:
        if self._check is not None:
            self._check(self.tree)
            self._check = None
        return super().lower(kernel, image, variant)
