"""Whether each warp of a walk has memory of its own, so that barriers have nothing to order between warps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..values import WARP
from .computing import Op
from .shadow import Touch, ends

if TYPE_CHECKING:
    from .walker import Walker

#: Instructions by which warps may tell each other something, or which others see.
EXCHANGING = frozenset({"atom", "red", "fence", "membar", "mbarrier", "cp", "wgmma", "tcgen05", "multimem", "stmatrix",
                        "griddepcontrol", "setmaxnreg", "mapa", "call", "nanosleep", "brx", "trap"})  # fmt: skip
_HALF = (1 << WARP) - 1


class Narrow:
    """Bytes that each of two warps accesses, as long as no byte that one of them writes is among those of the other.

    alone: whether that holds so far; barriers: those that the threads have come to; ended: whether all have ended.
    """

    def __init__(self, walker: Walker) -> None:
        threads = walker.threads
        self.alone = not threads.apart and bool(threads.mask >> WARP) and walker.program.alone
        self.ended = False
        self.barriers: list[Op] = []
        self._spans: dict[tuple[str, str], tuple[object, list[list[int]]]] = {}
        self._scattered = False

    def lose(self) -> None:
        self.alone = False

    def unknown(self, space: str, loads: bool) -> None:
        """An access at an address that is not known."""
        stored = any(key[0] == "global" and any(own and own[2] for own in each[1]) for key, each in self._spans.items())
        if not loads or space != "global" or stored:
            self.alone = False
        self._scattered = True

    def note(self, touch: Touch) -> None:
        address, writes = touch.address, touch.kind != "reads"
        if touch.strong or touch.flight or (writes and touch.space == "global" and self._scattered):
            self.alone = False
            return
        root = next((name for name, _ in address.terms if name[0] not in "#=%"), "")
        terms, spans = self._spans.setdefault((touch.space, root), (address.terms, []))
        if not spans:
            spans += [[], []]
        numbers = address.numbers
        for half in (0, 1):
            mask = touch.mask >> half * WARP & _HALF
            if not mask:
                continue
            own = numbers[half * WARP : half * WARP + WARP]
            if mask != _HALF:
                own = tuple([number for lane, number in enumerate(own) if mask >> lane & 1])
            first, last = ends(own)
            last += touch.size
            span = spans[half]
            if span:
                span[:] = [min(first, span[0]), max(last, span[1]), span[2] | writes]
            else:
                span[:] = [first, last, writes]
        mine, other = spans
        wrote = bool(mine and mine[2]) or bool(other and other[2])
        if wrote and (terms != address.terms or (mine and other and mine[0] < other[1] and other[0] < mine[1])):
            self.alone = False

    def found(self) -> list[Op]:
        """The barriers that no warp needs because of another one; they may need to be barriers of a warp."""
        shared = any(space == "shared" and all(spans) for (space, _), (_, spans) in self._spans.items())
        return self.barriers if self.alone and self.ended and shared else []
