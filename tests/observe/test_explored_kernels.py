"""`explore` on random kernels, held against all interleavings of what their warps do: how many orders there are, what
memory has in the end of each, and whether some end in a deadlock."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import pytest

import ptxtools
from ptxtools.observe.orders import Event, Order
from ptxtools.sim import exploring

from .programs import module

_WORDS, _OUT = 64, 16
_FUNCTIONS = {"add": lambda old, value: old + value & 0xFFFF_FFFF, "or": lambda old, value: old | value,
              "xor": lambda old, value: old ^ value, "max": max, "exch": lambda old, value: value}  # fmt: skip
_SORTS = {name: number for number, name in enumerate(("add", "or", "xor", "max"), 1)}


class Do(NamedTuple):
    """One thing that a warp does. what: "atom", "cas", "ld" (whose results are stored), "red", "st", "copy" (stores
    what was read last), "if" (ends if it reads `wanted`), "wait" (until the word is not 0) or "bar" (of all warps)."""

    what: str
    word: int = 0
    value: int = 0
    function: str = "add"
    wanted: int = 0


Program = list[list[Do]]


def drawn(seed: int) -> Program:
    """Two or three warps, on one or two words."""
    g = random.Random(seed)
    warps, words = g.choice((2, 2, 3)), g.choice((1, 2, 2))
    kinds = ("atom", "atom", "red", "cas", "ld", "ld", "st", "st", "copy", "if", "wait")
    found = [
        [Do(g.choice(kinds), g.randrange(words), g.randint(0, 3), g.choice([*_SORTS, "exch"]), g.randint(0, 2))
         for _ in range(g.randint(1, 3 if warps == 2 else 2))]
        for _ in range(warps)
    ]  # fmt: skip
    found = [
        [do._replace(function="add") if do[0] == "red" and do.function == "exch" else do for do in one] for one in found
    ]
    if g.random() < 0.3:
        for one in found:
            one.insert(g.randint(0, len(one)), Do("bar"))
    return found


def text_of(program: Program) -> str:
    """The program as the body of a kernel, for a lane of each warp."""
    lines = ["setp.eq.u32 %p, %l, 0; @!%p bra DONE; mov.u32 %r5, 0;"]
    lines += [f"setp.eq.u32 %q, %w, {warp}; @%q bra W{warp};" for warp in range(len(program))]
    for warp, doings in enumerate(program):
        lines.append(f"W{warp}:")
        out = 4 * (_OUT + 4 * warp)
        for number, do in enumerate(doings):
            place, b32 = f"[%a+{4 * do.word}]", "u32" if do.function in ("add", "max") else "b32"
            form = f"relaxed.gpu.global.{do.function}.{b32}"
            look = f"ld.relaxed.gpu.global.u32 %r5, {place};"
            lines.append({
                "atom": f"atom.{form} %r5, {place}, {do.value};", "red": f"red.{form} {place}, {do.value};",
                "cas": f"atom.relaxed.gpu.global.cas.b32 %r5, {place}, {do.wanted}, {do.value};", "ld": look,
                "st": f"st.relaxed.gpu.global.u32 {place}, {do.value};",
                "copy": f"st.relaxed.gpu.global.u32 {place}, %r5;",
                "if": f"{look} setp.eq.u32 %q, %r5, {do.wanted}; @%q bra DONE;",
                "wait": f"L{warp}{number}: {look} setp.eq.u32 %q, %r5, 0; @%q bra L{warp}{number};",
                "bar": f"barrier.sync 1, {32 * len(program)};",
            }[do.what])  # fmt: skip
            if do.what in ("atom", "cas", "ld"):
                lines.append(f"st.global.u32 [%a+{out}], %r5;")
                out += 4
        lines.append("bra DONE;")
    return "\n".join([*lines, "DONE:"])


class Machine:
    """Runs a program, a step of a warp at a time."""

    def __init__(self, program: Program) -> None:
        self.program, self.events = program, list[Event]()
        self.place, self.read, self.time = ([n] * len(program) for n in (0, 0, 1))
        self.outs = [_OUT + 4 * warp for warp in range(len(program))]
        self.known: list[dict[int, int]] = [{} for _ in program]
        self.vain: list[tuple[int, int] | None] = [None] * len(program)  # place and content of a look in vain
        self.memory = np.zeros(_WORDS, np.uint32)

    def next(self, warp: int) -> Do | None:
        doings = self.program[warp]
        return doings[self.place[warp]] if self.place[warp] < len(doings) else None

    def able(self) -> list[int]:
        """The warps that can go on, behind a barrier to which all have come."""
        warps = range(len(self.program))
        if all((do := self.next(warp)) is not None and do.what == "bar" for warp in warps):
            told = [{**known, warp: self.time[warp] - 1} for warp, known in enumerate(self.known)]
            for warp in warps:
                self.known[warp] = {one: max(each.get(one, 0) for each in told) for one in warps if one != warp}
                self.place[warp] += 1
        return [warp for warp in warps if self._can(warp)]

    def _can(self, warp: int) -> bool:
        do = self.next(warp)
        return do is not None and do.what != "bar" and self.vain[warp] != (self.place[warp], int(self.memory[do.word]))

    def run(self, warp: int) -> None:
        do = self.next(warp)
        assert do is not None
        old, place = int(self.memory[do.word]), self.place[warp]
        new = {"st": do.value, "copy": self.read[warp]}.get(do.what, old)
        if do.what in ("atom", "red"):
            new = _FUNCTIONS[do.function](old, do.value)
        elif do.what == "cas" and old == do.wanted:
            new = do.value
        self.vain[warp] = (place, old) if do.what == "wait" and not old else None
        self.place[warp] = (
            place if self.vain[warp] else len(self.program[warp]) if do.what == "if" and old == do.wanted else place + 1
        )
        if do.what not in ("red", "st", "copy"):
            self.read[warp] = old
        if do.what in ("atom", "cas", "ld"):
            self.memory[self.outs[warp]] = old
            self.outs[warp] += 1
        sort = _SORTS[do.function] if do.what == "red" else 0
        changed = frozenset({do.word} if new != old else ())
        content = (old.to_bytes(4, "little"),)
        self.events.append(
            Event((warp, place, 1), (do.word,), content, sort, self.time[warp], dict(self.known[warp]), changed)
        )
        self.memory[do.word] = new
        self.time[warp] += 1


def interleavings(machine: Machine) -> Iterator[Machine]:
    """All ends."""
    able = machine.able()
    if not able:
        yield machine
    for warp in able:
        more = deepcopy(machine)
        more.run(warp)
        yield from interleavings(more)


#: Reductions that change nothing but where others are not before them; waits that see what changes back; stores of one
#: value that hide others; and some more.
SEEDS = (363, 606, 740, 765, 798, 942, 1264, 1321, 2201, 2952, 3928, *range(4))


@pytest.mark.parametrize("seed", SEEDS)
def test_orders_are_those_of_all_interleavings(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ends, seen = list(interleavings(Machine(program := drawn(seed)))), set[bytes]()
    dead = [end for end in ends if any(end.next(warp) for warp in range(len(program)))]
    finals = {end.memory.tobytes() for end in ends if end not in dead}
    difference: Any = exploring._Again._difference

    def noted(again: Any, after: bytes) -> str:
        seen.add(bytes(again._memory[: 4 * _WORDS]))
        return str(difference(again, after) or "")

    monkeypatch.setattr(exploring._Again, "_difference", noted)
    data = np.zeros(_WORDS, np.uint32)
    device = ptxtools.Device(checks="racecheck")
    kernel = module(text_of(program))["k"]
    try:
        found = device.launch(kernel, 1, 32 * len(program), [data], shared=64, explore=400).explored
    except ptxtools.Trap as trap:
        assert dead and trap.kind == "deadlock"
        return
    assert found.complete
    assert bool(found.failed) == bool(dead)
    assert seen | {data.tobytes()} == finals
    if found.schedules:
        assert found.orders == len({Order(end.events).key for end in ends})
