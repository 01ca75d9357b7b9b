"""One independent expectation for every form: Python integers, exact rationals, double precision, nothing of our own.

`expectation(op)` says by what a form is checked and judges outputs; it is None for a form that nothing checks. The
sweep (tools/sweep_semantics.py) applies it to every form, the tests to a share of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxtools import semantics
from ptxtools.isa import Opcode
from ptxtools.program.program import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW
from ptxtools.semantics.types import bits_of, element_of
from ptxtools.semantics.video import Selectors

from . import oracle, test_comparison, test_conversion, test_floating, test_integer, test_video
from .harness import CONTEXT, operands, run_numpy, signature

#: Whether outputs (patterns) are right for inputs (patterns).
Judge = Callable[[list[int], list[int]], bool]
FLOATS = frozenset(("f16", "bf16", "f32", "f64"))
_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW}


@dataclass(frozen=True)
class Expectation:
    """check: what answers are compared with."""

    check: str
    judge: Judge


def expectation(op: Opcode) -> Expectation | None:
    """How a form is checked."""
    chapter = semantics.chapter_of(op)
    if chapter in ("integer", "logic", "extended", "movement"):
        return Expectation("Python integers", _integers(op))
    if chapter in ("floating", "half", "mixed"):
        return Expectation("exact rationals", _floating(op))
    if chapter == "comparison":
        return Expectation("Python numbers", _comparison(op))
    if chapter == "conversion":
        return _conversion(op)
    if chapter == "video":
        return Expectation("Python integers", _video(op))
    return Expectation("double precision, bounds", _approximate(op)) if chapter == "approximate" else None


def failure(op: Opcode, count: int, seed: int = 11) -> str | None:
    """The first tuple of `count` for which the reference engine's outputs are not as expected."""
    expected = expectation(op)
    assert expected is not None
    inputs = _inputs(op, count, seed)
    outputs = run_numpy(op, inputs)
    for i in range(count):
        values, got = [_pattern(x, i) for x in inputs], [_pattern(x, i) for x in outputs]
        if not expected.judge(values, got):
            return f"{op.text}({', '.join(map(hex, values))}): {', '.join(map(hex, got))} against {expected.check}"
    return None


def _inputs(op: Opcode, count: int, seed: int) -> list[Any]:
    types = signature(op).inputs
    if op.name == "cvt" and len(op.types) == 2 and op.types[1] == "f32" and op.types[0] not in FLOATS:
        form = op.types[0].rpartition("x")[0] or op.types[0]
        if form in oracle.LAYOUTS:  # near what the narrow format can hold
            rng = np.random.default_rng(seed)
            return [
                test_conversion.near_format(form, count, rng) if t == "f32" else operands(t, count, rng) for t in types
            ]
    rng = np.random.default_rng(seed)
    return [operands(t, count, rng) for t in types]


def _pattern(x: Any, i: int) -> int:
    return int(x[1][i]) << 64 | int(x[0][i]) if isinstance(x, tuple) else int(x[i])


def _equals(answer: Callable[[list[int]], list[int]]) -> Judge:
    return lambda values, got: got == [int(want) for want in answer(values)]


# --- integers and moves -----------------------------------------------------------------------------------------------


def _integers(op: Opcode) -> Judge:
    if op.carry_in or op.carry_out:
        return _equals(lambda v: test_integer.expected_carry(op, *v))
    if op.type in ("u16x2", "s16x2", "u8x4", "s8x4"):
        return _equals(lambda v: [test_integer.expected_pair(op, *v)])
    if op.family in ("mov", "cvta", "isspacep"):
        return _equals(lambda v: _moved(op, v))
    if op.type == "pred":
        logic = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__, "not": lambda a: 1 - a}[op.family]
        return _equals(lambda v: [logic(*v)])
    mask = (1 << bits_of(signature(op).outputs[0])) - 1
    reference = test_integer.REFERENCES[op.family]
    if op.family == "lop3" and (op.has("and") or op.has("or")):
        return _equals(lambda v: _lop3_with_predicate(op, v))
    return _equals(lambda v: [reference(op, *v) & mask])


