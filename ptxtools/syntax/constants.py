"""Constants and constant expressions (4.5): literals, their types, and constant folding.

Integers are 64 bits wide, signed ("s64") or unsigned ("u64"), and wrap modulo 2^64. Floating-point arithmetic uses
64-bit doubles ("f64"). A `0f…` literal ("f32") keeps its 32 bits and is not allowed in expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ptxtools.ir import Immediate

#: Threads in a warp: the value of the predefined constant WARP_SZ (4.5.1).
WARP_SZ = 32

_MASK = (1 << 64) - 1
_SIGN = 1 << 63
_INTEGER = re.compile(r"(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)(U?)", re.ASCII)
_FLOAT = re.compile(r"(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+", re.ASCII)
_SINGLE = re.compile(r"0[fF]([0-9a-fA-F]{8})", re.ASCII)
_DOUBLE = re.compile(r"0[dD]([0-9a-fA-F]{16})", re.ASCII)


class ConstantError(Exception):
    """A literal or an expression has no value. `code` is the syntax code of the reason."""

    def __init__(self, code: str, message: str, *help: str) -> None:
        super().__init__(message)
        self.code, self.message, self.help = code, message, help


def literal(text: str) -> Immediate:
    """The value of one literal as written (4.5.1, 4.5.2)."""
    match = _INTEGER.fullmatch(text)
    if match:
        value = _integer(text.rstrip("U"))
        if value > _MASK:
            raise ConstantError("PTX104", f"the constant {text} does not fit 64 bits")
        return Immediate(value, "u64" if match[1] or value >= _SIGN else "s64")
    if match := _SINGLE.fullmatch(text):
        return Immediate(int(match[1], 16), "f32")
    if match := _DOUBLE.fullmatch(text):
        return Immediate(int(match[1], 16), "f64")
    if _FLOAT.fullmatch(text):
        real = float(text)
        if real == float("inf"):
            raise ConstantError("PTX104", f"the constant {text} does not fit a 64-bit float")
        return _real(real)
    if text == "WARP_SZ":
        return Immediate(WARP_SZ, "s64")
    raise ConstantError("PTX103", f"malformed number '{text}'", *_advice(text))


def _integer(digits: str) -> int:
    if digits[:2] in ("0b", "0B"):
        return int(digits[2:], 2)
    if digits[:2] in ("0x", "0X"):
        return int(digits[2:], 16)
    if len(digits) > 400:  # int() of a long decimal text takes quadratic time, and no such number fits
        return _MASK + 1
    return int(digits, 8) if digits[0] == "0" else int(digits)


def _advice(text: str) -> tuple[str, ...]:
    if text[:2] in ("0f", "0F"):
        return ("a single-precision constant is 0f and exactly 8 hexadecimal digits",)
    if text[:2] in ("0d", "0D"):
        return ("a double-precision constant is 0d and exactly 16 hexadecimal digits",)
    if text[-1] == "u":
        return ("the suffix of an unsigned constant is a capital U",)
    if text[0] == "0" and text.isdigit():
        return ("a leading 0 makes the constant octal; its digits are 0 to 7",)
    if text[-1] in "fF" and text[:2] not in ("0x", "0X"):
        return ("floating-point constants have no suffix in PTX",)
    return ()


def number(constant: Immediate) -> Any:
    """The mathematical value of a constant: an int, or a float."""
    if constant.type == "f64":
        return _unpack("<d", "<Q", constant.value)
    if constant.type == "f32":
        return _unpack("<f", "<I", constant.value)
    return constant.value


def as_integer(constant: Immediate) -> int:
    """A constant where the language requires an integer (an offset, an index, a size), as a signed 64-bit value."""
    if constant.type[0] == "f":
        raise ConstantError("PTX105", "an integer constant is required here")
    return _wrap(constant.value, signed=True)


def _wrap(value: int, signed: bool) -> int:
    value &= _MASK
    return value - (1 << 64) if signed and value & _SIGN else value


def _whole(value: int, kind: str) -> Immediate:
    return Immediate(_wrap(value, kind == "s64"), kind)


def _truth(value: object) -> Immediate:
    return Immediate(1 if value else 0, "s64")


def _real(value: float) -> Immediate:
    return Immediate(_unpack("<Q", "<d", value), "f64")


def _unpack(kind: str, stored: str, value: float) -> Any:
    """The same bytes as another type."""
    import struct  # few modules have floating-point expressions

    return struct.unpack(kind, struct.pack(stored, value))[0]


def _divide(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)  # C rounds towards zero
    return -quotient if (a < 0) != (b < 0) else quotient


# The second operand of a shift counts modulo 64, as in ptxas; 4.5.5 does not say.
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def _need_integers(operator: str, *operands: Immediate) -> None:
    if any(operand.type[0] == "f" for operand in operands):
        raise ConstantError("PTX105", f"the operator '{operator}' requires integer constants")


def _need_double(*operands: Immediate) -> None:
    if any(operand.type == "f32" for operand in operands):
        raise ConstantError(
            "PTX105",
            "a 0f constant cannot be part of an expression",
            "write the value as a decimal or 0d constant, or put the sign into its bits",
        )


def unary(operator: str, operand: Immediate) -> Immediate:
    """`+a`, `-a`, `!a`, `~a` (4.5.5)."""
    _need_double(operand)
    if operator == "!":
        _need_integers(operator, operand)
        return _truth(operand.value == 0)
    if operator == "~":
        _need_integers(operator, operand)
        return _whole(~operand.value, "u64")
    if operator == "+":
        return operand
    if operand.type == "f64":
        return Immediate(operand.value ^ _SIGN, "f64")
    return _whole(-operand.value, operand.type)


def cast(kind: str, operand: Immediate) -> Immediate:
    """`(.s64)a` and `(.u64)a`, the only casts (4.5.5)."""
    if kind not in ("s64", "u64"):
        raise ConstantError("PTX105", f"a constant cannot be cast to .{kind}", "casts are to .s64 or .u64")
    _need_integers(f"(.{kind})", operand)
    return _whole(operand.value, kind)


def _common(a: Immediate, b: Immediate) -> str:
    """The type after the usual arithmetic conversions."""
    return "u64" if "u64" in (a.type, b.type) else "s64"


def binary(operator: str, a: Immediate, b: Immediate) -> Immediate:
    """`a operator b` with the typing of 4.5.5 and 4.5.6."""
    _need_double(a, b)
    if "f64" in (a.type, b.type):
        return _float_binary(operator, a, b)
    if operator in ("&&", "||"):
        return _truth(a.value and b.value if operator == "&&" else a.value or b.value)
    if operator in ("<<", ">>"):
        count = b.value & 63
        return _whole(a.value << count if operator == "<<" else a.value >> count, a.type)
    if operator in ("/", "%") and b.value == 0:
        raise ConstantError("PTX106", "division by zero in a constant expression")
    if operator == "%":
        return _whole((a.value & _MASK) % (b.value & _MASK), "s64")
    kind = _common(a, b)
    x, y = _wrap(a.value, kind == "s64"), _wrap(b.value, kind == "s64")
    if operator in _COMPARISONS:
        return _truth(_COMPARISONS[operator](x, y))
    return _whole(_ARITHMETIC[operator](x, y), kind)


def _float_binary(operator: str, a: Immediate, b: Immediate) -> Immediate:
    if a.type != b.type:
        raise ConstantError(
            "PTX105", f"the operator '{operator}' mixes an integer and a floating-point constant",
            "write both as integers, or both with a decimal point",
        )  # fmt: skip
    x, y = number(a), number(b)
    if operator in _COMPARISONS:
        return _truth(_COMPARISONS[operator](x, y))
    if operator == "/" and y == 0:
        raise ConstantError("PTX106", "division by zero in a constant expression")
    if operator not in ("+", "-", "*", "/"):
        _need_integers(operator, a, b)
    try:
        return _real({"+": x + y, "-": x - y, "*": x * y}[operator] if operator != "/" else x / y)
    except OverflowError:
        raise ConstantError("PTX104", "the result does not fit a 64-bit float") from None


def conditional(test: Immediate, then: Immediate, other: Immediate) -> Immediate:
    """`test ? then : other` (4.5.5)."""
    _need_double(test, then, other)
    _need_integers("?:", test)
    if "f64" in (then.type, other.type):
        if then.type != other.type:
            raise ConstantError("PTX105", "the operator '?:' mixes an integer and a floating-point constant")
        return then if test.value else other
    return _whole((then if test.value else other).value, _common(then, other))


def masked(mask: Immediate, operand: Immediate) -> Immediate:
    """`mask(expression)` of an integer in an initialiser: the masked bits, shifted to bit 0 (5.4.4)."""
    _need_integers("mask()", operand)
    shift = mask_shift(mask)
    return Immediate((operand.value >> shift) & 0xFF, "s64")


def mask_shift(mask: Immediate) -> int:
    """The position of the byte that a mask selects; a mask is 0xff, 0xff00, … 0xff00000000000000 (5.4.4)."""
    shift = next((at for at in range(0, 64, 8) if mask.type[0] != "f" and mask.value == 0xFF << at), None)
    if shift is None:
        raise ConstantError("PTX107", "a mask must select one byte", "the masks are 0xff, 0xff00, … 0xff00000000000000")
    return shift
