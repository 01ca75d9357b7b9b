"""Handlers of runs: several operations with values in registers between them (see `runs`).

A slot is read where a step first needs it, and written where its last value is made, so that few values are alive at a
time. If some lanes do not take part, slots that change are saved first and restored for those lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from ptxtools import isa
from ptxtools.native.code.handler import ELEMENT, Handler
from ptxtools.native.code.live_words import Key
from ptxtools.native.code.runs import Step, StepOperand
from ptxtools.program.details import BoundedRun, Lanes, Run, SpecialRegister
from ptxtools.program.operations import ACROSS, COUNTS
from ptxtools.program.program import SLOT_BYTES, Slot
from ptxtools.semantics.algebra import Value
from ptxtools.semantics.floating import canonical, takes_any_nan

from . import ahead, counts, rounds, special
from .plain import compute

if TYPE_CHECKING:
    from .regions import Accesses

#: Logic of flags, as instructions for 32 of them in a word.
_LOGIC = {"and.pred": "and", "or.pred": "or", "xor.pred": "xor", "not.pred": "xor"}
#: Addresses of a slot's vector and of a room outside of the frame for it, element type.
_Move = tuple[str, str, str]


def run(h: Handler) -> None:
    """All steps in order; repeatedly, if the run is a loop."""
    detail = h.op.of(Run)
    steps, read, kept, again, _ = detail.values()
    contents = Contents(h, {number: (slot, storage) for number, slot, storage in read})
    targets = {number: (slot, storage) for number, slot, storage in kept}
    accesses = None
    if any(step.space for step in steps):
        from .prefetch import FetchingAccesses

        accesses = FetchingAccesses(h, contents, detail)
        contents.made = {number: storage for step in steps for number, storage, _ in step.targets}
        targets = {number: key for number, key in targets.items() if number not in accesses.skipped}
    carried = rounds.carried(contents.slots.values(), targets.values()) if again is not None else []
    contents.find_loose(steps, {key: number for number, key in targets.items() if key in carried})
    moves = {
        slot: (_place(h, slot), h.room(_whole(element)), element)
        for key in targets.values()
        for slot, element in _parts(*key)
    }
    contents.homes = {slot: moves[slot][1] for key in carried for slot, _ in _parts(*key)}
    held = [moves.pop(slot) for key in carried for slot, _ in _parts(*key)]
    counted = None
    if again is not None and any(step.kind == "count" for step in steps):
        counted = counts.RoundCounts(h, steps, again)
    counter = ahead.counter_of(detail) if again is not None and not any(s.kind in COUNTS for s in steps) else None
    rounds_ahead = None
    if counter is not None and (accesses is None or accesses.steady()):
        rounds_ahead = ahead.Ahead(h, detail, counter, accesses)
    if accesses is not None:
        accesses.begin()
    _unless_full(h, list(moves.values()))
    if counted is not None:
        counted.begin()
    if again is not None:
        for move in held:
            _fill(h, move)
        if accesses is not None:
            accesses.begin_rounds()
        rounds.begin(h, to_target=again[2], chain=isinstance(detail, BoundedRun))
        start = ("%slice.first", "%count.first")
        if rounds_ahead is not None:
            start = _go_ahead(h, detail, contents, targets, accesses, rounds_ahead)
        rounds.each(h, *start)
    for step in steps:
        if step.kind in COUNTS:
            if accesses is None and counted is None:
                counts.step(h, step, contents.word)
            elif step.guard >= 0:
                contents.word(step.guard)  # its slot may change in this round
        else:
            make(h, step, contents, targets, accesses)
    if accesses is not None:
        accesses.commit()
        for step in steps:
            if step.kind == "count" and counted is None:
                counts.step(h, step, contents.word)
        for number, key in targets.items():
            _keep(h, *key, contents, number)
    if again is not None:
        last = "" if counted is None else contents.word(again[0])
        if counted is not None:
            counted.each(contents.word)
        rounds.end(h, contents[again[0]], wanted=again[1], chain=isinstance(detail, BoundedRun))
        if counted is not None:
            counted.end(rounds.number(h), last)
        _leave_rounds(h, held, accesses, contents)
    _unless_full(h, list(moves.values()), back=True)
    if accesses is None:
        h.go_on()
        return
    accesses.end()
    if again is not None:  # a miss: this round has not begun
        h.code.begin(accesses.maker.fail)
        h.code.expand("set ctx.slice, %slice\nset ctx.count, %count")
        if counted is not None:
            counted.end(rounds.number(h), "")
        _leave_rounds(h, held, accesses, contents, some=h.code.value("icmp ne i64 %count, %count.first"))
        _unless_full(h, list(moves.values()), back=True)
        h.code.jump("miss")


def _go_ahead(
    h: Handler,
    detail: Run,
    contents: Contents,
    targets: dict[int, Key],
    accesses: Accesses | None,
    rounds_ahead: ahead.Ahead,
) -> tuple[str, str]:
    """Emit the rounds that are known to come; ctx.slice and ctx.count behind them."""
    known, words = dict(contents.known), dict(contents.words)
    kept = ahead.returning(list(contents.slots.values()), targets)
    done = rounds_ahead.counter.steps

    def forget() -> None:
        contents.known, contents.words, contents.loose = dict(known), dict(words), {}
        if accesses is not None:
            accesses.forget()

    def once() -> None:
        forget()
        for step in detail.steps:
            if step not in done:
                make(h, step, contents, {}, accesses)
        if accesses is not None:
            accesses.commit()
        for number, key in kept.items():
            if number != rounds_ahead.counter.after or not any(step.targets[0][0] == number for step in done):
                _keep(h, *key, contents, number)

    if accesses is None:
        result = rounds_ahead.emit(contents, once)
    else:
        late, accesses.maker.fail, accesses.trusted = accesses.maker.fail, "miss", True
        result = rounds_ahead.emit(contents, once)
        accesses.maker.fail, accesses.trusted = late, False
    forget()
    return result


def steps(h: Handler, detail: Run, contents: Contents, targets: dict[int, Key], accesses: Accesses | None) -> None:
    """All steps of a run that does not go round, as a part of a function. targets: the slots that it writes."""
    moves = [
        (_place(h, slot), h.room(_whole(element)), element)
        for key in targets.values()
        for slot, element in _parts(*key)
    ]
    _unless_full(h, moves)
    for step in detail.steps:
        make(h, step, contents, targets, accesses)
    if accesses is not None:
        accesses.commit()
        for number, key in targets.items():
            _keep(h, *key, contents, number)
    _unless_full(h, moves, back=True)


def _leave_rounds(
    h: Handler, held: list[_Move], accesses: Accesses | None, contents: Contents, some: str = "true"
) -> None:
    """Write to slots what was in registers; some: whether any round has been whole."""
    rooms = {room: slot for slot, room in contents.homes.items()}
    for move in held:
        if rooms[move[1]] in contents.loose_slots:
            _settle(h, move[1], some)
        _merge(h, move, made="room")
    if accesses is not None:
        accesses.end_rounds()


def _place(h: Handler, slot: Slot) -> str:
    return h.code.value(f"getelementptr i8, ptr %fp, i64 {slot}")


def _parts(slot: Slot, storage: str) -> list[tuple[Slot, str]]:
    """Offset and element type of each vector in a slot; i1 of a predicate, which is one word."""
    if storage == "pred":
        return [(slot, "i1")]
    return [(slot, "i64"), (Slot(slot + SLOT_BYTES["b64"]), "i64")] if storage == "b128" else [(slot, ELEMENT[storage])]


def _whole(element: str) -> str:
    """IR type in memory of 32 elements."""
    return "i32" if element == "i1" else f"<32 x {element}>"


def _unless_full(h: Handler, moves: list[_Move], *, back: bool = False) -> None:
    """Save slots if lanes are missing; `back`: restore the slots of those lanes."""
    if not moves:
        return
    part, on = h.code.label("part"), h.code.label("on")
    h.code.branch(h.full, on, part)
    h.code.begin(part)
    for move in moves:
        if back:
            _merge(h, move, made="slot")
        else:
            _fill(h, move)
    h.code.jump(on)
    h.code.begin(on)


def _fill(h: Handler, move: _Move) -> None:
    """Copy a slot's vector to its room."""
    slot, room, element = move
    align = 4 if element == "i1" else 64
    value = h.code.value(f"load {_whole(element)}, ptr {slot}, align {align}")
    h.code.line(f"store {_whole(element)} {value}, ptr {room}, align {align}")


