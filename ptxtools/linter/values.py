"""What registers hold, thread by thread: a sum of unknown uniform values, and a number for each of 64 threads.

The 64 are the threads of two warps that differ in %tid.x alone. A value that is not such a sum is an unknown one of its
own, so that equal sums are equal values, and differences of sums with equal unknowns are known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from ptxtools.ir.nodes import Address, Element, Function, Immediate, Label, Name, Operand, Pair, SymbolOffset, Variable
from ptxtools.ir.symbols import RegisterKey
from ptxtools.isa.types import TYPES
from ptxtools.records import NamedTuple

from .facts import ENDING, FunctionFacts, Line

#: How many threads are looked at, and how many of them make a warp.
THREADS, WARP = 64, 32
#: Unknown values by name, with their factors: "&name" is a variable's address, "%ctaid.x" a special register,
#: "name" the value of a kernel's parameter, "#…" the result of an instruction.
Terms: TypeAlias = tuple[tuple[str, int], ...]

#: Unknowns in a sum.
_MOST_TERMS = 16
_SIGN = 1 << 31
#: Bits of the registers that addresses are computed in, at least.
_NARROW = 32
_SIGN64 = 1 << 63
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "lo": operator.lt, "le": operator.le, "ls": operator.le,
    "gt": operator.gt, "hi": operator.gt, "ge": operator.ge, "hs": operator.ge,
}  # fmt: skip
_BITWISE: dict[str, Callable[[int, int], int]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
#: How the names begin of what may differ between the threads of a CTA.
DIFFERS = ("%tid", "%laneid", "%lanemask", "%clock", "%globaltimer", "#")

#: How the names of unknowns begin that several instructions make, but which all threads have in common at any time.
COMMON = "#+"


class Value(NamedTuple):
    """terms: the unknown part; each: the number added to it, one for all threads or 64; a range, where they are one."""

    terms: Terms
    each: int | range | tuple[int, ...]

    @property
    def numbers(self) -> range | tuple[int, ...]:
        return (self.each,) * THREADS if isinstance(self.each, int) else self.each

    @property
    def constant(self) -> int | None:
        """The number that all threads have."""
        return self.each if not self.terms and isinstance(self.each, int) else None

    @property
    def variable(self) -> str | None:
        """The variable that an address lies in, if nothing else is unknown."""
        return self.terms[0][0][1:] if len(self.terms) == 1 and self.terms[0][0][0] == "&" else None

    @property
    def uniform(self) -> bool:
        """Whether all threads of a CTA certainly have the same."""
        return isinstance(self.each, int) and not any(name.startswith(DIFFERS) for name, _ in self.terms)


def plus(a: Value, b: Value, factor: int = 1) -> Value:
    """a + factor * b."""
    mine, other = a.each, b.each
    if not b.terms:
        terms = a.terms
        if type(other) is int:
            shift = factor * other
            if type(mine) is int:
                return Value(terms, mine + shift)
            if type(mine) is range:
                return Value(terms, range(mine.start + shift, mine.stop + shift, mine.step))
            if type(mine) is tuple:
                return Value(terms, tuple([number + shift for number in mine]))
    elif not a.terms and factor == 1:
        terms = b.terms
    else:
        terms = _together(a.terms, b.terms, factor)
    if isinstance(mine, tuple) or isinstance(other, tuple):
        second = b.numbers if factor == 1 else [factor * number for number in b.numbers]
        return Value(terms, shortest(map(operator.add, a.numbers, second)))
    first, step = (mine, 0) if isinstance(mine, int) else (mine.start, mine.step)
    if isinstance(other, int):
        return Value(terms, _line(first + factor * other, step))
    return Value(terms, _line(first + factor * other.start, step + factor * other.step))


def _together(a: Terms, b: Terms, factor: int) -> Terms:
    """a + factor * b, where b is something."""
    if len(a) < 2 and len(b) == 1:  # the common cases
        ((name, count),) = b
        count *= factor
        if not a:
            return ((name, count),) if count else ()
        ((other, known),) = a
        if other != name:
            if not (count and known):
                return tuple([each for each in (a[0], (name, count)) if each[1]])
            return (a[0], (name, count)) if other < name else ((name, count), a[0])
        return ((name, known + count),) if known + count else ()
    found = dict(a)
    for name, count in b:
        found[name] = found.get(name, 0) + factor * count
    return tuple(sorted([each for each in found.items() if each[1]]))


def _line(first: int, step: int) -> int | range:
    return range(first, first + THREADS * step, step) if step else first


def shortest(numbers: Iterator[int]) -> int | range | tuple[int, ...]:
    """64 numbers as what they are: equal numbers are represented alike."""
    found = tuple(numbers)
    first, step = found[0], found[1] - found[0]
    if found[-1] - first != (THREADS - 1) * step:
        return found
    straight = _line(first, step)
    if isinstance(straight, int):
        return straight if found.count(straight) == THREADS else found
    return straight if found == tuple(straight) else found


_THREAD = Value((), range(THREADS))
_LANE = Value((), tuple(number % WARP for number in range(THREADS)))
ZERO = Value((), 0)


class Reader:
    """Reads the values of registers along one run of instructions.

    A register that one instruction writes is its known value, or an unknown of its own; but if the run read it before
    that instruction, as a loop does, it is a new unknown behind it, and all that follows is computed anew.
    """

    def __init__(
        self, facts: FunctionFacts, known: Mapping[RegisterKey, Value], begun: Mapping[RegisterKey, Value] | None = None
    ) -> None:
        self._facts, self._known = facts, known
        self._now: dict[RegisterKey, Value | Line] = dict(begun or {})  # a line: what that one gives
        self._read: set[str] = set()
        self._renewed = False
        self._sources: list[Value] | None = None  # of the last result

    def now(self, key: RegisterKey) -> Value | None:
        """The value that the run has written to a register, or begins with; None if there is none."""
        found = self._now.get(key)
        if type(found) is Line:
            term = f"#{id(found.item)}{key[1]}"
            self._facts.unknown_terms[term] = key
            found = self._now[key] = Value(((term, 1),), 0)
        return found  # type: ignore[return-value]

    def put(self, key: RegisterKey, value: Value | Line) -> None:
        """Let a register hold a value, or what an instruction gives."""
        self._now[key] = value

    def of_name(self, name: str, line: Line) -> Value:
        """The value of a register, special register or variable's address, before an instruction."""
        key = line.registers[name]
        if key is not None:
            found = self.now(key)
            if found is None:
                found = self._known.get(key) or _of_register(self._facts, key)
                for term, _ in found.terms:
                    self._read.add(term)
            return found
        if name == "%tid.x":
            return _THREAD
        if name == "%laneid":
            return _LANE
        return Value(((name if name[0] == "%" else f"&{name}", 1),), 0)

    def of(self, operand: Operand, line: Line) -> Value | None:
        """The value of a source operand; None if it has several parts."""
        if type(operand) is Name:
            return self.of_name(operand.name, line)
        if type(operand) is Immediate:
            return None if operand.type[0] == "f" else Value((), operand.value)
        if isinstance(operand, SymbolOffset):
            return Value(((f"&{operand.name}", 1),), operand.offset)
        return None

    def address(self, operand: Operand, line: Line) -> Value | None:
        """What an address operand comes to; None if it has several parts."""
        if isinstance(operand, Address) and not operand.extra:
            if isinstance(operand.base, Immediate):
                return Value((), operand.base.value + operand.offset)
            if isinstance(operand.base, Name):
                base = self.of_name(operand.base.name, line)
                return plus(base, Value((), operand.offset)) if operand.offset else base
            operand = operand.base
        if isinstance(operand, Element) and operand.register is None:
            symbol = line.names.lookup(operand.name)
            if isinstance(symbol, Variable) and symbol.type in TYPES:
                return Value(((f"&{operand.name}", 1),), operand.index * TYPES[symbol.type].bytes * symbol.vector)
        return None

    def holds(self, line: Line) -> tuple[bool, ...] | None:
        """In which threads the guard of an instruction holds; None if that is not known."""
        guard = line.item.guard
        if guard is None:
            return (True,) * THREADS
        value = self.of_name(guard.name, line)
        return None if value.terms else tuple(bool(number) != guard.negated for number in value.numbers)

    def step(self, line: Line) -> None:
        """Note what an instruction writes."""
        item, writes = line.item, line.plan.writes
        if line.plan.positional and (not writes or not writes[0] or not item.operands):
            return
        into = item.operands[0] if line.plan.positional else None
        if type(into) is Name:
            key = line.registers[into.name]
            if key is not None:
                self._write(key, line, "." not in into.name)
            return
        rewritten = self._facts.rewritten
        for _, key, write in self._facts.used(line):
            if write and key is not None:
                if key in rewritten:
                    self._now[key] = line
                else:
                    self._write(key, line, False)

    def _write(self, key: RegisterKey, line: Line, single: bool) -> None:
        if key not in self._facts.rewritten and not self._renewed and line.item.guard is None:
            if key in self._known:
                return
            unknown = self._facts.unknowns.get(key)
            if unknown is None or unknown.terms[0][0] not in self._read:
                found = self._result(line) if single and line.plan.family in _RESULTS else None
                if found is not None:
                    self._now[key] = found
                return
            self._renewed = True
        self._sources = None
        found = None if line.item.guard is not None or not single else self._result(line)
        self._now[key] = line if found is None else found
        if found is None and self._sources is not None and line.item.guard is None:
            unknown = self.now(key)
            if unknown is not None:
                self._facts.unknown_sources[unknown.terms[0][0]] = self._sources

    def _result(self, line: Line) -> Value | None:
        operands = line.item.operands
        result = symbolic(line)
        if result is None or len(operands) < 2:
            return None
        if line.plan.family == "ld":
            return self._parameter(line)
        sources = []
        for operand in operands[1:]:
            source = self.of_name(operand.name, line) if type(operand) is Name else self.of(operand, line)
            if source is None:
                return None
            sources.append(source)
        if len(sources) < _SOURCES.get(line.plan.family, 2):
            return None  # too few are an error, which is reported elsewhere
        self._sources = sources
        return result(line, sources) or _of_uniform(line, sources)

    def _parameter(self, line: Line) -> Value | None:
        if self._facts.function.kind != "entry":
            return None
        address = self.address(line.item.operands[1], line)
        if address is None or len(address.terms) != 1 or not isinstance(address.each, int):
            return None
        name = address.terms[0][0][1:]
        if not any(parameter.name == name for parameter in self._facts.function.params):
            return None  # what a call gives
        return Value(((f"{name}+{address.each}", 1),), 0)


