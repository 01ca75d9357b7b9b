"""Functions of the sections of kernels in unison (`native.code.sections`): all warps of a CTA from one barrier to the
next, each in turn, in the order and with the slices that `unison_turns` would give them.

A section begins where the last warp has come to a barrier, which goes on at once, the others after it; or with a CTA.
All lanes of all warps are there. Contents of slots that are the same in all threads are scalars in the state that
`STATE` lists, where the warps' frames have old ones: `place` writes them there when a section is left. What accesses
no way can do makes the section go back to where general code can begin; it is not tried again in this launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from ptxtools.native.code.handler import attributes_of
from ptxtools.native.code.live_words import Key
from ptxtools.native.code.sections import Found, Section, behind, is_same, overlap, runs_in, same_numbers, ways_of
from ptxtools.native.code.unison import Part, Stage, finds_addresses, grouped
from ptxtools.program.details import Run
from ptxtools.program.program import LANES

from . import run, wide
from .parts import window
from .section_state import (
    ARRIVED,
    BEFORE,
    BLOCK,
    DONE,
    GONE,
    PARAMETERS,
    RECORD,
    RUNNING,
    STATE,
    look_at_meeting,
    numbered,
    put,
    scalar_offset,
    scalar_type,
)
from .strided import rows_of
from .unison import Whole

#: What changes seldom is in the state, to leave registers to the rest. The first warp has part of a slice, the others
#: have whole ones. used: what all have spent in here; since: what those before the present one have.
_BEGIN = """
  %bytes = get ctx.warp_bytes
  %given = get ctx.warp_slice
  store i32 0, ptr %s.waiting
  store i64 0, ptr %v.used
  store i64 0, ptr %v.since
  store i32 0, ptr %v.end
  %b.living = load i32, ptr %s.living
  %b.number = load i32, ptr %s.number
  %b.fresh = icmp slt i32 %b.number, 0
  br i1 %b.fresh, label %b.all, label %b.last
b.all:
  store i32 %b.living, ptr %v.todo
  br label %each
b.last:
  %b.bit = shl i32 1, %b.number
  %b.others = xor i32 %b.living, %b.bit
  store i32 %b.others, ptr %v.todo
  %b.slice = load i32, ptr %s.slice
  %b.slice64 = sext i32 %b.slice to i64
  %b.before = sub i64 %given, %b.slice64
  %b.spent = load i64, ptr %s.spent
  %b.spent.new = add i64 %b.spent, %b.before
  store i64 %b.spent.new, ptr %s.spent
  br label %take
each:
  %e.todo = load i32, ptr %v.todo
  %e.number = call i32 @llvm.cttz.i32(i32 %e.todo, i1 true)
  %e.less = sub i32 %e.todo, 1
  %e.rest = and i32 %e.todo, %e.less
  store i32 %e.rest, ptr %v.todo
  %e.used = load i64, ptr %v.used
  store i64 %e.used, ptr %v.since
  br label %take
take:
  %number = phi i32 [%b.number, %b.last], [%e.number, %each]
  %number64 = zext i32 %number to i64
  %offset = mul i64 %number64, %bytes
  %warp = getelementptr i8, ptr %warps, i64 %offset
  %fp = getelementptr i8, ptr %warp, i64 WARP_BYTES
"""

_DEPARTED = """
departed:
  set warp.alive, 0
  set warp.ready, 0
  set warp.group, 0
  %d.threads = get cta.alive
  %d.threads.new = sub i32 %d.threads, LANES_OF_ALL
  set cta.alive, %d.threads.new
  %d.bit = shl i32 1, %number
  %d.living = load i32, ptr %s.living
  %d.living.new = xor i32 %d.living, %d.bit
  store i32 %d.living.new, ptr %s.living
  br label %left
"""

#: Behind each warp; the first time, the others have their turn, if there is time.
_NEXT = """
{name}:
  %{name}.todo = load i32, ptr %v.todo
  %{name}.none = icmp eq i32 %{name}.todo, 0
  br i1 %{name}.none, label %{name}.all, label %{name}.more
{name}.more:
  %{name}.first = icmp eq i32 %number, %b.number
  br i1 %{name}.first, label %turn, label %each
{name}.all:
  store i32 {result}, ptr %v.result
  br label %{finish}
