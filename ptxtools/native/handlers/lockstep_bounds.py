"""Accesses of whole CTAs (`lockstep`) that observers look at for their bounds: those of all threads lie between two
offsets, and so in one stretch of which no observer has anything to say (`region_bounds`), or the exact way decides.

An observer may keep a flag for each byte: those of all that lies between the two offsets must then be set
for loads, and stores set those of what they write.
"""

from __future__ import annotations

from collections.abc import Hashable

from ptxtools.native.code import same_words
from ptxtools.native.code.emitter import Emitter, expand, splat
from ptxtools.native.code.runs import Step
from ptxtools.native.code.structures import FLAGS_KEPT, FLAGS_SET
from ptxtools.records import NamedTuple

from . import region_bounds
from .inline import First, Inline
from .linear import Facts, Part
from .parts import Window

#: The most flags of a stretch that are looked at as a whole.
_MOST_FLAGS = 1 << 16


class Bound(NamedTuple):
    """Where words may begin: the least offset (i64) from the start of the space and the greatest one; free: i1, nobody
    keeps anything of them; flags: i64, the host address of the flag at offset 0, if flags are all that is kept, or 0;
    complete: i1, all of them are set, false where that is not known."""

    low: Part
    high: Part
    free: str
    flags: str
    complete: str


