"""Handlers of runs: several operations with values in registers between them (see `runs`).

Slots are read where a step first needs them, and written where their last value is made, so that few values are alive
at a time. Where some lanes do not take part, the slots that change are put aside first and given back to those lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools import isa
from ptxtools.native.code.builder import ELEMENT, Handler
from ptxtools.native.code.runs import Step, StepOperand
from ptxtools.program.details import Run
from ptxtools.semantics.algebra import Value

from . import rounds
from .plain import compute

#: A slot of the frame and its storage class.
_Slot = tuple[int, str]
#: Logic of flags, as instructions for 32 of them in a word.
_LOGIC = {"and.pred": "and", "or.pred": "or", "xor.pred": "xor", "not.pred": "xor"}
#: Addresses of a slot's vector and of a room outside of the frame for it, element type.
_Move = tuple[str, str, str]


def run(h: Handler) -> None:
    """All steps in order; over and over, where the run is a loop of its own."""
    steps, read, kept, again = h.op.of(Run).values()
    contents = _Contents(h, {number: (slot, storage) for number, slot, storage in read})
    targets = {number: (slot, storage) for number, slot, storage in kept}
    carried = rounds.carried(contents.slots.values(), targets.values()) if again is not None else []
    moves = {
        slot: (_place(h, slot), h.e.value(f"alloca {_whole(element)}, align 64"), element)
        for key in targets.values()
        for slot, element in _parts(*key)
    }
    contents.homes = {slot: moves[slot][1] for key in carried for slot, _ in _parts(*key)}
    held = [moves.pop(slot) for key in carried for slot, _ in _parts(*key)]
    _unless_full(h, list(moves.values()))
    if again is not None:
        for move in held:
            _fill(h, move)
        rounds.begin(h, to_target=again[2])
    for step in steps:
        _step(h, step, contents, targets)
    if again is not None:
        rounds.end(h, contents[again[0]], wanted=again[1])
        for move in held:
            _merge(h, move, made="room")
    _unless_full(h, list(moves.values()), back=True)
    h.go_on()


def _place(h: Handler, slot: int) -> str:
    return h.e.value(f"getelementptr i8, ptr %fp, i64 {slot}")


def _parts(slot: int, storage: str) -> list[tuple[int, str]]:
    """Offset and element type of each vector in a slot; i1 of a predicate, which is one word."""
    if storage == "pred":
        return [(slot, "i1")]
    return [(slot, "i64"), (slot + 256, "i64")] if storage == "b128" else [(slot, ELEMENT[storage])]


def _whole(element: str) -> str:
    """IR type in memory of 32 elements."""
    return "i32" if element == "i1" else f"<32 x {element}>"


def _unless_full(h: Handler, moves: list[_Move], *, back: bool = False) -> None:
    """Put slots aside if lanes are missing; `back`: give those lanes what they had."""
    if not moves:
        return
    part, on = h.label("part"), h.label("on")
    h.branch("%full", on, part)
    h.place(part)
    for move in moves:
        if back:
            _merge(h, move, made="slot")
        else:
            _fill(h, move)
    h.jump(on)
    h.place(on)


def _fill(h: Handler, move: _Move) -> None:
    """Copy a slot's vector to its room."""
    slot, room, element = move
    align = 4 if element == "i1" else 64
    value = h.e.value(f"load {_whole(element)}, ptr {slot}, align {align}")
    h.e.line(f"store {_whole(element)} {value}, ptr {room}, align {align}")


def _merge(h: Handler, move: _Move, *, made: str) -> None:
    """Make a slot's vector whole: what the run has `made`, in the slot or the room, in the lanes that run."""
    slot, room, element = move
    vector, align = _whole(element), 4 if element == "i1" else 64
    new, old = (slot, room) if made == "slot" else (room, slot)
    new, old = (h.e.value(f"load {vector}, ptr {p}, align {align}") for p in (new, old))
    if element == "i1":
        mine = h.e.value(f"and i32 {h.e.value(f'xor i32 {new}, {old}')}, %m")
        value = h.e.value(f"xor i32 {old}, {mine}")
    else:
        value = h.e.value(f"select <32 x i1> %lanes, {vector} {new}, {vector} {old}")
    h.e.line(f"store {vector} {value}, ptr {slot}, align {align}")


