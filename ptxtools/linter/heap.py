"""Memory that a thread asks for, of the heap (malloc and free, 10.1) or the stack (alloca, 9.7.17): what the pointers
of a run of instructions are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from ptxtools.ir.nodes import Address, Arguments, Immediate, Name, Operand
from ptxtools.ir.symbols import RegisterKey
from ptxtools.records import NamedTuple

from .accesses import accessed_bytes, accesses_of
from .constants import bounds
from .facts import ENDING, FunctionFacts, Line
from .inflight import accessed


class Block:
    """A block of memory. whole: whether it was given in this run, so that its begin is known; size: its bytes, None if
    unknown; stack: whether it is the stack's; freed: the instruction that gave it back."""

    __slots__ = ("freed", "size", "stack", "whole")

    def __init__(self, whole: bool, size: int | None = None, stack: bool = False) -> None:
        self.whole = whole
        self.size = size
        self.stack = stack
        self.freed: Line | None = None


class Pointer(NamedTuple):
    """`offset` bytes behind the begin of a block, or up to `spread` more."""

    block: Block
    offset: int
    spread: int = 0


class Numbers(NamedTuple):
    """A number between two, both included."""

    least: int
    most: int


class Mark(NamedTuple):
    """What stacksave gives: how many blocks of the stack the run had then."""

    blocks: int


class Use(NamedTuple):
    """A pointer that an instruction is handed. operand: its index; size: bytes accessed, None for a call of free."""

    line: Line
    operand: int
    pointer: Pointer
    size: int | None


#: What a register or a parameter of a call holds: by the declaration's identity and its name.
_Held: TypeAlias = Pointer | Numbers | Mark
_Known: TypeAlias = dict[tuple[int, str], _Held]

#: Pointers that are stored in blocks, by the block and the offset.
_Kept: TypeAlias = "dict[tuple[Block, int], Pointer]"

_MOST = (1 << 64) - 1
_STACK = ("alloca", "stacksave", "stackrestore")
#: Instructions behind which a block holds what it held before.
_QUIET = frozenset({
    "mov", "add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "cvt", "cvta", "setp", "selp", "ld", *_STACK,
})  # fmt: skip
_WIDE = frozenset({"u64", "b64", "s64"})
#: Accesses by which threads tell others of what they store, or learn of it.
_TELLING = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})
_COPIES = ("mov.u64", "mov.b64", "mov.s64", "cvta.global.u64", "cvta.to.global.u64", "cvta.local.u64",
           "cvta.to.local.u64")  # fmt: skip
_SUMS = ("add.u64", "add.s64")
#: How a number of 32 bits becomes one of 64, with the number of operands.
_WIDENED = {"cvt.u64.u32": 2, "mul.wide.u32": 3}
#: State spaces that do not reach the heap, and the stack.
_ELSEWHERE = {False: ("param", "shared", "local", "const"), True: ("param", "shared", "global", "const")}


def nulls_of(facts: FunctionFacts) -> dict[int, RegisterKey]:
    """The registers that are null from an instruction on to which only a branch leads that has compared them with it,
    by its identity."""
    lines, ways = facts.lines, Counter(facts.jumps.values())
    ways.update(to for table in facts.tables.values() for to in table)
    ways.update(at for at, line in enumerate(lines[:-1], 1) if not _ends(line))
    found = {}
    for at, line in enumerate(lines):
        to = facts.jumps.get(id(line.item))
        guard = line.item.guard
        key = line.registers[guard.name] if guard is not None and to is not None else None
        test = facts.writes.get(key) if key is not None and key not in facts.rewritten else None
        if test is None or guard is None or test.plan.op is None or len(test.item.operands) != 3:
            continue
        _, pointer, zero = test.item.operands
        words = test.item.opcode.split(".")
        if words[0] != "setp" or words[1] not in ("eq", "ne") or test.item.guard is not None:
            continue
        tested = test.registers[pointer.name] if isinstance(pointer, Name) else None
        if tested is None or tested in facts.rewritten or not isinstance(zero, Immediate) or zero.value:
            continue
        null = to if (words[1] == "eq") != guard.negated else at + 1
        if null is not None and null < len(lines) and ways[null] == 1:
            found[id(lines[null].item)] = tested
    return found


