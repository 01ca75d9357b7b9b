"""Accesses of runs (`runs`: a run with accesses is a region).

A region serves accesses whose lanes, half a warp at a time, stay within 16 words: one vector load and a permutation,
or a store of neighbours. Bounds and alignment are a comparison for each half, shared by accesses at constant distances.
In a region that goes round by itself, an address that grows by the same in all lanes keeps its pattern, so that only a
scalar is left of it in a round.

In a region that goes round, other lanes are gathered and scattered; so is all of a part of a kernel in unison whose
accesses have no such pattern (`unison`).

Anything else is a miss: before it nothing of the round has been written, to slots or memory, so the operations one by
one, whose records follow, begin where the round began. A region that misses is passed by for a while, the longer the
more often it misses.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ptxtools.native.code.handler import ELEMENT, Handler
from ptxtools.native.code.rows import likely_points
from ptxtools.native.code.runs import Step
from ptxtools.program.details import BoundedRun, Run
from ptxtools.records import dataclass, field, replace
from ptxtools.semantics.algebra import Value

from . import region_bounds, row_stores, wide
from .parts import Window, half, in_units, scatter, window
from .patterns import SIDES, WORDS, Pattern, Patterns
from .region_addresses import Addresses
from .region_misses import BEGIN, DONE

if TYPE_CHECKING:
    from .run import Contents

#: Bytes that half a warp may touch.
_BYTES = 4 * WORDS


@dataclass(slots=True)
class Group:
    """Accesses at constant distances, checked together. imms: their constants; starts, hosts: address of each half at
    the least of them, and its host address, once checked; fixed: the latter without what the address has grown by, for
    rounds that need no checks; fits: an i1, whether the lanes have the pattern and are in bounds, empty where they
    are."""

    imms: set[int] = field(default_factory=set)
    starts: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    fixed: list[str] = field(default_factory=list)
    fits: str = ""


#: What accesses have in common that are checked together: address, guard (-1 for none), whether that is negated, space,
#: lowest bits of the constant, words of each lane.
Place = tuple[int, int, bool, str, int, int]


class Accesses:
    """The loads and stores of one region."""

    def __init__(self, h: Handler, contents: Contents, detail: Run) -> None:
        self.handler, self.code, self.contents = h, h.code, contents
        self.steps: tuple[Step, ...] = detail.steps
        self.read = {number: (slot, storage) for number, slot, storage in detail.read}
        self.maker = Patterns(h, contents, self.read)
        self.windows: dict[str, Window] = {}
        self.patterns: dict[tuple[int, int, bool, int], Pattern] = {}
        self.words: dict[tuple[int, int, str, bool, bool], Pattern] = {}
        self.scalars: dict[int, str] = {}
        self.limits: dict[tuple[str, int, bool], str] = {}
        self.stores: list[tuple[Step, Pattern, list[str], Value, str]] = []
        addresses = Addresses(detail)
        self.sums, self.strides, self.found = addresses.sums, addresses.strides, addresses.found
        self.skipped, self._steady = addresses.skipped, addresses.steady
        self.grown = {root: self.code.value("alloca i64") for root in self.strides}
        self.opaque: dict[int, str] = {}
        self.points = likely_points(detail)
        self.measures = None
        if any(step.kind == "measure" for step in self.steps):
            from .region_measures import Measures

            self.measures = Measures(h, self.steps, rounds=detail.again is not None)
        self.groups: dict[Place, Group] = {}
        #: Accesses without a pattern are served one by one; in rounds, where some have one from round to round.
        self.lenient = detail.again is not None and self.measures is None
        self.rounds = detail.again is not None
        #: All accesses are gathered and scattered.
        self.apart = False
        #: Accesses are to words in a row, in each half of the lanes, or to one word; so would be those of lanes that
        #: make none.
        self.aligned = False
        #: Each group has a window of its own, which it finds.
        self.bounded = isinstance(detail, BoundedRun)
        self.stretches: dict[Place, Window] = {}
        #: What observers keep there, an i32; memory for each group.
        self.kept: dict[Place, str] = {}
        self.rooms: dict[Place, region_bounds.Rooms] = {}
        #: Bounds and alignment have been checked for all rounds that are emitted now.
        self.trusted = False
        for step in self.steps:
            if step.space:
                self.groups.setdefault(self._place(step), Group()).imms.add(step.imm)
        if self.bounded:
            self.rooms = {place: self._rooms() for place in self.groups}

    def _rooms(self) -> region_bounds.Rooms:
        return region_bounds.rooms(self.handler)

    def steps_at(self, place: Place) -> list[Step]:
        """The accesses of a group."""
        return [step for step in self.steps if step.space and self._place(step) == place]

    # --- the order of things ------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """In front of the region: whether it is tried now; what all rounds share."""
        self.code.declare("llvm.umin.i32", "declare i32 @llvm.umin.i32(i32, i32)")
        self.code.expand(BEGIN)
        if self.bounded:
            self.code.expand(region_bounds.CHAIN)
        for space in sorted({step.space for step in self.steps if step.space}):
            self.windows[space] = window(self.handler, space)
        for (number, _, _, space, *_), group in self.groups.items() if not self.bounded else ():
            self._limit(space, max(group.imms) - min(group.imms), point=number < 0)

    def measured(self, step: Step) -> tuple[Pattern, list[str]]:
        """The pattern of an access that is checked, and the address of each half's first lane."""
        place = self._place(step)
        number, guard, negated, *_ = place
        root = self.sums[number][0] if number in self.skipped - self.found.keys() else number
        group = self.groups[place]
        more = step.imm - min(group.imms)
        return self._pattern(root, guard, negated=negated), [
            self.code.value(f"add i64 {start}, {more}") for start in group.starts
        ]

    def begin_rounds(self) -> None:
        """In front of all rounds: patterns that stay, and what addresses grow by."""
        for root in self.strides:
            self.code.line(f"store i64 0, ptr {self.grown[root]}")
            self._pattern(root, -1, negated=False)
        if self.measures is not None:
            self.measures.begin()
        for number in sorted(self.skipped - self.found.keys()):
            for term in self.sums[number][1]:
                self._scalar(term)
        for number, guard, *_ in self.groups:
            if guard < 0 and self._steady(number):
                self._pattern(number, guard, negated=False)
        self.maker.fail = self.code.label("late")

    # --- many rounds at once ------------------------------------------------------------------------------------------

    def steady(self) -> bool:
        """Whether all addresses stay, or grow by the same in each round."""
        for number, guard, *_ in self.groups:
            root = self.sums[number][0] if number in self.skipped - self.found.keys() else number
            if guard >= 0 or number in self.found or not (root in self.strides or number < 0 or self._steady(root)):
                return False
        return True

    def all_fit(self, last: str) -> str:
        """i1: the accesses of the first round fit, and those of round number `last` (i64, from 0 on), so that all
        between them do."""
        e, fits = self.code, "true"
        for place, group in self.groups.items():
            number, guard, negated, *_ = place
            root, terms = self.sums[number] if number in self.skipped - self.found.keys() else (number, ())
            pattern = self._pattern(root, guard, negated=negated)
            if pattern.near:
                fits = e.value(f"and i1 {fits}, {pattern.near}")
            if any(step.kind == "st" for step in self.steps_at(place)):
                fits = e.value(f"and i1 {fits}, {self._in_order(pattern)}")
            least = min(group.imms)
            if self.bounded:
                start = pattern.first[0]
                for term in terms:
                    start = e.value(f"add i64 {start}, {self._scalar(term)}")
                region_bounds.find(self, place, e.value(f"add i64 {start}, {least}"))
                fits = e.value(f"and i1 {fits}, {e.value(f'icmp eq i32 {self.kept[place]}, 0')}")
            limit = self._limit_of(place, group, pattern)
            window, grown = self._window(place), "0"
            if root in self.strides:
                stride = "0"
                for term in self.strides[root]:
                    stride = e.value(f"add i64 {stride}, {self._scalar(term)}")
                small = e.value(f"icmp ult i64 {e.value(f'add i64 {stride}, 1073741824')}, 2147483648")
                words = e.value(f"icmp eq i64 {e.value(f'and i64 {stride}, 3')}, 0")
                fits = e.value(f"and i1 {fits}, {e.value(f'and i1 {small}, {words}')}")
                grown = e.value(f"mul i64 {stride}, {last}")
            group.fixed = []
            for first in pattern.first:
                at = first
                for term in terms:
                    at = e.value(f"add i64 {at}, {self._scalar(term)}")
                offset = e.value(f"sub i64 {e.value(f'add i64 {at}, {least}')}, {window.base}")
                for end in (offset, e.value(f"add i64 {offset}, {grown}")):
                    inside = e.value(f"icmp ult i64 {in_units(self.handler, end, 2, 'i64')}, {limit}")
                    fits = e.value(f"and i1 {fits}, {inside}")
                group.fixed.append(e.value(f"add i64 {window.host}, {offset}"))
        return fits

    def forget(self) -> None:
        """Another round is emitted."""
        self.stores.clear()
        self.stretches.clear()
        self.kept.clear()
        self.opaque.clear()
        for group in self.groups.values():
            group.starts, group.hosts, group.fits = [], [], ""

    # --- accesses in order --------------------------------------------------------------------------------------------

    def load(self, step: Step) -> list[Value]:
        """The words that a load gives, for lanes that make it."""
        if self.apart:
            return [self._gather(step, self._active(step.guard, negated=step.negated))]
        pattern, pointers = self._checked(step)
        if wide.width_of(step) > 1:
            near = step.space == "shared"
            return wide.loaded(self.handler, pattern.together, pointers, wide.width_of(step), near=near)
        fits = self.groups[self._place(step)].fits
        if not fits or self.trusted:
            return [self._loaded(pattern, pointers)]
        e = self.code
        usual, apart, on = (e.label(hint) for hint in ("usual", "apart", "here"))
        e.branch(fits, usual, apart, likely=True)
        e.begin(usual)
        first, first_end = self._loaded(pattern, pointers), e.label("end")
        e.jump(first_end)
        e.begin(first_end)
        e.jump(on)
        e.begin(apart)
        second, second_end = self._gather(step, pattern.active), e.label("end")
        e.jump(second_end)
        e.begin(second_end)
        e.jump(on)
        e.begin(on)
        return [e.value(f"phi <32 x i32> [{first}, %{first_end}], [{second}, %{second_end}]")]

    def _gather(self, step: Step, active: str) -> Value:
        """The words of a load, wherever they are."""
        e = self.code
        offsets = self._offsets(step, active)
        start = e.value(f"inttoptr i64 {self._window(self._place(step)).host} to ptr")
        lanes = e.value(f"bitcast i32 {active} to <32 x i1>")
        sides = []
        name = "llvm.masked.gather.v16i32.v16p0"
        e.declare(name, f"declare <16 x i32> @{name}(<16 x ptr>, <16 x i1>, <16 x i32>)")
        for side in SIDES:
            index, mine = half(self.handler, offsets, "i32", side), half(self.handler, lanes, "i1", side)
            where = e.value(f"getelementptr i32, ptr {start}, <16 x i32> {index}")
            operands = f"<16 x ptr> align 4 {where}, <16 x i1> {mine}, <16 x i32> zeroinitializer"
            sides.append(e.value(f"call <16 x i32> @{name}({operands})"))
        return e.concatenate("i32", sides, 16)

    def _offsets(self, step: Step, active: str) -> Value:
        """Of all lanes, i32 words from the start of the window; a miss where one that runs is out of bounds or not
        aligned."""
        e, window, number = self.code, self._window(self._place(step)), step.sources[0][0]
        if number < 0:
            vector: Value = "zeroinitializer"
        elif number in self.found:
            finds = self.found[number]
            self._read_constant(finds.sources[2][0])
            extend = "sext" if finds.text.endswith("s32") else "zext"
            wide = e.value(f"{extend} <32 x i32> {self.contents[finds.sources[0][0]]} to <32 x i64>")
            words = e.value(f"shl <32 x i64> {wide}, splat (i64 2)")
            vector = e.value(f"add <32 x i64> {words}, {e.spread('i64', self.scalars[finds.sources[2][0]])}")
        else:
            vector = self.contents[number]
            if self.contents.storage(number) == "b32":
                vector = e.value(f"zext <32 x i32> {vector} to <32 x i64>")
        moved = e.spread("i64", e.value(f"sub i64 {step.imm}, {window.base}"))
        offsets = e.value(f"add <32 x i64> {vector}, {moved}")
        most = e.call("llvm.umin.i64", "i64", [("i64", e.value(f"lshr i64 {window.size}, 2")), ("i64", str(2**31 - 1))])
        words = in_units(self.handler, offsets, 2)
        inside = e.value(f"icmp ult <32 x i64> {words}, {e.spread('i64', most)}")
        self.maker.demand(self.maker.all([half(self.handler, inside, "i1", side) for side in SIDES], active))
        return e.value(f"trunc <32 x i64> {words} to <32 x i32>")

    def _loaded(self, pattern: Pattern, pointers: list[str]) -> Value:
        """The words of lanes that have a pattern."""
        if not pattern.together:
            return self._gathered(pattern, pointers)
        e = self.code
        single, several, on = (e.label(hint) for hint in ("single", "several", "loaded"))
        e.branch(pattern.together, single, several, likely=True)
        e.begin(single)
        points = [e.value(f"load i32, ptr {e.value(f'inttoptr i64 {pointer} to ptr')}") for pointer in pointers]
        first = e.concatenate("i32", [e.spread("i32", point, 16) for point in points], 16)
        e.jump(on)
        e.begin(several)
        second = self._gathered(pattern, pointers)
        e.jump(on)
        e.begin(on)
        return e.value(f"phi <32 x i32> [{first}, %{single}], [{second}, %{several}]")

    def _gathered(self, pattern: Pattern, pointers: list[str]) -> Value:
        return self.code.concatenate("i32", [self._words(pattern, pointers[side], side) for side in SIDES], 16)

    def store(self, step: Step, values: list[Value]) -> None:
        """Check a store, which `commit` makes."""
        e, value = self.code, values[0]
        if len(values) > 1:
            pattern, pointers = self._checked(step)
            self.maker.demand(e.value(f"xor i1 {pattern.together}, true"))
            self.stores.append((step, pattern, pointers, values, ""))
            return
        if self.apart:
            active = self._active(step.guard, negated=step.negated)
            self._offsets(step, active)
            self.stores.append((step, Pattern([], [], [], active), [], value, "false"))
            return
        pattern, pointers = self._checked(step)
        for side in SIDES:
            back = e.value(f"zext i32 {e.value(f'shl i32 {pattern.column[side]}, 2')} to i64")
            pointers[side] = e.value(f"sub i64 {pointers[side]}, {back}")
        fits = self.groups[self._place(step)].fits
        if self.trusted:
            fits = ""
        elif not fits:
            self.maker.demand(self._in_order(pattern))
        else:
            fits = e.value(f"and i1 {fits}, {self._in_order(pattern)}")
            apart, on = e.label("apart"), e.label("here")
            e.branch(fits, on, apart, likely=True)
            e.begin(apart)
            self._offsets(step, pattern.active)
            e.jump(on)
            e.begin(on)
        self.stores.append((step, pattern, pointers, value, fits))

    def _in_order(self, pattern: Pattern) -> str:
        """i1: each half of the lanes is at words that follow each other."""
        e, fits = self.code, []
        for side in SIDES:
            column = e.spread("i32", pattern.column[side], 16)
            lane = e.value(f"add <16 x i32> {pattern.words[side]}, {column}")
            row = ", ".join(f"i32 {number}" for number in range(16))
            fits.append(e.value(f"icmp eq <16 x i32> {lane}, <{row}>"))
        return self.maker.all(fits, pattern.active)

    def commit(self) -> None:
        """All is well: make the stores."""
        e = self.code
        if self.measures is not None:
            self.measures.each(self.measured)
        for step, pattern, pointers, value, fits in self.stores:
            if isinstance(value, list):
                wide.store(self.handler, pointers, value)
                continue
            if self.apart:
                self._scatter(step, pattern.active, value)
                continue
            usual, apart, on = (e.label(hint) for hint in ("usual", "apart", "here"))
            if fits:
                e.branch(fits, usual, apart, likely=True)
                e.begin(usual)
            row_stores.store(self.handler, pointers, value, pattern.active)
            if fits:
                e.jump(on)
                e.begin(apart)
                self._scatter(step, pattern.active, value)
                e.jump(on)
                e.begin(on)
            if self.bounded and not self.trusted:
                region_bounds.note(self, self._place(step), step.imm, pattern)
        for root, terms in self.strides.items():
            grown = self._grown(root)
            for term in terms:
                grown = e.value(f"add i64 {grown}, {self._scalar(term)}")
            e.line(f"store i64 {grown}, ptr {self.grown[root]}")

    def _scatter(self, step: Step, active: str, value: Value) -> None:
        """Make a store to any words, lane 0 first."""
        e = self.code
        offsets = self._offsets(step, active)
        start = e.value(f"inttoptr i64 {self._window(self._place(step)).host} to ptr")
        lanes = e.value(f"bitcast i32 {active} to <32 x i1>")
        for side in SIDES:
            where = e.value(f"getelementptr i32, ptr {start}, <16 x i32> {half(self.handler, offsets, 'i32', side)}")
            data, mine = half(self.handler, value, "i32", side), half(self.handler, lanes, "i1", side)
            scatter(self.handler, data, where, mine)

    def end_rounds(self) -> None:
        """Behind the last round, whole or not: write what addresses have grown to."""
        e = self.code
        if self.measures is not None:
            self.measures.end()
        for root in self.strides:
            place = self.contents.place(self.read[root][0])
            old = e.value(f"load <32 x i64>, ptr {place}, align 64")
            more = e.spread("i64", self._grown(root))
            mine = e.value(f"select <32 x i1> {self.handler.lanes}, <32 x i64> {more}, <32 x i64> zeroinitializer")
            e.line(f"store <32 x i64> {e.value(f'add <32 x i64> {old}, {mine}')}, ptr {place}, align 64")

    def end(self) -> None:
        """Go on behind the operations one by one; ends the path."""
        if self.bounded and not self.rounds:
            self.code.declare("llvm.ctpop.i32", "declare i32 @llvm.ctpop.i32(i32)")
            self.code.expand(region_bounds.CHARGE)
        self.code.expand(DONE)

    # --- one access ---------------------------------------------------------------------------------------------------

    def _place(self, step: Step) -> Place:
        width = wide.width_of(step)
        return step.sources[0][0], step.guard, step.negated, step.space, step.imm % (4 * width), width

    def _checked(self, step: Step) -> tuple[Pattern, list[str]]:
        """The pattern of an access, and the host address of each half's first lane."""
        e, place = self.code, self._place(step)
        number, guard, negated, _, _, width = place
        root, terms = self.sums[number] if number in self.skipped - self.found.keys() else (number, ())
        if number in self.found:
            terms = (self.found[number].sources[2][0],)
            self._read_constant(terms[0])
        pattern = self._pattern(root, guard, negated=negated, width=width)
        group = self.groups[place]
        least = min(group.imms)
        if not group.hosts:
            self._check(group, place, pattern, root, terms)
        more = step.imm - least
        return pattern, [e.value(f"add i64 {host}, {more}") if more else host for host in group.hosts]

    def _check(self, group: Group, place: Place, pattern: Pattern, root: int, terms: tuple[int, ...]) -> None:
        """Find whether all accesses of a group are in bounds and aligned."""
        if self.trusted:
            grown = self._opaque(root) if root in self.strides else "0"
            group.hosts = [self.code.value(f"add i64 {host}, {grown}") for host in group.fixed]
            return
        e, least, number = self.code, min(group.imms), place[0]
        if not self.bounded:
            limit = self._limit_of(place, group, pattern)
        good, all_units = list[str](), list[str]()
        nobody = e.value(f"icmp eq i32 {pattern.active}, 0")
        for first in pattern.first:
            at = first
            if root in self.strides:
                at = e.value(f"add i64 {at}, {self._grown(root)}")
            for term in terms:
                at = e.value(f"add i64 {at}, {self._scalar(term)}")
            group.starts.append(e.value(f"add i64 {at}, {least}"))
            if self.bounded and not good:
                region_bounds.find(self, place, group.starts[0])
                if place[1] >= 0:
                    region_bounds.widen(self, place, nobody)
                limit = self._limit_of(place, group, pattern)
            start = self._window(place)
            offset = e.value(f"sub i64 {group.starts[-1]}, {start.base}")
            offset = e.value(f"select i1 {nobody}, i64 0, i64 {offset}")
            all_units.append(in_units(self.handler, offset, 1 + place[5].bit_length(), "i64"))
            good.append(e.value(f"icmp ult i64 {all_units[-1]}, {limit}"))
            group.hosts.append(e.value(f"add i64 {start.host}, {offset}"))
        inside = e.value(f"and i1 {good[0]}, {good[1]}")
        if place[3] == "shared" and place[5] == 1 and not self.bounded and not pattern.point:
            most = self._limit("shared", max(group.imms) - least, point=True)
            inside = self.maker.unless_at_edge(inside, pattern, all_units, most)
        if not self.lenient or number in self.skipped - self.found.keys() or number in self.strides:
            self.maker.demand(inside)
        else:
            group.fits = e.value(f"and i1 {inside}, {pattern.near}") if pattern.near else inside
        if self.bounded:
            region_bounds.look(self, place, pattern, group.starts, group.fits)

    def _window(self, place: Place) -> Window:
        return self.stretches[place] if self.bounded else self.windows[place[3]]

    def _limit_of(self, place: Place, group: Group, pattern: Pattern) -> str:
        """As `_limit`, of a group's window."""
        span, width = max(group.imms) - min(group.imms), place[5]
        if width > 1:
            return self._wide_limit(place, span, width)
        if not self.bounded:
            return self._limit(place[3], span, point=pattern.point)
        words = self._words_in(self._window(place), span, point=pattern.point)
        if not pattern.together:
            return words
        point = self._words_in(self._window(place), span, point=True)
        return self.code.value(f"select i1 {pattern.together}, i64 {point}, i64 {words}")

    def _wide_limit(self, place: Place, span: int, width: int) -> str:
        """As `_limit_of`, in units of several words."""
        e, space = self.code, place[3]
        row = self._limit(space, span + _BYTES * (width - 1), point=False)
        point = self._limit(space, span + 4 * (width - 1), point=True)
        together = self.patterns[place[0], place[1], place[2], width].together
        words = e.value(f"select i1 {together}, i64 {point}, i64 {row}")
        return e.value(f"lshr i64 {e.value(f'add i64 {words}, {width - 1}')}, {width.bit_length() - 1}")

    def _limit(self, space: str, span: int, *, point: bool) -> str:
        """Words at which accesses may begin to so many bytes more than half a warp has, or one word has (point)."""
        if (space, span, point) not in self.limits:
            self.limits[space, span, point] = self._words_in(self.windows[space], span, point=point)
        return self.limits[space, span, point]

    def _words_in(self, window: Window, span: int, *, point: bool) -> str:
        e, least = self.code, 4 if point else _BYTES
        room = e.call("llvm.usub.sat.i64", "i64", [("i64", window.size), ("i64", str(span + least - 1))])
        return e.value(f"lshr i64 {e.value(f'add i64 {room}, 3')}, 2")

    def _words(self, pattern: Pattern, start: str, side: int) -> Value:
        """The words of half a warp."""
        e, vector = self.code, "<16 x i32>"
        pointer = e.value(f"inttoptr i64 {start} to ptr")
        if pattern.point:
            return e.spread("i32", e.value(f"load i32, ptr {pointer}"), 16)
        data = e.value(f"load {vector}, ptr {pointer}, align 4")
        if pattern.row:  # loads under masks wait longer for what is not in the first cache
            return data if pattern.active == self.handler.running else e.value(f"freeze {vector} {data}")
        words = pattern.words[side]
        if "avx512f" in e.features:
            return e.call("llvm.x86.avx512.permvar.si.512", vector, [(vector, data), (vector, words)])
        second = e.value(f"extractelement {vector} {words}, i32 15")  # patterns are rows and points only
        point = e.spread("i32", e.value(f"extractelement {vector} {data}, i32 0"), 16)
        return e.value(f"select i1 {e.value(f'icmp eq i32 {second}, 0')}, {vector} {point}, {vector} {data}")

    def _pattern(self, number: int, guard: int, *, negated: bool, width: int = 1) -> Pattern:
        key = (number, guard, negated, width)
        if key not in self.patterns:
            active = self._active(guard, negated=negated)
            self.maker.lenient = self.lenient and number not in self.strides
            straight = self.aligned and self._plain(number, guard) and (active == "-1" or width == 1)
            find = partial(self._straight, number, width) if straight else partial(self._make, number)
            made = self.patterns[key] = find(active)
            if number in self.points and not made.point and width == 1:
                self.maker.together(made)
        return self.patterns[key]

    def _plain(self, number: int, guard: int) -> bool:
        """Whether lanes whose guard does not hold have addresses like those of the others: none has, or all do."""
        return number >= 0 and (guard < 0 or guard in self.contents.same)

    def _active(self, guard: int, *, negated: bool) -> str:
        """The lanes that run whose guard holds."""
        if guard < 0:
            return self.handler.running
        flags = self.code.value(f"xor i32 {self.contents.word(guard)}, {-1 if negated else 0}")
        return self.code.value(f"and i32 {flags}, {self.handler.running}")

    def _make(self, number: int, active: str) -> Pattern:
        patterns = self.maker
        if number < 0:  # no register: the constant of the access is its address
            return replace(patterns.of_bytes(number, "b64", "zeroinitializer", active), point=True)
        if number in self.found:
            step = self.found[number]
            return patterns.of_words(step.sources[0][0], active, signed=step.text.endswith("s32"))
        if number not in self.strides:
            return patterns.of_bytes(number, self.contents.storage(number), self.contents[number], active)
        slot, storage = self.read[number]
        vector = self.code.value(f"load <32 x i64>, ptr {self.contents.place(slot)}, align 64")
        return patterns.of_bytes(number, storage, vector, active)

    def _straight(self, number: int, width: int, active: str) -> Pattern:
        """As `_make`, of lanes that would all have the pattern: each half of them at words in a row or at one word."""
        e, point, either = self.code, number in self.points and width == 1, width > 1
        straight = partial(self.maker.straight, active=active, point=point, either=either)
        if number not in self.found:
            element = ELEMENT[self.contents.storage(number)]
            made = straight(self.contents[number], element, 4 * width)
            return made if element == "i64" else self._widened(made, "zext")
        step = self.found[number]
        signed = step.text.endswith("s32")
        key = (step.sources[0][0], width, active, point, signed)
        if key not in self.words:  # other addresses may be made of the same numbers
            made = straight(self.contents[step.sources[0][0]], "i32", width)
            last, less = (2**31 - 16 * width, "slt") if signed else (-16 * width, "ult")
            for first in made.first:  # no number passes the end of 32 bits
                self.maker.demand(self.maker.unless_nobody(e.value(f"icmp {less} i32 {first}, {last}"), active))
            wide = self._widened(made, "sext" if signed else "zext")
            self.words[key] = replace(wide, first=[e.value(f"shl i64 {first}, 2") for first in wide.first])
        return self.words[key]

    def _widened(self, pattern: Pattern, extend: str) -> Pattern:
        return replace(pattern, first=[self.code.value(f"{extend} i32 {one} to i64") for one in pattern.first])

    def _read_constant(self, number: int) -> None:
        """An operand that is the same in all lanes by nature."""
        if number not in self.scalars:
            place = self.contents.place(self.read[number][0])
            self.scalars[number] = self.code.value(f"load i64, ptr {place}")

    def _grown(self, root: int) -> str:
        return self.code.value(f"load i64, ptr {self.grown[root]}")

    def _opaque(self, root: int) -> str:
        """What an address has grown by in this round, opaque to LLVM: else each access would have a sum of its own."""
        if root not in self.opaque:
            self.opaque[root] = self.code.value(f'call i64 asm "", "=r,0"(i64 {self._grown(root)})')
        return self.opaque[root]

    def _scalar(self, number: int) -> str:
        """An operand that all lanes have in common; else a miss, before the first round."""
        if number not in self.scalars:
            vector = self.contents[number]
            lane = self.handler.leader()
            scalar = self.code.value(f"extractelement <32 x i64> {vector}, i32 {lane}")
            equal = self.code.value(f"icmp eq <32 x i64> {vector}, {self.code.spread('i64', scalar)}")
            low, high = (half(self.handler, equal, "i1", side) for side in SIDES)
            self.maker.demand(self.maker.all([low, high], self.handler.running))
            self.scalars[number] = scalar
        return self.scalars[number]