def _merge(h: Handler, move: _Move, *, made: str) -> None:
    """Complete the vector of a slot: values that the run has `made` in the lanes that run, old values in the others."""
    slot, room, element = move
    vector, align = _whole(element), 4 if element == "i1" else 64
    new, old = (slot, room) if made == "slot" else (room, slot)
    new, old = (h.code.value(f"load {vector}, ptr {p}, align {align}") for p in (new, old))
    if element == "i1":
        mine = h.code.value(f"and i32 {h.code.value(f'xor i32 {new}, {old}')}, {h.running}")
        value = h.code.value(f"xor i32 {old}, {mine}")
    else:
        value = h.code.value(f"select <32 x i1> {h.lanes}, {vector} {new}, {vector} {old}")
    h.code.line(f"store {vector} {value}, ptr {slot}, align {align}")


def _settle(h: Handler, room: str, some: str) -> None:
    """Make the NaNs in a room canonical if some round has put them there."""
    value = h.code.value(f"load <32 x i32>, ptr {room}, align 64")
    clean = h.code.value(f"select i1 {some}, <32 x i32> {canonical(h.algebra, value)}, <32 x i32> {value}")
    h.code.line(f"store <32 x i32> {clean}, ptr {room}, align 64")


def is_loose(step: Step) -> bool:
    """Whether a step takes any NaN, and leaves its own to who reads them."""
    if step.kind != "alu" or step.guard >= 0 or len(step.targets) != 1:
        return False
    if any(t != "f32" or storage not in ("b32", "") for _, storage, t in (*step.targets, *step.sources)):
        return False
    return step.detail is None and takes_any_nan(isa.resolve(step.text))


