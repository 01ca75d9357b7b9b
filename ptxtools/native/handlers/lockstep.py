"""Functions that run whole CTAs of kernels in unison, from barrier to barrier, where all is known of their addresses.

Contents that grow evenly along the axes of a CTA (`linear`) are scalars, and so are addresses. In front of each section
(what lies between two barriers) it is found out for the whole CTA which way it goes, that all its accesses are in
bounds, and that time does not end in it; then each warp does its loads, its arithmetic and its stores, in the order and
with the slices that `unison_turns` would give them, and nothing is left to check. Where lanes part along x, only warps
with lanes that do something are visited.

Anything else goes back to the start of a section, before it has any effect: contents are written to the frames of all
warps, and the function of all blocks goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxtools.native.code.emitter import Emitter
from ptxtools.native.code.handler import ELEMENT, attributes_of
from ptxtools.native.code.live_words import Key
from ptxtools.native.code.sections import Found, chain_of, guard_number, reached, runs_in
from ptxtools.native.code.unison import Stage
from ptxtools.program.details import Run
from ptxtools.program.program import Op, Slot
from ptxtools.records import dataclass

from . import lockstep_rounds, next_cta
from .inline import First, Inline
from .linear import Form, Linear, Part, Pred, Range, UnknownError
from .lockstep_loops import Loops
from .lockstep_ways import Chain, Scalars, Way, Work
from .section_state import look_at_meeting

#: Most ways through one section, and most branches of ways that are looked at to find them; most looks at a section.
MOST_WAYS, MOST_BRANCHES, MOST_LOOKS = 12, 48, 6
#: Answers: the CTA is over; nothing has been done; warps are at the start of a section.
OVER, NOTHING, STOPPED = range(3)
#: What goes in and comes back, 8 bytes each.
STATE = ("count", "clock", "left", "spent", "slice", "number", "block")
#: What a miss costs the attempts of a launch, and how much of that makes an end of them; each CTA that is run pays 1.
_MISS, MOST_MISSED = 8, 64
_SIGNATURE = "ptr %warps, ptr %ip, ptr %ctx, ptr %cta, ptr %state, ptr %at"

#: Of a slot at the start of a section: its bits, and the parts of its form, None of one that is not known before; of a
#: predicate that is the same in all threads, 1 and one part.
_Kept = tuple[int, tuple[int | None, ...]]


def function(emitter: Emitter, name: str, op: Op, stages: Sequence[Stage], constants: dict[Key, int | None],
             found: Found) -> str:  # fmt: skip
    """The function of a kernel, empty if there is none."""
    stages = reached(stages)
    if any(stage.kind not in ("jump", "branch", "barrier", "warpsync", "met", "exit") for stage in stages):
        return ""
    if any(stage.kind == "barrier" for stage in stages) and not found.sections:
        return ""
    if any((stage.kind == "warpsync" and stage.members >= 0) or (stage.kind == "exit" and stage.guard >= 0)
           for stage in stages):  # fmt: skip
        return ""
    rounds = {number: stage.parts[0].rounds for number, stage in enumerate(stages) if stage.parts}
    going = {number: detail for number, detail in rounds.items() if detail is not None}
    bodies = [[] if number in going else runs_in(stage) for number, stage in enumerate(stages)]
    if any(body is None or any(one.again is not None for one in body) for body in bodies):
        return ""
    if any(stage.kind == "barrier" and stage.other == 0 for stage in stages):
        return ""
    kernel = _Kernel(op, stages, [body or [] for body in bodies], going, constants, found)
    kept = kernel.kept(emitter.features)
    return _Code(emitter, kernel, kept).text(name) if kept is not None else ""


@dataclass(slots=True)
class _Kernel:
    op: Op
    stages: Sequence[Stage]
    runs: list[list[Run]]
    rounds: dict[int, Run]
    constants: dict[Key, int | None]
    found: Found

    def kept(self, features: frozenset[str]) -> dict[int, dict[Key, _Kept]] | None:
        """Slots that are scalars at the start of each section, by trial; None where not even the first one can be."""
        kept: dict[int, dict[Key, _Kept]] = {0: {}}
        todo, looks = [0], 0
        while todo:
            start = todo.pop()
            looks += 1
            if looks > MOST_LOOKS * len(self.stages):
                return None
            trial = _Code(Emitter(features), self, kept)
            if not trial.section(start):
                if start == 0:
                    return None
                continue
            for to, forms in trial.ends:
                before = kept.get(to)
                now = forms if before is None else _meet(before, forms)
                if now != before:
                    kept[to] = now
                    todo.append(to)
        return kept


def _meet(a: dict[Key, _Kept], b: dict[Key, _Kept]) -> dict[Key, _Kept]:
    met = {}
    for key in a.keys() & b.keys():
        (bits, first), (_, second) = a[key], b[key]
        met[key] = (bits, tuple(p if p == q else None for p, q in zip(first, second, strict=True)))
    return met


class _Code:
    """Emits the function. kept: as of `_Kernel.kept`."""

    def __init__(self, emitter: Emitter, kernel: _Kernel, kept: dict[int, dict[Key, _Kept]]) -> None:
        self.code, self.kernel, self.kept = emitter, kernel, kept
        self.handler = Inline(emitter, kernel.op)
        self.handler.running, self.handler.lanes, self.handler.full = "-1", "splat (i1 true)", "true"
        self.scalars = Scalars(emitter, self.handler, kernel.runs, kernel.constants, self._demand)
        self.facts = self.scalars.facts
        self.loops = Loops(emitter, self.handler, self.facts)
        #: Where each way ends, with the forms there.
        self.ends: list[tuple[int, dict[Key, _Kept]]] = []
        self.start = self.ways = self.branches = 0

    # --- the function -------------------------------------------------------------------------------------------------

    def text(self, name: str) -> str:
        e = self.code
        with First(e):
            e.expand(_ENTRY)
            for number, variable in enumerate(STATE):
                e.value("alloca i64", f"%v.{variable}")
                place = e.value(f"getelementptr i8, ptr %state, i64 {8 * number}")
                self._set(variable, e.value(f"load i64, ptr {place}"))
            for space in ("global", "shared"):
                self.scalars.window(space)
            next_cta.prepare(e)
            for start, forms in sorted(self.kept.items()):
                for key, (bits, parts) in sorted(forms.items()):
                    for at in [at for at, part in enumerate(parts) if part is None]:
                        e.value(f"alloca i{bits}", _variable(start, key, at))
        e.expand(_FRESH)
        for at, stage in enumerate(self.kernel.stages):
            if stage.kind == "met":
                look_at_meeting(e, stage, at)
        bounded = any(part.passed is not None for stage in self.kernel.stages for part in stage.parts)
        e.expand(_BEGIN.format(most=MOST_MISSED, known=_BOUNDED if bounded else _UNBOUNDED))
        for start in sorted(self.kept):
            mark = len(e.lines)
            if not self.section(start):
                del e.lines[mark:]
                e.begin(f"sec{start}")
                e.jump(f"stop{start}")
            self._stops(start)
        self._end()
        body = e.take()
        return f"define internal i32 @{name}({_SIGNATURE}) {attributes_of(e, body, spills=False)} {{\n{body}\n}}\n"

    def _end(self) -> None:
        e = self.code
        e.begin("gone")
        e.expand(_GONE)
        next_cta.follow(e, "fresh", "over")
        e.expand(_OVER.format(answer=OVER))
        e.begin("leave")
        for number, name in enumerate(STATE):
            place = e.value(f"getelementptr i8, ptr %state, i64 {8 * number}")
            e.line(f"store i64 {self._get(name)}, ptr {place}")
        e.line(f"ret i32 {e.value('load i32, ptr %v.answer')}")

    def _demand(self, condition: str) -> None:
        """Leave, unless this holds, which is found again in the next CTA."""
        if condition == "true":
            return
        go = self.code.label("go")
        self.code.branch(condition, go, f"miss{self.start}", likely=True)
        self.code.begin(go)

    def _in_time(self, condition: str) -> None:
        go = self.code.label("go")
        self.code.branch(condition, go, f"stop{self.start}", likely=True)
        self.code.begin(go)

    def _stops(self, start: int) -> None:
        """Behind a section: where it is left at its start."""
        e = self.code
        e.begin(f"miss{start}")
        missed = e.field("rec.s9")
        e.set_field("rec.s9", e.value(f"add i32 {missed}, {_MISS}"))
        e.jump(f"stop{start}")
        e.begin(f"stop{start}")
        if start == 0:
            e.line(f"store i32 {NOTHING}, ptr %v.answer")
            e.jump("leave")
            return
        forms = self._entered(start)

        self.loops.each("%all", "", lambda number: self.loops.place(forms, number, start))
        self._set("block", start)
        e.line(f"store i32 {STOPPED}, ptr %v.answer")
        e.jump("leave")

    def _entered(self, start: int) -> dict[Key, Form]:
        """The forms of slots at the start of a section."""
        forms: dict[Key, Form] = {}
        for key, (bits, parts) in sorted(self.kept[start].items()):
            made: list[Part] = [
                self.code.value(f"load i{bits}, ptr {_variable(start, key, place)}") if part is None else part
                for place, part in enumerate(parts)
            ]
            if bits == 1:
                flag = str(made[0])
                forms[key] = Pred(flag, self.facts.inverse(flag), same=True)
            else:
                forms[key] = Linear(bits, (made[0], made[1], made[2], made[3]))
        return forms

    # --- sections -----------------------------------------------------------------------------------------------------

    def section(self, start: int) -> bool:
        """Emit what begins with a block; whether there is any way through it."""
        e = self.code
        self.start, self.ways, self.branches, self.scalars.first = start, 0, 0, start == 0
        e.begin(f"sec{start}")
        try:
            way = Way(self._entered(start))
            if start:
                self._in_time("%several")
            return self._from(start, way)
        except UnknownError:
            return False

    def _attempt(self, label: str, to: int, way: Way) -> bool:
        """Go on with a block; where that cannot be, leave."""
        self.code.begin(label)
        return self._tried(lambda: self._from(to, way))

    def _tried(self, emit: Callable[[], bool]) -> bool:
        """Emit something; where that cannot be, leave."""
        e = self.code
        mark, ends, steps = len(e.lines), len(self.ends), self.scalars.steps
        self.branches += 1
        try:
            if self.branches <= MOST_BRANCHES and emit():
                return True
        except UnknownError:
            pass
        del e.lines[mark:], self.ends[ends:]
        self.scalars.steps = steps
        e.jump(f"miss{self.start}")
        return False

    def _from(self, number: int, way: Way) -> bool:
        """Emit what is left of a section from a block on; whether any way comes to its end."""
        while True:
            stage = self.kernel.stages[number]
            if number in way.blocks:
                raise UnknownError
            way.blocks.append(number)
            if number in self.kernel.rounds:
                number = self._rounds(number, way)
                continue
            forms = self.scalars.block(number, way, way.works, None)
            weight, cost = _charged(stage)
            way.weight += weight
            way.cost += cost
            if stage.kind in ("barrier", "exit"):
                self.ways += 1
                if self.ways > MOST_WAYS:
                    raise UnknownError
                self._finish(way, stage.other if stage.kind == "barrier" else -1)
                return True
            if stage.kind != "branch" or stage.target == stage.other:
                if stage.kind == "met":
                    self._demand(f"%met.{number}")
                number = stage.other if stage.kind in ("warpsync", "met") else stage.target
                continue
            pred = self._guard(stage, way, forms)
            if stage.negated:
                pred = self.facts.negation(pred)
            return self._part(stage, pred, way)

    def _rounds(self, number: int, way: Way) -> int:
        """A block that warps go round in; the one behind it."""
        stage, detail = self.kernel.stages[number], self.kernel.rounds[number]
        if self.start or way.rounds or way.chains or any(work.addresses for work in way.works):
            raise UnknownError
        weight, cost = _charged(stage)
        counts = lockstep_rounds.times(self.scalars, detail, way)
        self._in_time(self.facts.compare("sle", self.facts.mul(counts, cost), "%given"))
        lockstep_rounds.find(self.scalars, detail, way, counts, weight, cost)
        return stage.other if stage.target == number else stage.target

    def _guard(self, stage: Stage, way: Way, forms: dict[int, Form]) -> Pred:
        """The form of what a block's branch looks at."""
        key = (Slot(stage.guard), "pred")
        form = forms.get(guard_number(stage)) if stage.number >= 0 else self.scalars.read(way, key)
        if not isinstance(form, Pred):
            raise UnknownError
        return form

    def _part(self, stage: Stage, pred: Pred, way: Way) -> bool:
        """Emit the ways behind a branch: all threads go one way, or they part for a while."""
        e = self.code
        yes, no, rest = e.label("yes"), e.label("no"), e.label("rest")
        e.branch(pred.every, yes, no if pred.same else rest)
        found = [self._attempt(yes, stage.target, way.copy())]
        if pred.same:
            return self._attempt(no, stage.other, way.copy()) or any(found)
        some = e.label("some")
        e.begin(rest)
        e.branch(pred.nobody, no, some)
        found.append(self._attempt(no, stage.other, way.copy()))
        e.begin(some)
        found.append(self._tried(lambda: self._apart(stage, pred, way.copy())))
        return any(found)

    def _apart(self, stage: Stage, pred: Pred, way: Way) -> bool:
        """Some lanes run blocks for which the others wait."""
        low, high = sorted((stage.target, stage.other))
        blocks = chain_of(self.kernel.stages, low, high)
        held = self.facts.where(pred, negated=stage.target != low)
        if blocks is None or held is None or any(self.kernel.stages[one].kind == "met" for one in blocks):
            raise UnknownError
        if any(_last_passed(self.kernel.stages[one]) >= high for one in blocks):  # lanes wait there for others
            raise UnknownError
        self._demand("%flat")
        chain = Chain(held, self.scalars.warps(held), self.scalars.count(held), dict(way.forms))
        for number in blocks:
            way.blocks.append(number)
            self.scalars.block(number, way, chain.works, chain)
            weight, cost = _charged(self.kernel.stages[number])
            chain.weight += weight
            chain.cost += cost
        chain.behind = dict(way.forms)
        for work in chain.works:  # other lanes have what was there before
            for _, slot, storage in work.detail.kept if work.detail is not None else ():
                if storage not in (*ELEMENT, "pred"):
                    raise UnknownError
                way.forms.pop((slot, storage), None)
                if (slot, storage) not in way.stale:
                    way.vectors.add((slot, storage))
        way.chains.append(chain)
        way.works.append(Work(None, {}, {}, chain))
        return self._from(high, way)

    # --- the end of a way ---------------------------------------------------------------------------------------------

    def _finish(self, way: Way, to: int) -> None:
        """Emit the loop over the warps for a way that is known, and go on at a section, or nowhere (-1)."""
        e = self.code
        kept = self._leaving(way, to)
        writes = self._writes(way, to, kept)
        self.ends += [(to, kept)] if to >= 0 else []
        if way.rounds:
            if to >= 0:
                raise UnknownError
            lockstep_rounds.apart(self.scalars, way)
            self._demand("%even")
        number, last = self._account(way, over=to < 0)
        visited = "%all"
        if None not in way.ranges and not writes:
            visited = self._visited([one for one in way.ranges if one is not None])
        first = e.value(f"shl i32 1, {number}") if self.start else ""

        def work() -> None:
            if way.rounds:
                self.loops.together(lambda warps: lockstep_rounds.body(self.loops, self.scalars, way, warps))
            elif way.ranges or writes:
                self.loops.each(visited, first, lambda number: self.loops.warp(way, writes, number))

        if way.has_rows():
            self.loops.both(work)
        else:
            work()
        self._set("number", e.value(f"zext i32 {last} to i64"))
        for key, (bits, parts) in sorted(self.kept.get(to, {}).items()) if to >= 0 else ():
            form = way.forms.get(key)
            if form is None:  # by trial
                continue
            made = form.parts if isinstance(form, Linear) else (form.every,)
            for place in [place for place, part in enumerate(parts) if part is None]:
                e.line(f"store i{bits} {made[place]}, ptr {_variable(to, key, place)}")
        e.jump("gone" if to < 0 else f"sec{to}")

    def _leaving(self, way: Way, to: int) -> dict[Key, _Kept]:
        """The slots that are scalars where a section begins behind a way."""
        if to < 0:
            return {}
        found: dict[Key, _Kept] = {}
        for key in self.kernel.found.live[to]:
            form = way.forms.get(key)
            if isinstance(form, Linear):
                found[key] = (form.bits, tuple(p if isinstance(p, int) else None for p in form.parts))
            elif form is not None and form.same:
                found[key] = (1, (None,))
        return found

    def _writes(self, way: Way, to: int, kept: dict[Key, _Kept]) -> list[Key]:
        """The slots that are written to frames at the end of a way."""
        if to < 0:
            return []
        writes, there = [], self.kept.get(to, kept)
        for key in sorted(self.kernel.found.live[to] - self.kernel.constants.keys()):
            if key in way.vectors or (key in way.forms and key not in there):
                writes.append(key)
            elif key not in way.forms:
                self.scalars.read(way, key)
        return writes

    def _visited(self, ranges: list[Range]) -> str:
        """i32: the warps that have lanes in some ranges, or all of a CTA that is not flat."""
        e, found = self.code, "0"
        for held in ranges:
            found = e.value(f"or i32 {found}, {self.scalars.warps(held)}")
        return e.value(f"select i1 %flat, i32 {found}, i32 %all")

    def _account(self, way: Way, *, over: bool) -> tuple[str, str]:
        """Leave, if time does not suffice for all warps; else note what they use of it. Numbers of the first warp and
        of the last one."""
        e, f = self.code, self.facts
        cost = f.add(way.cost + sum(chain.cost for chain in way.chains), self._turning(way))
        self._in_time(f.compare("sge", "%given", cost))
        threads = f.mul("%threads", way.weight)
        used = f.mul("%count.of", f.add(way.cost, self._turning(way)))
        for one in way.rounds:
            threads = f.add(threads, f.mul("%threads", f.mul(one.number, one.weight)))
        for chain in way.chains:
            threads = f.add(threads, f.mul(chain.lanes, chain.weight))
            warps = e.call("llvm.ctpop.i32", "i32", [("i32", chain.active)])
            used = f.add(used, f.mul(e.value(f"zext i32 {warps} to i64"), chain.cost))
        number, last_one = "0", "%most"
        if not self.start:
            last = self._used(way, last_one)
            spent = f.add(self._get("spent"), used)
        else:
            number = e.value(f"trunc i64 {self._get('number')} to i32")
            last_one = e.value(f"select i1 {e.value(f'icmp eq i32 {number}, %most')}, i32 %most.less, i32 %most")
            first, last = self._used(way, number), self._used(way, last_one)
            self._in_time(f.compare("sge", self._get("slice"), cost))
            turn = f.add(f.sub(f.add(self._get("spent"), "%given"), self._get("slice")), first)
            left, clock = f.sub(self._get("left"), turn), f.add(self._get("clock"), turn)
            self._in_time(f.both(f.compare("sge", left, 0), f.compare("slt", clock, "%alarm")))
            self._set("left", left)
            self._set("clock", clock)
            spent = f.sub(used, first)
        self._set("count", f.add(self._get("count"), threads))
        self._set("spent", spent if over else f.sub(spent, last))
        self._set("slice", f.sub("%given", last))
        return number, last_one

    def _used(self, way: Way, number: str) -> Part:
        """i64: what a warp uses of its slice."""
        e, total = self.code, self.facts.add(way.cost, self._turning(way))
        for chain in way.chains:
            bit = e.value(f"and i32 {e.value(f'lshr i32 {chain.active}, {number}')}, 1")
            total = self.facts.add(total, self.facts.mul(e.value(f"zext i32 {bit} to i64"), chain.cost))
        return total

    def _turning(self, way: Way) -> Part:
        """i64: what rounds cost."""
        total: Part = 0
        for one in way.rounds:
            total = self.facts.add(total, self.facts.mul(one.number, one.cost))
        return total

    def _get(self, name: str) -> str:
        return self.code.value(f"load i64, ptr %v.{name}")

    def _set(self, name: str, value: Part) -> None:
        self.code.line(f"store i64 {value}, ptr %v.{name}")


