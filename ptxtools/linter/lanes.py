"""Which lanes of a warp come to an instruction, as far as that is certain: predicates over lane numbers and constants.

A lane number is %laneid, or %tid.x modulo 32. Comparisons of %tid.x itself, and elect.sync, only tell that the lanes of
some warp differ.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator

from ptxtools.ir.nodes import Guard, Immediate, Name, Pair
from ptxtools.records import NamedTuple

from .facts import FunctionFacts, Line

ALL = 0xFFFFFFFF
_WARP = 32
_SPLIT = 0  # stands for a predicate that holds in some lanes of a warp, nobody knows which
_LEAVING = frozenset({"bra", "exit", "ret"})
#: Longest chain of instructions that is followed back.
_DEPTH = 8
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "lo": operator.lt, "le": operator.le, "ls": operator.le,
    "gt": operator.gt, "hi": operator.gt, "ge": operator.ge, "hs": operator.ge,
}  # fmt: skip
_COMPUTE: dict[str, Callable[[int, int], int]] = {
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "add": operator.add, "sub": operator.sub,
    "shl": operator.lshift, "shr": operator.rshift,
}  # fmt: skip


class Lanes(NamedTuple):
    """The lanes of a warp that can come to an instruction. most: no others do; split: in some warp certainly not all
    do; exited: the others have ended, at least in part; exact: all lanes of `most` that a CTA has do come."""

    most: int = ALL
    split: bool = False
    exited: bool = False
    exact: bool = False

    @property
    def some(self) -> bool:
        """Whether lanes of some warp are certainly missing."""
        return self.split or self.most != ALL


def places(facts: FunctionFacts, families: frozenset[str]) -> Iterator[tuple[Line, Lanes]]:
    """Each instruction of some families with the lanes that its guard, and guarded jumps before it, leave; at a label
    all may come."""
    if families.isdisjoint(facts.families):
        return
    for number, run in enumerate(facts.runs):
        lanes = Lanes(exact=number == 0 and facts.function.kind == "entry" and run[0] is facts.lines[0])
        for line in run:
            guard, family = line.item.guard, line.plan.family
            if family in families:
                yield line, lanes if guard is None else _narrowed(lanes, lanes_of(facts, line, guard))
            elif guard is not None and family in _LEAVING:
                holds = lanes_of(facts, line, guard)
                lanes = _narrowed(lanes, holds if holds in (None, _SPLIT) else ALL & ~(holds or 0))
                lanes = lanes._replace(exited=lanes.exited or family != "bra")


def _narrowed(lanes: Lanes, holds: int | None) -> Lanes:
    if holds is None:
        return lanes._replace(exact=False)
    return lanes._replace(split=True, exact=False) if holds == _SPLIT else lanes._replace(most=lanes.most & holds)


def lanes_of(facts: FunctionFacts, line: Line, guard: Guard) -> int | None:
    """The lanes in which a guard holds; 0 if it certainly differs in some warp, nobody knows how; else None."""
    written = only_write(facts, line, guard.name)
    if written is None or written.item.guard is not None:
        return None
    if written.item.opcode == "elect.sync":
        result = written.item.operands[0]
        return _SPLIT if isinstance(result, Pair) and result.second == Name(guard.name) else None
    op, operands = written.plan.op, written.item.operands
    if written.plan.family != "setp" or op is None or len(operands) != 3 or not isinstance(operands[1], Name):
        return None
    name, value = next((atom for atom in op.atoms if atom in _COMPARE), ""), operands[2]
    if not isinstance(value, Immediate) or value.value < 0 or not name or isinstance(operands[0], Pair):
        return None
    numbers = lane_numbers(facts, written, operands[1].name)
    if numbers is not None:
        found = sum(1 << lane for lane, number in enumerate(numbers) if _COMPARE[name](number, value.value))
        found = ALL & ~found if guard.negated else found
        return None if found in (0, ALL) else found
    return _SPLIT if is_thread_number(facts, written, operands[1].name) and _cuts(name, value.value) else None


def _cuts(comparison: str, value: int) -> bool:
    """Whether a comparison of %tid.x with a constant differs inside a warp."""
    edge = {"lt": value, "ge": value, "lo": value, "hs": value}.get(comparison, value + 1)
    return comparison in ("eq", "ne") or edge % _WARP != 0


def lane_numbers(facts: FunctionFacts, line: Line, name: str, depth: int = _DEPTH) -> list[int] | None:
    """A register's value in each lane, if it is computed from the lane number and constants."""
    if name == "%laneid":
        return list(range(_WARP))
    written = only_write(facts, line, name) if depth else None
    if written is None or written.item.guard is not None:
        return None
    family, operands = written.plan.family, written.item.operands
    if family == "mov" and len(operands) == 2 and isinstance(operands[1], Name):
        return lane_numbers(facts, written, operands[1].name, depth - 1)
    if family not in _COMPUTE or len(operands) != 3 or not isinstance(operands[1], Name):
        return None
    value = operands[2]
    if not isinstance(value, Immediate) or not 0 <= value.value <= 1024:
        return None
    if family == "and" and value.value == _WARP - 1 and is_thread_number(facts, written, operands[1].name):
        return list(range(_WARP))
    numbers = lane_numbers(facts, written, operands[1].name, depth - 1)
    if numbers is None or (family in ("shl", "shr") and value.value >= _WARP):
        return None
    found = [_COMPUTE[family](number, value.value) for number in numbers]
    return found if all(0 <= number <= ALL for number in found) else None


def is_thread_number(facts: FunctionFacts, line: Line, name: str) -> bool:
    """Whether a register holds %tid.x, straight from a mov."""
    written = only_write(facts, line, name)
    if name == "%tid.x":
        return True
    if written is None or written.plan.family != "mov" or written.item.guard is not None:
        return False
    source = written.item.operands[1] if len(written.item.operands) == 2 else None
    return isinstance(source, Name) and source.name == "%tid.x"


def only_write(facts: FunctionFacts, line: Line, name: str) -> Line | None:
    """The only instruction that writes a register; None if there are several, or none."""
    key = line.registers[name]
    return facts.writes.get(key) if key is not None and key not in facts.rewritten else None
