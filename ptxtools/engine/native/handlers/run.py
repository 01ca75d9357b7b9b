"""Handlers of runs: several operations with values in registers between them (see `runs`).

Slots are read where a step first needs them, and written where their last value is made, so that few values are alive
at a time. Where some lanes do not take part, the slots that change are put aside first and given back to those lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools import isa
from ptxtools.engine.native.builder import ELEMENT, Handler
from ptxtools.engine.native.runs import Place, Step
from ptxtools.semantics.algebra import Value

from .plain import compute

#: A slot of the frame and its storage class.
_Slot = tuple[int, str]


def run(h: Handler) -> None:
    """All steps in order."""
    steps, read, kept = h.op.detail
    vectors = [part for _, slot, storage in kept for part in _parts(slot, storage)]
    rooms = [h.e.value(f"alloca {_whole(element)}, align 64") for _, element in vectors]
    _unless_full(h, [(_place(h, slot), room, element) for (slot, element), room in zip(vectors, rooms, strict=True)])
    contents = _Contents(h, {number: (slot, storage) for number, slot, storage in read})
    targets = {number: (slot, storage) for number, slot, storage in kept}
    for step in steps:
        _step(h, step, contents, targets)
    _unless_full(h, [(room, _place(h, slot), element) for (slot, element), room in zip(vectors, rooms, strict=True)],
                 back=True)  # fmt: skip
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


def _unless_full(h: Handler, moves: list[tuple[str, str, str]], *, back: bool = False) -> None:
    """Copy vectors (from, to, element) if lanes are missing; `back`: only the elements of those lanes."""
    if not moves:
        return
    part, on = h.label("part"), h.label("on")
    h.branch("%full", on, part)
    h.place(part)
    for source, target, element in moves:
        vector, align = _whole(element), 4 if element == "i1" else 64
        value = h.e.value(f"load {vector}, ptr {source}, align {align}")
        if back:
            new = h.e.value(f"load {vector}, ptr {target}, align {align}")
            value = _merged(h, element, new, value)
        h.e.line(f"store {vector} {value}, ptr {target}, align {align}")
    h.jump(on)
    h.place(on)


def _merged(h: Handler, element: str, new: Value, old: Value) -> Value:
    """`new` in the lanes that run, `old` in the others."""
    if element != "i1":
        vector = _whole(element)
        return h.e.value(f"select <32 x i1> %lanes, {vector} {new}, {vector} {old}")
    mine = h.e.value(f"and i32 {h.e.value(f'xor i32 {new}, {old}')}, %m")
    return h.e.value(f"xor i32 {old}, {mine}")


class _Contents:
    """What the numbered operands hold; those of slots are loaded when they are first asked for."""

    def __init__(self, h: Handler, slots: dict[int, _Slot]) -> None:
        self.h, self.slots = h, slots
        self.known: dict[int, Value] = {}

    def __getitem__(self, number: int) -> Value:
        if number not in self.known:
            self.known[number] = self._load(*self.slots[number])
        return self.known[number]

    def __setitem__(self, number: int, value: Value) -> None:
        self.known[number] = value

    def _load(self, slot: int, storage: str) -> Value:
        e = self.h.e
        if storage == "pred":
            return e.value(f"bitcast i32 {e.value(f'load i32, ptr {_place(self.h, slot)}')} to <32 x i1>")
        vectors = [
            e.value(f"load <32 x {element}>, ptr {_place(self.h, at)}, align 64")
            for at, element in _parts(slot, storage)
        ]
        return tuple(vectors) if storage == "b128" else vectors[0]


def _operand(h: Handler, place: Place, contents: _Contents) -> Value:
    number, storage, t = place
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
            _keep(h, *kept[number], contents[number])


def _keep(h: Handler, slot: int, storage: str, value: Value) -> None:
    """Store a last value; other lanes are restored later."""
    if storage == "pred":
        h.e.line(f"store i32 {h.e.value(f'bitcast <32 x i1> {value} to i32')}, ptr {_place(h, slot)}")
        return
    vectors = value if storage == "b128" else (value,)
    for (at, element), vector in zip(_parts(slot, storage), vectors, strict=True):
        h.e.line(f"store <32 x {element}> {vector}, ptr {_place(h, at)}, align 64")


def _outputs(h: Handler, step: Step, contents: _Contents) -> Sequence[Value]:
    kind, text, detail, targets, sources, _, _, _ = step
    inputs = [_operand(h, place, contents) for place in sources]
    if kind == "alu":
        return compute(h, isa.resolve(text), detail, inputs)
    if kind == "pack":
        return (h.A.pack(sources[0][2], inputs),)
    if kind == "unpack":
        return h.A.unpack(targets[0][2], len(targets), inputs[0])
    return inputs