def _of_register(facts: FunctionFacts, key: RegisterKey) -> Value:
    """A register as an unknown; one that several instructions write is marked, as it stands for many values."""
    found = facts.unknowns.get(key)
    if found is None:
        term = f"{'#?' if key in facts.rewritten else '#'}{key[0]}{key[1]}"
        facts.unknown_terms[term] = key
        found = facts.unknowns[key] = Value(((term, 1),), 0)
    return found


def _signed(number: int, line: Line) -> int:
    """A constant as the difference it stands for: 4294967295 is -1 in 32 bits."""
    if number < _SIGN:
        return number
    bits = TYPES[line.plan.op.type or "b64"].bits if line.plan.op is not None else 64
    half = _SIGN if bits == WARP else _SIGN64
    return number - 2 * half if bits >= WARP and number >= half else number


def _scaled(value: Value, factor: int) -> Value:
    return plus(ZERO, value, factor)


def _add(line: Line, sources: list[Value]) -> Value | None:
    a, b = sources[0], sources[1]
    if b.constant is not None:
        b = Value((), _signed(b.constant, line))
    return _short(plus(a, b, -1 if line.plan.family == "sub" else 1))


def _short(value: Value) -> Value | None:
    """A sum; None if it is so long that it is no address. Else each sum of a chain would have all those before it."""
    return value if len(value.terms) <= _MOST_TERMS else None