"""

_TURN = """
turn:
  %t.spent = load i64, ptr %s.spent
  %t.used = load i64, ptr %v.used
  %t.all = add i64 %t.spent, %t.used
  %t.left = load i64, ptr %s.left
  %t.left.new = sub i64 %t.left, %t.all
  %t.clock = load i64, ptr %s.clock
  %t.clock.new = add i64 %t.clock, %t.all
  %t.alarm = get ctx.alarm
  %t.over = icmp slt i64 %t.left.new, 0
  %t.late = icmp sge i64 %t.clock.new, %t.alarm
  %t.stop = or i1 %t.over, %t.late
  br i1 %t.stop, label %t.bail, label %t.go
t.go:
  store i64 %t.left.new, ptr %s.left
  store i64 %t.clock.new, ptr %s.clock
  %t.rest = sub i64 0, %t.used
  store i64 %t.rest, ptr %s.spent
  br label %each
t.bail:
  store i32 TURN_RESULT, ptr %v.result
  br label %bail
"""

#: What is left of the warp's slice; and what warps have spent without it, which `next` adds; all of it if all are gone.
_WRITE = """
  store i32 %number, ptr %s.number
  %w.used = load i64, ptr %v.used
  %w.since = load i64, ptr %v.since
  %w.first = icmp eq i32 %number, %b.number
  %w.part = load i32, ptr %s.slice
  %w.part64 = sext i32 %w.part to i64
  %w.share = select i1 %w.first, i64 %w.part64, i64 %given
  %w.mine = sub i64 %w.used, %w.since
  %w.slice64 = sub i64 %w.share, %w.mine
  %w.slice = trunc i64 %w.slice64 to i32
  store i32 %w.slice, ptr %s.slice
  %w.spent = load i64, ptr %s.spent
  %w.result = load i32, ptr %v.result
  %w.gone = icmp eq i32 %w.result, GONE_RESULT
  %w.all = add i64 %w.spent, %w.used
  %w.turn = sub i64 %given, %w.slice64
  %w.others = sub i64 %w.all, %w.turn
  %w.spent.new = select i1 %w.gone, i64 %w.all, i64 %w.others
  store i64 %w.spent.new, ptr %s.spent
"""

#: Warp %number stops: write what was scalars to all frames.
_BAIL = """
  %x.bit = shl i32 1, %number
  %x.result = load i32, ptr %v.result
  %x.came = icmp eq i32 %x.result, TURN_RESULT
  %x.on = select i1 %x.came, i32 0, i32 %x.bit
  %x.to.come = load i32, ptr %v.todo
  %x.away = or i32 %x.to.come, %x.on
  %x.away.not = xor i32 %x.away, -1
  %x.present = load i32, ptr %s.living
  %x.waiting = and i32 %x.present, %x.away.not
  store i32 %x.waiting, ptr %s.waiting
  %x.others = xor i32 %x.waiting, -1
  %x.running = and i32 %x.bit, %x.others
  %x.mine = and i32 %x.running, %x.present
  %x.both = or i32 %x.waiting, %x.running
  %x.done = xor i32 %x.both, -1
  %x.rest = and i32 %x.present, %x.done
  %x.running.keys = load i64, ptr %v.running.keys
  call void @{name}({warps}, ptr %x.before, i64 {keys}, i32 %x.rest, i32 {start}, i32 0, {arrays})
  call void @{name}({warps}, ptr %x.arrived, i64 %x.keys, i32 %x.waiting, i32 %x.end, i32 %x.record, {arrays})
  call void @{name}({warps}, ptr %x.now, i64 %x.running.keys, i32 %x.mine, i32 {start}, i32 0, {arrays})
  %x.first = icmp eq i32 %number, %b.number
  %x.todo.new = select i1 %x.first, i32 0, i32 %x.to.come
  store i32 %x.todo.new, ptr %v.todo
  br label %write
