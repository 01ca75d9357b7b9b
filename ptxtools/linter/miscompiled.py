"""Forms of which releases of ptxas make machine code that computes something else: for rule PTX616.

`testdata/conformance/miscompiled.tsv` has such statements, and their likes that are compiled as they should be, with
what each release makes of them; `tools/miscompiled.py` asks anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ptxtools.ir.nodes import Name, Operand
from ptxtools.isa.targets import chip_of
from ptxtools.records import NamedTuple

from .constants import constant, reaching_write, value_at
from .facts import FunctionFacts, Line
from .releases import VERSIONS, between

_WORD, _DOUBLE = 32, 64
_BYTE, _BYTE_BITS, _FULL = 0xFF, 8, 1 << 32
#: Selectors of prmt that spread the sign of a byte of the first operand.
_SIGNS_OF_A = range(8, 12)
#: Chips whose machine code has the minimum and maximum of three numbers.
_THREE = range(90, 120)
#: The first chip whose machine code has sums that saturate.
_SATURATING = 120
#: Comparisons with 0 as unsigned numbers: whether 0 stands first.
_WITH_ZERO = {"setp.gt.u32": True, "setp.le.u32": True, "setp.lt.u32": False, "setp.ge.u32": False}
_OF_WORDS = re.compile(r"set\.(eq|ne|lt|le|gt|ge)\.[us]32\.[us]32")
_BYTES = ("u8", "s8", "b8")


class Found(NamedTuple):
    """what: the form, and what becomes of it; instead: what all releases compile as it is meant; when: for which
    numbers the result is wrong, "" for all but a few; releases: of ptxas that do so."""

    what: str
    instead: str
    releases: tuple[str, ...]
    when: str = ""


def _made(facts: FunctionFacts, line: Line, operand: Operand, *opcodes: str) -> Line | None:
    """The instruction that makes an operand, if it begins with one of these and runs in the same stretch."""
    found = reaching_write(facts, line, operand.name) if isinstance(operand, Name) else None
    if found is None or found.item.guard is not None or not found.item.opcode.startswith(opcodes):
        return None
    if found.plan.op is None or found.item.operands[0] != operand:
        return None
    return found if facts.stretches[id(found.item)] == facts.stretches[id(line.item)] else None


def _negated(facts: FunctionFacts, line: Line, operand: Operand) -> Operand | None:
    """x, if an operand is -x."""
    made = _made(facts, line, operand, "neg.s32", "sub.s32", "sub.u32", "mul.lo.s32", "mul.lo.u32")
    if made is None:
        return None
    family, sources = made.plan.family, made.item.operands[1:]
    if family == "neg":
        return sources[0]
    if family == "sub":
        return sources[1] if constant(facts, made, sources[0]) == 0 else None
    return sources[0] if constant(facts, made, sources[1]) in (-1, 0xFFFFFFFF) else None


def _inserted(facts: FunctionFacts, line: Line, chip: int) -> Found | None:
    """bfi of a field that is as wide as the word, or wider."""
    if len(line.item.operands) != 5:
        return None
    start, width = (constant(facts, line, operand) for operand in line.item.operands[3:])
    if start is None or width is None or width < _WORD or start >= _WORD or start % _BYTE_BITS == 0:
        return None  # whole bytes are moved by another instruction
    if start + width % _WORD >= _WORD:
        return None
    return Found(f"of a field of {width} bits from bit {start} on, the lowest {width % _WORD} are inserted, "
                 f"not all up to bit 31", f"write {_WORD - start} for the length", between("11.8", "13.3"))  # fmt: skip


def _extracted(facts: FunctionFacts, line: Line, chip: int) -> Found | None:
    """bfe of a field beyond the word."""
    if len(line.item.operands) != 4:
        return None
    start, width = (constant(facts, line, operand) for operand in line.item.operands[2:])
    if start is None or not width or start < _WORD:
        return None
    return Found("a signed field that starts beyond bit 31 becomes -1, not copies of the sign",
                 "shr.s32 by 31 gives the sign", between("11.8", "13.4"), "where the number is not negative",
                 )  # fmt: skip


def _rotated(facts: FunctionFacts, line: Line, chip: int) -> Found | None:
    """(x << n) - (x >> 64 - n), and the like, which is no rotation."""
    family = line.plan.family
    if len(line.item.operands) != 3:
        return None
    opcodes = ("shr.u64", "shr.s64", "shr.b64") if family == "sub" else ("shr.s64",)
    _, one, other = line.item.operands
    for up, down in ((one, other), (other, one)):
        right = _made(facts, line, down, *opcodes)
        left = _made(facts, line, up, "shl.b64") if right is not None else None
        if left is None or right is None:
            continue
        (x, by), (same, back) = left.item.operands[1:], right.item.operands[1:]
        shifts = constant(facts, left, by), constant(facts, right, back)
        if None in shifts or 0 in shifts or sum(filter(None, shifts)) != _DOUBLE:
            continue
        if value_at(facts, left, x) == value_at(facts, right, same):
            signed = " as a signed number" if right.item.opcode == "shr.s64" else ""
            word = "difference" if family == "sub" else "sum"
            when = "where the bits that are shifted out are not 0" if family == "sub" else "where it is negative"
            return Found(f"the {word} of a number shifted to the left, and to the right{signed}, becomes its rotation",
                         "use shf for a rotation; else mul.lo for the shift to the left",
                         between("11.8", "13.2"), when)  # fmt: skip
    return None


def _saturated(facts: FunctionFacts, line: Line, chip: int) -> Found | None:
    """A sum that may wrap as the operand of another one that saturates."""
    if len(line.item.operands) != 3:
        return None
    _, one, other = line.item.operands
    for place, (inner, outer) in enumerate(((one, other), (other, one))):
        made = _made(facts, line, inner, "add.s32", "add.u32", "sub.s32", "sub.u32")
        second = bool(place) and line.plan.family == "sub"  # what is subtracted
        last = _folded(facts, line, made, outer, second) if made is not None else None
        if last is not None:
            return Found("a sum that may wrap is taken together with the one that saturates, as if it could not wrap",
                         "add in 64 bits, and use cvt.sat.s32.s64", between("11.8", last),
                         "where the inner sum overflows")  # fmt: skip
        if chip < _SATURATING and _negated(facts, line, inner) is not None:
            return Found("the negation of a number is taken together with the sum that saturates",
                         "add in 64 bits, and use cvt.sat.s32.s64", between("11.8", "12.9"),
                         "if the number is -2147483648")  # fmt: skip
    return None


def _folded(facts: FunctionFacts, line: Line, made: Line, outer: Operand, second: bool) -> str | None:
    """The last release that takes a sum that is made, and the other operand of the one that saturates, together."""
    if len(made.item.operands) != 3:
        return None
    numbers = [constant(facts, made, operand) for operand in made.item.operands[1:]]
    number = constant(facts, line, outer)
    if number is not None:
        known = [each for each in numbers if each is not None]
        if len(known) != 1 or 0 in (known[0] % _FULL, number % _FULL):
            return None
        if not second:
            return "13.5"
        added = -known[0] if made.plan.family == "sub" and numbers[1] is not None else known[0]
        return "13.3" if (number - added) % _FULL == 0 else None  # n - (x + n)
    if any(each is not None for each in numbers):
        return None
    x, y = (value_at(facts, made, operand) for operand in made.item.operands[1:])
    subtracts, sums = line.plan.family == "sub", made.plan.family == "add"
    gone = [x] * subtracts + [y] * (subtracts == sums)  # what the second one takes away again
    return "13.3" if value_at(facts, line, outer) in gone else None


def _three(facts: FunctionFacts, line: Line, chip: int) -> Found | None:
    """The maximum of three numbers, one of them a negation."""
    opcode = line.item.opcode
    if len(line.item.operands) != 3 or chip not in _THREE:
        return None
    _, one, other = line.item.operands
    if any(constant(facts, line, operand) is not None for operand in (one, other)):
        return None
    inner = _taken_in(facts, line, one) or _taken_in(facts, line, other)
    if inner is None or _negated(facts, inner, inner.item.operands[2]) is None:
        return None
    return Found(f"{opcode[:3]} of three numbers forgets a negation",
                 "use abs.s32 for |x|; else have the negation first",
                 between("12.6", "13.3"), "where the negated number decides")  # fmt: skip


def _taken_in(facts: FunctionFacts, line: Line, operand: Operand) -> Line | None:
    """The instruction of the same opcode that makes an operand for this one alone, without a constant."""
    made = _made(facts, line, operand, line.item.opcode)
    if made is None or not isinstance(operand, Name) or facts.read_counts[line.registers[operand.name]] != 1:
        return None
    sources = made.item.operands[1:]
    return made if len(sources) == 2 and all(constant(facts, made, source) is None for source in sources) else None


def _half(facts: FunctionFacts, line: Line, chip: int) -> Found | None:
    """The negation or absolute value of 16 bits, read as a signed number."""
    opcode = line.item.opcode
    if opcode == "cvt.u32.u16":
        made, releases = _made(facts, line, line.item.operands[-1], "abs.s16"), between("13.3", "13.3")
    else:
        sources = [_made(facts, line, operand, "neg.s16", "abs.s16", "sub.s16") for operand in line.item.operands[1:]]
        made, releases = next(filter(None, sources), None), between("11.8", "13.2")
    if made is not None and made.plan.family == "sub" and constant(facts, made, made.item.operands[1]) != 0:
        return None
    number = made.item.operands[-1] if made is not None else None
    if made is None or not isinstance(number, Name) or constant(facts, made, number) is not None:
        return None
    source = reaching_write(facts, made, number.name)
    if source is not None and source.item.opcode.endswith(_BYTES):
        return None
    better = "abs.s32" if made.plan.family == "abs" else "neg.s32"
    return Found(f"the result of {made.item.opcode} is used with 32 bits, as if it were not cut to 16",
                 f"convert first, and use {better}", releases, "if the number is -32768")  # fmt: skip


def _spread(facts: FunctionFacts, line: Line, chip: int) -> Found | None:
    """The lowest byte of a prmt that consists of a sign."""
    if len(line.item.operands) != 3:
        return None
    if constant(facts, line, line.item.operands[2]) != _BYTE:
        return None
    made = _made(facts, line, line.item.operands[1], "prmt.b32")
    if made is None or made.item.opcode != "prmt.b32" or constant(facts, made, made.item.operands[2]) is not None:
        return None
    selector = constant(facts, made, made.item.operands[3])
    if selector is None or selector & 15 not in _SIGNS_OF_A:
        return None
    return Found("the sign that prmt spreads in the byte that the mask leaves becomes 0",
                 "shift the byte up by shl, and down by shr.s32", between("11.8", "13.3"),
                 "where the byte is negative")  # fmt: skip


def _zero(facts: FunctionFacts, line: Line, chip: int) -> Found | None:
    """A truth value as a mask, compared with 0 as an unsigned number."""
    first = _WITH_ZERO[line.item.opcode]
    if len(line.item.operands) != 3:
        return None
    zero, mask = line.item.operands[1:] if first else line.item.operands[:0:-1]
    if constant(facts, line, zero) != 0:
        return None
    x = _negated(facts, line, mask)
    negation = _made(facts, line, mask, "neg.s32") if x is not None else None
    made = _made(facts, negation, x, "cnot.b32") if negation is not None and x is not None else None
    made = made or _made(facts, line, mask, "set.")
    if made is None or (made.plan.family == "set" and _OF_WORDS.fullmatch(made.item.opcode) is None):
        return None
    return Found("a mask of no or all bits is compared with 0 as a signed number", "use setp of what the mask tells",
                 between("11.8", "13.3"), "where the mask has all bits")  # fmt: skip


#: What looks at an instruction, by what its opcode is; and by how it begins, if that is not all of it.
_WHOLE: dict[str, Callable[[FunctionFacts, Line, int], Found | None]] = {
    "bfi.b32": _inserted, "bfe.s32": _extracted, "max.s32": _three, "min.s32": _three, "and.b32": _spread,
    "sub.s64": _rotated, "sub.u64": _rotated, "add.s64": _rotated, "add.u64": _rotated,
    "add.sat.s32": _saturated, "sub.sat.s32": _saturated,
    "cvt.u32.u16": _half, "cvt.s32.s16": _half, "cvt.s64.s16": _half, "mul.wide.s16": _half, "shr.s16": _half,
    **dict.fromkeys(_WITH_ZERO, _zero),
}  # fmt: skip


def miscompiled(facts: FunctionFacts, line: Line, chip: str, version: tuple[int, int]) -> Found | None:
    """The form that an instruction of a module for a target ends, and the releases that read the module's PTX version
    and make something else of it; None for all others."""
    opcode = line.item.opcode
    look = _WHOLE.get(opcode) or (_half if opcode.startswith("setp.") and opcode.endswith(".s16") else None)
    found = look(facts, line, chip_of(chip).number) if look is not None and line.plan.op is not None else None
    if found is None:
        return None
    releases = tuple(name for name in found.releases if VERSIONS[name] >= version)
    return found._replace(releases=releases) if releases else None