def _lop3_with_predicate(op: Opcode, values: list[int]) -> list[int]:
    d, q = test_integer.lop3(op, *values[:4]), values[4]
    return [d, (d != 0 and q) if op.has("and") else (d != 0 or q)]


def _moved(op: Opcode, values: list[int]) -> list[int]:
    if op.family == "mov":
        return values
    space = (op.space or "global").partition("::")[0]
    window = _WINDOWS.get(space, 0)
    if op.family == "cvta":
        moved = values[0] + (-window if op.has("to") else window)
        return [moved % (1 << bits_of(op.type or ""))]
    base, size = CONTEXT["const_base"], CONTEXT["const_size"]
    top = values[0] >> 56
    if space == "const":
        return [base <= values[0] < base + size]
    return [top not in (SHARED_WINDOW >> 56, LOCAL_WINDOW >> 56) if space == "global" else top == window >> 56]


# --- floating point ---------------------------------------------------------------------------------------------------


def _floating(op: Opcode) -> Judge:
    t, count = element_of(op.type or "")
    if len(op.types) > 2:
        return _equals(lambda v: [_mixed(op, v)])
    answer = _float_answer(op, t, count > 1)
    if count == 1:
        if op.family == "testp":
            return _equals(lambda v: [_property(op, t, v[0])])
        return lambda values, got: test_floating.same(t, got[0], answer(values), values)
    width = bits_of(t)
    mask = (1 << width) - 1

    def both(values: list[int], got: list[int]) -> bool:
        parts = ([v >> shift & mask for v in values] for shift in (0, width))
        return got[0] == answer(next(parts)) | answer(next(parts)) << width

    return both


def _mixed(op: Opcode, values: list[int]) -> int:
    """Both elements in exact arithmetic, rounded once."""
    kinds = [element_of(t)[0] for t in op.types]
    widths = [bits_of(kind) for kind in kinds]
    result = 0
    for n in range(2):
        parts = [v >> w * n & (1 << w) - 1 for v, w in zip(values, widths[1:], strict=True)]
        single = [oracle.encode(oracle.decode(p, k), "f32") for p, k in zip(parts, kinds[1:], strict=True)]
        if op.family == "sub":
            single[1] ^= 1 << 31
        mode = next((m for m in ("rz", "rm", "rp") if op.has(m)), "rn")
        operation = "add" if op.family == "sub" else op.family
        if kinds[0] == "f32":
            answer = oracle.arithmetic(operation, "f32", mode, *single)
        else:  # f64 holds the product; of a sum it holds enough to be cut off
            wide = [oracle.encode(oracle.decode(p, "f32"), "f64") for p in single]
            exact = oracle.decode(oracle.arithmetic(operation, "f64", "rz", *wide), "f64")
            answer = oracle.encode(exact, kinds[0], "rz")
        result |= answer << widths[0] * n
    return result


def _float_answer(op: Opcode, t: str, packed: bool) -> Callable[[list[int]], int]:
    sign = oracle.LAYOUTS[t].sign
    if op.family in ("min", "max"):
        return lambda v: test_floating.reference_extreme(op, t, v)
    if op.family in ("neg", "abs"):
        return lambda v: _signed(op, t, v[0] ^ sign if op.family == "neg" else v[0] & sign - 1)
    if op.family == "copysign":
        return lambda v: v[0] & sign | v[1] & sign - 1
    return lambda v: test_floating.expected(op, v, t if packed else None)


def _signed(op: Opcode, t: str, pattern: int) -> int:
    """What .ftz and the NaN rule make of a pattern; f64 keeps everything."""
    if t == "f64":
        return pattern
    pattern = test_floating.flush(pattern, t, op.has("ftz"))
    return oracle.CANONICAL[t] if math.isnan(oracle.decode(pattern, t)) else pattern