def _ends(line: Line) -> bool:
    return line.item.guard is None and line.plan.family in ENDING


def uses_of(
    facts: FunctionFacts,
    run: list[Line],
    functions: Collection[str],
    nulls: Mapping[int, RegisterKey] = MappingProxyType({}),
) -> Iterator[Use]:
    """Uses of pointers in a run whose instructions are executed one behind the other, in this order.

    functions: those of malloc and free that the runtime provides; nulls: as `nulls_of`. A block counts as
    freed behind the use that frees it; what a guarded instruction does is not known.
    """
    known: _Known = {}
    stack: list[Block] = []
    kept: _Kept = {}
    for line in run:
        if id(line.item) in nulls:
            known[nulls[id(line.item)]] = Numbers(0, 0)
        pointer = _keep(line, known, kept, functions)
        if line.item.guard is not None:
            _forget(line, known)
        elif line.plan.family == "call":
            yield from _call(line, known, functions)
        elif line.plan.family in _STACK:
            _stack(line, known, stack)
        else:
            yield from _accesses(line, known)
            _step(facts, line, known)
            if pointer is not None and isinstance(line.item.operands[0], Name):
                known[_key(line.item.operands[0].name, line)] = pointer


def _keep(line: Line, known: _Known, kept: _Kept, functions: Collection[str]) -> Pointer | None:
    """Note what an instruction does to pointers in blocks; the one that it loads, if any."""
    family, opcode = line.plan.family, line.item.opcode
    words = opcode.split(".")
    if family == "call":
        if not any(isinstance(operand, Name) and operand.name in functions for operand in line.item.operands[:2]):
            kept.clear()
        return None
    if family not in ("ld", "st") or any(space in words for space in ("param", "shared", "shared::cta")):
        if family not in _QUIET and family != "st":
            kept.clear()  # others may have been told
        return None
    if not _TELLING.isdisjoint(words):
        kept.clear()
    access = next(iter(accesses_of(line)), None)
    pointer = known.get((id(access.symbol), access.name)) if access is not None else None
    exact = isinstance(pointer, Pointer) and pointer.block.whole and not pointer.spread
    if access is None or not exact or not isinstance(pointer, Pointer):
        if family == "st":
            kept.clear()
        return None
    block, offset = pointer.block, pointer.offset + access.offset
    plain = words[-1] in _WIDE and not {"v2", "v4"} & set(words) and line.item.guard is None
    if family == "ld":
        return kept.get((block, offset)) if plain else None
    size = accessed_bytes(access.op)
    if not size:
        kept.clear()
    for each in range(offset - 7, offset + size):
        kept.pop((block, each), None)
    value = _value(line.item.operands[1], line, known) if plain else None
    if isinstance(value, Pointer):
        kept[block, offset] = value
    return None


def _key(name: str, line: Line) -> tuple[int, str]:
    return line.registers[name] or (id(line.names.lookup(name)), name)


def _value(operand: Operand, line: Line, known: _Known) -> _Held | None:
    if isinstance(operand, Immediate):
        return Numbers(operand.value, operand.value)
    return known.get(_key(operand.name, line)) if isinstance(operand, Name) else None


def _forget(line: Line, known: _Known) -> None:
    for name, write in accessed(line):
        if write:
            known.pop(_key(name, line), None)
    if line.item.opcode.startswith("st.param") and line.item.operands:
        target = line.item.operands[0]
        if isinstance(target, Address) and isinstance(target.base, Name):
            known.pop(_key(target.base.name, line), None)


def _accesses(line: Line, known: _Known) -> Iterator[Use]:
    for access in accesses_of(line):
        pointer = known.get((id(access.symbol), access.name))
        if not isinstance(pointer, Pointer):
            continue
        if not any(access.op.has(space) for space in _ELSEWHERE[pointer.block.stack]):
            moved = pointer._replace(offset=pointer.offset + access.offset)
            yield Use(line, access.operand, moved, accessed_bytes(access.op))


