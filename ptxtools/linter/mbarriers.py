"""mbarriers at addresses that are known: a variable and a constant offset."""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.records import NamedTuple

from .facts import FunctionFacts, Line
from .memory import Reach, Step, variable_of
from .values import Terms, Value

_BYTES = 8


class Word(NamedTuple):
    """Where an mbarrier is. base: identity of the variable."""

    base: int
    name: str
    offset: int


def words(facts: FunctionFacts) -> Iterator[tuple[Step, Word | None, int]]:
    """The mbarrier operations of a function, the place of each, None if unknown, and which operand it is."""
    for steps in facts.steps:
        for step in steps:
            if step.family != "mbarrier":
                continue
            place = next((n for n, address in enumerate(step.addresses) if address is not None), None)
            if place is None or step.has("shared::cluster"):
                if step.line.item.opcode.startswith("mbarrier.init"):
                    yield step, None, 0
                continue
            yield step, _word(step.line, step.addresses[place]), place


def word_of(step: Step) -> Word | None:
    """The mbarrier that an instruction names last, as those do that arrive at one; None if unknown."""
    return _word(step.line, next((each for each in reversed(step.addresses) if each is not None), None))


def _word(line: Line, address: Value | None) -> Word | None:
    symbol = variable_of(line, address) if address is not None else None
    if address is None or symbol is None or not isinstance(address.each, int):
        return None
    return Word(id(symbol), symbol.name, address.each)


def life(facts: FunctionFacts) -> Iterator[tuple[Step, str]]:
    """What goes wrong in the life of an mbarrier along a run of instructions that all threads come to: "stored" into,
    initialised "again", used when it is "over"."""
    for steps in facts.steps:
        states: dict[Reach, str] = {}
        alive: dict[Terms, list[Reach]] = {}  # as they are in `states`
        for step in steps:
            place = next((n for n, address in enumerate(step.addresses) if address is not None), None)
            address = step.addresses[place] if place is not None else None
            if address is None or place is None:
                continue
            if step.family == "mbarrier" and not step.has("shared::cluster"):
                word = Reach(0, "shared", address, _BYTES)
                before, known = states.get(word), alive.setdefault(address.terms, [])
                if step.has("init"):
                    if before == "alive":
                        yield step, "again"
                    else:
                        known.append(word)
                    states[word] = "alive"
                elif step.has("inval"):
                    if before == "alive":
                        known.remove(word)
                    states[word] = "over"
                elif before == "over":
                    yield step, "over"
            elif step.family == "st" and _reaches(step.access, alive):
                yield step, "stored"


def _reaches(access: Reach | None, alive: dict[Terms, list[Reach]]) -> bool:
    """Whether an access reaches one of some mbarriers, which are listed by the unknown parts of their addresses."""
    words = alive.get(access.address.terms) if access is not None and access.space == "shared" else None
    if access is None or not words:
        return False
    numbers = access.address.numbers
    least, most = min(numbers) - _BYTES, max(numbers) + access.size
    near = [word for word in words if not isinstance(word.address.each, int) or least < word.address.each < most]
    return any(access.meets(word) for word in near)