def _charged(stage: Stage) -> tuple[int, int]:
    """What a block counts as, and what it takes of a slice, with the ends of blocks that its runs pass."""
    passed = [part.passed for part in stage.parts if part.passed is not None]
    weight = stage.weight + sum(weight for _, weight, _ in passed)
    return weight, stage.weight + 1 + sum(cost for cost, _, _ in passed)


def _last_passed(stage: Stage) -> int:
    """The last of the blocks whose ends the runs of a block pass, or -1."""
    return max((part.passed[2] for part in stage.parts if part.passed is not None), default=-1)


def _variable(start: int, key: Key, place: int) -> str:
    """Where a part of a slot's form is at the start of a section."""
    return f"%k.{start}.{key[0]}.{key[1]}.{place}"


_ENTRY = """
  %bytes = get ctx.warp_bytes
  %warps.of = get ctx.warps
  %count.of = zext i32 %warps.of to i64
  %most = sub i32 %warps.of, 1
  %most.less = sub i32 %warps.of, 2
  %several = icmp ugt i32 %warps.of, 1
  %out.of = sub i32 32, %warps.of
  %all = lshr i32 -1, %out.of
  %threads.of = get ctx.threads
  %threads = zext i32 %threads.of to i64
  %given = get ctx.warp_slice
  %alarm = get ctx.alarm
  %block.x = get ctx.block_x
  %block.y = get ctx.block_y
  %block.z = get ctx.block_z
  %last.x = sub i32 %block.x, 1
  %last.y = sub i32 %block.y, 1
  %last.z = sub i32 %block.z, 1
  %edge.x = zext i32 %last.x to i64
  %edge.y = zext i32 %last.y to i64
  %edge.z = zext i32 %last.z to i64
  %last.yz = or i32 %last.y, %last.z
  %flat = icmp eq i32 %last.yz, 0
  %narrow.more = and i32 %warps.of, 3
  %narrow.many = icmp eq i32 %narrow.more, 0
  %narrow.rows = icmp eq i32 %block.x, 16
  %narrow = and i1 %narrow.rows, %narrow.many
  %odd.of = and i32 %warps.of, 1
  %even = icmp eq i32 %odd.of, 0
  %v.answer = alloca i32
"""