class Contents:
    """The values of the numbered operands; those of slots are loaded on first use."""

    def __init__(self, h: Handler, slots: dict[int, Key]) -> None:
        self.handler, self.slots = h, slots
        self.known: dict[int, Value] = {}
        #: Flags in general registers, 32 bits: those of slots, and results of logic on them.
        self.words: dict[int, str] = {}
        #: Storage classes of operands that steps make.
        self.made: dict[int, str] = {}
        #: Where vectors are that slots at these offsets have elsewhere while the run lasts.
        self.homes: dict[int, str] = {}
        #: f32 values whose NaNs are not canonical; slots that carry such values from round to round, and their numbers.
        self.loose: dict[int, Value] = {}
        self.loose_slots: set[int] = set()
        self.loose_numbers: set[int] = set()
        #: Numbers of values that are the same in all lanes, and computed for one.
        self.same: frozenset[int] = frozenset()

    def find_loose(self, steps: Sequence[Step], carried: dict[Key, int]) -> None:
        """Find the slots whose values go from round to round as they are: only arithmetic makes them and reads them."""
        made = {step.targets[0][0] for step in steps if is_loose(step)}
        others = {
            number
            for step in steps
            for number in (*(() if is_loose(step) else (n for n, _, _ in step.sources)), step.guard, *step.before)
        }
        for number, key in self.slots.items():
            if carried.get(key) in made and number not in others:
                self.loose_slots.add(key[0])
                self.loose_numbers |= {number, carried[key]}

    def level(self, number: int, storage: str) -> None:
        """Let a value be that of lane 0 in all lanes."""
        e, value = self.handler.code, self.known[number]
        if storage == "pred":
            first = e.value(f"extractelement <32 x i1> {value}, i32 0")
            self.known[number] = self.flags(number, e.value(f"sext i1 {first} to i32"))
        else:
            element = ELEMENT[storage]
            first = e.value(f"extractelement <32 x {element}> {value}, i32 0")
            self.known[number] = e.spread(element, first)

    def any_nan(self, number: int) -> Value:
        """A value, if it is an f32 with whatever NaNs."""
        return self.loose[number] if number in self.loose else self[number]

    def place(self, at: Slot) -> str:
        """Address of a vector."""
        return self.homes.get(at) or _place(self.handler, at)

    def storage(self, number: int) -> str:
        """An operand's storage class."""
        return self.slots[number][1] if number in self.slots else self.made[number]

    def __getitem__(self, number: int) -> Value:
        if number not in self.known:
            if number in self.loose:
                self.known[number] = canonical(self.handler.algebra, self.loose[number])
            else:
                self.known[number] = self._load(number, *self.slots[number])
        return self.known[number]

    def __setitem__(self, number: int, value: Value) -> None:
        self.known[number] = value

    def flags(self, number: int, word: str) -> Value:
        """Flags that are a word."""
        self.words[number] = word
        return self.handler.code.value(f"bitcast i32 {word} to <32 x i1>")

    def word(self, number: int) -> str:
        """A predicate's flags as a word."""
        flags = self[number]
        return self.words.get(number) or self.handler.code.value(f"bitcast <32 x i1> {flags} to i32")

    def _load(self, number: int, slot: Slot, storage: str) -> Value:
        e = self.handler.code
        if storage == "pred":
            return self.flags(number, e.value(f"load i32, ptr {self.place(slot)}"))
        vectors = [
            e.value(f"load <32 x {element}>, ptr {self.place(at)}, align 64") for at, element in _parts(slot, storage)
        ]
        return tuple(vectors) if storage == "b128" else vectors[0]


