"""Video instructions (9.7.18): arithmetic on bytes and half-words picked from 32-bit registers.

The selected parts are given by suffixes of the operands, not of the opcode: they are passed as `selectors`.
Intermediate results are exact integers, cut or clamped at the end: of 64 bits, in SIMD instructions of 32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ptxtools.records import dataclass
from ptxtools.semantics.algebra import Algebra, Value
from ptxtools.semantics.registry import defines_value

if TYPE_CHECKING:
    from ptxtools.isa import Opcode

video = partial(defines_value, "video")


@dataclass(frozen=True, slots=True)
class Selectors:
    """Suffixes of d, a and b as written, without the dot ("" for none), and which of a, b, c carry a minus (vmad).

    Scalar: "b0" to "b3", "h0", "h1". SIMD: d "h10" or "b3210" and parts of it, a and b "hxy" or "bwxyz" with the parts
    of a and b numbered on (a 0 and 1, b 2 and 3; bytes: a 0 to 3, b 4 to 7).
    """

    d: str = ""
    a: str = ""
    b: str = ""
    negated: tuple[bool, bool, bool] = (False, False, False)


def _part(A: Algebra, x: Value, t: str, selector: str) -> Value:
    """The selected byte, half-word or word, extended to s64 by the type's sign."""
    return A.resize(t[0] + "32", "s64", _cut(A, x, t, selector))


def _cut(A: Algebra, x: Value, t: str, selector: str) -> Value:
    """The selected byte, half-word or word, extended to 32 bits by the type's sign."""
    width = {"b": 8, "h": 16}.get(selector[:1], 32)
    source = t[0] + "32"
    if width < 32:
        position = width * int(selector[1])
        x = A.shr_by(source, A.shl_by(source, x, 32 - width - position), 32 - width)
    return x


def _clamp(A: Algebra, x: Value, signed: bool, width: int, t: str = "s64") -> Value:
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    return A.minimum(t, A.maximum(t, x, A.const(t, low)), A.const(t, high))


def _word(A: Algebra, x: Value) -> Value:
    return A.resize("s64", "u32", x)


def _finish(A: Algebra, op: Opcode, signed: bool, result: Value, c: Value | None, selectors: Selectors) -> Value:
    """Saturation, then the secondary operation or the merge into c (9.7.18.1)."""
    width = {"b": 8, "h": 16}.get(selectors.d[:1], 32)
    if op.has("sat"):
        result = _clamp(A, result, signed, width)
    if c is None:
        return _word(A, result)
    if selectors.d:
        position = width * int(selectors.d[1])
        mask = ((1 << width) - 1) << position
        placed = A.and_with("u32", A.shl_by("u32", _word(A, result), position), mask)
        return A.or_("u32", placed, A.and_with("u32", c, ~mask))
    third = A.resize("s32" if signed else "u32", "s64", c)
    if op.has("min"):
        return _word(A, A.minimum("s64", result, third))
    if op.has("max"):
        return _word(A, A.maximum("s64", result, third))
    return _word(A, A.add("s64", result, third))


def _difference(A: Algebra, t: str, x: Value, y: Value) -> Value:
    return A.sub(t, A.maximum(t, x, y), A.minimum(t, x, y))


def _average(A: Algebra, t: str, x: Value, y: Value) -> Value:
    """Rounded up where the sum is not negative (9.7.18.2.1)."""
    total = A.add(t, x, y)
    up = A.compare("ge", t, total, A.const(t, 0))
    return A.shr_by(t, A.add(t, total, A.resize("pred", t, up)), 1)


_OPERATIONS: dict[str, Callable[[Algebra, str, Value, Value], Value]] = {
    "vadd": lambda A, t, x, y: A.add(t, x, y),
    "vsub": lambda A, t, x, y: A.sub(t, x, y),
    "vabsdiff": _difference,
    "vmin": lambda A, t, x, y: A.minimum(t, x, y),
    "vmax": lambda A, t, x, y: A.maximum(t, x, y),
    "vavrg": _average,
}


@video("vadd", "vsub", "vabsdiff", "vmin", "vmax")
def scalar(
    A: Algebra, op: Opcode, a: Value, b: Value, c: Value | None = None, *, selectors: Selectors = Selectors()
) -> Value:
    """9.7.18.1.1: types are (dtype, atype, btype)."""
    dtype, atype, btype = op.types
    x, y = _part(A, a, atype, selectors.a), _part(A, b, btype, selectors.b)
    return _finish(A, op, dtype[0] == "s", _OPERATIONS[op.family](A, "s64", x, y), c, selectors)


@video("vshl", "vshr")
def shift(
    A: Algebra, op: Opcode, a: Value, b: Value, c: Value | None = None, *, selectors: Selectors = Selectors()
) -> Value:
    """9.7.18.1.2"""
    dtype, atype, _ = op.types
    x, n = _part(A, a, atype, selectors.a), _word(A, _part(A, b, "u32", selectors.b))
    n = A.and_with("u32", n, 31) if op.has("wrap") else A.minimum("u32", n, A.const("u32", 32))
    if not op.has("sat") and (c is None or selectors.d):
        return _finish(A, op, dtype[0] == "s", _short_shift(A, op, atype, x, n), c, selectors)
    distance = A.resize("u32", "s64", n)
    if op.family == "vshr":
        result = A.shr("s64", x, distance)
    else:
        # A shift by 32 leaves 64 bits: only that it is out of range, its sign and its zeros below count.
        far = A.shl_by("s64", _clamp(A, x, True, 2), 40)
        whole = A.compare("eq", "u32", n, A.const("u32", 32))
        result = A.select("s64", whole, far, A.shl("s64", x, A.and_with("s64", distance, 31)))
    return _finish(A, op, dtype[0] == "s", result, c, selectors)


