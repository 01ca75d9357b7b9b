"""Which registers hold a value that is still needed, and which instructions read and write them.

Registers are numbered densely within a function, predicates included; a vector register is one register. Sets are
Python integers used as bit sets. A write under a guard, or to one component of a vector, keeps the other lanes or
components: it ends no life.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from .cfg import ControlFlow, reverse_postorder
from .nodes import Address, Arguments, Element, Instruction, Name, Negated, Operand, Pair, Variable, Vector
from .symbols import Names


@dataclass(slots=True)
class Access:
    """Register numbers that one instruction reads (guard included) and writes; `kills`: writes to all of a register."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    kills: tuple[int, ...]


@dataclass(slots=True)
class Registers:
    """The registers of a function by number: their names and declarations."""

    names: list[str] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    _numbers: dict[tuple[int, str], int] = field(default_factory=dict)

    def number(self, name: str, names: Names) -> int | None:
        """Number of the register that `name`, with or without a component, stands for; None for anything else."""
        symbol = names.lookup(name)
        if symbol is None and "." in name:
            name = name.rsplit(".", 1)[0]
            symbol = names.lookup(name)
        if not isinstance(symbol, Variable) or symbol.space != "reg":
            return None
        key = (id(symbol), name)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.names)
            self.names.append(name)
            self.variables.append(symbol)
        return number


@dataclass(slots=True)
class Liveness:
    """Per block: registers that are live at its start and at its end, as bit sets, and each instruction's accesses."""

    flow: ControlFlow
    registers: Registers
    accesses: list[list[Access]]
    live_in: list[int]
    live_out: list[int]

    def after_each(self, block: int) -> list[int]:
        """Live set after each instruction of a block."""
        live = self.live_out[block]
        sets: list[int] = []
        for access in reversed(self.accesses[block]):
            sets.append(live)
            for register in access.kills:
                live &= ~(1 << register)
            for register in access.reads:
                live |= 1 << register
        sets.reverse()
        return sets


def solve(
    successors: Sequence[Sequence[int]], uses: Sequence[int], kills: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Backward data flow: live_in = uses | (live_out & ~kills), live_out = union of the successors' live_in.

    `uses` are values read before any kill of the same block. Blocks that nothing reaches are solved too.
    """
    count = len(successors)
    predecessors: list[list[int]] = [[] for _ in range(count)]
    for block, following in enumerate(successors):
        for successor in following:
            predecessors[successor].append(block)
    live_in, live_out = list(uses), [0] * count
    # Popped from the end: a block comes after its successors. Blocks that nothing reaches go last.
    order = reverse_postorder(successors)
    reached = set(order)
    waiting = [block for block in range(count) if block not in reached] + order
    queued = bytearray(b"\1" * count)
    while waiting:
        block = waiting.pop()
        queued[block] = 0
        out = 0
        for successor in successors[block]:
            out |= live_in[successor]
        live_out[block] = out
        new = uses[block] | (out & ~kills[block])
        if new != live_in[block]:
            live_in[block] = new
            for predecessor in predecessors[block]:
                if not queued[predecessor]:
                    queued[predecessor] = 1
                    waiting.append(predecessor)
    return live_in, live_out


def liveness(flow: ControlFlow) -> Liveness:
    """Analyse a function. Raises `isa.OpcodeError` when an opcode has no form."""
    registers = Registers()
    accesses: list[list[Access]] = []
    uses: list[int] = []
    kills: list[int] = []
    for block in flow.blocks:
        own = [access(i, names, registers) for i, names in zip(block.instructions, block.scopes, strict=True)]
        read = killed = 0
        for item in own:
            for register in item.reads:
                if not killed >> register & 1:
                    read |= 1 << register
            for register in item.kills:
                killed |= 1 << register
        accesses.append(own)
        uses.append(read)
        kills.append(killed)
    live_in, live_out = solve(flow.successors, uses, kills)
    return Liveness(flow, registers, accesses, live_in, live_out)


def access(instruction: Instruction, names: Names, registers: Registers) -> Access:
    """What one instruction reads and writes."""
    reads: list[int] = []
    writes: list[int] = []
    kills: list[int] = []
    for operand, writing in zip(instruction.operands, _destinations(instruction), strict=False):
        for name, inside_address in _names(operand):
            number = registers.number(name, names)
            if number is None:
                continue
            if writing and not inside_address:
                writes.append(number)
                if registers.names[number] == name:
                    kills.append(number)
            else:
                reads.append(number)
    guard = instruction.guard
    if guard is not None:
        number = registers.number(guard.name, names)
        if number is not None:
            reads.append(number)
        kills = []
    return Access(tuple(reads), tuple(writes), tuple(kills))


def _destinations(instruction: Instruction) -> list[bool]:
    """For each operand whether the instruction writes the registers in it."""
    operands = instruction.operands
    if instruction.opcode.startswith("call"):
        # The operands of a call are not positional: return values come first only when there are some (9.7.13.5).
        first = len(operands) > 1 and isinstance(operands[0], Arguments)
        return [first and place == 0 for place in range(len(operands))]
    roles = _roles(instruction.opcode)
    return [place < len(roles) and roles[place] for place in range(len(operands))]


@lru_cache(maxsize=4096)
def _roles(opcode: str) -> tuple[bool, ...]:
    from ptxtools.isa import resolve

    return tuple(operand.role == "dst" for operand in resolve(opcode).operands)


def _names(operand: Operand) -> Iterator[tuple[str, bool]]:
    """Each identifier in an operand, and whether it stands inside an address."""
    kind = type(operand)
    if kind is Name:
        yield operand.name, False  # type: ignore[union-attr]
    elif isinstance(operand, (Vector, Arguments)):
        for item in operand.items:
            yield from _names(item)
    elif isinstance(operand, Address):
        if isinstance(operand.base, Name):
            yield operand.base.name, True
        elif isinstance(operand.base, Element) and operand.base.register is not None:
            yield operand.base.register, True
        for item in operand.extra:
            for name, _ in _names(item):
                yield name, True
    elif isinstance(operand, Element) and operand.register is not None:
        yield operand.register, True
    elif isinstance(operand, Negated):
        yield from _names(operand.operand)
    elif isinstance(operand, Pair):
        yield from _names(operand.first)
        yield from _names(operand.second)
