"""The last rounds of loops that count to a constant: what they access."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ptxtools.ir.nodes import Immediate, Name
from ptxtools.ir.symbols import RegisterKey
from ptxtools.records import NamedTuple

from .accesses import ACCESSING
from .facts import ENDING, FunctionFacts, Line
from .values import COMPARE, Reader, Value, plus

#: Rounds that are counted.
_MOST = 1 << 14
#: Bits of the numbers that a loop counts with.
_COUNTERS = ("s32", "u32", "s64", "u64")


class LastAccess(NamedTuple):
    """An access in the last of so many rounds."""

    line: Line
    operand: int
    address: Value
    rounds: int


def last_accesses(facts: FunctionFacts) -> Iterator[LastAccess]:
    """Accesses in the last rounds of loops without inner branches, where the number of rounds is a constant."""
    writers: dict[RegisterKey, list[Line]] = {}
    written: dict[int, dict[int, Value | None]] = {}
    ways = Counter(facts.jumps.values()) if len(facts.runs) > 1 else Counter[int]()
    tabled = {to for table in facts.tables.values() for to in table}
    for before, run in zip(facts.runs, facts.runs[1:], strict=False):
        body = _body(facts, run)
        place = facts.jumps[id(body[-1].item)] if body else 0
        if not body or _ends(before[-1]) or ways[place] > 1 or place in tabled:
            continue
        test = _test(body)
        if test is None or not any(line.plan.family in ACCESSING for line in body):
            continue
        known, begun = facts.known_values, facts.begun_with
        reader = Reader(facts, known, {} if before is facts.runs[0] else begun)
        for line in before:
            reader.step(line)
        steps = _steps(facts, body)
        rounds = _rounds(reader, body, test, steps)
        if rounds < 2:
            continue
        writers = writers or _writers(facts)
        for key, (changing, step) in steps.items():
            others = [line for line in writers[key] if line is not changing] if step is not None else []
            if len(others) == 1 and others[0].item.guard is None:
                begins = _written_by(facts, others[0], written)
                if begins is not None:
                    reader.put(key, begins)
        for key, (line, step) in steps.items():
            value = reader.now(key) if step is not None else None
            reader.put(key, line if value is None else plus(value, Value((), (step or 0) * (rounds - 1))))
        for line in body:
            if line.plan.family in ACCESSING and line.item.guard is None:
                place = 0 if line.plan.family in ("st", "red") else 1
                address = reader.address(line.item.operands[place], line) if len(line.item.operands) > place else None
                if address is not None:
                    yield LastAccess(line, place, address, rounds)
            reader.step(line)


def _writers(facts: FunctionFacts) -> dict[RegisterKey, list[Line]]:
    found: dict[RegisterKey, list[Line]] = {}
    for line in facts.lines:
        for _, key, write in facts.used(line):
            if write and key is not None:
                found.setdefault(key, []).append(line)
    return found


def _written_by(facts: FunctionFacts, line: Line, written: dict[int, dict[int, Value | None]]) -> Value | None:
    """What an instruction writes to its only result. written: the same of the runs that were read, by their numbers."""
    number = facts.stretches[id(line.item)]
    known = written.get(number)
    if known is None:
        known = written[number] = {}
        reader = Reader(facts, facts.known_values, facts.begun_with if number else {})
        for each in facts.runs[number]:
            reader.step(each)
            for _, register, write in facts.used(each):
                if write and register is not None:
                    known[id(each.item)] = reader.now(register) or facts.known_values.get(register)
    return known.get(id(line.item)) if sum(write for _, _, write in facts.used(line)) == 1 else None


def _ends(line: Line) -> bool:
    return line.item.guard is None and line.plan.family in ENDING


def _body(facts: FunctionFacts, run: list[Line]) -> list[Line]:
    """The instructions of a loop that begins with a run and has no other branch than the one back; else nothing."""
    for at, line in enumerate(run):
        if line.plan.family in ENDING:
            place = facts.jumps.get(id(line.item), -1)
            back = line.item.guard is not None and 0 <= place < len(facts.lines) and facts.lines[place] is run[0]
            return run[: at + 1] if back else []
        if line.plan.family == "call":
            return []
    return []


def _test(body: list[Line]) -> Line | None:
    """The comparison with a constant that a loop goes on by."""
    guard = body[-1].item.guard
    key = body[-1].registers[guard.name] if guard is not None else None
    found = [line for line in body if type(into := next(iter(line.item.operands), None)) is Name
             and line.registers[into.name] == key]  # fmt: skip
    if len(found) != 1 or found[0].plan.family != "setp" or found[0].item.guard is not None:
        return None
    operands, words = found[0].item.operands, found[0].item.opcode.split(".")
    if len(operands) != 3 or len(words) != 3 or words[1] not in COMPARE or words[2] not in _COUNTERS:
        return None
    return found[0] if isinstance(operands[1], Name) and isinstance(operands[2], Immediate) else None


def _steps(facts: FunctionFacts, body: list[Line]) -> dict[RegisterKey, tuple[Line, int | None]]:
    """The registers that a loop changes, where it does, and by what in each round; None if that is not a constant."""
    found: dict[RegisterKey, tuple[Line, int | None]] = {}
    for line in body:
        operands = line.item.operands
        for _, key, write in facts.used(line):
            if not write or key is None:
                continue
            step = None
            if line.plan.family == "add" and line.item.guard is None and len(operands) == 3 and key not in found:
                own, by = operands[1:]
                if isinstance(own, Name) and line.registers[own.name] == key and isinstance(by, Immediate):
                    step = _signed(by.value)
            found[key] = line, step
    return found


def _rounds(reader: Reader, body: list[Line], test: Line, steps: Mapping[RegisterKey, tuple[Line, int | None]]) -> int:
    """How many rounds there are, of which at least one runs; 0 if that is not known."""
    guard, (_, counter, limit) = body[-1].item.guard, test.item.operands
    key = test.registers[counter.name] if isinstance(counter, Name) else None
    line, step = steps.get(key, (test, None)) if key is not None else (test, None)
    value = reader.now(key) if key is not None else None
    first = value.constant if value is not None else None
    if guard is None or not step or first is None or first < 0 or not isinstance(limit, Immediate):
        return 0
    if body.index(line) < body.index(test):
        first += step
    _, how, type_ = test.item.opcode.split(".")
    holds, last = COMPARE[how], _signed(limit.value)
    signed = type_[0] == "s" or how in ("eq", "ne")
    for each in range(_MOST):
        number = first + each * step
        if (min(number, last) < 0 and not signed) or abs(number) >= 1 << 31:
            return 0
        if holds(number - last, 0) == guard.negated:
            return each + 1
    return 0


def _signed(number: int) -> int:
    """A constant of 32 bits as the difference that it stands for."""
    return number - (1 << 32) if 1 << 31 <= number < 1 << 32 else number