def _operand(h: Handler, operand: StepOperand, contents: Contents, *, any_nan: bool = False) -> Value:
    number, storage, t = operand
    if any_nan and number >= 0:
        return h.algebra.adapt(contents.any_nan(number), storage, t)
    return h.algebra.const(t, 0) if number < 0 else h.algebra.adapt(contents[number], storage, t)


class Making(Protocol):
    """What makes the accesses of a run. skipped: numbers that nobody needs, or that are found elsewhere."""

    skipped: set[int]

    def load(self, step: Step) -> list[Value]:
        """The words that a load gives."""

    def store(self, step: Step, values: list[Value]) -> None:
        """Make a store, or note it."""


def make(h: Handler, step: Step, contents: Contents, kept: dict[int, Key], accesses: Making | None) -> None:
    """What a step computes, loads or stores."""
    if accesses is not None and step.kind == "st":
        accesses.store(step, [_operand(h, source, contents) for source in step.sources[1:]])
    elif accesses is None or step.targets[0][0] not in accesses.skipped:
        _step(h, step, contents, kept, accesses)


def _step(h: Handler, step: Step, contents: Contents, kept: dict[int, Key], accesses: Making | None) -> None:
    outputs = outputs_of(h, step, contents) if accesses is None or not step.space else accesses.load(step)
    lanes = contents[step.guard] if step.guard >= 0 else None
    if lanes is not None and step.negated:
        lanes = h.algebra.not_("pred", lanes)
    for place, ((number, storage, t), value) in enumerate(zip(step.targets, outputs, strict=False)):
        if number < 0:
            continue
        wide = h.algebra.widen(value, t, storage)
        if is_loose(step):
            contents.loose[number] = wide
            if number in kept and accesses is None:
                _keep(h, *kept[number], contents, number)
            continue
        contents[number] = (
            wide if lanes is None else h.algebra.select(storage, lanes, wide, contents[step.before[place]])
        )
        if number in contents.same:
            contents.level(number, storage)
        if number in kept and accesses is None:
            _keep(h, *kept[number], contents, number)


