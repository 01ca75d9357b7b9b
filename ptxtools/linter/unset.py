"""Bits of registers that nobody has set, as those of a structure's padding, and what is computed of them.

Compilers move such bits with others. What is followed is a run of instructions, one behind the other, and of what they
compute only bits that depend on an unset one whatever the others are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ptxtools.ir.nodes import Address, Immediate, Instruction, Name, Operand, Vector
from ptxtools.ir.symbols import RegisterKey
from ptxtools.isa.types import TYPES
from ptxtools.records import NamedTuple

from .facts import FunctionFacts, Line

#: The note of findings about such bits.
POSSIBLE = "possible: who reads the result may not look at these bits"

#: Instructions whose bytes others see, if they access no memory of a thread's own.
_STORES, _OWN = ("st", "atom", "red"), (".local", ".param")
_BYTE = 8


class Source(NamedTuple):
    """An instruction that gives a register bits that nobody has set. part: which of its registers, from 0; bits: which
    bits of that, as a mask."""

    item: Instruction
    part: int
    bits: int


class _Bits(NamedTuple):
    """Unset bits of a register, as a mask, and where they come from. computed: whether they were more than moved."""

    mask: int
    source: Source
    computed: bool = False


def computed_with(facts: FunctionFacts, run: Sequence[Line], sources: Mapping[int, Source]) -> Iterator[Source]:
    """The sources, by the identity of their instructions, of which a run computes something that it compares, stores
    or takes as an address."""
    known: dict[RegisterKey, _Bits] = {}
    told: set[int] = set()
    for line in run if sources else ():
        source = sources.get(id(line.item))
        if not known and source is None:
            continue
        new: dict[RegisterKey, _Bits] = {}
        if line.item.guard is None:
            for bits in _used(line, known):
                if id(bits.source.item) not in told:
                    told.add(id(bits.source.item))
                    yield bits.source
            new = _moved(line, known) or _computed(line, known)
        if source is not None and source.part < len(into := _parts(line.item.operands[0], line)):
            key = into[source.part]
            if key is not None:
                new[key] = _Bits(source.bits, source)
        for _, key, write in facts.used(line):
            if write and key is not None:
                known.pop(key, None)
        known |= {key: bits for key, bits in new.items() if bits.mask}


def bits_of(unset: Iterator[int] | Sequence[int]) -> int:
    """The mask of some bytes of a register, the least significant one 0."""
    return sum(0xFF << _BYTE * byte for byte in unset)


def _key(operand: Operand, line: Line) -> RegisterKey | None:
    return line.registers[operand.name] if isinstance(operand, Name) else None


def _parts(operand: Operand, line: Line) -> list[RegisterKey | None]:
    """The registers of an operand, which may be a vector."""
    return [_key(one, line) for one in (operand.items if isinstance(operand, Vector) else (operand,))]


def _width(line: Line) -> int:
    info = TYPES.get((line.plan.op.type if line.plan.op is not None else "") or "")
    return info.bits if info is not None else 0


def _used(line: Line, known: Mapping[RegisterKey, _Bits]) -> Iterator[_Bits]:
    """The unset bits that an instruction compares, stores or takes as an address."""
    family, opcode, operands = line.plan.family, line.item.opcode, line.item.operands
    here = (1 << _width(line)) - 1
    stores = family in _STORES and not any(space in opcode for space in _OWN)
    for place, operand in enumerate(operands):
        if isinstance(operand, Address):
            bits = known.get(_key(operand.base, line) or (0, "")) if isinstance(operand.base, Name) else None
            if bits is not None:
                yield bits
        elif (family == "setp" and place in (1, 2)) or (stores and place):
            for key in _parts(operand, line):
                bits = known.get(key) if key is not None else None
                if bits is not None and bits.mask & here and (bits.computed or family == "setp"):
                    yield bits


def _moved(line: Line, known: Mapping[RegisterKey, _Bits]) -> dict[RegisterKey, _Bits]:
    """The unset bits behind a mov or a conversion between integers."""
    words, operands = line.item.opcode.split("."), line.item.operands
    width = _width(line)
    if words[0] not in ("mov", "cvt") or len(operands) != 2 or not width:
        return {}
    into, given = _parts(operands[0], line), _parts(operands[1], line)
    if words[0] == "cvt":
        types = [TYPES.get(word) for word in words[1:]]
        if len(types) != 2 or any(info is None or info.kind != "int" for info in types):
            return {}
        width = min(info.bits for info in types if info is not None)
    whole, unset = 0, None
    for place, key in enumerate(given):  # of two sources the first is followed
        bits = known.get(key) if key is not None else None
        part = width // len(given)
        if bits is not None and (unset is None or bits.source == unset.source):
            whole |= (bits.mask & (1 << part) - 1) << place * part
            unset = bits._replace(computed=bits.computed or (unset is not None and unset.computed))
    if unset is None or not into:
        return {}
    part = width // len(into)
    return {
        key: unset._replace(mask=whole >> place * part & (1 << part) - 1)
        for place, key in enumerate(into)
        if key is not None
    }


def _computed(line: Line, known: Mapping[RegisterKey, _Bits]) -> dict[RegisterKey, _Bits]:
    """The unset bits of a result. Of a sum each bit changes with that of one of its terms."""
    words, operands, width = line.item.opcode.split("."), line.item.operands, _width(line)
    into = _key(operands[0], line) if operands else None
    if words[0] in ("mul", "mad") and len(words) == 3 and words[1] in ("lo", "wide"):
        width *= 1 + (words.pop(1) == "wide")
    if into is None or len(words) != 2 or not width:
        return {}
    reads = [known.get(key) if (key := _key(operand, line)) is not None else None for operand in operands[1:]]
    found = [bits for bits in reads if bits is not None]
    if len(found) != 1 or TYPES[words[1]].kind not in ("int", "bits"):
        return {}
    bits, all_bits = found[0], (1 << width) - 1
    mask, computed = bits.mask & all_bits, bits.computed
    numbers = [operand.value for operand in operands[1:] if isinstance(operand, Immediate)]
    first = reads[0] is not None
    if words[0] in ("add", "sub", "xor"):
        computed = True
    elif words[0] == "and" and numbers:
        mask &= numbers[0]
    elif words[0] == "or" and numbers:
        mask &= ~numbers[0]
    elif words[0] == "shr" and first and len(numbers) == 1 and numbers[0] >= 0:
        mask, computed = mask >> min(numbers[0], width), computed or numbers[0] % _BYTE != 0
    elif words[0] == "shl" and first and len(numbers) == 1 and 0 <= numbers[0] < width:
        mask, computed = mask << numbers[0] & all_bits, computed or numbers[0] % _BYTE != 0
    elif words[0] in ("mul", "mad") and first and isinstance(operands[2], Immediate) and operands[2].value > 0:
        factor = operands[2].value
        mask, computed = (mask & -mask) * (factor & -factor) & all_bits, True
    elif words[0] == "bfe" and first and len(numbers) == 2 and min(numbers) >= 0 and max(numbers) <= width:
        mask, computed = mask >> numbers[0] & (1 << numbers[1]) - 1, computed or numbers[0] % _BYTE != 0
    else:
        return {}
    return {into: _Bits(mask, bits.source, computed)}