def _stack(line: Line, known: _Known, stack: list[Block]) -> None:
    """alloca, stacksave and stackrestore."""
    operands = line.item.operands
    value = _value(operands[-1 if line.plan.family == "stackrestore" else min(1, len(operands) - 1)], line, known)
    if line.plan.family == "stackrestore":
        kept = value.blocks if isinstance(value, Mark) else 0  # else it was saved before the run began
        for block in stack[kept:]:
            block.freed = block.freed or line
        del stack[kept:]
        return
    _forget(line, known)
    into = operands[0]
    if not isinstance(into, Name):
        return
    if line.plan.family == "stacksave":
        known[_key(into.name, line)] = Mark(len(stack))
        return
    block = Block(True, _exact(value), True)
    stack.append(block)
    known[_key(into.name, line)] = Pointer(block, 0)


def _exact(value: _Held | None) -> int | None:
    return value.least & _MOST if isinstance(value, Numbers) and value.least == value.most else None


def _step(facts: FunctionFacts, line: Line, known: _Known) -> None:
    """What is known behind an instruction that is no call."""
    item = line.item
    operands, into = item.operands, None
    value: _Held | None = None
    if item.opcode in _COPIES and len(operands) == 2:
        into, value = operands[0], _value(operands[1], line, known)
    elif item.opcode in _SUMS and len(operands) == 3:
        pointer, step = _value(operands[1], line, known), _value(operands[2], line, known)
        into = operands[0]
        if isinstance(pointer, Pointer) and isinstance(step, Numbers):
            spread = pointer.spread + step.most - step.least
            value = Pointer(pointer.block, pointer.offset + step.least, spread)
    elif item.opcode in _WIDENED and len(operands) == _WIDENED[item.opcode]:
        factor = operands[2] if len(operands) > 2 else Immediate(1, "u64")
        into = operands[0]
        if isinstance(factor, Immediate) and factor.value >= 0:
            value = Numbers(*(each * factor.value for each in bounds(facts, line, operands[1])))
    elif item.opcode == "shl.b64" and len(operands) == 3:
        number, places = _value(operands[1], line, known), operands[2]
        into = operands[0]
        by = places.value if isinstance(places, Immediate) else -1
        if isinstance(number, Numbers) and 0 <= by < _MOST.bit_length() and number.most << by <= _MOST:
            value = Numbers(number.least << by, number.most << by)
    elif item.opcode.startswith("st.param") and len(operands) == 2:
        into, value = _parameter(operands[0]), _pointer(operands[1], line, known)
    elif item.opcode.startswith("ld.param") and len(operands) == 2:
        source = _parameter(operands[1])
        into, value = operands[0], None if source is None else _value(source, line, known)
    _forget(line, known)
    if isinstance(into, Name) and value is not None:
        known[_key(into.name, line)] = value


def _parameter(operand: Operand) -> Name | None:
    """The parameter that an address names, itself or at offset 0."""
    if isinstance(operand, Address) and isinstance(operand.base, Name) and not operand.offset:
        return operand.base
    return None


def _pointer(operand: Operand, line: Line, known: _Known) -> _Held | None:
    """What is handed to a call: a register of which nothing is known may be a pointer, and is the same afterwards."""
    value = _value(operand, line, known)
    if value is None and isinstance(operand, Name) and (key := line.registers[operand.name]) is not None:
        value = known[key] = Pointer(Block(False), 0)
    return value


def _call(line: Line, known: _Known, functions: Collection[str]) -> Iterator[Use]:
    operands = line.item.operands
    name = next((o.name for o in operands[:2] if isinstance(o, Name)), "")
    lists = [o.items for o in operands if isinstance(o, Arguments)]
    _forget(line, known)
    if name not in functions or not lists or len(lists[-1]) != 1:
        return
    value = _value(lists[-1][0], line, known)
    if name == "malloc" and len(lists) == 2 and isinstance(lists[0][0], Name):
        known[_key(lists[0][0].name, line)] = Pointer(Block(True, _exact(value)), 0)
    elif name == "free" and isinstance(value, Pointer):
        yield Use(line, len(operands) - 1, value, None)
        value.block.freed = value.block.freed or line
