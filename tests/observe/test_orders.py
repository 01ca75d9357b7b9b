"""The orders in which warps may come to the same words, held against all interleavings of small programs."""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.observe.orders import Event, Order, Orders, Step

from ..rows import rows

#: What a warp does, one after the other: "r" reads a word, "w" writes its own number there, "i" adds one and gets the
#: old value, "+" adds one and gets nothing, "?" waits until the word is not 0, "b" is a barrier of all warps. Digits:
#: the word.
PROGRAMS = {
    "one warp": ["r0 w0 r0"],
    "different words": ["w0 w0", "w1 w1"],
    "readers": ["r0", "r0", "r0"],
    "a store and a load": ["w0", "r0"],
    "tickets": ["i0", "i0", "i0"],
    "sums": ["+0", "+0", "+0"],
    "sums that one reads": ["+0", "+0", "r0"],
    "a lost update": ["r0 w0", "r0 w0"],
    "a lost update of three": ["r0 w0", "r0 w0", "r0 w0"],
    "stores that are loaded": ["w0 r1", "w1 r0"],
    "messages": ["w0 w1", "r1 r0"],
    "four reads": ["w0", "w1", "r0 r1", "r1 r0"],
    "a flag": ["w0 w1", "?1 r0"],
    "two flags": ["w0 ?1 w2", "w1 ?0 w2"],
    "a barrier": ["w0 b r1", "w1 b r0"],
    "tickets behind a barrier": ["i0 b i1", "i0 b i1", "b i0"],
    "the same value again": ["w0 w0", "r0 r0"],
}
_LEAST = {"a lost update": 4, "tickets": 6, "sums": 1, "stores that are loaded": 3, "a store and a load": 2}


class _Machine:
    """Runs a program, a step of a warp at a time."""

    def __init__(self, program: list[str]) -> None:
        self.code = [text.split() for text in program]
        self.place = [0] * len(program)
        self.words = [0] * 10
        self.events: list[Event] = []
        self.times = [1] * len(program)
        self.known: list[dict[int, int]] = [{} for _ in program]

    def step_of(self, agent: int) -> Step:
        return agent, self.place[agent], 1

    def can(self, agent: int) -> bool:
        if self.place[agent] == len(self.code[agent]):
            return False
        what, word = self._next(agent)
        return what != "?" or self.words[word] != 0 or not self._has_looked(agent)

    def _next(self, agent: int) -> tuple[str, int]:
        text = self.code[agent][self.place[agent]]
        return text[0], int(text[1:] or 9)

    def _has_looked(self, agent: int) -> bool:
        mine = [event for event in self.events if event.agent == agent]
        return bool(mine) and mine[-1].step == self.step_of(agent)

    def run(self, agent: int) -> None:
        what, word = self._next(agent)
        old = self.words[word]
        new = {"w": agent + 1, "i": old + 1, "+": old + 1}.get(what, old)
        content = old.to_bytes(4, "little")
        changed = frozenset({word} if old != new else ())
        time, known = self.times[agent], dict(self.known[agent])
        self.events.append(Event(self.step_of(agent), (word,), (content,), int(what == "+"), time, known, changed))
        self.words[word] = new
        self.times[agent] += 1
        if what != "?" or old:
            self.place[agent] += 1
        self._pass_barrier()

    def _pass_barrier(self) -> None:
        """All stand before a barrier: they learn of one another."""
        here = [code[place] if place < len(code) else "" for code, place in zip(self.code, self.place, strict=True)]
        if all(what == "b" for what in here):
            for agent in range(len(self.code)):
                self.known[agent] = {other: self.times[other] - 1 for other in range(len(self.code)) if other != agent}
                self.place[agent] += 1

    def able(self) -> list[int]:
        self._pass_barrier()
        standing = [agent for agent in range(len(self.code)) if self.can(agent)]
        return [agent for agent in standing if self.code[agent][self.place[agent]] != "b"]


def _run(program: list[str], choices: list[int]) -> tuple[_Machine, list[int]]:
    """After the choices, and who can go on then."""
    machine = _Machine(program)
    for agent in choices:
        assert agent in machine.able()
        machine.run(agent)
    return machine, machine.able()


def _all(program: list[str], choices: list[int]) -> Iterator[frozenset[int]]:
    machine, able = _run(program, choices)
    if not able:
        yield Order(machine.events).key
    for agent in able:
        yield from _all(program, [*choices, agent])


def _planned(program: list[str], steps: tuple[Step, ...]) -> list[Event]:
    machine = _Machine(program)
    for step in steps:
        assert step[0] in machine.able() and machine.step_of(step[0]) == step, "a plan that cannot be followed"
        machine.run(step[0])
    while able := machine.able():
        machine.run(able[0])
    return machine.events


@rows("name", PROGRAMS)
def test_all_orders_are_found(name: str) -> None:
    program = PROGRAMS[name]
    expected = set(_all(program, []))
    orders, runs = Orders(), 0
    while (plan := orders.next()) is not None:
        orders.learn(_planned(program, plan.steps))
        runs += 1
        assert runs <= 4 * len(expected), "the same orders again and again"
    assert set(orders.seen) == expected
    assert orders.count >= _LEAST.get(name, 1)
    if name in _LEAST:
        assert orders.count == _LEAST[name]