def _product(line: Line, sources: list[Value]) -> Value | None:
    opcode = line.item.opcode
    if ".hi" in opcode or len(sources) < 2:
        return None
    a, b = sources[0], sources[1]
    factor = b.constant
    if factor is None:
        a, factor = b, a.constant
    if factor is None:
        return None
    product = _scaled(a, _signed(factor, line))
    return _short(plus(product, sources[2])) if line.plan.family == "mad" else product


def _of_uniform(line: Line, sources: list[Value]) -> Value | None:
    """A product of what all threads of a CTA have in common, such as %ctaid.x and %ntid.x, as an unknown."""
    if line.plan.family not in ("mul", "mad") or ".hi" in line.item.opcode:
        return None
    a, b, *more = sources
    if not (a.uniform and b.uniform):
        return None
    names = sorted(f"{one.terms}+{one.each}" for one in (a, b))
    product = Value(((f"%({names[0]}*{names[1]})", 1),), 0)
    return plus(product, more[0]) if more else product


def _shift(line: Line, sources: list[Value]) -> Value | None:
    amount = sources[1].constant
    if amount is None or not 0 <= amount < WARP:
        return None
    if line.plan.family == "shl":
        return _scaled(sources[0], 1 << amount)
    if sources[0].terms or min(sources[0].numbers) < 0:
        return None
    return Value((), shortest(number >> amount for number in sources[0].numbers))


