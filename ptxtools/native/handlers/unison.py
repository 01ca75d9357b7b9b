"""Handlers of kernels that run in unison (`native.code.unison`): blocks, from one to the next without records.

A warp in here is as it is in the threaded code, but for what says where it is (`unison_turns`): a number for warps that
are whole, a set for those at the barrier. Where lanes wait for others of their warp is a set of blocks, with the lanes
that are at each; `warp.pc` has that only when the function is left. `pend` is the lowest of those blocks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import pairwise

from ptxtools.native.code.emitter import Emitter
from ptxtools.native.code.handler import ELEMENT, attributes_of
from ptxtools.native.code.live_words import Key
from ptxtools.native.code.notation import CONVENTION, call_of
from ptxtools.native.code.sections import find
from ptxtools.native.code.structures import QUICK_COUNTED, QUICK_PART, QUICK_WHOLE, SERVED_DONE
from ptxtools.native.code.unison import Part, Stage, finds_addresses, grouped, runs_of
from ptxtools.program.details import Run, Unison
from ptxtools.program.program import LANES, Op, Slot

from . import carried, lockstep, lockstep_turns, prefetch, region_bounds, run, unison_turns, wide
from .inline import First, Inline
from .parts import Window, window
from .patterns import Pattern
from .regions import Group, Place
from .strided import StridedAccesses, rows_of

#: Parts that may note in s2 to s8 of the record, a bit each, that their accesses are not to words in a row.
MOST_TRIED = 7 * 32
#: Terminators that are done in here; at others, lanes leave.
_HERE = frozenset({"jump", "branch", "exit", "barrier", "warpsync", "served", "met"})


#: Where the ways into a block are written, once they are known: its number, and which of the slots that it takes over.
_WAYS = re.compile(r"@(\d+)\.(\d+)@")


class RegionPart(StridedAccesses):
    """The accesses of one part: what all parts have in common is found once."""

    def __init__(self, h: Inline, contents: run.Contents, detail: Run, whole: Whole) -> None:
        self.whole, self.rows = whole, {}
        super().__init__(h, contents, detail)
        self.windows, self.limits = whole.windows, whole.limits

    def _rooms(self) -> region_bounds.Rooms:
        main = self.whole.main
        main.known += 1
        return region_bounds.lasting_rooms(self.handler, self.whole.first(), main.known - 1)

    def _check(self, group: Group, place: Place, pattern: Pattern, root: int, terms: tuple[int, ...]) -> None:
        super()._check(group, place, pattern, root, terms)
        loads = any(step.kind == "ld" for step in self.steps_at(place))
        if self.whole.rounds and loads and self.aligned and pattern.row and place[3] == "global":
            with self.whole.first():
                last = self.code.value("alloca i64")
                self.code.line(f"store i64 0, ptr {last}")
            prefetch.next_round(self.code, last, group.hosts)

    def _plain(self, number: int, guard: int) -> bool:
        if super()._plain(number, guard) or number < 0 or self.whole.noting:
            return super()._plain(number, guard)
        mine = [step for step in self.steps if step.space and step.sources[0][0] == number and step.guard == guard]
        narrow = all(wide.width_of(step) == 1 for step in self.steps if step.space)
        return narrow and all(step.kind == "ld" for step in mine)  # there is another way if it is not so

    def _limit(self, space: str, span: int, *, point: bool) -> str:
        if (space, span, point) not in self.limits:
            with self.whole.first():
                return super()._limit(space, span, point=point)
        return super()._limit(space, span, point=point)


class Whole:
    """One function: the variables of the warp that has its turn are in memory on the stack, which LLVM keeps in
    registers. noting: parts have bits of the record, which say that they have missed."""

    noting = True

    def __init__(self, emitter: Emitter, op: Op) -> None:
        self.code, self.op, self.handler = emitter, op, Inline(emitter, op)
        self.detail = op.of(Unison)
        self.stages: tuple[Stage, ...] = self.detail.stages
        self.constants: dict[Key, int | None] = {
            (slot, storage): value for slot, storage, value in self.detail.constants
        }
        self.windows: dict[str, Window] = {}
        self.limits: dict[tuple[str, int, bool], str] = {}
        self.leaving: list[tuple[str, str, int, bool]] = []
        #: What the last part has written to slots, right in the lanes that run; a predicate's as a word.
        self.values: dict[Key, str] = {}
        self.wanted = {
            (slot, storage) for stage in self.stages for run in runs_of(stage.parts) for _, slot, storage in run.read
        }
        #: Slots whose contents a block takes over from the blocks before it, and its ways in: labels, and contents.
        self.carried = carried.carried(self.stages, self.constants)
        self.ways_in: list[list[tuple[str, list[str]]]] = [[] for _ in self.stages]
        #: Parts that note in the record where they miss.
        self.tried = 0
        #: Whether the block is one that lanes are often missing in, and whether warps go round there by themselves.
        self.parting, self.rounds, self.loops = True, False, prefetch.rounds(self.stages)
        #: Whether there are runs over several blocks; rows of what these know of stretches: those of the kernel.
        self.bounded = any(part.passed is not None for stage in self.stages for part in stage.parts)
        self.known, self.main = 0, self
        #: Slots whose contents are scalars (`sections`).
        self.same: frozenset[Key] = frozenset()
        #: Fields of the record and bits that say that a section has missed, by the block that it begins with.
        self.section_bits: dict[int, tuple[str, int]] = {}

    def first(self) -> First:
        """Emit into the start of the function."""
        return First(self.code)

    # --- the function -------------------------------------------------------------------------------------------------

    def text(self, name: str) -> str:
        e = self.code
        found = find(self.stages, self.constants)
        sections, functions = found.sections, ""
        if sections:
            from . import section_turns  # which takes this class

            functions = section_turns.functions(self, name, found)
        stepped = lockstep.function(e, f"{name}.all", self.op, self.stages, self.constants, found)
        functions += stepped
        with self.first():
            for space in ("global", "shared"):
                self.windows[space] = window(self.handler, space, cta="%cta")
        with self.first():
            if self.bounded:
                e.expand("%chain.filter = get ctx.bounded")
            if self.bounded or sections:
                region_bounds.completion(e, "%complete")
        fresh = any(section.start == 0 for section in sections)
        unison_turns.begin(self, sections=bool(sections), fresh=fresh, stepped=bool(stepped))
        if stepped:
            lockstep_turns.enter(self, f"{name}.all", "sec.fresh" if fresh else "round", sections=bool(sections))
        if sections:
            section_turns.enter(self, name, found)
        for number, stage in enumerate(self.stages):
            self._stage(number, stage)
        for label, mask, record, soon in self.leaving:
            e.begin(label)
            unison_turns.leave_at(self, mask, record, soon=soon)
        self._take_over()
        body = e.take()
        signature = "ptr %warps, ptr %ip, i32 %ready, ptr %ctx, ptr %cta"
        return f"{functions}define {CONVENTION} void @{name}({signature}) {attributes_of(e, body)} {{\n{body}\n}}\n"

    # --- variables ----------------------------------------------------------------------------------------------------

    def kind_of(self, variable: str) -> str:
        """The type of a variable."""
        kind = unison_turns.VARIABLES[variable]
        return f"i{-(-len(self.stages) // 64) * 64}" if kind == unison_turns.BLOCKS else kind

    def get(self, variable: str) -> str:
        return self.code.value(f"load {self.kind_of(variable)}, ptr %v.{variable}")

    def set(self, variable: str, value: object) -> None:
        self.code.line(f"store {self.kind_of(variable)} {value}, ptr %v.{variable}")

    # --- contents of slots --------------------------------------------------------------------------------------------

    def _loaded(self, key: Key) -> str:
        slot, storage = key
        place = self.code.value(f"getelementptr i8, ptr %fp, i64 {slot}")
        return self.code.value(f"load {carried.kind(storage)}, ptr {place}, align {4 if storage == 'pred' else 64}")

    def _joined(self, ways: list[tuple[str, dict[Key, str]]]) -> dict[Key, str]:
        """Contents behind several ways, each with its last label, where a block begins."""
        common = sorted(set.intersection(*(set(contents) for _, contents in ways)))
        joined: dict[Key, str] = {}
        for key in common:
            if len({contents[key] for _, contents in ways}) == 1:
                joined[key] = ways[0][1][key]
                continue
            pairs = ", ".join(f"[{contents[key]}, %{label}]" for label, contents in ways)
            joined[key] = self.code.value(f"phi {carried.kind(key[1])} {pairs}")
        return joined

    def _take_over(self) -> None:
        """Let each block know its ways in."""
        for at, line in enumerate(self.code.lines):
            found = _WAYS.search(line)
            if found is not None:
                number, place = int(found[1]), int(found[2])
                more = "".join(f", [{contents[place]}, %{label}]" for label, contents in self.ways_in[number])
                self.code.lines[at] = line.replace(found[0], more)

    # --- blocks -------------------------------------------------------------------------------------------------------

    def _stage(self, number: int, stage: Stage) -> None:
        e = self.code
        self._meet(number)
        e.begin(f"body{number}")
        self.values = {}
        if self.carried[number]:
            loaded = [self._loaded(key) for key in self.carried[number]]
            e.jump(f"core{number}")
            e.begin(f"core{number}")
            for place, (key, first) in enumerate(zip(self.carried[number], loaded, strict=True)):
                way = f"[{first}, %body{number}]@{number}.{place}@"
                self.values[key] = e.value(f"phi {carried.kind(key[1])} {way}")
        self.parting, self.rounds = number not in carried.next_blocks(stage), number in self.loops
        mask = self.get("mask")
        self.handler.lanes_are(mask)
        self.flags = ""
        groups = list(grouped(stage.parts))
        for group in groups:
            guard = stage.number if group is groups[-1] else -1
            if group[0].whole is None:
                self._parts(group, guard)
            else:
                self._either(group, guard)
        self._end(number, stage)

    def _parts(self, parts: Sequence[Part], guard: int) -> None:
        """Parts one by one; guard: number in the last one of what the block's branch looks at, or -1."""
        for part in parts:
            if part.run is not None and part.passed is not None:
                self.flags = ""
                self.values = self._chain(part, part.run, *part.passed)
            elif part.run is not None:
                self.flags, self.values = self._run(part, part.run, guard if part is parts[-1] else -1)
            elif part.copy < 0:
                self._leave_rounds(part)
                self.values = {}
            else:
                self._call(part)
                self.values = {}

    def _leave_rounds(self, part: Part) -> None:
        """Go on in records; as long as CTAs may run as a whole, that is no miss."""
        e = self.code
        missed = e.value(f"icmp uge i32 {e.field('rec.s9')}, {lockstep.MOST_MISSED}")
        e.branch(missed, self._leave(part.record), self._leave(part.record, soon=True))
        e.begin(e.label("nobody"))

    def _either(self, parts: Sequence[Part], guard: int) -> None:
        """What parts do together if all lanes run, or one by one."""
        e, h, first = self.code, self.handler, parts[0]
        assert first.whole is not None
        single, on = e.label("single"), e.label("on")
        way = miss = ""
        if self.tried == MOST_TRIED:
            self._parts(parts, guard)
            return
        if any(step.space for step in first.whole.steps):
            way, miss = "rows", self._try_rows(single, h.full)
        else:
            whole = e.label("whole")
            e.branch(h.full, whole, single, likely=True)
            e.begin(whole)
        before = self.values
        with h.all_lanes():
            flags, together = self._version(first.whole, first.number if guard >= 0 else -1, way, miss)
        self.values = before
        end = e.label("end")
        e.jump(end)
        e.begin(end)
        e.jump(on)
        e.begin(single)
        self._parts(parts, guard)
        last = e.label("end")
        e.jump(last)
        e.begin(last)
        e.jump(on)
        e.begin(on)
        if guard >= 0:
            self.flags = e.value(f"phi i32 [{flags}, %{end}], [{self.flags}, %{last}]")
        self.values = self._joined([(end, together), (last, self.values)])

    def _leave(self, record: int, *, soon: bool = False) -> str:
        """Label of a way out: the lanes that run go on at a record; soon: for this turn, and it is no miss."""
        label = self.code.label("leave")
        self.leaving.append((label, self.handler.running, record, soon))
        return label

    def _run(self, part: Part, detail: Run, number: int) -> tuple[str, dict[Key, str]]:
        """As `run.run`, of a run that does not go round. Where accesses are not to words in a row, in all lanes or, if
        lanes are missing, in those that would be there, all of it is done again for other patterns, and where they have
        none, with gathers; what these cannot do leaves. Answers as `_version`."""
        if not any(step.space for step in detail.steps):
            return self._version(detail, number, "", "")
        ways = ["strided"] if rows_of(detail.steps) else []
        return self._ways(detail, number, [*ways, "patterns", "gathered"], self._leave(part.record))

    def _ways(self, detail: Run, number: int, ways: list[str], fail: str) -> tuple[str, dict[Key, str]]:
        """A run with accesses, done in one of several ways, each where the one before it has missed; fail: where the
        last one's misses go."""
        e, h, done, general = self.code, self.handler, self.code.label("done"), ways[0]
        noting = self.noting and self.tried + 2 <= MOST_TRIED and not finds_addresses(detail.steps)
        if noting:
            ways = ["rows", "part", *ways] if self.parting else ["rows", *ways]  # in loops few are missing
        labels = {way: e.label(way) for way in ways}
        fails = {way: labels[after] for way, after in pairwise(ways)} | {ways[-1]: fail}
        if noting:
            other = e.label("other")
            fails["rows"] = self._try_rows(other if self.parting else labels[general], h.full)
        flags, contents = [], []
        for way in ways:
            if noting and way == "part":
                e.begin(other)
                e.branch(h.full, labels[general], labels["part"])
                e.begin(labels["part"])
                fails["part"] = self._try_rows(labels[general], "true")
            elif way != ways[0]:
                e.begin(labels[way])
            with h.all_lanes() if way == "rows" else nullcontext():
                found, made = self._version(detail, number, way, fails[way])
            end = e.label("end")
            e.jump(end)
            e.begin(end)
            e.jump(done)
            flags.append(f"[{found}, %{end}]")
            contents.append((end, made))
        e.begin(done)
        answer = e.value(f"phi i32 {', '.join(flags)}") if number >= 0 else ""
        return answer, self._joined(contents)

    def _chain(self, part: Part, detail: Run, cost: int, weight: int, highest: int) -> dict[Key, str]:
        """A run over several blocks: what `region_bounds` does in front of one, and behind it; contents of slots."""
        e, on, known = self.code, self.code.label("chain"), self.code.label("known")
        left = e.value(f"sub i32 {self.get('slice')}, {cost}")
        time = e.value(f"icmp sge i32 {left}, 0")
        near = e.value(f"icmp ult i32 {2 * highest}, {self.get('pend')}")
        e.branch(e.value(f"and i1 {time}, {near}"), on, self._leave(part.record, soon=True), likely=True)
        e.begin(on)
        fail = self._leave(part.record)
        e.branch(e.value("icmp ne ptr %chain.filter, null"), known, fail, likely=True)
        e.begin(known)
        _, made = self._ways(detail, -1, ["patterns"], fail)
        self._spend(left, weight)
        return made

    def _try_rows(self, other: str, there: str) -> str:
        """Look whether a part has missed its rows in this launch, or the lanes that it needs are not `there`, and go
        elsewhere if so; a label that notes a miss."""
        e, (word, bit) = self.code, self.tried_bit()
        miss, rows = e.label("miss"), e.label("rows")
        missed = e.value(f"load atomic i32, ptr {e.address(word)} monotonic, align 4")
        fresh = e.value(f"icmp eq i32 {e.value(f'and i32 {missed}, {1 << bit}')}, 0")
        e.branch(e.value(f"and i1 {fresh}, {there}"), rows, other, likely=True)
        e.begin(miss)
        e.value(f"atomicrmw or ptr {e.address(word)}, i32 {1 << bit} monotonic")
        e.jump(other)
        e.begin(rows)
        return miss

    def _version(self, detail: Run, number: int, way: str, fail: str) -> tuple[str, dict[Key, str]]:
        """The steps of a run; way: where its accesses are, if there are any; fail: where misses go. The flags that a
        predicate has behind it, by its number, and contents of slots that it has written."""
        h = self.handler
        h.begin_part()
        contents = run.Contents(h, {number: (slot, storage) for number, slot, storage in detail.read})
        contents.same = self._numbers(detail)
        left = self._behind(detail)
        scalars = {number: (slot, storage) for number, slot, storage in detail.kept if (slot, storage) in left}
        targets = {number: (slot, storage) for number, slot, storage in detail.kept if number not in scalars}
        for operand, slot, storage in detail.read:
            if (slot, storage) in self.constants:
                self._same_for_all(contents, operand, slot, storage)
            elif (slot, storage) in self.same:
                self._read_same(contents, operand, (slot, storage))
            elif (slot, storage) in self.values:
                value = self.values[slot, storage]
                contents.known[operand] = contents.flags(operand, value) if storage == "pred" else value
        accesses = None
        if way:
            accesses = RegionPart(h, contents, detail, self)
            accesses.apart, accesses.aligned = way in ("strided", "gathered"), way in ("rows", "part")
            accesses.maker.fail = fail
            if way == "strided":
                accesses.find_rows()
            contents.made = {number: storage for step in detail.steps for number, storage, _ in step.targets}
            targets = {number: key for number, key in targets.items() if number not in accesses.skipped}
        run.steps(h, detail, contents, targets, accesses)
        for scalar, key in scalars.items():
            self._keep_same(contents, scalar, key)
        made = {
            key: contents.word(target) if key[1] == "pred" else contents[target]
            for target, key in targets.items()
            if key in self.wanted and carried.kind(key[1])
        }
        return contents.word(number) if number >= 0 else "", made

    def _numbers(self, detail: Run) -> frozenset[int]:
        """Operands of a run that are computed as scalars."""
        return frozenset()

    def _behind(self, detail: Run) -> frozenset[Key]:
        """Slots whose contents are scalars behind a run."""
        return self.same

    def _read_same(self, contents: run.Contents, number: int, key: Key) -> None:
        """Let an operand be the scalar of a slot."""
        raise NotImplementedError

    def _keep_same(self, contents: run.Contents, number: int, key: Key) -> None:
        """Note what a slot's scalar is now."""
        raise NotImplementedError

    def tried_bit(self) -> tuple[str, int]:
        """A field of the record and a bit of it, which a launch begins without."""
        word, bit = f"rec.s{2 + self.tried // 32}", self.tried % 32
        self.tried += 1
        return word, bit

    def _same_for_all(self, contents: run.Contents, number: int, slot: Slot, storage: str) -> None:
        """Let an operand be a constant, or one that a launch gives."""
        e, value = self.code, self.constants[slot, storage]
        if storage == "pred":
            if value is not None:
                contents.known[number] = contents.flags(number, str(-(value & 1)))
        elif storage in ELEMENT:
            element = ELEMENT[storage]
            if value is not None:
                contents.known[number] = f"splat ({element} {value & (1 << int(element[1:])) - 1})"
                return
            place = e.value(f"getelementptr i8, ptr %fp, i64 {slot}")
            contents.known[number] = e.spread(element, e.value(f"load {element}, ptr {place}, align 64"))

    def _call(self, part: Part) -> None:
        """Call a record: it comes back behind itself, or has stopped at a trap."""
        e = self.code
        if part.spends:  # rounds look at who waits, too
            e.set_field("ctx.slice", self.get("slice"))
            e.set_field("ctx.count", self.get("count"))
            e.set_field("warp.pend", self.get("pend"))
        code = e.field("ctx.code")
        record = e.value(f"getelementptr i8, ptr {code}, i64 {part.copy}")
        handler = e.value(f"load ptr, ptr {record}")
        e.line(call_of(handler, "%fp", record, self.handler.running))
        if part.spends:
            self.set("slice", e.field("ctx.slice"))
            self.set("count", e.field("ctx.count"))
        status = e.field("ctx.status")
        on = e.label("on")
        e.branch(e.value(f"icmp eq i32 {status}, {unison_turns.RETURNED}"), on, "stopped", likely=True)
        e.begin(on)

    # --- ends of blocks -----------------------------------------------------------------------------------------------

    def _charge(self, stage: Stage) -> None:
        e = self.code
        self._spend(e.value(f"sub i32 {self.get('slice')}, {stage.weight + 1}"), stage.weight)

    def _spend(self, left: str, weight: int) -> None:
        """Note what is left of the slice, and how many instructions the lanes that run have executed."""
        self.set("slice", left)
        self._count(weight)

    def _count(self, weight: int) -> None:
        """Note how many instructions the lanes that run have executed."""
        e = self.code
        if weight:
            threads = e.call("llvm.ctpop.i32", "i32", [("i32", self.handler.running)])
            more = e.value(f"zext i32 {e.value(f'mul i32 {threads}, {weight}')} to i64")
            self.set("count", e.value(f"add i64 {self.get('count')}, {more}"))

    def _land(self, target: int) -> None:
        """Go on at a block, if no others wait there or before it, and if there is time."""
        e = self.code
        near = e.value(f"icmp ult i32 {2 * target}, {self.get('pend')}")
        time = e.value(f"icmp sge i32 {self.get('slice')}, 0")
        way = e.label("way") if self.carried[target] else f"body{target}"
        e.branch(e.value(f"and i1 {near}, {time}"), way, f"stop{target}", likely=True)
        if self.carried[target]:
            e.begin(way)
            known = [self.values.get(key) or self._loaded(key) for key in self.carried[target]]
            self.ways_in[target].append((way, known))
            e.jump(f"core{target}")

    def _meet(self, number: int) -> None:
        """In front of a block: lanes come while others wait at it or before it, or time is over."""
        e, blocks, bit = self.code, self.kind_of("apart"), 1 << number
        e.begin(f"stop{number}")
        self.set("block", number)
        self.set("bit", bit)
        here = e.value(f"icmp eq i32 {self.get('pend')}, {2 * number}")
        time = e.value(f"icmp sge i32 {self.get('slice')}, 0")
        e.branch(e.value(f"and i1 {here}, {time}"), f"join{number}", "settle", likely=True)
        e.begin(f"join{number}")  # they go on together
        others = self._waiting(number)
        waiting = e.value(f"load i32, ptr {others}")
        e.line(f"store i32 0, ptr {others}")
        self.set("mask", e.value(f"or i32 {self.get('mask')}, {waiting}"))
        rest = e.value(f"xor {blocks} {self.get('apart')}, {bit}")
        self.set("apart", rest)
        lowest = e.call(f"llvm.cttz.{blocks}", blocks, [(blocks, rest), ("i1", "false")])
        self.set("pend", e.value(f"shl i32 {e.value(f'trunc {blocks} {lowest} to i32')}, 1"))
        e.jump(f"body{number}")

    def _waiting(self, number: int) -> str:
        """Where the lanes are noted that wait at a block."""
        return self.code.value(f"getelementptr i32, ptr %v.lanes, i32 {number}")

    def _end(self, number: int, stage: Stage) -> None:
        e, mask = self.code, self.handler.running
        if stage.kind not in _HERE or (stage.kind == "exit" and stage.guard >= 0):
            e.jump(self._leave(stage.end))
            return
        if stage.kind in ("barrier", "warpsync"):  # of whole warps only
            here = e.label("here")
            whole = e.value(f"icmp eq i32 {mask}, {e.field('warp.alive')}")
            if stage.members >= 0:
                whole = e.value(f"and i1 {whole}, {self._own(stage.members)}")
            e.branch(whole, here, self._leave(stage.end), likely=True)
            e.begin(here)
        if stage.kind in ("served", "met"):
            self._serve(stage.end, meeting=stage.kind == "met")
        if stage.kind == "served":
            self.values = {}
        self._charge(stage)
        if stage.kind == "jump":
            self._land(stage.target)
        elif stage.kind == "branch":
            self._branch(stage)
        elif stage.kind == "exit":
            e.jump("depart")
        elif stage.kind in ("warpsync", "served", "met"):
            self._land(stage.other)
        else:
            self.set("block", stage.other)
            self.set("record", stage.end)
            e.jump("arrive")

    def _serve(self, record: int, *, meeting: bool) -> None:
        """Have an event served as `t_event` has; whatever its service does not do, that record does. meeting: its cell
        has a `MeetingFilter`, if anything."""
        e, mask = self.code, self.handler.running
        fail, native, on = self._leave(record), e.label("native"), e.label("served")
        where = e.value(f"getelementptr i8, ptr %code, i64 {record}")
        cell = e.value(f"inttoptr i64 {e.field('rec.imm', where)} to ptr")
        if meeting:
            self._meet_quickly(cell, on)
        serve = e.value(f"load atomic ptr, ptr {e.address('event.serve', cell)} acquire, align 8")
        e.branch(e.value(f"icmp eq ptr {serve}, null"), fail, native)
        e.begin(native)
        answer = e.value(f"call i32 {serve}(ptr %ctx, ptr %warp, ptr %fp, i32 {mask}, ptr {cell})")
        refused = e.label("refused") if meeting else fail
        e.branch(e.value(f"icmp eq i32 {answer}, {SERVED_DONE}"), on, refused, likely=True)
        if meeting:  # its service counts once
            e.begin(refused)
            e.set_field("ctx.counted", "%warp")
            e.jump(fail)
        e.begin(on)

    def _meet_quickly(self, cell: str, on: str) -> None:
        """Go on without the service of a meeting, where it would do nothing, or only count a warp."""
        e, full = self.code, self.handler.full
        quick, asked, counted = e.field("meeting.quick", cell), e.label("asked"), e.label("counted")
        wanted = e.value(f"select i1 {full}, i32 {QUICK_WHOLE}, i32 {QUICK_PART}")
        e.branch(e.value(f"icmp ne i32 {e.value(f'and i32 {quick}, {wanted}')}, 0"), on, asked, likely=True)
        e.begin(asked)
        few, last = e.label("few"), e.label("last")
        counts = e.value(f"icmp eq i32 {quick}, {QUICK_COUNTED}")
        e.branch(e.value(f"and i1 {counts}, {full}"), counted, last)
        e.begin(counted)
        header = e.value(f"getelementptr i8, ptr {e.field('cta.shared')}, i64 {e.field('ctx.owners')}")
        came = e.value(f"add i32 {e.field('owners.came', header)}, {LANES}")
        e.branch(e.value(f"icmp ult i32 {came}, {e.field('ctx.threads')}"), few, last)
        e.begin(few)
        e.set_field("owners.came", came, header)
        e.jump(on)
        e.begin(last)

    def _own(self, members: int) -> str:
        """Whether all lanes that run are in their own member masks."""
        e, mask = self.code, self.handler.running
        place = e.value(f"getelementptr i8, ptr %fp, i64 {members}")
        masks = e.value(f"load <32 x i32>, ptr {place}, align 64")
        numbers = e.value("load <32 x i32>, ptr @lane_numbers")
        bits = e.value(f"trunc <32 x i32> {e.value(f'lshr <32 x i32> {masks}, {numbers}')} to <32 x i1>")
        own = e.value(f"bitcast <32 x i1> {bits} to i32")
        return e.value(f"icmp eq i32 {e.value(f'and i32 {own}, {mask}')}, {mask}")

    def _branch(self, stage: Stage) -> None:
        e, mask = self.code, self.handler.running
        flags = self.flags
        if not flags:
            place = e.value(f"getelementptr i8, ptr %fp, i64 {stage.guard}")
            flags = e.value(f"load i32, ptr {place}")
        if stage.negated:
            flags = e.value(f"xor i32 {flags}, -1")
        taken = e.value(f"and i32 {flags}, {mask}")
        stay = e.value(f"xor i32 {taken}, {mask}")
        go, some, on, split = (e.label(hint) for hint in ("go", "some", "pass", "split"))
        e.branch(e.value(f"icmp eq i32 {stay}, 0"), go, some)
        e.begin(go)
        self._land(stage.target)
        e.begin(some)
        e.branch(e.value(f"icmp eq i32 {taken}, 0"), on, split)
        e.begin(on)
        self._land(stage.other)
        e.begin(split)  # the lanes at the lower block go on, the others wait at theirs
        forward = stage.target > stage.other
        low, high = (stage.other, stage.target) if forward else (stage.target, stage.other)
        low_mask, high_mask = (stay, taken) if forward else (taken, stay)
        others = self._waiting(high)
        waiting = e.value(f"load i32, ptr {others}")
        e.line(f"store i32 {e.value(f'or i32 {waiting}, {high_mask}')}, ptr {others}")
        self.set("apart", e.value(f"or {self.kind_of('apart')} {self.get('apart')}, {1 << high}"))
        self.set("pend", e.call("llvm.umin.i32", "i32", [("i32", self.get("pend")), ("i32", str(2 * high))]))
        self.set("mask", low_mask)
        self._land(low)


def function(emitter: Emitter, name: str, op: Op) -> str:
    """The function of a kernel."""
    return Whole(emitter, op).text(name)