class Bounds:
    """Finds them."""

    def __init__(self, code: Emitter, handler: Inline, facts: Facts) -> None:
        self.code, self.handler, self.facts = code, handler, facts
        self.known = 0

    def inside(
        self, step: Step, made_of: Hashable, space: Window, extremes: tuple[Part, Part], bounds: dict[object, Bound],
        *, turning: bool,
    ) -> tuple[str, Bound]:  # fmt: skip
        """i1: the words of an access, from one offset to another, are where observers have nothing to say; and where
        that is. made_of: what its address is made of, but for the constant; bounds: those that are known here; its own
        is added; turning: it is one of several rounds, and of those between nothing else is asked."""
        e = self.code
        before = bounds.get(step, bounds.get(made_of))
        if before is None:
            found = self._find(step, space, extremes[0])
        elif step in bounds:  # in a later round
            found = before
        else:
            there, ask, on = e.label("there"), e.label("ask"), e.label("bound")
            e.branch(self._within(before, extremes), there, ask, likely=True)
            e.begin(ask)
            other = self._find(step, space, extremes[0])
            e.jump(end := e.label("asked"))
            e.begin(end)
            e.jump(on)
            e.begin(there)
            e.jump(on)
            e.begin(on)
            parts = [
                e.value(f"phi {kind} [{one}, %{there}], [{new}, %{end}]")
                for kind, one, new in zip(("i64", "i64", "i1", "i64", "i1"), before, other, strict=True)
            ]
            found = Bound(*parts)
        bounds[step] = found
        bounds.setdefault(made_of, found)
        return self.facts.both(self._within(found, extremes), self._fine(step, found, extremes, turning=turning)), found

    def together(
        self, places: dict[Step, tuple[Part, Part]], made_of: Hashable, space: Window, extremes: tuple[Part, Part],
        bounds: dict[object, Bound],
    ) -> str:  # fmt: skip
        """i1: the same for loads at constant distances, with the extremes of each and those of all: they are in one
        stretch, or each in its own."""
        e, first = self.code, next(iter(places))
        found = bounds.get(made_of) or self._find(first, space, extremes[0])
        bounds[made_of] = found
        one, each, on = e.label("one"), e.label("each"), e.label("bounds")
        all_in = self.facts.both(self._within(found, extremes), self._fine(first, found, extremes, turning=False))
        e.branch(all_in, one, each, likely=True)
        e.begin(each)
        own, inside = dict(bounds), "true"
        for step, ends in places.items():
            inside = self.facts.both(inside, self.inside(step, made_of, space, ends, own, turning=False)[0])
        e.jump(end := e.label("apart"))
        e.begin(end)
        e.jump(on)
        e.begin(one)
        e.jump(on)
        e.begin(on)
        return e.value(f"phi i1 [true, %{one}], [{inside}, %{end}]")

    def _within(self, bound: Bound, extremes: tuple[Part, Part]) -> str:
        f, (low, high) = self.facts, extremes
        return f.both(f.compare("sge", low, bound.low), f.compare("sle", high, bound.high))

    def _fine(self, step: Step, bound: Bound, extremes: tuple[Part, Part], *, turning: bool) -> str:
        """i1: what is kept of the words of an access leaves nothing to say, if they are inside."""
        f, (low, high) = self.facts, extremes
        if step.kind == "st":
            return f.either(bound.free, f.compare("ne", bound.flags, 0))
        known = f.either(bound.free, bound.complete)
        if turning:
            return known
        asked = f.both(f.compare("ne", bound.flags, 0), f.inverse(bound.complete))
        asked = f.both(f.both(asked, self._within(bound, extremes)), f.compare("sle", low, high))
        return f.either(known, self._all_set(asked, f.add(bound.flags, low), f.add(f.sub(high, low), 4)))

    def _all_set(self, asked: str, first: Part, size: Part) -> str:
        """i1: it is asked (i1) whether so many flags, a multiple of 4, are set from a host address on, and they are."""
        e = self.code
        size = e.value(f"select i1 {asked}, i64 {size}, i64 0")
        e.declare(same_words.LOAD, same_words.DECLARATION)
        e.declare(same_words.NAME, expand(same_words.TEXT))
        operands = f"ptr {e.value(f'inttoptr i64 {first} to ptr')}, i64 {size}, <16 x i32> {splat('i32', FLAGS_SET)}"
        return self.facts.both(asked, e.value(f"call i1 @{same_words.NAME}({operands})"))

    def _find(self, step: Step, space: Window, low: Part) -> Bound:
        """The bound that an offset is in."""
        e, f = self.code, self.facts
        rooms = region_bounds.lasting_rooms(self.handler, First(e), self.known, whole=True)
        self.known += 1
        address = str(f.add(low, space.base)) if space.base != "0" else str(low)
        found, kept = region_bounds.stretch(self.handler, space, step.space, address, rooms, [step.kind == "st"])
        first = f.sub(found.base, space.base) if space.base != "0" else found.base
        last = f.add(first, f.sub(found.size, 4))
        away = e.field("stretch.flags", rooms.known)
        at = f.add(away, space.host if step.space == "shared" else space.base)
        alone = f.both(e.value(f"icmp eq i32 {kept}, {FLAGS_KEPT}"), f.compare("ne", away, 0))
        flags = e.value(f"select i1 {alone}, i64 {at}, i64 0")
        complete = self._complete(alone, flags, first, found.size) if step.kind != "st" else "false"
        return Bound(first, last, e.value(f"icmp eq i32 {kept}, 0"), flags, complete)

    def _complete(self, kept: str, flags: str, first: Part, size: str) -> str:
        """i1: all flags of a stretch are set, if any are kept: once they are, they are so until the CTA ends."""
        e, f = self.code, self.facts
        with First(e):  # the last stretch of which that was found, and in which CTA
            where, when = e.value("alloca i64"), e.value("alloca i64")
            e.line(f"store i64 -1, ptr {when}")
            e.line(f"store i64 0, ptr {where}")
        now = e.field("cta.id", "%cta")
        same = (f.compare("eq", e.value(f"load i64, ptr {place}"), one) for place, one in ((where, first), (when, now)))
        whole = f.compare("eq", e.value(f"and i64 {size}, 3"), 0)
        looked = f.both(f.both(kept, whole), f.compare("ule", size, _MOST_FLAGS))
        before = f.both(looked, f.both(*same))
        unknown = f.both(looked, f.inverse(before))
        complete = f.either(before, self._all_set(unknown, f.add(flags, first), size))
        e.line(f"store i64 {first}, ptr {where}")
        e.line(f"store i64 {e.value(f'select i1 {complete}, i64 {now}, i64 -1')}, ptr {when}")
        return complete