def _bits(line: Line, sources: list[Value]) -> Value | None:
    """Bitwise operations on numbers; on the bits below a variable's alignment, too."""
    a, b = sources
    if a.constant is not None:
        a, b = b, a
    if b.terms or (a.terms and (line.plan.family == "and" or b.constant is None)):
        return None
    limit = 1 << 62
    if a.terms:
        symbol = line.names.lookup(a.variable or "")
        if not isinstance(symbol, Variable) or a.terms[0][1] != 1:
            return None
        limit = symbol.align or 1
    if not all(0 <= number < limit for number in (*a.numbers, *b.numbers)):
        return None
    apply = _BITWISE[line.plan.family]
    return Value(a.terms, shortest(apply(x, y) for x, y in zip(a.numbers, b.numbers, strict=True)))


def rounded_down(line: Line, value: Value, step: int) -> Value | None:
    """An address in a variable without the bits below a power of two, if the variable is aligned to that."""
    symbol = line.names.lookup(value.variable or "")
    if not isinstance(symbol, Variable) or value.terms[0][1] != 1 or (symbol.align or 1) % step:
        return None
    return Value(value.terms, shortest(number - number % step for number in value.numbers))


def _field(line: Line, sources: list[Value]) -> Value | None:
    """bfe.u32 and bfe.u64 of numbers."""
    value, place, length = sources
    if value.terms or place.constant is None or length.constant is None or ".u" not in line.item.opcode:
        return None
    if not (0 <= place.constant < WARP and 0 <= length.constant <= WARP) or min(value.numbers) < 0:
        return None
    mask = (1 << length.constant) - 1
    return Value((), shortest(number >> place.constant & mask for number in value.numbers))


def _same(line: Line, sources: list[Value]) -> Value | None:
    return sources[0] if len(sources) == 1 else None


def _converted(line: Line, sources: list[Value]) -> Value | None:
    words = line.item.opcode.split(".")[1:]
    if not all(word[0] in "us" and word[1:] in ("8", "16", "32", "64") for word in words):
        return None
    bits = min([int(word[1:]) for word in words], default=0)
    if bits < _NARROW:  # the same number, if it is a small one
        terms, numbers = sources[0].terms, sources[0].numbers
        return None if terms or min(numbers) < 0 or max(numbers) >> bits - 1 else sources[0]
    return sources[0]


def _generic(line: Line, sources: list[Value]) -> Value | None:
    """cvta: a generic address is marked with its window; of global memory it is the address itself."""
    op = line.plan.op
    space = (op.space or "").partition("::")[0] if op is not None else ""
    if not space or len(sources) != 1:
        return None
    if space == "global":
        return sources[0]
    return plus(sources[0], Value(((f"cvta.{space}", 1),), 0), -1 if ".to." in line.item.opcode else 1)


def _predicate(line: Line, sources: list[Value]) -> Value | None:
    op, into = line.plan.op, line.item.operands[0]
    if op is None or isinstance(into, Pair) or len(sources) != 2:
        return None
    compare = next((COMPARE[atom] for atom in op.atoms if atom in COMPARE), None)
    difference = plus(sources[0], sources[1], -1)
    if compare is None or difference.terms:
        return None
    if not sources[0].terms and min(*sources[0].numbers, *sources[1].numbers) < 0 and (op.type or "")[0] != "s":
        return None
    return Value((), shortest(int(compare(number, 0)) for number in difference.numbers))


_RESULTS: dict[str, Callable[[Line, list[Value]], Value | None]] = {
    "mov": _same, "add": _add, "sub": _add, "mul": _product, "mad": _product, "shl": _shift, "shr": _shift,
    "and": _bits, "or": _bits, "xor": _bits, "cvt": _converted, "cvta": _generic, "setp": _predicate, "ld": _same,
    "bfe": _field,
}  # fmt: skip


