"""PTX719 | written out by hand what one instruction does | 9.7.9.25, 9.7.1.12

What: several instructions compute what one has: the rounding of f32 to bf16 with integers (sm_80 and later), the sign
of a bit field with two shifts, an absolute value or a negation with the sign as a mask, or with max or selp, an order
of bytes with shifts and masks, the reciprocal of an approximate square root.
Why: one instruction does the same, and ptxas 13.0 does not find it; abs and neg of numbers that an f32 or f64 operation
reads cost nothing, as they are part of that operation. The rounding by hand also turns some NaNs into infinities.
Example:
    shl.b32 %r4, %r1, 24;
    shr.s32 %r5, %r4, 24;
Better:
    cvt.s32.s8 %r5, %r1;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate, Name, Operand, Variable
from ptxtools.ir.positions import parts_of
from ptxtools.ir.symbols import RegisterKey
from ptxtools.isa.targets import chip_of

from ..constants import constant, reaching_write, value_at
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import instructions

CODE = "PTX719"

_BF16 = 80
_WORD, _HALF, _SIGN = 32, 16, 31
_HIGH = 0xFFFF0000
#: Masks that clear the sign of a number, and those that change it.
_CLEARING = {"and.b32": (0x7FFFFFFF, "f32"), "and.b64": (0x7FFFFFFFFFFFFFFF, "f64")}
_CHANGING = {"xor.b32": (0x80000000, "f32"), "xor.b64": (0x8000000000000000, "f64")}
#: Instructions of which an order of bytes consists, at least; those that are taken apart, and how deep.
_MANY, _DEPTH = 5, 6
_ONE = 0x3F800000
#: Comparisons with a constant that tell whether a number is negative, and how.
_BELOW: dict[tuple[str, int | None], bool] = {("lt", 0): True, ("ge", 0): False, ("gt", -1): False}


@instructions("shr")
def check_shifts(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    if len(line.item.operands) == 3:
        _warn(context, line, _sign(facts, line) or _rounding(context, facts, line))


@instructions("and", "xor")
def check_masks(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    if len(line.item.operands) != 3:
        return
    better = None
    if isinstance(line.item.operands[-1], Immediate):
        better = _float_sign(facts, line, _number(line, 2)) or _rounding(context, facts, line)
    elif line.item.opcode in _CLEARING or line.item.opcode in _CHANGING:
        better = _float_sign(facts, line, constant(facts, line, line.item.operands[2]))
    if better:
        _warn(context, line, better)
    elif line.plan.family == "xor":
        _warn(context, line, _abs(facts, line, "add.s32", "add.u32"))


@instructions("sub", "max", "selp", "or", "rcp", "div")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    family, opcode = line.plan.family, line.item.opcode
    if len(line.item.operands) != {"selp": 4, "rcp": 2}.get(family, 3):
        return
    if family == "or":
        _warn(context, line, _bytes(facts, line) if opcode == "or.b32" else None)
    elif family == "sub":
        _warn(context, line, _abs(facts, line, "xor.b32") if opcode in ("sub.s32", "sub.u32") else None)
    elif family in ("max", "selp"):
        _warn(context, line, _abs_chosen(facts, line) if opcode in ("max.s32", "selp.b32", "selp.s32") else None)
    elif ".approx" in opcode:
        _warn(context, line, _root(facts, line))


def _warn(context: LintContext, line: Line, better: str | None) -> None:
    if better:
        message = f"'{line.item.opcode}' is the last of several instructions for what one does"
        context.warn(CODE, message, parts_of(line.item).opcode, help=(f"use {better}",), section="9.7.9.25")


def _made(facts: FunctionFacts, line: Line, operand: Operand, *opcodes: str) -> Line | None:
    """The instruction that makes an operand, if it is one of these."""
    found = reaching_write(facts, line, operand.name) if isinstance(operand, Name) else None
    fits = found is not None and found.item.guard is None and found.item.opcode in opcodes
    return found if fits and found is not None and len(found.item.operands) > 1 else None


def _alone(facts: FunctionFacts, made: Line, line: Line, key: RegisterKey | None) -> bool:
    """Whether nothing else reads a result: it is read once, or overwritten where it is read, directly behind."""
    into = line.item.operands[0]
    over = isinstance(into, Name) and line.registers[into.name] == key and facts.behind(made) is line
    return facts.read_counts[key] == 1 or over


def _number(line: Line, place: int) -> int | None:
    operand = line.item.operands[place] if place < len(line.item.operands) else None
    return operand.value if isinstance(operand, Immediate) else None


def _sign(facts: FunctionFacts, line: Line) -> str | None:
    by = _number(line, 2)
    if line.item.opcode != "shr.s32" or by is None or not 0 < by < _WORD:
        return None
    made = _made(facts, line, line.item.operands[1], "shl.b32")
    key = line.registers[line.item.operands[1].name] if isinstance(line.item.operands[1], Name) else None
    if made is None or _number(made, 2) != by or not _alone(facts, made, line, key):
        return None
    return f"cvt.s32.s{_WORD - by}" if by in (16, 24) else f"bfe.s32 of {_WORD - by} bits"


def _rounding(context: LintContext, facts: FunctionFacts, line: Line) -> str | None:
    """(x + 0x7fff + (x >> 16 & 1)) >> 16, the three added in any order; or its high half."""
    shifts = line.item.opcode in ("shr.u32", "shr.b32") and _number(line, 2) == _HALF
    masks = line.item.opcode == "and.b32" and (_number(line, 2) or 0) & 0xFFFFFFFF == _HIGH
    if not (shifts or masks) or not context.declared.target or chip_of(context.declared.target).number < _BF16:
        return None
    terms = _terms(facts, line, line.item.operands[1])
    if len(terms) != 3 or [t.value for _, t in terms if isinstance(t, Immediate)] != [0x7FFF]:
        return None
    names = [term for term in terms if isinstance(term[1], Name)]
    for (where, odd), x in (names, names[::-1]) if len(names) == 2 else ():
        value = value_at(facts, *x)
        bit = _made(facts, where, odd, "bfe.u32")
        if bit is not None and (_number(bit, 2), _number(bit, 3)) == (_HALF, 1):
            return "cvt.rn.bf16.f32" if value_at(facts, bit, bit.item.operands[1]) == value else None
        bit = _made(facts, where, odd, "and.b32")
        high = _made(facts, bit, bit.item.operands[1], "shr.u32", "shr.b32") if bit and _number(bit, 2) == 1 else None
        if high is not None and _number(high, 2) == _HALF:
            return "cvt.rn.bf16.f32" if value_at(facts, high, high.item.operands[1]) == value else None
    return None


def _terms(facts: FunctionFacts, line: Line, operand: Operand, depth: int = 2) -> list[tuple[Line, Operand]]:
    """What is added, each with the instruction that reads it."""
    made = _made(facts, line, operand, "add.u32", "add.s32") if depth else None
    if made is None:
        return [(line, operand)]
    return [term for part in made.item.operands[1:] for term in _terms(facts, made, part, depth - 1)]


def _float_sign(facts: FunctionFacts, line: Line, number: int | None) -> str | None:
    """A sign cleared or changed, if the result is read as a floating-point number."""
    for table, name in ((_CLEARING, "abs"), (_CHANGING, "neg")):
        mask, type_ = table.get(line.item.opcode, (None, ""))
        if (
            mask is None
            or number is None
            or number % (1 << int(type_[1:])) != mask
            or not isinstance(line.item.operands[0], Name)
        ):
            continue
        into = line.item.operands[0]
        key = line.registers[into.name]
        reader = facts.reads.get(key) if key is not None and key not in facts.rewritten else None
        if reader is None or facts.read_counts[key] != 1:
            return None
        if reader.opcode == f"mov.b{type_[1:]}" and isinstance(reader.operands[0], Name):
            symbol = line.names.lookup(reader.operands[0].name)
            return f"{name}.{type_}" if isinstance(symbol, Variable) and symbol.type == type_ else None
        return f"{name}.{type_}" if reader.opcode.endswith(f".{type_}") and "cvt" not in reader.opcode else None
    return None


def _abs(facts: FunctionFacts, line: Line, *opcodes: str) -> str | None:
    """(x ^ m) - m, or (x + m) ^ m, where m is x >> 31."""
    if len(line.item.operands) != 3 or not line.item.opcode.endswith("32"):
        return None
    _, one, other = line.item.operands
    for mixed, mask in ((one, other), (other, one))[: 1 if line.plan.family == "sub" else 2]:
        sign = _made(facts, line, mask, "shr.s32")
        inner = _made(facts, line, mixed, *opcodes) if sign is not None and _number(sign, 2) == _SIGN else None
        if sign is None or inner is None:
            continue
        parts = {value_at(facts, inner, part) for part in inner.item.operands[1:]}
        if parts == {value_at(facts, line, mask), value_at(facts, sign, sign.item.operands[1])}:
            return "abs.s32"
    return None


def _abs_chosen(facts: FunctionFacts, line: Line) -> str | None:
    """max(x, -x), or x < 0 ? -x : x."""
    _, one, other, *choice = line.item.operands
    for negative, x in ((one, other), (other, one)):
        made = _made(facts, line, negative, "neg.s32")
        if made is None or value_at(facts, made, made.item.operands[1]) != value_at(facts, line, x):
            continue
        if line.plan.family == "max":
            return "abs.s32"
        test = _made(facts, line, choice[0], "setp.lt.s32", "setp.gt.s32", "setp.ge.s32") if choice else None
        if test is None or len(test.item.operands) != 3:
            return None
        if value_at(facts, test, test.item.operands[1]) != value_at(facts, line, x):
            return None
        below = _BELOW.get((test.item.opcode.split(".")[1], _number(test, 2)))
        return "abs.s32" if below is not None and below == (negative is one) else None
    return None


def _bytes(facts: FunctionFacts, line: Line) -> str | None:
    """A tree of or, and, shl and shr that moves whole bytes of one register to other places. Each of its operations
    distributes over or, so what becomes of the 32 single bits tells all."""
    into = line.item.operands[0]
    key = line.registers[into.name] if isinstance(into, Name) else None
    reader = facts.reads.get(key) if key is not None else None
    if key is None or (reader is not None and reader.opcode == "or.b32" and facts.read_counts[key] == 1):
        return None  # part of a larger tree
    sources: set[object] = set()
    count = [0]
    bits = _moved(facts, line, sources, count, _DEPTH)
    if bits is None or len(sources) != 1 or count[0] < _MANY:
        return None
    moves = {n: [bits[8 * n + k].bit_length() - 1 - k for k in range(8)] for n in range(4)}
    whole = all(len(set(places)) == 1 and places[0] % 8 == 0 for places in moves.values())
    whole = whole and all(bit.bit_count() == 1 for bit in bits) and len({p[0] for p in moves.values()}) == 4
    if not whole:
        return None
    chosen = {places[0] // 8: n for n, places in moves.items()}
    return f"prmt.b32 with 0x{''.join(str(chosen[n]) for n in (3, 2, 1, 0))}"


def _moved(
    facts: FunctionFacts, line: Line, sources: set[object], count: list[int], depth: int
) -> tuple[int, ...] | None:
    """What becomes of each bit of the one register that a tree of operations reads; None if it has another."""
    count[0] += 1
    family, opcode = line.plan.family, line.item.opcode
    parts = []
    for operand in line.item.operands[1 : 3 if family == "or" else 2]:
        made = _made(facts, line, operand, "or.b32", "and.b32", "shl.b32", "shr.u32", "shr.b32") if depth else None
        if made is None or len(made.item.operands) != 3:
            sources.add(value_at(facts, line, operand))
            parts.append(tuple(1 << n for n in range(_WORD)))
        else:
            part = _moved(facts, made, sources, count, depth - 1)
            if part is None:
                return None
            parts.append(part)
        if len(sources) > 1 or not isinstance(operand, Name):
            return None
    if family == "or":
        return tuple(a | b for a, b in zip(*parts, strict=True)) if len(parts) == 2 else None
    number = _number(line, 2)
    if number is None or (opcode[:2] == "sh" and not 0 <= number < _WORD):
        return None
    if family == "and":
        return tuple(bit & number for bit in parts[0])
    if family == "shl":
        return tuple(bit << number & 0xFFFFFFFF for bit in parts[0])
    return tuple(bit >> number for bit in parts[0])


def _root(facts: FunctionFacts, line: Line) -> str | None:
    """1 / sqrt(x), both approximate."""
    if not line.item.opcode.endswith(".f32") or (line.plan.family == "div" and _number(line, 1) != _ONE):
        return None
    ftz = ".ftz" if ".ftz" in line.item.opcode else ""
    made = _made(facts, line, line.item.operands[-1], f"sqrt.approx{ftz}.f32")
    return f"rsqrt.approx{ftz}.f32" if made is not None else None
