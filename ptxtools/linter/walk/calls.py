"""Calls that a walk follows into functions of the module: what they are given, and what they give back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir.nodes import Arguments, Function, Immediate, Name, Operand, Variable, Vector
from ptxtools.ir.symbols import RegisterKey
from ptxtools.isa.types import TYPES
from ptxtools.records import NamedTuple

from ..calls import callee_of
from ..facts import FunctionFacts, Line
from ..memory import access_bytes
from ..values import Value
from .computing import unknown

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
                named = callee_of(line)
                for callee in (named,) if named is not None else module.tabled:
                    if callee.body is None or id(callee) in found or callee is facts.function:
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
    """The calls of a walk. Parameters are kept as registers are: by the variable, and the bytes of it.

    undefined: registers that some threads have been handed without a value, as nobody has set the parameter.
    """

    def __init__(self, walker: Walker) -> None:
        self.walker = walker
        self.undefined: set[RegisterKey] = set()
        self._pieces: dict[int, dict[str, tuple[int, int]]] = {}  # by the identity of a parameter's variable
        self._handed: set[int] = set()  # variables of which all that is set is known

    def enter(self, group: Group, op: Op, mask: int) -> bool:
        """Threads call a function: whether the walk follows them."""
        walker, callees = self.walker, self._callees(group, op, mask)
        inside = [frame.callee for frame in group.stack]
        if not callees or len(inside) >= _DEPTH or any(one is callee for one in inside for callee, _ in callees):
            for result in _lists(op.line)[1]:
                self._lose(group, op.line, result)
            return False
        for callee, part in callees:
            entering = group
            if part != group.mask:
                entering = group.split(group.pc, part)
                walker.running.append(entering)
            self._begin(entering, op, callee)
            walker.begin_anew(callee)
        if entering is not group:
            group.pc += 1
        return True

    def _callees(self, group: Group, op: Op, mask: int) -> list[tuple[Callee, int]]:
        """The functions that threads call, with the threads; none if one of them is not followed."""
        found: dict[int, int] = {}
        function = callee_of(op.line)
        if function is not None:
            found[id(function)] = mask
        elif self.walker.program.tables:
            key = next((line_key for name in op.line.item.operands if isinstance(name, Name)
                        and (line_key := op.line.registers[name.name]) is not None), None)  # fmt: skip
            entries = self.walker.program.tables.entries(self.walker.value(group, key)) if key is not None else ()
            for thread, each in enumerate(entries):
                if mask >> thread & 1:
                    found[id(each)] = found.get(id(each), 0) | 1 << thread
            self.walker.assumed["table of functions"] = True  # that nobody has changed it
        callees = [(self.walker.program.callees.get(each), part) for each, part in found.items()]
        return [] if any(callee is None for callee, _ in callees) else callees  # type: ignore[return-value]

    def _begin(self, group: Group, op: Op, callee: Callee) -> None:
        """The threads of a group are at the begin of a function."""
        given, _ = _lists(op.line)
        for key in callee.written:
            group.registers.pop(key, None)
            group.missing.pop(key, None)
        for formal in callee.function.returns:
            self._forget(group, formal)
        for formal, actual in zip(callee.function.params, given, strict=False):
            self._hand_over(group, op.line, actual, formal)
        group.stack = (*group.stack, Frame(group.pc, group.end, op.line, callee))
        group.pc, group.end = callee.start, callee.end

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
                if key is not None:
                    self._pass(group, _whole(formal), key)
            elif symbol is not None:
                self._copy(group, formal, symbol)
        for formal in (*frame.callee.function.params, *frame.callee.function.returns):
            self._forget(group, formal)

    def _pass(self, group: Group, source: RegisterKey, into: RegisterKey) -> None:
        """Give a register what another one, or a parameter, has; no value to threads in which it has none."""
        found = group.registers.get(source)
        self.walker.put(group, into, found or unknown(True, "unset", source), group.mask)
        self.leaves(group, into, group.missing.get(source, 0) if found is not None else group.mask)

    def leaves(self, group: Group, key: RegisterKey, mask: int) -> None:
        """Some threads have been handed no value."""
        if mask & group.mask:
            group.missing[key] = group.missing.get(key, 0) | mask & group.mask
            self.undefined.add(key)

    def _lose(self, group: Group, line: Line, result: Operand) -> None:
        """A function that is not followed gives something back."""
        symbol = _symbol(line, result)
        if symbol is not None and symbol.space != "reg":
            self._forget(group, symbol)
            self._handed.discard(id(symbol))
        elif symbol is not None and (key := line.registers[getattr(result, "name", "")]) is not None:
            self.walker.put(group, key, unknown(True, "given", id(line.item), self.walker.moment), group.mask)

    def argument(self, group: Group, line: Line) -> Value | None:
        """What a function that is not followed is given first."""
        given, _ = _lists(line)
        symbol = _symbol(line, given[0]) if given else None
        if symbol is None or symbol.space == "reg":
            return self._operand(group, line, given[0]) if given else None
        return group.registers.get(_whole(symbol))

    def give(self, group: Group, line: Line, value: Value, mask: int) -> None:
        """A function that is not followed has a known result."""
        _, results = _lists(line)
        symbol = _symbol(line, results[0]) if results else None
        if symbol is not None and symbol.space != "reg":
            self._keep(group, symbol, 0, _bytes(symbol), value, mask)
        elif symbol is not None and (key := line.registers[getattr(results[0], "name", "")]) is not None:
            self.walker.put(group, key, value, mask)

    def _hand_over(self, group: Group, line: Line, actual: Operand, formal: Variable) -> None:
        symbol = _symbol(line, actual)
        if symbol is not None and symbol.space != "reg":
            self._copy(group, symbol, formal)
            return
        self._forget(group, formal)
        key = line.registers[actual.name] if isinstance(actual, Name) else None
        if formal.space == "reg":
            into = _whole(formal)
            self.walker.put(group, into, self._operand(group, line, actual), group.mask)
        else:
            self._handed.add(id(formal))
            into = self._keep(group, formal, 0, _bytes(formal), self._operand(group, line, actual), group.mask)
        if key is not None:
            self.leaves(group, into, group.missing.get(key, 0))

    def _operand(self, group: Group, line: Line, operand: Operand) -> Value:
        """A register or an integer; anything else is unknown."""
        key = line.registers[operand.name] if isinstance(operand, Name) else None
        if key is not None:
            return self.walker.value(group, key)
        number = isinstance(operand, Immediate) and operand.type[0] != "f"
        if number and isinstance(operand, Immediate):
            return Value((), operand.value)
        return unknown(True, "operand", id(operand), self.walker.moment)

    def _copy(self, group: Group, before: Variable, after: Variable) -> None:
        self._forget(group, after)
        self._handed.add(id(after))
        for piece, (offset, size) in self._pieces.get(id(before), {}).items():
            value = group.registers.get((id(before), piece))
            if value is not None:
                into = self._keep(group, after, offset, size, value, group.mask)
                self.leaves(group, into, group.missing.get((id(before), piece), 0))

    def _forget(self, group: Group, variable: Variable) -> None:
        for piece in self._pieces.get(id(variable), ()):
            group.registers.pop((id(variable), piece), None)
            group.missing.pop((id(variable), piece), None)

    def _keep(self, group: Group, variable: Variable, offset: int, size: int, value: Value, mask: int) -> RegisterKey:
        key = _piece(variable, offset, size)
        self._pieces.setdefault(id(variable), {})[key[1]] = offset, size
        self.walker.put(group, key, value, mask)
        return key

    def store(self, group: Group, op: Op, mask: int) -> None:
        """st.param: it prepares a call, or what a function gives back."""
        where = _place(op.line, 0)
        if where is None or len(op.line.item.operands) != 2:
            return
        variable, offset = where
        stored = op.line.item.operands[1]
        parts = stored.items if isinstance(stored, Vector) else (stored,)
        size = access_bytes(op.line) // len(parts)
        for place, part in enumerate(parts):
            into = self._keep(group, variable, offset + place * size, size, self._operand(group, op.line, part), mask)
            key = op.line.registers[part.name] if isinstance(part, Name) else None
            if key is not None and group.missing:
                self.leaves(group, into, group.missing.get(key, 0) & mask)

    def load(self, group: Group, op: Op) -> Value | None:
        """What ld.param of a parameter gives; None if that is not known."""
        where = _place(op.line, 1)
        if where is None:
            return None
        variable, offset = where
        return group.registers.get(_piece(variable, offset, access_bytes(op.line)))

    def look_at_unset(self, group: Group, op: Op, mask: int) -> None:
        """ld.param has given registers to some threads: whether nobody has set what they are."""
        where = _place(op.line, 1)
        if where is None or id(where[0]) not in self._handed:
            return
        variable, offset = where
        size = access_bytes(op.line) // max(1, len(op.into))
        for place, into in enumerate(op.into):
            first = offset + place * size
            key = _piece(variable, first, size)
            if key in group.registers:
                self.leaves(group, into, group.missing.get(key, 0) & mask)
            elif not any(
                (id(variable), piece) in group.registers and start < first + size and first < start + length
                for piece, (start, length) in self._pieces.get(id(variable), {}).items()
            ):
                self.leaves(group, into, mask)


def plain_call(line: Line) -> bool:
    """Whether a call is of a function that does not matter for what threads know of each other."""
    names = [operand.name for operand in line.item.operands if isinstance(operand, Name)]
    return bool(names) and names[0] in _PLAIN


def ends_threads(line: Line) -> bool:
    """Whether a call is of a function that does not return."""
    return any(isinstance(operand, Name) and operand.name == "__assertfail" for operand in line.item.operands)


def _piece(variable: Variable, offset: int, size: int) -> RegisterKey:
    return id(variable), f"+{offset}:{size}"


def _whole(formal: Variable) -> RegisterKey:
    """A parameter in a register, or the whole of one in memory."""
    return (id(formal), formal.name) if formal.space == "reg" else _piece(formal, 0, _bytes(formal))


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
