"""Calls that a walk follows into functions of the module: what they are given, and what they give back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir.nodes import Arguments, Function, Immediate, Name, Operand, Variable
from ptxtools.ir.symbols import RegisterKey
from ptxtools.isa.types import TYPES
from ptxtools.records import NamedTuple

from ..calls import callee_of
from ..facts import FunctionFacts, Line
from ..memory import access_bytes
from ..values import Value

if TYPE_CHECKING:
    from .computing import Op
    from .walker import Group, Walker

#: Functions that are called from functions, and so on, are followed so deep.
_DEPTH = 8
#: Instructions of all functions that a kernel calls: so many, and so many for each of its own.
_INSTRUCTIONS, _EACH = 500, 2
#: Functions of the runtime that neither order accesses of different threads nor end any of them.
_PLAIN = frozenset({"vprintf", "malloc", "free"})


class Callee(NamedTuple):
    """A function that is followed: its instructions are those of the program from `start` to `end`, the last one not
    included. written: its registers."""

    function: Function
    start: int
    end: int
    written: tuple[RegisterKey, ...]


class Frame(NamedTuple):
    """A call that has not returned. site: its place; outer: where the calling function ends."""

    site: int
    outer: int
    line: Line
    callee: Callee


def followed(facts: FunctionFacts) -> list[FunctionFacts]:
    """The facts of the functions that a kernel calls, and that these call, as far as they are followed."""
    module = facts.module
    if module is None or "call" not in facts.families:
        return []
    found: dict[int, FunctionFacts] = {}
    left = _INSTRUCTIONS + _EACH * len(facts.lines)
    mine = _variables(facts)
    waiting = [facts]
    for _ in range(_DEPTH):
        callers, waiting = waiting, []
        for caller in callers:
            for line in caller.of("call"):
                callee = callee_of(line)
                if callee is None or callee.body is None or id(callee) in found or callee is facts.function:
                    continue
                if len(callee.body.items) > left:
                    continue
                inner = module.of(callee)
                left -= len(inner.lines)
                if left >= 0 and mine.isdisjoint(_variables(inner)):
                    found[id(callee)] = inner
                    waiting.append(inner)
    return list(found.values())


def _variables(facts: FunctionFacts) -> set[str]:
    """Names of a function's own variables in memory."""
    return {item.name for item in facts.others if isinstance(item, Variable) and item.space in ("shared", "local")}


