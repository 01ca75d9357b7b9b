"""Accesses of whole CTAs (`lockstep`) that observers look at for their bounds: those of all threads lie between two
offsets, and so in one stretch of which no observer has anything to say (`region_bounds`), or the exact way decides."""

from __future__ import annotations

from collections.abc import Hashable

from ptxtools.native.code.emitter import Emitter
from ptxtools.native.code.runs import Step
from ptxtools.records import NamedTuple

from . import region_bounds
from .inline import First, Inline
from .linear import Facts, Part
from .parts import Window


class Bound(NamedTuple):
    """Where words may begin: the least offset (i64) from the start of the space and the greatest one; free: i1, nobody
    keeps anything of them."""

    low: Part
    high: Part
    free: str


class Bounds:
    """Finds them."""

    def __init__(self, code: Emitter, handler: Inline, facts: Facts) -> None:
        self.code, self.handler, self.facts = code, handler, facts
        self.known = 0

    def inside(
        self, step: Step, made_of: Hashable, space: Window, extremes: tuple[Part, Part], bounds: dict[object, Bound]
    ) -> str:
        """i1: the words of an access, from one offset to another, are where observers have nothing to say. made_of:
        what its address is made of, but for the constant; bounds: those that are known here; its own is added."""
        e = self.code
        if step in bounds:  # in a later round
            return self._within(bounds[step], extremes)
        before = bounds.get(made_of)
        if before is None:
            bounds[step] = bounds[made_of] = found = self._find(step, space, extremes[0])
            return self._within(found, extremes)
        there, ask, on = e.label("there"), e.label("ask"), e.label("bound")
        e.branch(self._within(before, extremes), there, ask, likely=True)
        e.begin(ask)
        found = self._find(step, space, extremes[0])
        inside = self._within(found, extremes)
        e.jump(end := e.label("asked"))
        e.begin(end)
        e.jump(on)
        e.begin(there)
        e.jump(on)
        e.begin(on)
        low, high = (
            e.value(f"phi i64 [{one}, %{there}], [{other}, %{end}]")
            for one, other in ((before.low, found.low), (before.high, found.high))
        )
        free = e.value(f"phi i1 [{before.free}, %{there}], [{found.free}, %{end}]")
        bounds[step] = Bound(low, high, free)
        return e.value(f"phi i1 [true, %{there}], [{inside}, %{end}]")

    def _within(self, bound: Bound, extremes: tuple[Part, Part]) -> str:
        f, (low, high) = self.facts, extremes
        inside = f.both(f.compare("sge", low, bound.low), f.compare("sle", high, bound.high))
        return f.both(inside, bound.free)

    def _find(self, step: Step, space: Window, low: Part) -> Bound:
        """The bound that an offset is in."""
        e, f = self.code, self.facts
        rooms = region_bounds.lasting_rooms(self.handler, First(e), self.known, whole=True)
        self.known += 1
        address = str(f.add(low, space.base)) if space.base != "0" else str(low)
        found, kept = region_bounds.stretch(self.handler, space, step.space, address, rooms, [step.kind == "st"])
        first = f.sub(found.base, space.base) if space.base != "0" else found.base
        last = f.add(first, f.sub(found.size, 4))
        return Bound(first, last, e.value(f"icmp eq i32 {kept}, 0"))
