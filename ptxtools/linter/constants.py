"""Shared by the rules about constants."""

from __future__ import annotations

import operator
from collections.abc import Callable

from ptxtools.ir.nodes import Immediate, Name, Operand
from ptxtools.isa.types import TYPES

from .facts import FunctionFacts, Line
from .lanes import only_write

#: Longest chain of instructions that is followed back, and how far a write may be above.
_DEPTH, _NEAR = 8, 16
_COMPUTE: dict[str, Callable[..., int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "shl": operator.lshift,
}  # fmt: skip
#: Threads of a CTA at most; what is computed of their numbers.
CTA_THREADS = 1024
_WORD = 0xFFFFFFFF
_OF_THREADS: dict[str, Callable[[int, int], int]] = {
    **_COMPUTE, "shl": lambda a, b: a << b if b < 32 else 0, "shr": lambda a, b: a >> min(b, 32),
}  # fmt: skip


def constant(facts: FunctionFacts, line: Line, operand: Operand, depth: int = _DEPTH) -> int | None:
    """The number that an operand certainly is at an instruction: as it is written, or as what writes its register
    computes it from such numbers. That is its only write, or one above with no label in between."""
    if isinstance(operand, Immediate):
        return None if operand.type[0] == "f" else operand.value
    if not isinstance(operand, Name) or not depth:
        return None
    made = reaching_write(facts, line, operand.name)
    if made is None or made.item.guard is not None or made.plan.op is None or len(made.item.operands) < 2:
        return None
    if made.item.operands[0] != operand:
        return None
    known = facts.constants
    key = id(made.item), depth
    if key not in known:
        known[key] = _computed(facts, made, depth)
    return known[key]


def _computed(facts: FunctionFacts, made: Line, depth: int) -> int | None:
    """What an instruction computes from constants."""
    assert made.plan.op is not None
    family, sources = made.plan.family, made.item.operands[1:]
    type_ = TYPES.get(made.plan.op.type or "")
    if type_ is None or type_.kind not in ("int", "bits") or type_.bits > 64:
        return None
    if family in ("sub", "xor") and len(sources) == 2 and sources[0] == sources[1] and isinstance(sources[0], Name):
        return 0
    if family in ("mov", "cvt") and len(sources) == 1:
        number = constant(facts, made, sources[0], depth - 1)
        return number if family == "mov" else _fits(number, type_.bits)
    if family not in _COMPUTE or len(sources) != 2 or ".hi" in made.item.opcode or ".sat" in made.item.opcode:
        return None
    numbers = [constant(facts, made, source, depth - 1) for source in sources]
    if 0 in numbers and (family == "and" or family == "mul"):
        return 0
    if None in numbers or (family == "shl" and not 0 <= (numbers[1] or 0) < type_.bits):
        return None
    return _fits(_COMPUTE[family](*numbers), type_.bits)


#: What any register of 32 bits may hold, and the special registers of which less is known.
_ANYTHING = (0, (1 << 32) - 1)
_SPECIAL = {"%tid.x": (0, 1023), "%laneid": (0, 31), "%ntid.x": (1, 1024)}


def bounds(facts: FunctionFacts, line: Line, operand: Operand, depth: int = 4) -> tuple[int, int]:
    """The smallest and the largest number that an operand of 32 bits, read as unsigned, can be, as far as the
    instructions that write it tell."""
    number = constant(facts, line, operand)
    if number is not None:
        return (number & _ANYTHING[1],) * 2
    name = operand.name if isinstance(operand, Name) else ""
    if name in _SPECIAL:
        return _SPECIAL[name]
    made = only_write(facts, line, name) if name and depth and line.registers[name] is not None else None
    if made is None or made.item.guard is not None or made.plan.op is None or made.item.operands[0] != operand:
        return _ANYTHING
    type_, sources = made.plan.op.type or "", made.item.operands[1:]
    if type_ not in ("u32", "s32", "b32") or not sources:
        return _ANYTHING
    (low, high), *others = [bounds(facts, made, source, depth - 1) for source in sources]
    family = made.plan.family
    if family == "mov":
        return low, high
    if len(others) != 1:
        return _ANYTHING
    ((least, most),) = others
    if family == "and":
        return 0, min(high, most)
    if family == "or":
        return max(low, least), _ANYTHING[1] if max(high, most) >= 1 << 31 else (1 << max(high, most).bit_length()) - 1
    if family == "add" and high + most <= _ANYTHING[1] and ".sat" not in made.item.opcode:
        return low + least, high + most
    return _ANYTHING


def _fits(number: int | None, bits: int) -> int | None:
    """A number, if it is the same as signed and unsigned and in any larger type."""
    return number if number is not None and 0 <= number < 1 << bits - 1 else None


def last_write(facts: FunctionFacts, line: Line, name: str) -> Line | None:
    """The instruction that last wrote a register, if it is close above and no label is in between."""
    key = line.registers[name]
    before: Line | None = line
    for _ in range(_NEAR) if key in facts.writes else ():
        before = facts.before(before) if before is not None else None
        if before is None:
            return None
        if any(write and other == key for _, other, write in facts.used(before)):
            return before
    return None


def reaching_write(facts: FunctionFacts, line: Line, name: str) -> Line | None:
    """The instruction whose result a register certainly is at another one; None if that is not known."""
    return only_write(facts, line, name) or last_write(facts, line, name)


def value_at(facts: FunctionFacts, line: Line, operand: Operand) -> object:
    """What is equal for operands that certainly have the same value at two instructions."""
    if not isinstance(operand, Name):
        return operand
    key = line.registers[operand.name]
    if key is None or key not in facts.rewritten:
        return operand
    before: Line | None = line
    for _ in range(_NEAR):
        first, before = before, facts.before(before) if before is not None else None
        if before is None:  # as it is where these instructions begin
            return key, id(first.item) if first is not None else 0
        if any(write and other == key for _, other, write in facts.used(before)):
            return key, id(before.item), "behind"
    return object()


def thread_numbers(facts: FunctionFacts, line: Line, name: str, depth: int = _DEPTH) -> list[int] | None:
    """A register's value in each thread of the largest CTA, if it is computed from %tid.x and constants."""
    if name == "%tid.x":
        return list(range(CTA_THREADS))
    made = only_write(facts, line, name) if depth else None
    if made is None or made.item.guard is not None or made.plan.op is None or not made.item.operands:
        return None
    operands, type_ = made.item.operands, made.plan.op.type or ""
    source = operands[1] if len(operands) > 1 else None
    if type_ not in ("u32", "s32", "b32") or not isinstance(source, Name) or operands[0] != Name(name):
        return None
    known = facts.thread_numbers
    key = id(made.item), depth
    if key not in known:
        known[key] = _numbers_of(facts, made, source, depth)
    return known[key]


def _numbers_of(facts: FunctionFacts, made: Line, source: Name, depth: int) -> list[int] | None:
    """What an instruction computes from the number of each thread."""
    family, operands = made.plan.family, made.item.operands
    numbers = thread_numbers(facts, made, source.name, depth - 1)
    if family == "mov" and len(operands) == 2:
        return numbers
    compute = _OF_THREADS.get(family)
    odd = any(word in made.item.opcode for word in (".hi", ".sat", ".wide", ".cc"))
    if numbers is None or compute is None or len(operands) != 3 or odd:
        return None
    by = operands[2].value if isinstance(operands[2], Immediate) else constant(facts, made, operands[2])
    if by is None:
        return None
    found = [compute(number, by & _WORD if family in ("and", "or", "xor") else by) for number in numbers]
    return found if all(0 <= number <= _WORD >> 1 for number in found) else None