class Calls:
    """The calls of a walk. Parameters are kept as registers are: by the variable, and the bytes of it."""

    def __init__(self, walker: Walker) -> None:
        self.walker = walker
        self._pieces: dict[int, set[str]] = {}  # by the identity of a parameter's variable

    def enter(self, group: Group, op: Op, mask: int) -> bool:
        """Threads call a function: whether the walk follows them."""
        function = callee_of(op.line)
        callee = self.walker.program.callees.get(id(function))
        if callee is None or len(group.stack) >= _DEPTH or any(frame.callee is callee for frame in group.stack):
            return False
        caller = group
        if mask != group.mask:
            group = group.split(group.pc, mask)
            self.walker.running.append(group)
        for key in callee.written:
            group.registers.pop(key, None)
            group.missing.pop(key, None)
        given, _ = _lists(op.line)
        for formal, actual in zip(callee.function.params, given, strict=False):
            self._hand_over(group, op.line, actual, formal)
        group.stack = (*group.stack, Frame(group.pc, group.end, op.line, callee))
        group.pc, group.end = callee.start, callee.end
        if caller is not group:
            caller.pc += 1
        return True

    def leave(self, group: Group, mask: int) -> None:
        """Some threads of a group return."""
        if mask != group.mask:
            other = group.split(group.pc, mask)
            group.pc += 1
            self.walker.running.append(other)
            group = other
        frame = group.stack[-1]
        group.stack, group.pc, group.end = group.stack[:-1], frame.site + 1, frame.outer
        _, results = _lists(frame.line)
        for formal, actual in zip(frame.callee.function.returns, results, strict=False):
            symbol = _symbol(frame.line, actual)
            if symbol is not None and symbol.space == "reg":
                key = frame.line.registers[getattr(actual, "name", "")]
                found = group.registers.get((id(formal), _piece(0, _bytes(formal))))
                if key is not None and found is not None:
                    group.registers[key] = found
                    group.missing.pop(key, None)
            elif symbol is not None:
                self._copy(group, formal, symbol)

    def _hand_over(self, group: Group, line: Line, actual: Operand, formal: Variable) -> None:
        symbol = _symbol(line, actual)
        if symbol is not None and symbol.space != "reg":
            self._copy(group, symbol, formal)
            return
        self._forget(group, formal)
        value = self._operand(group, line, actual)
        if value is not None:
            self._keep(group, formal, _piece(0, _bytes(formal)), value, group.mask)

    def _operand(self, group: Group, line: Line, operand: Operand) -> Value | None:
        """A register or an integer; None for anything else."""
        key = line.registers[operand.name] if isinstance(operand, Name) else None
        if key is not None:
            return self.walker.value(group, key)
        number = isinstance(operand, Immediate) and operand.type[0] != "f"
        return Value((), operand.value) if number and isinstance(operand, Immediate) else None

    def _copy(self, group: Group, before: Variable, after: Variable) -> None:
        self._forget(group, after)
        for piece in self._pieces.get(id(before), ()):
            value = group.registers.get((id(before), piece))
            if value is not None:
                self._keep(group, after, piece, value, group.mask)

    def _forget(self, group: Group, variable: Variable) -> None:
        for piece in self._pieces.get(id(variable), ()):
            group.registers.pop((id(variable), piece), None)

    def _keep(self, group: Group, variable: Variable, piece: str, value: Value, mask: int) -> None:
        self._pieces.setdefault(id(variable), set()).add(piece)
        self.walker.put(group, (id(variable), piece), value, mask)

    def store(self, group: Group, op: Op, mask: int) -> None:
        """st.param: it prepares a call, or what a function gives back."""
        where = _place(op.line, 0)
        if where is None:
            return
        variable, offset = where
        if len(op.line.item.operands) != 2 or ".v" in op.opcode:
            return
        value = self._operand(group, op.line, op.line.item.operands[1])
        if value is not None:
            self._keep(group, variable, _piece(offset, access_bytes(op.line)), value, mask)

    def load(self, group: Group, op: Op) -> Value | None:
        """What ld.param of a parameter gives; None if that is not known."""
        where = _place(op.line, 1)
        if where is None:
            return None
        variable, offset = where
        return group.registers.get((id(variable), _piece(offset, access_bytes(op.line))))


def plain_call(line: Line) -> bool:
    """Whether a call is of a function that does not matter for what threads know of each other."""
    names = [operand.name for operand in line.item.operands if isinstance(operand, Name)]
    return bool(names) and names[0] in _PLAIN


def ends_threads(line: Line) -> bool:
    """Whether a call is of a function that does not return."""
    return any(isinstance(operand, Name) and operand.name == "__assertfail" for operand in line.item.operands)


def _piece(offset: int, size: int) -> str:
    return f"+{offset}:{size}"


def _bytes(variable: Variable) -> int:
    return TYPES[variable.type].bytes if variable.type in TYPES else 0


def _lists(line: Line) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
    """What a call gives to the function, and what it takes from it."""
    given: tuple[Operand, ...] = ()
    results: tuple[Operand, ...] = ()
    for place, operand in enumerate(line.item.operands):
        if isinstance(operand, Arguments):
            if place == 0 and len(line.item.operands) > 1:
                results = operand.items
            elif not given:
                given = operand.items
    return given, results


def _symbol(line: Line, operand: Operand) -> Variable | None:
    found = line.names.lookup(operand.name) if isinstance(operand, Name) else None
    return found if isinstance(found, Variable) else None


def _place(line: Line, operand: int) -> tuple[Variable, int] | None:
    """The parameter that an operand addresses, and the bytes behind its start."""
    address = line.item.operands[operand] if operand < len(line.item.operands) else None
    base = getattr(address, "base", None)
    symbol = _symbol(line, base) if isinstance(base, Name) else None
    return (symbol, getattr(address, "offset", 0)) if symbol is not None and symbol.space == "param" else None