def _property(op: Opcode, t: str, pattern: int) -> bool:
    x = oracle.decode(pattern, t)
    form = oracle.LAYOUTS[t]
    small = 0 < pattern & form.sign - 1 < 1 << form.mantissa
    finite = math.isfinite(x)
    answers = {
        "finite": finite, "infinite": math.isinf(x), "number": not math.isnan(x), "notanumber": math.isnan(x),
        "subnormal": small, "normal": finite and not small,
    }  # fmt: skip
    return next(answer for name, answer in answers.items() if op.has(name))


def _comparison(op: Opcode) -> Judge:
    if op.family == "setp":
        return _equals(lambda v: list(map(int, test_comparison.expected_setp(op, *v))))
    if op.family == "set":
        return _equals(lambda v: [test_comparison.expected_set(op, *v)])
    if op.family == "selp":
        return _equals(lambda v: [v[0] if v[2] else v[1]])
    source = op.types[-1]

    def chosen(values: list[int]) -> list[int]:
        a, b, c = values
        x: Any = oracle.number(c, source) if source == "s32" else oracle.decode(
            test_floating.flush(c, source, op.has("ftz")), source
        )  # fmt: skip
        return [a if x >= 0 else b]

    return _equals(chosen)


# --- conversions ------------------------------------------------------------------------------------------------------


def _conversion(op: Opcode) -> Expectation | None:
    if op.name == "cvt.pack":
        return Expectation("Python integers", _equals(lambda v: [_packed(op, v)]))
    target, source = op.types
    scalar = FLOATS | {f"{kind}{bits}" for kind in "us" for bits in (8, 16, 32, 64)}
    if target in scalar and source in scalar:
        return Expectation("exact rationals", _scalar_conversion(op, target, source))
    if op.has("rs"):
        return Expectation("both neighbours, exact", _stochastic(op))
    if target == "ue8m0x2":
        return Expectation("exact rationals", _equals(lambda v: [_scales(op, v)]))
    if target == "tf32":
        return Expectation("exact rationals", _equals(lambda v: [_tf32(op, v[0])]))
    if target == "s2f6x2":
        return Expectation("exact rationals", _equals(lambda v: [_fixed(op, v)]))
    form, _ = element_of(target)
    if op.has("scaled::n1::ue8m0"):
        return Expectation("exact rationals", _equals(lambda v: [test_conversion.divided(op, form, v)]))
    if source == "f32":
        bits = test_conversion.stored_bits(form)
        return Expectation("exact rationals", _equals(
            lambda v: [test_conversion.narrow_one(op, form, v[0]) << bits | test_conversion.narrow_one(op, form, v[1])]
        ))  # fmt: skip
    if source in ("f16x2", "bf16x2"):
        return Expectation("exact rationals", _equals(lambda v: [_half_pair(op, form, v[0])]))
    return Expectation("exact rationals", _equals(lambda v: [_widened(op, form, element_of(source)[0], *v)]))


def _packed(op: Opcode, values: list[int]) -> int:
    target = op.types[0]
    bits = int(target[1:])
    a, b = (oracle.clamp(oracle.number(v, "s32"), target) & (1 << bits) - 1 for v in values[:2])
    rest = values[2] << 2 * bits if len(values) == 3 else 0
    return (rest | a << bits | b) & 0xFFFF_FFFF


def _scalar_conversion(op: Opcode, target: str, source: str) -> Judge:
    def judge(values: list[int], got: list[int]) -> bool:
        if target in FLOATS:
            return test_floating.same(target, got[0], test_conversion.to_float(op, target, source, values[0]), values)
        want = oracle.number(test_conversion.to_integer(op, target, source, values[0]), target)
        return got[0] == want & (1 << max(16, int(target[1:]))) - 1

    return judge


