"""What instructions compute in the 64 threads of a walk: numbers where they are known, else unknowns with names.

Equal computations of equal values have the same name, so that addresses computed twice are equal. A name that begins
with "=" is the same number in all threads of the launch, one with "#" may differ between threads, or from time to time.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from functools import lru_cache

from ptxtools.ir.nodes import Address, Element, Immediate, Name, Operand, Pair, SymbolOffset, Variable, Vector
from ptxtools.ir.symbols import RegisterKey
from ptxtools.isa import Opcode
from ptxtools.isa.types import TYPES
from ptxtools.records import NamedTuple

from ..facts import Line, operand_names
from ..values import COMPARE, THREADS, Value, plus, rounded_down, shortest, symbolic

#: A source operand: a value, or the register that holds it.
Source = Value | RegisterKey

_DIVIDING = ("div", "rem")
_ONE, _ZERO = Value((), 1), Value((), 0)


class Op(NamedTuple):
    """An instruction, taken apart once. into: registers that it writes, None where it is no register; sources: None if
    one of them has several parts; addresses: for each operand that is one, its base and the bytes behind it; pure:
    whether its result follows from its sources alone; joins: whether it may join two predicates; divides: integers, by
    what a register holds."""

    line: Line
    family: str
    opcode: str
    guard: RegisterKey | None
    negated: bool
    into: tuple[RegisterKey, ...]
    single: bool
    sources: tuple[Source, ...] | None
    reads: tuple[RegisterKey, ...]
    addresses: tuple[tuple[int, Source, int], ...]
    pure: bool
    joins: bool
    divides: bool


def taken_apart(line: Line) -> Op:
    """The operands of an instruction as registers and values."""
    item, plan = line.item, line.plan
    writes = plan.writes if plan.positional else (len(item.operands) > 1,)
    into: list[RegisterKey] = []
    reads: list[RegisterKey] = []
    sources: list[Source] | None = []
    addresses: list[tuple[int, Source, int]] = []
    single = False
    for place, operand in enumerate(item.operands):
        write = place < len(writes) and writes[place]
        if type(operand) is Name and "." not in operand.name:  # the common case
            key = line.registers[operand.name]
            if write:
                single = place == 0
                if key is not None:
                    into.append(key)
            elif key is not None:
                reads.append(key)
                if sources is not None:
                    sources.append(key)
            elif sources is not None:
                name = operand.name
                sources.append(Value(((name if name[0] == "%" else f"&{name}", 1),), 0))
            continue
        if type(operand) is Vector:
            into += [key for _, key, written in line.registers.uses(operand, write) if key is not None and written]
            reads += [key for _, key, written in line.registers.uses(operand, write) if key is not None and not written]
        else:
            for name, inside in operand_names(operand):
                key = line.registers[name]
                if key is not None:
                    (into if write and not inside else reads).append(key)
        if write:
            single = place == 0 and type(operand) is Name and "." not in operand.name
            continue
        base = _address(operand, line)
        if base is not None:
            addresses.append((place, *base))
        source = _source(operand, line)
        if source is None:
            sources = None
        elif sources is not None:
            sources.append(source)
    guard = item.guard
    return Op(
        line, plan.family, item.opcode, line.registers[guard.name] if guard is not None else None,
        guard is not None and guard.negated, tuple(into), single and len(into) == 1,
        None if sources is None else tuple(sources), tuple(reads), tuple(addresses),
        sources is not None and plan.family in _PURE, _joins(line, sources), divides(line),
    )  # fmt: skip


def _source(operand: Operand, line: Line) -> Source | None:
    if type(operand) is Name:  # a special register, or an element of a vector
        return Value(((operand.name, 1),), 0) if line.registers[operand.name] is None else None
    if type(operand) is Immediate:
        return None if operand.type[0] == "f" else Value((), operand.value)
    if isinstance(operand, SymbolOffset):
        return Value(((f"&{operand.name}", 1),), operand.offset)
    return None


def _address(operand: Operand, line: Line) -> tuple[Source, int] | None:
    if isinstance(operand, Address):
        if operand.extra and ".tensor" not in line.item.opcode:
            return None  # coordinates, else behind a tensor map
        if isinstance(operand.base, Immediate):
            return Value((), operand.base.value), operand.offset
        if isinstance(operand.base, Name):
            key = line.registers[operand.base.name]
            return (key if key is not None else Value(((f"&{operand.base.name}", 1),), 0)), operand.offset
        operand = operand.base
    if isinstance(operand, Element) and operand.register is None:
        symbol = line.names.lookup(operand.name)
        if isinstance(symbol, Variable) and symbol.type in TYPES:
            return Value(((f"&{operand.name}", 1),), 0), operand.index * TYPES[symbol.type].bytes * symbol.vector
    return None


def divides(line: Line) -> bool:
    """Whether an instruction divides integers by what a register holds."""
    if line.plan.family not in _DIVIDING:
        return False
    op, operands = line.plan.op, line.item.operands
    return op is not None and len(operands) == 3 and type(operands[2]) is Name and (op.type or "")[:1] in ("s", "u")


def _joins(line: Line, sources: list[Source] | None) -> bool:
    op, family = line.plan.op, line.plan.family
    if op is None or sources is None:
        return False
    return (family == "setp" and len(sources) == 3) or (family in ("and", "or", "xor") and op.type == "pred")


# --- results ----------------------------------------------------------------------------------------------------------

_names: dict[object, Value] = {}
_reasons: dict[str, tuple[object, ...]] = {}
#: A name stands for one value as long as the process lives: values of a walk under way may have any of them.
_numbers_of_names = itertools.count()
#: Names that are kept for the programs to come.
_MOST_NAMES = 1 << 16
#: Results of the instructions of the program that is walked, by the identity of the instruction, and its sources.
_found: dict[tuple[object, ...], Value] = {}


def begin_program() -> None:
    """Forget what belongs to another program; not while one is walked, where what is computed again is the same."""
    _found.clear()
    if len(_names) > _MOST_NAMES:
        _names.clear()
        _reasons.clear()


def unknown(differs: bool, *why: object) -> Value:
    """The unknown result of a computation; the same for the same one."""
    found = _names.get(why)
    if found is None:
        name = f"{'#' if differs else '='}{next(_numbers_of_names)}"
        _reasons[name[1:]] = why
        found = _names[why] = Value(((name, 1),), 0)
        return found
    name = found.terms[0][0]
    if differs != (name[0] == "#"):
        return Value(((f"{'#' if differs else '='}{name[1:]}", 1),), 0)
    return found


def compared(name: str) -> tuple[Callable[[int, int], bool], Value] | None:
    """The comparison with 0 that an unknown predicate is, and what is compared; None if it is none."""
    why = _reasons.get(name[1:], ())
    if len(why) == 3 and why[0] in COMPARE and isinstance(why[2], Value):
        return COMPARE[str(why[0])], why[2]
    return None


def reason_of(value: Value) -> tuple[object, ...]:
    """What an unknown value is the result of; empty for anything else."""
    plain = len(value.terms) == 1 and value.terms[0][1] == 1 and value.each == 0
    return _reasons.get(value.terms[0][0][1:], ()) if plain else ()


def is_bound(name: str) -> bool:
    """Whether an unknown predicate compares what is known of each thread with a number that all of them have: there is
    one for which it holds in all threads, and one for which it holds in none."""
    why = _reasons.get(name[1:], ())
    if len(why) != 3 or why[0] not in _BOUNDS or not isinstance(why[2], Value):
        return False
    return all(term[0] != "#" for term, _ in why[2].terms)


class Described(NamedTuple):
    """A matrix descriptor that was made from a shared address. bits: constant ones beside it; whole: whether these are
    all."""

    address: Value
    bits: int
    whole: bool


def origin(value: Value) -> Described | None:
    """What a matrix descriptor was made from; None if that is not known."""
    found = _origin(value, 6)
    return found[0] if found is not None else None


def _origin(value: Value, depth: int) -> tuple[Described, int] | None:
    """A descriptor, or part of one, and how many bits of the address have been shifted out."""
    if value.terms and value.terms[0][0][0] == "&":
        return (Described(value, 0, True), 0) if len(value.terms) == 1 else None
    added = value.each
    if len(value.terms) != 1 or not depth or value.terms[0][1] != 1 or not isinstance(added, int):
        return None
    why = _reasons.get(value.terms[0][0][1:], ("",))
    how = str(why[0])
    if not how.startswith(_SHIFTING):
        return None
    sources = [source for source in why[1:] if isinstance(source, Value)]
    for source in sources:
        found = _origin(source, depth - 1) if source.terms else None
        if found is None:
            continue
        (address, bits, whole), shifted = found
        others = [other.constant for other in sources if other is not source]
        if how.startswith(("shr", "bfe")):
            by = others[0] or 0 if others else 0
            if not 0 <= by < 64:  # nothing is left of the address
                return None
            bits, shifted = 0, shifted + by
        elif not how.startswith("and"):
            bits |= sum([other or 0 for other in others])
            whole &= None not in others
        if shifted and added:  # units of the address, and fields beside it
            low = added if -_FIELD <= added <= _FIELD else added & _FIELD
            address, added = plus(address, _ONE, low << shifted), added - low
        elif added:
            address, added = plus(address, _ONE, added), 0
        return Described(address, bits | added & _WORD, whole), shifted
    return None


#: The bits of a descriptor that hold an address, and all of them.
_FIELD, _WORD = (1 << 14) - 1, (1 << 64) - 1
_SHIFTING = ("shr", "or", "and", "cvt", "bfe", "mov", "add")


def of_data(value: Value, depth: int = 6) -> bool:
    """Whether all that is unknown of a value, and may differ between threads, comes from memory alone."""
    for name, _ in value.terms:
        if name[0] != "#":
            continue
        why = _reasons.get(name[1:], ("",))
        if why[0] == "ld":
            continue
        sources = [source for source in why[1:] if isinstance(source, Value)]
        plain = isinstance(why[0], str) and why[0].startswith(_SHIFTING) and bool(sources) and depth > 0
        if not plain or not all(isinstance(one.each, int) and of_data(one, depth - 1) for one in sources):
            return False
    return True


def most_of(value: Value, depth: int = 6) -> int | None:
    """How much what is unknown of a value adds to the rest of it at most, where it takes nothing away; else None."""
    total = 0
    for name, count in value.terms:
        if name[0] == "&":
            continue
        why = _reasons.get(name[1:], ("",))
        sources = [source for source in why[1:] if isinstance(source, Value)]
        most = None
        if why[0] == "ld":
            most = next((limit for word, limit in _NARROW.items() if str(why[-1]).endswith(word)), None)
        elif str(why[0]).startswith("and.") and depth:
            masks = [source.constant for source in sources if source.constant is not None and source.constant >= 0]
            most = masks[0] if masks else None
        elif str(why[0]).startswith(("cvt.", "mov.")) and len(sources) == 1 and depth:
            inner = most_of(sources[0], depth - 1)
            most = inner + sources[0].each if inner is not None and isinstance(sources[0].each, int) else None
        if most is None or count < 0:
            return None
        total += count * most
    return total


_NARROW = {".u8": 255, ".u16": 65535}


def differs(value: Value) -> bool:
    """Whether a value may differ between threads in what is unknown of it, or from one time to another."""
    for name, _ in value.terms:  # noqa: SIM110 - one of the most frequent questions
        if name[0] == "#":
            return True
    return False


def _spread(sources: list[Value]) -> bool:
    """Whether some source may differ between threads."""
    return any(not isinstance(source.each, int) or differs(source) for source in sources)


def known_result(op: Op, sources: list[Value]) -> Value:
    """What an instruction gives whose result follows from its sources alone."""
    key = (id(op.line.item), *sources)
    found = _found.get(key)
    if found is None:
        found = _found[key] = result(op, sources, 0)
    return found


def result(op: Op, sources: list[Value], moment: int) -> Value:
    """What an instruction with one result gives. moment: names a result that no other one is equal to."""
    opcode = op.line.plan.op
    if opcode is not None and op.sources is not None:
        known = single = True
        for terms, each in sources:
            if terms:
                known = False
            if type(each) is not int:
                single = False
        found = None
        if op.family in _LINEAR and not (known and single):
            sums = symbolic(op.line)
            if sums is not None and len(sources) >= _LINEAR[op.family]:
                found = sums(op.line, sources)
        if found is None and known:
            found = _numbers(opcode, op, sources)
        if found is not None:
            return found
        if known:
            pass
        elif op.family == "setp":
            return _compared(opcode, op, sources)
        elif op.family in ("and", "or", "not", "xor") and opcode.type == "pred":
            return _joined(op, sources)
        elif op.family == "selp" and len(sources) == 3 and not sources[2].terms:
            found = _selected(sources)
            if found is not None:
                return found
        elif op.family == "and" and (found := _floored(op, sources)) is not None:
            return found
        elif op.family in ("and", "or", "xor", "cvta") and (bits := symbolic(op.line)) is not None:
            found = bits(op.line, sources)
            if found is not None:
                return found
    if op.family in _PURE and op.sources is not None:
        spread = _spread(sources)
        return unknown(spread, op.opcode, *sources)
    return unknown(True, id(op.line.item), moment)


@lru_cache(1 << 12)
def _odd(numbers: range | tuple[int, ...]) -> int:
    """The threads that have an odd number, as bits."""
    return int("".join(["1" if number & 1 else "0" for number in reversed(numbers)]), 2)


def truth(value: Value) -> tuple[str, bool] | int | None:
    """A predicate: the threads in which it holds, as bits; or an unknown one, and whether it is negated."""
    if not value.terms:
        if isinstance(value.each, int):
            return -1 if value.each & 1 else 0
        return _odd(value.each)
    if len(value.terms) == 1 and isinstance(value.each, int):
        name, count = value.terms[0]
        if (count, value.each) in ((1, 0), (-1, 1)):
            return name, count < 0
    return None


def mixed(old: Value, new: Value, mask: int) -> Value:
    """The new value in the threads of a mask, the old one in others."""
    if old == new:
        return new
    if old.terms != new.terms:
        return unknown(True, "mixed", old, new, mask)
    a, b = old.numbers, new.numbers
    return Value(new.terms, shortest(iter([b[t] if mask >> t & 1 else a[t] for t in range(THREADS)])))


def _negated(value: Value) -> Value:
    return plus(_ONE, value, -1)


def wrapped(number: int, bits: int, signed: bool) -> int:
    """A number in the range of a type."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if signed and number >> bits - 1 else number


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