def symbolic(line: Line) -> Callable[[Line, list[Value]], Value | None] | None:
    """As `result_of`, from what is known of an opcode."""
    if line.plan.op is None:
        return None
    found = _results.get(line.item.opcode, _UNSEEN)
    if found is _UNSEEN:
        found = _results[line.item.opcode] = result_of(line)
    return found


_UNSEEN: Callable[[Line, list[Value]], Value | None] = lambda line, sources: None  # noqa: E731
_results: dict[str, Callable[[Line, list[Value]], Value | None] | None] = {}


def result_of(line: Line) -> Callable[[Line, list[Value]], Value | None] | None:
    """How the result of an opcode follows from its sources; None where it does not."""
    op, family = line.plan.op, line.plan.family
    if op is None or family not in _RESULTS:
        return None
    if family == "ld" and (op.space != "param" or op.has("v2") or op.has("v4")):
        return None
    type_ = TYPES.get(op.type or "")
    fits = type_ is not None and type_.kind in ("int", "bits", "pred") and type_.bits <= 64
    return _RESULTS[family] if fits or family == "ld" else None


#: Source operands that these have; the others have two.
_SOURCES = {"mov": 1, "cvt": 1, "cvta": 1, "mad": 3, "bfe": 3}


def known_values(facts: FunctionFacts) -> dict[RegisterKey, Value]:
    """The values of registers that one instruction writes, as far as others such suffice that are written above it."""
    known: dict[RegisterKey, Value] = {}
    reader = Reader(facts, known)
    above: set[RegisterKey] = set()
    rewritten, unknown = facts.rewritten, facts.unknown_terms
    for key, line in facts.writes.items():
        if key in rewritten:
            continue
        item = line.item
        if item.guard is None and item.operands and _results.get(item.opcode, _UNSEEN) is not None:
            into = item.operands[0]
            found = reader._result(line) if type(into) is Name and into.name == key[1] else None
            if found is not None and all(term[0] != "#" or unknown.get(term) in above for term, _ in found.terms):
                known[key] = found
                continue
        above.add(key)
    return known


def begun_with(facts: FunctionFacts, known: Mapping[RegisterKey, Value]) -> dict[RegisterKey, Value]:
    """The values of registers that several instructions write, the last ones before the first label and the first jump
    of the function: so they hold in all other runs. Those to which later instructions only add what all threads have in
    common differ from them by an unknown that is common, too."""
    first = facts.runs[0] if facts.runs else []
    if not first or first[0] is not facts.lines[0] or isinstance(facts.items[0], Label):
        return {}
    reader = Reader(facts, known)
    end = next((at for at, line in enumerate(first) if line.plan.family in ENDING), len(first))
    written: set[RegisterKey] = set()
    for line in first[:end]:
        reader.step(line)
        written.update(_written(facts, line))
    found = {key: value for key in written & facts.rewritten if (value := reader.now(key)) is not None}
    stepped: set[RegisterKey] = set()
    for line in facts.lines[end:] if found else ():
        for key in _written(facts, line):
            if key in found and _steps(line, key, known):
                stepped.add(key)
            else:
                found.pop(key, None)
    for key in stepped & found.keys():
        found[key] = plus(found[key], Value(((f"{COMMON}{key[0]}{key[1]}", 1),), 0))
    return found


def _written(facts: FunctionFacts, line: Line) -> list[RegisterKey]:
    return [key for _, key, write in facts.used(line) if write and key is not None]


def _steps(line: Line, key: RegisterKey, known: Mapping[RegisterKey, Value]) -> bool:
    """Whether an instruction adds to a register what all threads have in common."""
    item = line.item
    if line.plan.family not in ("add", "sub") or len(item.operands) != 3 or ".cc" in item.opcode:
        return False
    own, by = item.operands[1:]
    if line.plan.family == "add" and isinstance(by, Name) and line.registers[by.name] == key:
        own, by = by, own
    if not isinstance(own, Name) or line.registers[own.name] != key:
        return False
    other = line.registers[by.name] if isinstance(by, Name) else None
    return isinstance(by, Immediate) or (other is not None and other in known and known[other].uniform)


def thread_count(function: Function) -> int:
    """How many of the threads a CTA has: those of one warp, unless its size is declared."""
    for item in function.directives:
        if getattr(item, "name", "") in (".reqntid", ".maxntid"):
            first = next((arg for arg in getattr(item, "args", ()) if isinstance(arg, int)), WARP)
            return min(first, THREADS if getattr(item, "name", "") == ".reqntid" else WARP)
    return WARP