"""

#: With more scalars than this, going in and out of sections costs more than they gain: if one misses, none is tried.
_FEW = 2
#: Variables of the function, and those of them that go into the state where it ends.
_LOCAL = {
    "count": "i64", "used": "i64", "since": "i64", "todo": "i32", "end": "i32", "result": "i32", "block": "i32",
    "record": "i32", "mask": "i32", "high": "i32", "others": "i32", "keys": "i64", "running.keys": "i64",
}  # fmt: skip
_KEPT = ("count", "todo", "block", "record", "mask", "high", "others", "keys")


class Code(Whole):
    """One section as a function: variables are its own, and written to the state where it ends."""

    noting = False

    def __init__(self, main: Whole, section: Section, found: Found) -> None:
        super().__init__(main.code, main.op)
        self.section, self.found, self.keys, self.main = section, found, found.keys, main
        self.parting = False
        self.handler.running, self.handler.lanes, self.handler.full = "-1", "splat (i1 true)", "true"
        shared = main.section_bits if len(found.keys) > _FEW else {}
        self.word, self.bit = next(iter(shared.values()), None) or main.tried_bit()
        #: Sites where a warp stops: label, result, block or record, lanes that run and lanes that wait, the block where
        #: these are, and the slots that are scalars.
        self.bails: list[tuple[str, int, int, str, str, int, int]] = []
        #: Slots that its blocks write, and the blocks that end at barriers.
        bodies = [runs_in(self.stages[number]) or [] for number in section.stages]
        self.changed = {(slot, storage) for body in bodies for one in body for _, slot, storage in one.kept}
        self.ends = [number for number in section.stages if self.stages[number].kind == "barrier"]
        #: The block that is emitted; where others of its lanes wait, or those of other warps, and which of its own;
        #: whether all of them run; lanes that blocks are entered with.
        self.stage, self.high, self.others, self.whole = -1, -1, "0", True
        self.entered: dict[int, str] = {}
        #: Contents of slots that are in registers behind each block.
        self.left: dict[int, dict[Key, str]] = {}
        #: What is done where no way can do an access.
        self.cold: list[str] = []

    def kind_of(self, variable: str) -> str:
        return _LOCAL[variable]

    # --- the function -------------------------------------------------------------------------------------------------

    def function(self, name: str, place: str) -> str:
        e = self.code
        with self.first():
            for variable, kind in _LOCAL.items():
                e.value(f"alloca {kind}", f"%v.{variable}")
            for number, key in enumerate(self.keys):
                e.value(f"alloca {scalar_type(key)}", f"%u.{number}")
            for space in ("global", "shared"):
                self.windows[space] = window(self.handler, space, cta="%cta")
            for variable in STATE:
                e.value(f"getelementptr i8, ptr %state, i64 {8 * STATE.index(variable)}", f"%s.{variable}")
            self.set("count", e.value("load i64, ptr %s.count"))
            if self.bounded:
                e.expand("%chain.filter = get ctx.bounded")
            for number in self.section.stages:
                if self.stages[number].kind == "met":
                    look_at_meeting(e, self.stages[number], number)
            before = [self._scalar(BEFORE, number) for number in range(len(self.keys))]
        e.expand(numbered(_BEGIN))
        for number, value in enumerate(before):
            e.line(f"store {scalar_type(self.keys[number])} {value}, ptr %u.{number}")
        e.jump(f"body{self.section.start}")
        for number in self.section.stages:
            self._stage(number, self.stages[number])
        e.expand(numbered(_DEPARTED))
        e.expand(numbered(_NEXT.format(name="left", result=GONE, finish="write")))
        e.expand(numbered(_NEXT.format(name="on", result=DONE, finish="done")))
        e.expand(numbered(_TURN))
        e.begin("done")
        for number in range(len(self.keys)):
            if self.keys[number] in self.changed:
                self._note(BEFORE, number, self._now(number))
        block, _, keys = self._ending()
        self.set("block", block)
        self.set("keys", keys)
        e.jump("write")
        for label, result, where, mask, others, high, bits in self.bails:
            e.begin(label)
            self.set("result", result)
            self.set("record" if result == RECORD else "block", where)
            self.set("mask", mask)
            self.set("others", others)
            self.set("high", high)
            self.set("running.keys", bits)
            e.jump("bail")
        e.lines += self.cold
        self._bail(place)
        e.begin("write")
        e.expand(numbered(_WRITE))
        for variable in _KEPT:
            e.line(f"store {_LOCAL[variable]} {self.get(variable)}, ptr %s.{variable}")
        e.line(f"ret i32 {self.get('result')}")
        body = e.take()
        return f"define internal i32 @{name}({PARAMETERS}) {attributes_of(e, body)} {{\n{body}\n}}\n"

    def _bail(self, place: str) -> None:
        e = self.code
        e.begin("bail")
        for number in range(len(self.keys)):
            self._note(RUNNING, number, self._now(number))
            if self.keys[number] not in self.changed:
                self._note(ARRIVED, number, self._scalar(BEFORE, number))
        for which, name in ((BEFORE, "%x.before"), (ARRIVED, "%x.arrived"), (RUNNING, "%x.now")):
            e.value(f"getelementptr i8, ptr %state, i64 {scalar_offset(len(self.keys), which, 0)}", name)
        start = self.section.start
        keys, arrays = self._bits(self.found.same[start]), "ptr %at, ptr %records"
        end, record, there = self._ending()
        for name, kind, value in (("end", "i32", end), ("record", "i32", record), ("keys", "i64", there)):
            e.value(f"add {kind} {value}, 0", f"%x.{name}")
        text = _BAIL.format(name=place, start=start, keys=keys, warps="ptr %warps, i64 %bytes", arrays=arrays)
        e.expand(numbered(text))

    def _ending(self) -> list[str]:
        """Where warps go on that have come to the barrier: the block, the barrier's record, and the scalars there."""
        e, found = self.code, ["0", "0", "0"]
        for at, number in enumerate(self.ends):
            stage = self.stages[number]
            here = (stage.other, stage.end, self._bits(self.found.same[stage.other]))
            if len(self.ends) == 1:
                return [str(value) for value in here]
            is_it = e.value(f"icmp eq i32 {self.get('end')}, {at}")
            found = [
                e.value(f"select i1 {is_it}, {kind} {value}, {kind} {old}")
                for kind, value, old in zip(("i32", "i32", "i64"), here, found, strict=True)
            ]
        return found

    def _bits(self, same: frozenset[Key]) -> int:
        """A set of slots as a word."""
        return sum(1 << number for number, key in enumerate(self.keys) if key in same)

    def _now(self, number: int) -> str:
        """What a scalar is for the warp that runs."""
        return self.code.value(f"load {scalar_type(self.keys[number])}, ptr %u.{number}")

    def _scalar(self, which: int, number: int) -> str:
        place = self.code.value(f"getelementptr i8, ptr %state, i64 {scalar_offset(len(self.keys), which, number)}")
        return self.code.value(f"load {scalar_type(self.keys[number])}, ptr {place}")

    def _note(self, which: int, number: int, value: str) -> None:
        place = self.code.value(f"getelementptr i8, ptr %state, i64 {scalar_offset(len(self.keys), which, number)}")
        self.code.line(f"store {scalar_type(self.keys[number])} {value}, ptr {place}")

    # --- contents of slots --------------------------------------------------------------------------------------------

    def _read_same(self, contents: run.Contents, number: int, key: Key) -> None:
        value = self._now(self.keys.index(key))
        if key[1] == "pred":
            contents.known[number] = contents.flags(number, value)
        else:
            contents.known[number] = self.code.spread(scalar_type(key), value)

    def _numbers(self, detail: Run) -> frozenset[int]:
        return same_numbers(detail, self.same | self.found.constants) if self.high < 0 else frozenset()

    def _behind(self, detail: Run) -> frozenset[Key]:
        return behind(detail, self.same, self.found.constants, inside=self.high >= 0)

    def _keep_same(self, contents: run.Contents, number: int, key: Key) -> None:
        kind = scalar_type(key)
        if key[1] == "pred":
            value = contents.word(number)
        else:
            value = self.code.value(f"extractelement <{LANES} x {kind}> {contents[number]}, i32 0")
        self.code.line(f"store {kind} {value}, ptr %u.{self.keys.index(key)}")

    # --- blocks -------------------------------------------------------------------------------------------------------

    def _charge(self, stage: Stage) -> None:
        e = self.code
        self.set("used", e.value(f"add i64 {self.get('used')}, {stage.weight + 1}"))
        self._count(stage.weight)

    def _stage(self, number: int, stage: Stage) -> None:
        e, high = self.code, self.section.apart.get(number, -1)
        e.begin(f"body{number}")
        self.values, self.flags, self.same = self._inherited(number), "", self.found.same[number]
        self.high, self.others, self.whole = high, "0", high < 0 or number in self.section.whole
        if not self.whole:
            self.handler.lanes_are(self.entered[number])
            self.others = e.value(f"xor i32 {self.handler.running}, -1")
        self.stage = number
        with self.handler.all_lanes() if self.whole else nullcontext():
            groups = list(grouped(stage.parts))
            for group in groups:
                guard = stage.number if group is groups[-1] else -1
                self._group(group, guard, first=group is groups[0])
            if stage.kind == "met":
                self._pass(stage)
            self._charge(stage)
            self.left[number] = self.values
            self._end(number, stage)

    def _inherited(self, number: int) -> dict[Key, str]:
        """Contents of slots that are in registers where a block begins, whichever way the warp comes."""
        apart = self.section.apart
        before = [at for at in self.section.stages if number in ways_of(self.stages[at]) and apart.get(at) != number]
        if len(before) != 1:
            return {}
        values = self.left[before[0]]
        for at, high in apart.items():
            if high == number:
                values = _without(values, runs_in(self.stages[at]) or [])
        return values

    def _group(self, group: Sequence[Part], guard: int, *, first: bool) -> None:
        """Parts of a block; guard: as for `_parts`; first: the first ones, before which nothing has been done."""
        if group[0].whole is not None:
            self._accesses(group[0], group[0].whole, group[0].number if guard >= 0 else -1, first=first)
            return
        for part in group:
            assert part.run is not None
            self._accesses(part, part.run, guard if part is group[-1] else -1, first=first and part is group[0])

    def _accesses(self, part: Part, detail: Run, number: int, *, first: bool) -> None:
        before, ways = self.values, self._possible(detail, bounded=part.passed is not None)
        fail = self._missed(part, first=first) if ways else ""
        if part.passed is not None:
            known = self.code.label("known")
            self.code.branch(self.code.value("icmp ne ptr %chain.filter, null"), known, fail, likely=True)
            self.code.begin(known)
        self.flags, made = self._ways(detail, number, ways, fail) if ways else self._version(detail, number, "", "")
        if part.passed is not None:
            self.set("used", self.code.value(f"add i64 {self.get('used')}, {part.passed[0]}"))
            self._count(part.passed[1])
        self.same = self._behind(detail)
        kept = _without(before, [detail]) | made
        self.values = {key: value for key, value in kept.items() if key not in self.same}

    def _possible(self, detail: Run, *, bounded: bool) -> list[str]:
        """The ways of a run's accesses, as `Whole._run` has them, the likeliest first; without those that need bits,
        and, if an observer looks at bounds, without those for any words."""
        if not any(step.space for step in detail.steps):
            return []
        if finds_addresses(detail.steps):
            return ["patterns"] if bounded else ["patterns", "gathered"]
        straight = "rows" if self.whole else "part"
        if bounded or any(wide.width_of(step) > 1 for step in detail.steps if step.space):
            return [straight]
        return [straight, *(["strided"] if rows_of(detail.steps) else []), "patterns", "gathered"]

    def _pass(self, stage: Stage) -> None:
        """Lanes meet in front of an observer: it has nothing to say of a whole warp, or its record is what asks it."""
        e, on = self.code, self.code.label("met")
        stop = self._stop(RECORD, stage.end, self.handler.running, self.others, self.high)
        e.branch(f"%met.{self.stage}", on, stop, likely=True)
        e.begin(on)

    def _missed(self, part: Part, *, first: bool) -> str:
        """Label for where no way can do an access."""
        result, where = (BLOCK, self.stage) if first else (RECORD, part.record)
        return self._stop(result, where, self.handler.running, self.others, self.high)

    def _stop(self, result: int, where: int, mask: str, others: str, high: int) -> str:
        """Label for where lanes of a warp go on at a block or record, while its others wait at a block; the section is
        not tried again."""
        e, lines = self.code, self.code.lines
        label, bail = e.label("missed"), e.label("bail")
        e.lines = self.cold
        e.begin(label)
        e.value(f"atomicrmw or ptr {e.address(self.word)}, i32 {1 << self.bit} monotonic")
        e.jump(bail)
        e.lines = lines
        bits = self._bits(self.same)
        self.bails.append((bail, result, where, mask, others, high, bits))
        return label

    def _end(self, number: int, stage: Stage) -> None:
        e = self.code
        if stage.kind == "jump":
            self._go(stage.target)
        elif stage.kind in ("warpsync", "met"):
            self._go(stage.other)
        elif stage.kind == "branch":
            self._branch(stage)
        elif stage.kind == "exit":
            e.jump("departed")
        else:
            self._settle(stage.other)
            same = self.found.same[stage.other]
            for at, key in enumerate(self.keys):
                if key in same and key in self.changed:
                    self._note(ARRIVED, at, self._now(at))
            if len(self.ends) > 1:
                self.set("end", self.ends.index(number))
            e.jump("on")

    def _settle(self, to: int) -> None:
        """Write scalars to slots that are vectors where the warp goes on, and may be read there."""
        e = self.code
        for key in sorted((self.same - self.found.same[to]) & self.found.live[to]):
            put(e, key, self._now(self.keys.index(key)))

    def _go(self, to: int) -> None:
        self._settle(to)
        self.code.jump(f"body{to}")

    def _branch(self, stage: Stage) -> None:
        e, flags = self.code, self.flags
        if not flags and (stage.guard, "pred") in self.same:
            flags = self._now(self.keys.index((stage.guard, "pred")))
        elif not flags:
            flags = e.value(f"load i32, ptr {e.value(f'getelementptr i8, ptr %fp, i64 {stage.guard}')}")
        if stage.negated:
            flags = e.value(f"xor i32 {flags}, -1")
        yes, no = e.label("way"), e.label("way")
        start = self.found.same[self.stage]
        if stage.target == stage.other or is_same(stage, runs_in(stage) or [], start, self.found.constants):
            e.branch(e.value(f"icmp ne i32 {flags}, 0"), yes, no)
            ways = (yes, stage.target), (no, stage.other)
        else:
            low, high = sorted((stage.target, stage.other))
            mask = flags if stage.target == low else e.value(f"xor i32 {flags}, -1")
            if low in self.section.whole:
                self._all_or_none(low, high, mask)
                return
            at = low
            while at != high:
                self.entered[at] = mask
                at = self.stages[at].target
            e.branch(e.value(f"icmp eq i32 {mask}, 0"), yes, no)
            ways = (yes, high), (no, low)
        for label, to in ways:
            e.begin(label)
            self._go(to)

    def _all_or_none(self, low: int, high: int, mask: str) -> None:
        """Go on where all lanes of the warp do; if they part, it stops."""
        e, nobody, some, everybody = self.code, self.code.label("way"), self.code.label("some"), self.code.label("way")
        e.branch(e.value(f"icmp eq i32 {mask}, 0"), nobody, some)
        e.begin(some)
        apart = self._stop(BLOCK, low, mask, e.value(f"xor i32 {mask}, -1"), high)
        e.branch(e.value(f"icmp eq i32 {mask}, -1"), everybody, apart, likely=True)
        for label, to in ((nobody, high), (everybody, low)):
            e.begin(label)
            self._go(to)


def _without(values: dict[Key, str], details: Sequence[Run]) -> dict[Key, str]:
    """Without the slots that runs write."""
    written = [(slot, storage) for detail in details for _, slot, storage in detail.kept]
    return {key: value for key, value in values.items() if not any(overlap(key, other) for other in written)}