#: Of numbers that are brought into the range of the type before.
_PLAIN: dict[str, Callable[..., int]] = {
    "min": min, "max": max, "shr": lambda a, b: a >> min(b, 64),
    "div": _truncated, "rem": lambda a, b: a - b * _truncated(a, b), "neg": operator.neg, "abs": abs,
    "popc": lambda a: a.bit_count(), "selp": lambda a, b, p: a if p & 1 else b, "cvt": lambda a: a, "mov": lambda a: a,
}  # fmt: skip
#: Of bits: the number of them is the second argument.
_OF_BITS: dict[str, Callable[[int, int], int]] = {
    "clz": lambda a, bits: bits - a.bit_length(), "brev": lambda a, bits: int(f"{a:0{bits}b}"[::-1], 2),
    "bfind": lambda a, bits: a.bit_length() - 1 & 0xFFFFFFFF,
}  # fmt: skip
#: How many operands sums and products have.
_LINEAR = {"mov": 1, "cvt": 1, "add": 2, "sub": 2, "mul": 2, "mad": 3, "shl": 2}
#: Of numbers of which only the low bits matter.
_MODULAR: dict[str, Callable[..., int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "mad": lambda a, b, c: a * b + c,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "not": operator.invert,
    "shl": lambda a, b: a << b if 0 <= b < 64 else 0,
}  # fmt: skip
#: Whose results follow from their sources alone.
_PURE = frozenset({*_PLAIN, *_MODULAR, "setp", "set", "bfe", "bfi", "prmt", "cvta", "lop3", "shf", "clz", "brev",
                   "mad24", "mul24", "isspacep", "fma", "sqrt", "rcp", "ex2", "lg2", "slct", "bfind"})  # fmt: skip


def _numbers(opcode: Opcode, op: Op, sources: list[Value]) -> Value | None:
    """What follows from numbers alone."""
    if op.family == "cvta":
        return None
    compute = _computation(op.opcode, opcode, op.family, len(sources))
    if compute is None:
        return None
    try:
        if all(type(source.each) is int for source in sources):
            return Value((), compute.of([source.each for source in sources]))  # type: ignore[misc]
        return Value((), shortest(iter(compute.of_each([source.numbers for source in sources]))))
    except (ArithmeticError, ValueError, TypeError):
        return None


class Computation(NamedTuple):
    """plain: of numbers as they are; bits, signed: the range into which they are brought before, 0 for none; after:
    those of the result, 0 for none."""

    plain: Callable[..., int]
    bits: int = 0
    signed: bool = False
    after: int = 0

    def of(self, numbers: list[int]) -> int:
        bits = self.bits
        if bits:
            numbers = [wrapped(number, bits, self.signed) for number in numbers]
        found = int(self.plain(*numbers))
        return wrapped(found, self.after, True) if self.after else found

    def of_each(self, numbers: list[range | tuple[int, ...]]) -> list[int]:
        bits = self.bits
        if bits:
            most = 1 << bits - 1
            numbers = [
                each if min(each) >= 0 and max(each) < most else tuple([wrapped(n, bits, self.signed) for n in each])
                for each in numbers
            ]
        found = list(map(self.plain, *numbers))
        if self.after and (min(found) < 0 or max(found) >> self.after - 1):
            return [wrapped(number, self.after, True) for number in found]
        return found


_computations: dict[tuple[str, int], Computation | None] = {}


def _computation(text: str, opcode: Opcode, family: str, count: int) -> Computation | None:
    if (text, count) not in _computations:
        _computations[text, count] = _made(opcode, family, text, count)
    return _computations[text, count]


def _made(opcode: Opcode, family: str, text: str, count: int) -> Computation | None:
    info = TYPES.get(opcode.type or "")
    if info is None or info.kind not in ("int", "bits", "pred") or info.bits > 64 or ".sat" in text or ".hi" in text:
        return None
    if any(opcode.has(word) for word in ("cc", "v2", "v4")):
        return None
    signed, bits = (opcode.type or "")[0] == "s", info.bits
    if family == "setp":
        return _comparison(opcode, bits, signed, count)
    if family == "cvt":
        words = text.split(".")[1:]
        if len(words) != 2 or not all(word[:1] in "us" and word[1:] in ("8", "16", "32", "64") for word in words):
            return None
        return Computation(_PLAIN["cvt"], int(words[1][1:]), words[1][0] == "s", int(words[0][1:]))
    if info.kind == "pred":
        plain = _PLAIN["mov"] if family == "mov" else _MODULAR.get(family)
        return None if plain is None else Computation(plain)
    if family in _MODULAR:
        if ".wide" in text:
            return Computation(_MODULAR[family], bits, signed) if count == 2 else None
        if family == "shl":
            return Computation(lambda a, b: a << b if 0 <= b < bits else 0, 0, False, bits)
        return Computation(_MODULAR[family], 0, False, 0 if family in _BITWISE else bits)
    if family in _OF_BITS and not signed and ".shiftamt" not in text:
        of_bits = _OF_BITS[family]
        return Computation(lambda a: of_bits(a, bits), bits)
    if family in _PLAIN:
        return Computation(_PLAIN[family], 0 if family in ("mov", "selp") else bits, signed)
    return None


_BITWISE = frozenset({"and", "or", "xor", "not"})


def _comparison(opcode: Opcode, bits: int, signed: bool, count: int) -> Computation | None:
    compare = next((COMPARE[atom] for atom in opcode.atoms if atom in COMPARE), None)
    if compare is None:
        return None
    if count == 2:
        return Computation(compare, bits, signed)
    join = next((_MODULAR[atom] for atom in opcode.atoms if atom in ("and", "or", "xor")), None)
    if join is None:
        return None
    return Computation(lambda a, b, p: join(int(compare(a, b)), p & 1), bits, signed)


#: Comparisons with a number of which any number of threads may be on either side; the others, and what each negates.
_BOUNDS = frozenset({"lt", "le", "lo", "ls"})
_OPPOSITE = {"ne": "eq", "ge": "lt", "hs": "lo", "gt": "le", "hi": "ls"}


def joined_predicates(op: Op, sources: list[Value]) -> tuple[str, list[Value]] | None:
    """How an instruction joins two predicates of which one is known, a comparison's own one included; None if it does
    not."""
    opcode = op.line.plan.op
    if opcode is None or op.sources is None:
        return None
    if op.family in ("and", "or", "xor") and opcode.type == "pred" and len(sources) == 2:
        return op.family, sources
    if op.family != "setp" or len(sources) != 3 or not any(source.terms for source in sources):
        return None
    how = next((atom for atom in opcode.atoms if atom in ("and", "or", "xor")), None)
    if how is None or not isinstance(op.line.item.operands[0], Name):
        return None
    return how, [_compared(opcode, op, sources[:2]), sources[2]]


@lru_cache(256)
def _comparing(opcode: Opcode) -> str:
    """The comparison of an opcode; "" for none."""
    return next((atom for atom in opcode.atoms if atom in COMPARE), "")


def _compared(opcode: Opcode, op: Op, sources: list[Value]) -> Value:
    """A comparison of which something is unknown: named by what is compared, so that it is decided once."""
    name = _comparing(opcode)
    if len(sources) == 3 or not name or (op.line.item.operands and isinstance(op.line.item.operands[0], Pair)):
        spread = _spread(sources)
        return unknown(spread, op.opcode, *sources)
    difference = plus(sources[0], sources[1], -1)
    if not difference.terms:
        return Value((), shortest(iter([int(COMPARE[name](number, 0)) for number in difference.numbers])))
    spread = differs(difference) or not isinstance(difference.each, int)
    found = unknown(spread, _OPPOSITE.get(name, name), opcode.type, difference)
    return _negated(found) if name in _OPPOSITE else found


def _joined(op: Op, sources: list[Value]) -> Value:
    """and, or, xor, not of predicates."""
    return _negated(sources[0]) if op.family == "not" else joined(op.family, sources)


def joined(how: str, sources: list[Value]) -> Value:
    """and, or, xor of two predicates."""
    a, b = sources
    if b.terms:
        a, b = b, a
    if not b.terms and isinstance(b.each, int):
        if how == "and":
            return a if b.each & 1 else _ZERO
        if how == "or":
            return _ONE if b.each & 1 else a
        return _negated(a) if b.each & 1 else a
    if not a.terms:
        return Value((), shortest(map(lambda x, y: _MODULAR[how](x & 1, y & 1), a.numbers, b.numbers)))
    spread = _spread(sources)
    return unknown(spread, how, *sources)


def _floored(op: Op, sources: list[Value]) -> Value | None:
    """The unknown multiple of a power of two that is left of a value without its low bits."""
    a, mask = sources if sources[0].terms else sources[::-1]
    step = -(mask.constant or 0)
    bits = op.line.plan.op.type[1:] if op.line.plan.op is not None and op.line.plan.op.type else ""
    if step < 0 and bits.isdigit():
        step = (1 << int(bits)) + step
    if mask.terms or step <= 1 or step & (step - 1) or step >= 1 << 31:
        return None
    aligned = rounded_down(op.line, a, step)
    if aligned is not None:
        return aligned
    return plus(_ZERO, unknown(differs(a) or not isinstance(a.each, int), "floor", a, step), step)


def _selected(sources: list[Value]) -> Value | None:
    a, b, which = sources
    mask = truth(which)
    return mixed(b, a, mask) if isinstance(mask, int) else None