class _Contents:
    """What the numbered operands hold; those of slots are loaded when they are first asked for."""

    def __init__(self, h: Handler, slots: dict[int, _Slot]) -> None:
        self.h, self.slots = h, slots
        self.known: dict[int, Value] = {}
        #: Flags that are in a general register, 32 bits: those of slots, and what logic makes of them.
        self.words: dict[int, str] = {}
        #: Where vectors are that slots at these offsets have elsewhere while the run lasts.
        self.homes: dict[int, str] = {}

    def place(self, at: int) -> str:
        """Address of a vector."""
        return self.homes.get(at) or _place(self.h, at)

    def __getitem__(self, number: int) -> Value:
        if number not in self.known:
            self.known[number] = self._load(number, *self.slots[number])
        return self.known[number]

    def __setitem__(self, number: int, value: Value) -> None:
        self.known[number] = value

    def flags(self, number: int, word: str) -> Value:
        """Flags that are a word."""
        self.words[number] = word
        return self.h.e.value(f"bitcast i32 {word} to <32 x i1>")

    def _load(self, number: int, slot: int, storage: str) -> Value:
        e = self.h.e
        if storage == "pred":
            return self.flags(number, e.value(f"load i32, ptr {self.place(slot)}"))
        vectors = [
            e.value(f"load <32 x {element}>, ptr {self.place(at)}, align 64") for at, element in _parts(slot, storage)
        ]
        return tuple(vectors) if storage == "b128" else vectors[0]


def _operand(h: Handler, operand: StepOperand, contents: _Contents) -> Value:
    number, storage, t = operand
    return h.A.const(t, 0) if number < 0 else h.A.adapt(contents[number], storage, t)


def _step(h: Handler, step: Step, contents: _Contents, kept: dict[int, _Slot]) -> None:
    _, _, _, targets, _, guard, negated, before = step
    outputs = _outputs(h, step, contents)
    lanes = contents[guard] if guard >= 0 else None
    if lanes is not None and negated:
        lanes = h.A.not_("pred", lanes)
    for place, ((number, storage, t), value) in enumerate(zip(targets, outputs, strict=False)):
        if number < 0:
            continue
        wide = h.A.widen(value, t, storage)
        contents[number] = wide if lanes is None else h.A.select(storage, lanes, wide, contents[before[place]])
        if number in kept:
            _keep(h, *kept[number], contents, number)


def _keep(h: Handler, slot: int, storage: str, contents: _Contents, number: int) -> None:
    """Store a last value; other lanes are restored later."""
    value = contents[number]
    if storage == "pred":
        h.e.line(f"store i32 {h.e.value(f'bitcast <32 x i1> {value} to i32')}, ptr {contents.place(slot)}")
        return
    vectors = value if storage == "b128" else (value,)
    for (at, element), vector in zip(_parts(slot, storage), vectors, strict=True):
        h.e.line(f"store <32 x {element}> {vector}, ptr {contents.place(at)}, align 64")


def _outputs(h: Handler, step: Step, contents: _Contents) -> Sequence[Value]:
    kind, text, detail, targets, sources, guard, _, _ = step
    inputs = [_operand(h, operand, contents) for operand in sources]
    words = [contents.words[operand[0]] for operand in sources if operand[0] in contents.words]
    if text in _LOGIC and len(words) == len(sources) and guard < 0 <= targets[0][0]:
        return (contents.flags(targets[0][0], h.e.value(f"{_LOGIC[text]} i32 {words[0]}, {(*words, -1)[1]}")),)
    if kind == "alu":
        return compute(h, isa.resolve(text), detail, inputs)
    if kind == "pack":
        return (h.A.pack(sources[0][2], inputs),)
    if kind == "unpack":
        return h.A.unpack(targets[0][2], len(targets), inputs[0])
    return inputs