def _short_shift(A: Algebra, op: Opcode, atype: str, x: Value, n: Value) -> Value:
    """A shift by at most 32 of which only the lower 32 bits count."""
    t = "s32" if atype[0] == "s" and op.family == "vshr" else "u32"
    word = _word(A, x)
    if t == "s32":
        return A.resize("s32", "s64", A.shr(t, word, A.minimum("u32", n, A.const("u32", 31))))
    result = (A.shl if op.family == "vshl" else A.shr)(t, word, A.and_with(t, n, 31))
    inside = A.compare("lt", "u32", n, A.const("u32", 32))
    return A.resize("u32", "s64", A.select("u32", inside, result, A.const("u32", 0)))


@video("vset")
def vset(
    A: Algebra, op: Opcode, a: Value, b: Value, c: Value | None = None, *, selectors: Selectors = Selectors()
) -> Value:
    """9.7.18.1.4: types are (atype, btype); 1 where the comparison holds."""
    atype, btype = op.types
    x, y = _part(A, a, atype, selectors.a), _part(A, b, btype, selectors.b)
    return _finish(A, op, False, A.resize("pred", "u64", A.compare(_condition(op), "s64", x, y)), c, selectors)


def _condition(op: Opcode) -> str:
    return next(name for name in ("eq", "ne", "lt", "le", "gt", "ge") if op.has(name))


@video("vmad")
def vmad(A: Algebra, op: Opcode, a: Value, b: Value, c: Value, *, selectors: Selectors = Selectors()) -> Value:
    """9.7.18.1.3: the sum of the product and c, scaled and saturated; of 65 bits for some unsigned factors."""
    _, atype, btype = op.types
    a_negated, b_negated, c_negated = selectors.negated
    negated = a_negated != b_negated
    signed = "s" in (atype[0], btype[0]) or negated or c_negated
    x, y = _part(A, a, atype, selectors.a), _part(A, b, btype, selectors.b)
    low, high = A.mul("s64", x, y), None
    if signed and atype[0] == btype[0] == "u":  # else the sum has 64 bits
        high = A.mul_high("s64", x, y)
    one = op.has("po") or negated or c_negated
    if negated and not op.has("po"):
        low, high = A.not_("u64", low), None if high is None else A.not_("u64", high)
    elif c_negated and not op.has("po"):
        c = A.not_("u32", c)
    third = A.resize("s32" if signed else "u32", "s64", c)
    low, high = _add(A, low, high, third, A.shr_by("s64", third, 63))
    if one:
        low, high = _add(A, low, high, A.const("u64", 1), A.const("u64", 0))
    scale = 7 if op.has("shr7") else 15 if op.has("shr15") else 0
    if scale and high is None:
        low = A.shr_by("s64" if signed else "u64", low, scale)
    elif scale:
        low = A.or_("u64", A.shr_by("u64", low, scale), A.shl_by("u64", high, 64 - scale))
    if not op.has("sat"):
        return _word(A, low)
    if signed:
        return _word(A, _clamp(A, low, True, 32))
    return _word(A, A.minimum("u64", low, A.const("u64", 0xFFFF_FFFF)))


def _add(A: Algebra, low: Value, high: Value, other_low: Value, other_high: Value) -> tuple[Value, Value]:
    """A sum of 128 bits; of 64, where `high` is None."""
    total = A.add("u64", low, other_low)
    if high is None:
        return total, None
    carry = A.resize("pred", "u64", A.compare("lt", "u64", total, low))
    return total, A.add("u64", A.add("u64", high, other_high), carry)


# --- SIMD -------------------------------------------------------------------------------------------------------------


@video("vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vset2",
       "vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4", "vset4")  # fmt: skip
def simd(A: Algebra, op: Opcode, a: Value, b: Value, c: Value, *, selectors: Selectors = Selectors()) -> Value:
    """9.7.18.2: elements chosen from both registers; results merged into c, or summed onto it with .add."""
    count = int(op.family[-1])
    width = 32 // count
    kind = "h" if count == 2 else "b"
    numbers = {"h": ("10", "32"), "b": ("3210", "7654")}[kind]
    first = _elements(A, a, b, selectors.a[1:] or numbers[0], op.types[-2], kind)
    second = _elements(A, a, b, selectors.b[1:] or numbers[1], op.types[-1], kind)
    results = [_simd_result(A, op, x, y, width) for x, y in zip(first, second, strict=True)]
    chosen = selectors.d[1:] or numbers[0]
    total = c
    for i in range(count):
        if str(i) not in chosen:
            continue
        if op.has("add"):
            total = A.add("u32", total, results[i])
        else:
            mask = ((1 << width) - 1) << width * i
            placed = A.and_with("u32", A.shl_by("u32", results[i], width * i), mask)
            total = A.or_("u32", A.and_with("u32", total, ~mask), placed)
    return total


def _elements(A: Algebra, a: Value, b: Value, numbers: str, t: str, kind: str) -> list[Value]:
    """Elements by number, the last digit first (lowest position)."""
    count = 2 if kind == "h" else 4
    picked = [int(digit) for digit in reversed(numbers)]
    return [_cut(A, b if n >= count else a, t, f"{kind}{n % count}") for n in picked]


def _simd_result(A: Algebra, op: Opcode, x: Value, y: Value, width: int) -> Value:
    if op.family.startswith("vset"):
        return A.resize("pred", "u32", A.compare(_condition(op), "s32", x, y))
    result = _OPERATIONS[op.family[:-1]](A, "s32", x, y)
    return _clamp(A, result, op.types[0][0] == "s", width, "s32") if op.has("sat") else result
