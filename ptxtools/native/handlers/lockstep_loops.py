"""Loops over the warps of a CTA for ways through sections that are known (`lockstep`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ptxtools.native.code.emitter import Emitter
from ptxtools.native.code.live_words import Key
from ptxtools.native.code.sections import overlap
from ptxtools.native.code.structures import WARP
from ptxtools.program.program import LANES
from ptxtools.semantics.algebra import Value

from . import run
from .inline import Inline
from .linear import Facts, Form, Linear
from .lockstep_lanes import Lanes, Rows, slot_type, store_slot
from .lockstep_ways import Chain, Way, Work

#: Warps that go round together where rows of all threads load the same.
_ALIKE = 4
#: Names that handlers know the warp and its frame by.
_OF_WARP = re.compile(r"%(warp|fp)(?![\w.])")


class Loops:
    """Emits them; what all warps have in common is there."""

    def __init__(self, code: Emitter, handler: Inline, facts: Facts) -> None:
        self.code, self.handler, self.facts = code, handler, facts
        self.names = 0
        #: What several runs of a warp need.
        self.shared: dict[tuple[object, ...], str] = {}
        #: As of `Lanes`.
        self.narrow = False

    def both(self, emit: Callable[[], None]) -> None:
        """Emit something for CTAs with rows of half a warp, whose warps are as many as `together` takes, and for
        others."""
        e = self.code
        narrow, other, on = (e.label(hint) for hint in ("narrow", "broad", "on"))
        e.branch("%narrow", narrow, other)
        for label, self.narrow in ((narrow, True), (other, False)):
            e.begin(label)
            emit()
            e.jump(on)
        e.begin(on)

    def each(self, visited: str, first: str, body: Callable[[str], None]) -> None:
        """Do something for each of a set of warps (i32), for one of them (a set, too, or "") before the others; body:
        is given the warp's number."""
        e = self.code
        head, loop, behind, again, done = (e.label(hint) for hint in ("head", "each", "behind", "again", "done"))
        e.branch(e.value(f"icmp eq i32 {visited}, 0"), done, head)
        e.begin(head)
        begun = visited
        if first:
            there = e.value(f"and i32 {visited}, {first}")
            missing = e.value(f"icmp eq i32 {there}, 0")
            begun = e.value(f"select i1 {missing}, i32 {visited}, i32 {there}")
        now = e.call("llvm.cttz.i32", "i32", [("i32", begun), ("i1", "true")])
        rest = e.value(f"xor i32 {visited}, {e.value(f'shl i32 1, {now}')}")
        e.jump(loop)
        e.begin(loop)
        number, todo, then, less = (e.name() for _ in range(4))
        e.value(f"phi i32 [{now}, %{head}], [{then}, %{again}]", number)
        e.value(f"phi i32 [{rest}, %{head}], [{less}, %{again}]", todo)
        with self.of(self.find(number)):
            self.shared.clear()
            body(number)
            self.shared.clear()
        e.jump(behind)
        e.begin(behind)
        e.branch(e.value(f"icmp eq i32 {todo}, 0"), done, again)
        e.begin(again)
        e.call("llvm.cttz.i32", "i32", [("i32", todo), ("i1", "true")])
        e.lines[-1] = e.lines[-1].replace(e.lines[-1].split()[0], then)
        e.value(f"and i32 {todo}, {e.value(f'sub i32 {todo}, 1')}", less)
        e.jump(loop)
        e.begin(done)

    def together(self, body: Callable[[tuple[int, ...]], None]) -> None:
        """Do something for all warps, two at once, or four where loads are alike and vectors long enough that four sums
        fit in registers; there are as many as that takes."""
        e, many = self.code, _ALIKE if self.narrow and not self.code.unmasked else 2
        start, loop, end, done = (e.label(hint) for hint in ("groups", "group", "behind", "done"))
        e.jump(start)
        e.begin(start)
        e.jump(loop)
        e.begin(loop)
        number, then = e.name(), e.name()
        e.value(f"phi i32 [0, %{start}], [{then}, %{end}]", number)
        warps = [self.find(number), *(self.find(e.value(f"or i32 {number}, {more}")) for more in range(1, many))]
        self.shared.clear()
        body(tuple(warps))
        self.shared.clear()
        e.jump(end)
        e.begin(end)
        e.value(f"add i32 {number}, {many}", then)
        e.branch(e.value(f"icmp ult i32 {then}, %warps.of"), loop, done)
        e.begin(done)

    def find(self, number: str) -> int:
        """Find a warp by its number; what `of` takes."""
        e = self.code
        self.names += 1
        offset = e.value(f"mul i64 {e.value(f'zext i32 {number} to i64')}, %bytes")
        e.value(f"getelementptr i8, ptr %warps, i64 {offset}", f"%warp.{self.names}")
        e.value(f"getelementptr i8, ptr %warp.{self.names}, i64 {WARP.size}", f"%fp.{self.names}")
        return self.names

    @contextmanager
    def of(self, warp: int) -> Iterator[None]:
        """While it is entered, code is for one warp."""
        mark = len(self.code.lines)
        yield
        for at in range(mark, len(self.code.lines)):
            if _OF_WARP.search(self.code.lines[at]):
                self.code.lines[at] = _OF_WARP.sub(rf"%\1.{warp}", self.code.lines[at])

    def place(self, forms: dict[Key, Form], number: str, start: int) -> None:
        """Write the contents of slots to the frame of a warp, which goes on at the start of a section."""
        contents = Lanes(self.handler, {}, {}, {}, self.shared)
        for key, form in sorted(forms.items()):
            store_slot(self.code, key, contents.vector(form))
        where = self.code.value(f"getelementptr i32, ptr %at, i32 {number}")
        self.code.line(f"store i32 {start}, ptr {where}")

    def warp(self, way: Way, writes: Sequence[Key], number: str) -> None:
        """What one warp does on a way; writes: slots that are written to its frame at the end."""
        self.handler.begin_part()
        values: dict[Key, Value] = {}
        for work in way.works:
            if work.chain is None:
                self.work(work, values, "")
            else:
                self._some(work.chain, values, number)
        contents = Lanes(self.handler, {}, {}, {}, self.shared)
        for key in writes:
            store_slot(self.code, key, values[key] if key in values else contents.vector(way.forms[key]))

    def work(self, work: Work, values: dict[Key, Value], mask: str) -> None:
        """What a warp does in one run; mask: the lanes that make its accesses, an i32, or "" for all."""
        h, detail = self.handler, work.detail
        assert detail is not None
        slots = {number: (slot, storage) for number, slot, storage in detail.read}
        contents = Lanes(h, work.forms, slots, values, self.shared, narrow=self.narrow)
        contents.made = {number: storage for step in detail.steps for number, storage, _ in step.targets}
        rows = Rows(h, contents, work.addresses, mask)
        rows.skipped = {number for number, form in work.forms.items() if isinstance(form, Linear)}
        for step in detail.steps:
            run.make(h, step, contents, {}, rows)
        for number, slot, storage in detail.kept:
            key = (slot, storage)
            for other in [one for one in values if overlap(key, one)]:
                del values[other]
            if not isinstance(work.forms.get(number), Linear):
                values[key] = contents.word(number) if storage == "pred" else contents[number]

    def _some(self, chain: Chain, values: dict[Key, Value], number: str) -> None:
        """Blocks that some lanes of a warp run."""
        e, f, h = self.code, self.facts, self.handler
        first = f.mul(e.value(f"zext i32 {number} to i64"), LANES)
        a = f.most(f.sub(chain.held.first, first), 0)
        b = f.least(f.sub(chain.held.last, first), LANES - 1)
        above = e.value(f"shl i64 4294967295, {e.value(f'and i64 {a}, 63')}")
        below = e.value(f"lshr i64 4294967295, {e.value(f'and i64 {f.sub(LANES - 1, b)}, 63')}")
        lanes = e.value(f"trunc i64 {e.value(f'and i64 {above}, {below}')} to i32")
        mask = e.value(f"select i1 {f.compare('sgt', a, b)}, i32 0, i32 {lanes}")
        works = [(work, work.detail) for work in chain.works]
        keys = sorted({(slot, storage) for _, one in works if one for _, slot, storage in one.kept})
        contents = Lanes(h, {}, dict(enumerate(keys)), values, self.shared)
        before = {
            key: values.get(key) or (contents.vector(chain.before[key]) if key in chain.before else contents.slot(at))
            for at, key in enumerate(keys)
        }
        start, some, end, on = (e.label(hint) for hint in ("start", "some", "end", "on"))
        e.jump(start)
        e.begin(start)
        e.branch(e.value(f"icmp eq i32 {mask}, 0"), on, some)
        e.begin(some)
        outside, inside = dict(self.shared), dict(values)
        for work in chain.works:
            self.work(work, inside, mask)
        merged: dict[Key, Value] = {}
        for key in keys:
            made = inside[key] if key in inside else contents.vector(chain.behind[key]) if key in chain.behind else None
            if made is not None:
                merged[key] = _blended(e, key, mask, made, before[key])
        e.jump(end)
        e.begin(end)
        e.jump(on)
        e.begin(on)
        self.shared.clear()
        self.shared.update(outside)
        for key in keys:
            for other in [one for one in values if overlap(key, one)]:
                del values[other]
        for key, made in merged.items():
            values[key] = e.value(f"phi {slot_type(key)} [{made}, %{end}], [{before[key]}, %{start}]")


def _blended(e: Emitter, key: Key, mask: str, new: Value, old: Value) -> str:
    """A slot's content: new in some lanes."""
    if key[1] == "pred":
        changed = e.value(f"xor i32 {new}, {old}")
        return e.value(f"xor i32 {old}, {e.value(f'and i32 {changed}, {mask}')}")
    lanes = e.value(f"bitcast i32 {mask} to <{LANES} x i1>")
    return e.value(f"select <{LANES} x i1> {lanes}, {slot_type(key)} {new}, {slot_type(key)} {old}")