#: In front of each CTA.
_FRESH = """
  br label %fresh
fresh:
  %at.x = get cta.x
  %at.y = get cta.y
  %at.z = get cta.z
"""

#: Halves of warps are rows of threads, or nothing is done.
_BEGIN = """
  %b.odd = and i32 %block.x, 15
  %b.rows = icmp eq i32 %b.odd, 0
  %b.missed = get rec.s9
  %b.hope = icmp ult i32 %b.missed, {most}
  %b.some = and i1 %b.rows, %b.hope
{known}  %b.go = and i1 %b.some, %b.known
  br i1 %b.go, label %sec0, label %stop0
"""
_UNBOUNDED = "  %b.known = icmp eq i32 0, 0\n"
#: Runs over several blocks find out by themselves where observers have nothing to say, if they may.
_BOUNDED = "  %b.filter = get ctx.bounded\n  %b.known = icmp ne ptr %b.filter, null\n"

_GONE = """
  %o.missed = get rec.s9                          ; other workers read this line, too
  %o.none = icmp eq i32 %o.missed, 0
  br i1 %o.none, label %nx.next, label %o.less
o.less:
  %o.fewer = sub i32 %o.missed, 1
  set rec.s9, %o.fewer
  br label %nx.next
"""

_OVER = """
over:
  set cta.alive, 0
  store i32 {answer}, ptr %v.answer
  br label %leave
"""