def _keep(h: Handler, slot: Slot, storage: str, contents: Contents, number: int) -> None:
    """Store a last value; other lanes are restored later."""
    value = contents.loose[number] if number in contents.loose_numbers else contents[number]
    if storage == "pred":
        h.code.line(f"store i32 {h.code.value(f'bitcast <32 x i1> {value} to i32')}, ptr {contents.place(slot)}")
        return
    vectors = value if storage == "b128" else (value,)
    for (at, element), vector in zip(_parts(slot, storage), vectors, strict=True):
        h.code.line(f"store <32 x {element}> {vector}, ptr {contents.place(at)}, align 64")


def outputs_of(h: Handler, step: Step, contents: Contents) -> Sequence[Value]:
    any_nan = is_loose(step)
    inputs = [_operand(h, operand, contents, any_nan=any_nan) for operand in step.sources]
    words = [contents.words[operand[0]] for operand in step.sources if operand[0] in contents.words]
    if step.text in _LOGIC and len(words) == len(step.sources) and step.guard < 0 <= step.targets[0][0]:
        combined = h.code.value(f"{_LOGIC[step.text]} i32 {words[0]}, {(*words, -1)[1]}")
        return (contents.flags(step.targets[0][0], combined),)
    h.algebra.loose = any_nan
    outputs = MEANINGS[step.kind](h, step, inputs)
    h.algebra.loose = False
    return outputs


def _across(h: Handler, step: Step, inputs: list[Value]) -> Sequence[Value]:
    """An operation across lanes, which are all there (`warp` has these for others)."""
    e, detail = h.code, cast(Lanes, step.detail)
    if detail.action == "activemask":
        return ("splat (i32 -1)",)
    if detail.action == "order":
        taken = ", ".join(f"i1 {int(flag)}" for flag in detail.taken)
        return (e.shuffle("<32 x i32>", detail.order, inputs[0]), f"<{taken}>")
    if step.kind == "redux":
        name, sign = detail.action.split()
        name = sign + name if name in ("min", "max") else name
        return (e.spread("i32", e.call(f"llvm.vector.reduce.{name}.v32i32", "i32", [("<32 x i32>", inputs[0])])),)
    flags = e.value(f"bitcast <32 x i1> {inputs[0]} to i32")
    if detail.action == "ballot":
        return (e.spread("i32", flags),)
    none, everyone = e.value(f"icmp eq i32 {flags}, 0"), e.value(f"icmp eq i32 {flags}, -1")
    answers = {
        "all": everyone,
        "any": e.value(f"xor i1 {none}, true"),
        "uni": e.value(f"or i1 {none}, {everyone}"),
    }
    return (e.spread("i1", answers[detail.action]),)


#: Outputs of a step by its kind, which does nothing beyond its destinations (`operations.PURE`).
MEANINGS: dict[str, Callable[[Handler, Step, list[Value]], Sequence[Value]]] = {
    "alu": lambda h, step, inputs: compute(h, isa.resolve(step.text), step.detail, inputs),
    "copy": lambda h, step, inputs: inputs,
    "sreg": lambda h, step, inputs: (special.value(h, cast(SpecialRegister, step.detail).name, step.targets[0][2]),),
    "pack": lambda h, step, inputs: (h.algebra.pack(step.sources[0][2], inputs),),
    **dict.fromkeys(ACROSS, _across),
    "unpack": lambda h, step, inputs: h.algebra.unpack(step.targets[0][2], len(step.targets), inputs[0]),
}
