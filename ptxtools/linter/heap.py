"""The device's heap (malloc and free, 10.1): what the pointers of a run of instructions are."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeAlias

from ptxtools.ir.nodes import Address, Arguments, Immediate, Name, Operand
from ptxtools.records import NamedTuple

from .accesses import accessed_bytes, accesses_of
from .facts import Line
from .inflight import accessed


class Block:
    """A block of the heap. whole: whether malloc gave it in this run, so that its begin is known; size: its bytes,
    None if unknown; freed: the call that gave it back."""

    __slots__ = ("freed", "size", "whole")

    def __init__(self, whole: bool, size: int | None = None) -> None:
        self.whole = whole
        self.size = size
        self.freed: Line | None = None


class Pointer(NamedTuple):
    """`offset` bytes behind the begin of a block."""

    block: Block
    offset: int


class Use(NamedTuple):
    """A pointer that an instruction is handed. operand: its index; size: bytes accessed, None for a call of free."""

    line: Line
    operand: int
    pointer: Pointer
    size: int | None


#: What a register or a parameter of a call holds: by the declaration's identity and its name.
_Known: TypeAlias = dict[tuple[int, str], Pointer | int]

_MOST = (1 << 64) - 1
_COPIES = ("mov.u64", "mov.b64", "mov.s64", "cvta.global.u64", "cvta.to.global.u64")
_SUMS = ("add.u64", "add.s64")
#: State spaces that do not reach the heap.
_ELSEWHERE = ("param", "shared", "local", "const")


def uses_of(run: list[Line], functions: Collection[str]) -> Iterator[Use]:
    """Uses of pointers in a run whose instructions are executed one behind the other, in this order.

    functions: those of malloc and free that the runtime provides. A block counts as freed behind the use that frees it;
    what a guarded instruction does is not known.
    """
    known: _Known = {}
    for line in run:
        if line.item.guard is not None:
            _forget(line, known)
        elif line.plan.family == "call":
            yield from _call(line, known, functions)
        else:
            yield from _accesses(line, known)
            _step(line, known)


def _key(name: str, line: Line) -> tuple[int, str]:
    return line.registers[name] or (id(line.names.lookup(name)), name)


def _value(operand: Operand, line: Line, known: _Known) -> Pointer | int | None:
    if isinstance(operand, Immediate):
        return operand.value
    return known.get(_key(operand.name, line)) if isinstance(operand, Name) else None


def _forget(line: Line, known: _Known) -> None:
    for name, write in accessed(line):
        if write:
            known.pop(_key(name, line), None)
    if line.item.opcode.startswith("st.param"):
        target = line.item.operands[0]
        if isinstance(target, Address) and isinstance(target.base, Name):
            known.pop(_key(target.base.name, line), None)


def _accesses(line: Line, known: _Known) -> Iterator[Use]:
    for access in accesses_of(line):
        pointer = known.get((id(access.symbol), access.name))
        if isinstance(pointer, Pointer) and not any(access.op.has(space) for space in _ELSEWHERE):
            offset = pointer.offset + access.offset
            yield Use(line, access.operand, Pointer(pointer.block, offset), accessed_bytes(access.op))


def _step(line: Line, known: _Known) -> None:
    """What is known behind an instruction that is no call."""
    item = line.item
    operands, into, value = item.operands, None, None
    if item.opcode in _COPIES and len(operands) == 2:
        into, value = operands[0], _value(operands[1], line, known)
    elif item.opcode in _SUMS and len(operands) == 3:
        pointer, step = _value(operands[1], line, known), _value(operands[2], line, known)
        into = operands[0]
        if isinstance(pointer, Pointer) and isinstance(step, int):
            value = Pointer(pointer.block, pointer.offset + step)
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


def _pointer(operand: Operand, line: Line, known: _Known) -> Pointer | int | None:
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
        size = value & _MOST if isinstance(value, int) else None
        known[_key(lists[0][0].name, line)] = Pointer(Block(True, size), 0)
    elif name == "free" and isinstance(value, Pointer):
        yield Use(line, len(operands) - 1, value, None)
        value.block.freed = value.block.freed or line