def _half_pair(op: Opcode, form: str, pattern: int) -> int:
    source, _ = element_of(op.types[1])
    high, low = (oracle.encode(oracle.decode(p, source), "f32") for p in (pattern >> 16, pattern & 0xFFFF))
    return test_conversion.narrow_one(op, form, high) << test_conversion.stored_bits(form) | test_conversion.narrow_one(
        op, form, low
    )


def _widened(op: Opcode, target: str, source: str, pattern: int, scales: int = 0x7F7F) -> int:
    """A pair of narrow numbers times their scales; the formats without infinity have one NaN or none."""
    bits = test_conversion.stored_bits(source)
    result = 0
    for shift, place, scale in ((0, 0, scales & 255), (bits, 16, scales >> 8)):
        code = pattern >> shift & (1 << {"e2m3": 6, "e3m2": 6}.get(source, bits)) - 1
        if source == "ue8m0":
            value = oracle.encode(oracle.Fraction(2) ** (code - 127), target) if code < 255 else 0x7FFF
        else:
            value = _scaled(op, target, _number(code, source), scale)
        result |= value << place
    return result


def _number(code: int, source: str) -> oracle.Number:
    """A narrow number: s2f6 counts 64ths, ue5m3 has no sign."""
    if source == "s2f6":
        return oracle.Fraction(oracle.number(code, "s8"), 64)
    if source == "ue5m3":
        field, mantissa = code >> 3, code & 7 | (8 if code > 7 else 0)
        return math.nan if code == 255 else mantissa * oracle.Fraction(2) ** (max(field, 1) - 18)
    return oracle.decode(code, source)


def _scaled(op: Opcode, target: str, x: oracle.Number, scale: int) -> int:
    if scale == 255 or math.isnan(x):
        return 0x7FFF
    if op.has("relu") and oracle.is_negative(x):
        return 0
    if not oracle.is_special(x) and x != 0:
        x = oracle.exact(x) * oracle.Fraction(2) ** (scale - 127)
    elif x == 0:
        x = math.copysign(0.0, x)
    return oracle.encode(x, target, satfinite=op.has("satfinite"))


def _fixed(op: Opcode, values: list[int]) -> int:
    """s2f6: 64ths in a signed byte. Sources are divided by their scales, and NaN is the largest."""
    scales = values[-1] if op.has("scaled::n2::ue8m0") else 0x7F7F
    if op.types[1] == "bf16x2":
        values = [values[0] & 0xFFFF_0000, values[0] << 16 & 0xFFFF_FFFF]
    result = 0
    for pattern, scale, place in ((values[0], scales >> 8, 8), (values[1], scales & 255, 0)):
        x = oracle.decode(pattern, "f32")
        if math.isnan(x) or scale == 255:
            number = 127
        elif math.isinf(x):
            number = 127 if x > 0 else -128
        else:
            exact = oracle.exact(x) * 64 / oracle.Fraction(2) ** (scale - 127)
            number = oracle.clamp(math.trunc(exact) if op.has("rz") else round(exact), "s8")
        result |= (max(number, 0) if op.has("relu") else number) % 256 << place
    return result


def _tf32(op: Opcode, pattern: int) -> int:
    x = oracle.decode(pattern, "f32")
    if math.isnan(x):
        return 0x7FFF_FFFF
    if op.has("relu") and oracle.is_negative(x):
        return 0
    return test_conversion.narrow_number(op, "tf32", x) << 13


def _scales(op: Opcode, values: list[int]) -> int:
    if op.types[1] == "bf16x2":
        values = [values[0] & 0xFFFF_0000, values[0] << 16 & 0xFFFF_FFFF]
    high, low = (test_conversion.scale_of(op, v) for v in values)
    return high << 8 | low


