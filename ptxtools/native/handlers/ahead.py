"""Rounds of a run that are known to come: a loop counts up to a limit, both the same in all lanes.

As many rounds as the counter, the slice and the bounds of memory allow for certain go by without a look at any of
them, and without the counter. The rounds after them, the last one included, are as ever (`rounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ptxtools.native.code.handler import Handler
from ptxtools.native.code.live_words import Key, words_of
from ptxtools.native.code.runs import Step
from ptxtools.program.details import BoundedRun, Run
from ptxtools.records import dataclass

if TYPE_CHECKING:
    from .regions import Accesses
    from .run import Contents

#: Conditions under which lanes go back, by the sign of what the counter grows by; and those that are their opposites.
_CONDITIONS = {"lt": 1, "le": 1, "gt": -1, "ge": -1, "ne": 0}
_OPPOSITE = {"ge": "lt", "gt": "le", "le": "gt", "lt": "ge", "eq": "ne", "ne": "eq"}
#: Steps of rounds that are written four times, and twice, in a row.
_FOUR, _TWO = 16, 32


@dataclass(slots=True)
class Counter:
    """How a run counts: numbers of the counter in front of a round and behind it, of what it grows by and of the
    limit; the condition under which lanes go back; the steps that do nothing else."""

    before: int
    after: int
    growth: int
    limit: int
    condition: str
    signed: bool
    steps: tuple[Step, ...]


def counter_of(detail: Run) -> Counter | None:
    """The counter of a run that goes round, if it has one."""
    assert detail.again is not None
    guard, wanted, _ = detail.again
    makers = {number: step for step in detail.steps for number, _, _ in step.targets}
    test = makers.get(guard)
    if test is None or test.guard >= 0 or test.detail is not None or len(test.targets) != 1:
        return None
    words = test.text.split(".")
    if len(words) != 3 or words[0] != "setp" or words[2] not in ("s32", "u32") or words[1] not in _OPPOSITE:
        return None
    condition = words[1] if wanted else _OPPOSITE[words[1]]
    (after, _, _), (limit, _, _) = test.sources
    adds = makers.get(after)
    if condition not in _CONDITIONS or adds is None or adds.guard >= 0 or adds.detail is not None:
        return None
    if adds.text not in ("add.s32", "add.u32"):
        return None
    (before, _, _), (growth, _, _) = adds.sources
    read = {number: (slot, storage) for number, slot, storage in detail.read}
    kept = {number: (slot, storage) for number, slot, storage in detail.kept}
    same = before in read and read[before] == kept.get(after)
    if not same or not _steady(growth, read, kept) or not _steady(limit, read, kept):
        return None
    alone = [
        step
        for step, number, users in ((test, guard, ()), (adds, after, (test,)))
        if not any(number in _used(other) for other in detail.steps if other not in users)
    ]
    if adds in alone and any(before in _used(other) for other in detail.steps if other is not adds):
        alone.remove(adds)
    if test in alone and guard in kept and words_of(*kept[guard]) & _words(read.values()):
        alone.remove(test)  # the next round reads what it finds
    if test not in alone:  # it needs the counter in each round
        alone.clear()
    return Counter(before, after, growth, limit, condition, words[2] == "s32", tuple(alone))


def _used(step: Step) -> tuple[int, ...]:
    return (*(number for number, _, _ in step.sources), step.guard, *step.before)


def _words(keys: Iterable[Key]) -> int:
    words = 0
    for key in keys:
        words |= words_of(*key)
    return words


def _steady(number: int, read: dict[int, Key], kept: dict[int, Key]) -> bool:
    return number in read and not any(words_of(*key) & words_of(*read[number]) for key in kept.values())


def returning(read: Sequence[Key], targets: dict[int, Key]) -> dict[int, Key]:
    """Of the slots that a round writes, those that the next one may read."""
    words = _words(read)
    return {number: key for number, key in targets.items() if words_of(*key) & words}


class Ahead:
    """Emits the rounds ahead, between the start of a run and its first round. rounds, left: rooms for the number of
    rounds, and for how many are still to come."""

    def __init__(self, h: Handler, detail: Run, counter: Counter, accesses: Accesses | None) -> None:
        self.handler, self.code, self.counter, self.accesses = h, h.code, counter, accesses
        self.times = 4 if len(detail.steps) <= _FOUR else 2 if len(detail.steps) <= _TWO else 1
        self.left = h.room("i64")
        self.chained = isinstance(detail, BoundedRun)

    def emit(self, contents: Contents, once: Callable[[], None]) -> tuple[str, str]:
        """once: emits one round. Names of ctx.slice and ctx.count behind the rounds."""
        e, counter = self.code, self.counter
        number, growth = self._number(contents)
        body, done = e.label("ahead"), e.label("behind")
        e.line(f"store i64 {number}, ptr {self.left}")
        e.branch(e.value(f"icmp ne i64 {number}, 0"), body, done)
        e.begin(body)
        for _ in range(self.times):
            once()
        rest = e.value(f"sub i64 {e.value(f'load i64, ptr {self.left}')}, {self.times}")
        e.line(f"store i64 {rest}, ptr {self.left}")
        e.branch(e.value(f"icmp ne i64 {rest}, 0"), body, done)
        e.begin(done)
        few = e.value(f"trunc i64 {number} to i32")
        if any(step.targets[0][0] == counter.after for step in counter.steps):
            place = contents.place(contents.slots[counter.before][0])
            old = e.value(f"load <32 x i32>, ptr {place}, align 64")
            more = e.spread("i32", e.value(f"mul i32 {few}, {growth}"))
            e.line(f"store <32 x i32> {e.value(f'add <32 x i32> {old}, {more}')}, ptr {place}, align 64")
        time = e.value(f"mul i32 {few}, %cost")
        slice_ = e.value(f"sub i32 %slice.first, {time}")
        gained = e.value(f"mul i64 {number}, %threads64")
        return slice_, e.value(f"add i64 %count.first, {gained}")

    def _same(self, vector: str, scalar: str) -> str:
        """i1: all lanes that run have this value."""
        e = self.code
        equal = e.value(f"icmp eq <32 x i32> {vector}, {e.spread('i32', scalar)}")
        bits = e.value(f"bitcast <32 x i1> {equal} to i32")
        others = e.value(f"xor i32 {self.handler.running}, -1")
        return e.value(f"icmp eq i32 {e.value(f'or i32 {bits}, {others}')}, -1")

    def _number(self, contents: Contents) -> tuple[str, str]:
        """How many rounds there are ahead, i64, a multiple of those in a row; and what the counter grows by, i32."""
        e, counter = self.code, self.counter
        lane = self.handler.leader()
        scalars, alike = [], "true"
        for number in (counter.before, counter.growth, counter.limit):
            place = contents.place(contents.slots[number][0])
            vector = e.value(f"load <32 x i32>, ptr {place}, align 64")
            scalars.append(e.value(f"extractelement <32 x i32> {vector}, i32 {lane}"))
            alike = e.value(f"and i1 {alike}, {self._same(vector, scalars[-1])}")
        extend = "sext" if counter.signed else "zext"
        now, limit = (e.value(f"{extend} i32 {scalars[place]} to i64") for place in (0, 2))
        growth = e.value(f"sext i32 {scalars[1]} to i64")
        distance = e.value(f"sub i64 {limit}, {now}")
        down = e.value(f"icmp slt i64 {growth}, 0")
        e.declare("llvm.abs.i64", "declare i64 @llvm.abs.i64(i64, i1)")
        size = e.value(f"call i64 @llvm.abs.i64(i64 {growth}, i1 false)")
        way = e.value(f"select i1 {down}, i64 {e.value(f'sub i64 0, {distance}')}, i64 {distance}")
        if counter.condition in ("lt", "gt", "ne"):
            way = e.value(f"sub i64 {way}, 1")
        fits = e.value(f"icmp sge i64 {way}, 0")
        sign = _CONDITIONS[counter.condition]
        if sign:
            right = e.value(f"icmp {'sgt' if sign > 0 else 'slt'} i64 {growth}, 0")
            fits = e.value(f"and i1 {fits}, {right}")
        else:
            fits = e.value(f"and i1 {fits}, {e.value(f'icmp ne i64 {growth}, 0')}")
        safe = e.value(f"select i1 {fits}, i64 {size}, i64 1")
        rounds = e.value(f"udiv i64 {way}, {safe}")
        if not sign:  # only if it comes to the limit exactly
            whole = e.value(f"mul i64 {e.value(f'add i64 {rounds}, 1')}, {safe}")
            exact = e.value(f"icmp eq i64 {whole}, {e.value(f'add i64 {way}, 1')}")
            fits = e.value(f"and i1 {fits}, {exact}")
        room = e.value("zext i32 %slice.first to i64")
        if self.chained:
            room = e.value("zext i32 %chain.left to i64")
        time = e.value(f"udiv i64 {room}, {e.value('zext i32 %cost to i64')}")
        fits = e.value(f"and i1 {fits}, {e.value('icmp sgt i32 %slice.first, 0')}")
        fits = e.value(f"and i1 {e.value(f'and i1 {fits}, {alike}')}, %near")
        rounds = e.call("llvm.umin.i64", "i64", [("i64", rounds), ("i64", time)])
        rounds = e.value(f"and i64 {rounds}, {-self.times}")
        rounds = e.value(f"select i1 {fits}, i64 {rounds}, i64 0")
        if self.accesses is not None:
            last = e.call("llvm.usub.sat.i64", "i64", [("i64", rounds), ("i64", "1")])
            rounds = e.value(f"select i1 {self.accesses.all_fit(last)}, i64 {rounds}, i64 0")
        return rounds, scalars[1]