def _stochastic(op: Opcode) -> Judge:
    """Each result is a neighbour of its source; an exact source, an infinity or a NaN has one."""
    form, count = element_of(op.types[0])
    bits = test_conversion.stored_bits(form)
    satfinite = op.has("satfinite")

    def allowed(pattern: int) -> set[int]:
        x = oracle.decode(pattern, "f32")
        if isinstance(x, float) or (op.has("relu") and oracle.is_negative(x)):
            return {test_conversion.narrow_one(op, form, pattern)}
        away = oracle.encode(x, form, "rm" if x < 0 else "rp", satfinite=satfinite)
        return {oracle.encode(x, form, "rz", satfinite=satfinite), away} | _beyond(form, away)

    def judge(values: list[int], got: list[int]) -> bool:
        parts = [got[0] >> bits * (count - 1 - i) & (1 << bits) - 1 for i in range(count)]
        return all(part in allowed(value) for part, value in zip(parts, values, strict=False))

    return judge


def _beyond(form: str, away: int) -> set[int]:
    """Beyond the range the manual leaves infinity and the largest number."""
    layout = oracle.LAYOUTS[form]
    return (
        {away & layout.sign | layout.infinity}
        if layout.infinity and away & layout.sign - 1 >= layout.largest
        else set()
    )


# --- video ------------------------------------------------------------------------------------------------------------


def _video(op: Opcode) -> Judge:
    if op.section.startswith("9.7.18.2"):
        return _equals(lambda v: [test_video.simd(op, *v, Selectors())])
    if op.family == "vmad":
        return _equals(lambda v: [test_video.vmad(op, *v, Selectors())])
    return _equals(lambda v: [test_video.scalar(op, v[0], v[1], v[2] if len(v) > 2 else None, Selectors())])


# --- approximate functions --------------------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Callable[..., float]] = {
    "rcp": lambda x: 1 / x, "sqrt": math.sqrt, "rsqrt": lambda x: 1 / math.sqrt(x), "lg2": math.log2,
    "ex2": lambda x: 2.0**x, "sin": math.sin, "cos": math.cos, "tanh": math.tanh, "div": lambda x, y: x / y,
}  # fmt: skip
#: Greatest error, as powers of two: relative for most, absolute for those of bounded range; by type for 16 bits.
_ERROR = {"f32": -20.5, "f64": -19.9, "f16": -9.9, "bf16": -7.0}
_TANH_ERROR = {"f32": -10.9, "f16": -10.9, "bf16": -7.9}


def _approximate(op: Opcode) -> Judge:
    t, count = element_of(op.type or "")
    if count == 1:
        return lambda values, got: _near(op, t, values, got[0])
    return lambda values, got: all(
        _near(op, t, [v >> s & 0xFFFF for v in values], got[0] >> s & 0xFFFF) for s in (0, 16)
    )


def _near(op: Opcode, t: str, patterns: list[int], got: int) -> bool:
    """Within the bound, for arguments and results that are ordinary numbers; special ones have their own tests."""
    x = [float(oracle.decode(p, t)) for p in patterns]
    least = 2.0 ** (2 - oracle.LAYOUTS[t].bias)
    try:
        exact = _FUNCTIONS[op.family](*x)
    except (ValueError, ZeroDivisionError, OverflowError):
        return True
    if not all(least < abs(v) < 1 / least for v in x) or math.isnan(exact):
        return True
    if op.family in ("sin", "cos") and abs(x[0]) > math.pi:
        return bool(abs(float(oracle.decode(got, t))) <= 1)
    if op.family not in ("sin", "cos", "tanh", "lg2") and not least < abs(exact) < 1 / least / 4:
        return True
    number = float(oracle.decode(got, t))
    if op.family in ("sin", "cos", "lg2"):
        return bool(abs(number - exact) <= 2.0 ** _ERROR[t] * max(1, abs(exact)))
    error = (_TANH_ERROR if op.family == "tanh" else _ERROR)[t]
    return bool(abs(number - exact) <= 2.0**error * abs(exact))
