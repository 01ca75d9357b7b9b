"""printf of kernels: a format string and packed arguments to text, as the C library would print it.

The caller packs arguments as C promotes them: int in 4 bytes, anything longer and double in 8, each at its own
alignment. `long`, `size_t`, `ptrdiff_t` and `intmax_t` have 8 bytes.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from functools import lru_cache

from ptxtools.records import dataclass

_CONVERSION = re.compile(
    rb"%(?P<flags>[-+ #0']*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|-?\d*))?"
    rb"(?P<length>hh|h|ll|l|j|z|t|L|q)?(?P<kind>[diouxXeEfFgGaAcspn%])"
)
#: Bits of an integer by its length modifier; others have 64.
_BITS = {b"": 32, b"h": 16, b"hh": 8}
#: Longest field that is padded: more than that is a mistake of the kernel, not a wish.
_MOST = 1 << 20


@dataclass(frozen=True, slots=True)
class Conversion:
    """One `%…`: kind is its last letter; width and precision: a number, "*" for an argument, None if absent."""

    kind: str
    flags: str = ""
    width: int | str | None = None
    precision: int | str | None = None
    length: bytes = b""

    def arguments(self) -> list[int]:
        """Bytes of the arguments that it takes, stars first."""
        stars = [4 for part in (self.width, self.precision) if part == "*"]
        if self.kind == "%":
            return stars
        small = self.kind == "c" or (self.kind in "diouxX" and self.length in _BITS)
        return [*stars, 4 if small else 8]


@dataclass(frozen=True, slots=True)
class Format:
    """A format string, taken apart once. parts: plain text, and conversions with the place (offset, bytes) of each of
    their packed arguments; size: bytes of all of them; count: their number, which `vprintf` of a device returns."""

    parts: tuple[bytes | tuple[Conversion, tuple[tuple[int, int], ...]], ...]
    size: int
    count: int


@lru_cache(maxsize=256)
def parse(text: bytes) -> Format:
    """A format string's parts, in order. What is no conversion is plain text."""
    parts: list[bytes | tuple[Conversion, tuple[tuple[int, int], ...]]] = []
    at = end = count = 0
    for found in _CONVERSION.finditer(text):
        if found.start() > at:
            parts.append(text[at : found.start()])
        at = found.end()
        sizes = _size(found["width"]), _size(found["precision"])
        conversion = Conversion(found["kind"].decode(), found["flags"].decode(), *sizes, found["length"] or b"")
        places = []
        for size in conversion.arguments():
            end = -(-end // size) * size + size
            places.append((end - size, size))
        count += len(places)
        parts.append((conversion, tuple(places)))
    if at < len(text):
        parts.append(text[at:])
    return Format(tuple(parts), end, count)


def _size(text: bytes | None) -> int | str | None:
    if text is None or text == b"*":
        return None if text is None else "*"
    return min(int(text or b"0"), _MOST)


def render(form: Format, packed: bytes, string: Callable[[int], bytes]) -> bytes:
    """The text of a format. packed: the arguments; string: the bytes of a C string at an address."""
    out: list[bytes] = []
    for part in form.parts:
        if isinstance(part, bytes):
            out.append(part)
        else:
            values = [int.from_bytes(packed[at : at + size], "little") for at, size in part[1]]
            out.append(_convert(part[0], values, string))
    return b"".join(out)


def _convert(conversion: Conversion, values: list[int], string: Callable[[int], bytes]) -> bytes:
    if conversion.kind == "%":
        return b"%"
    flags, width, precision = conversion.flags, conversion.width, conversion.precision
    if width == "*":
        width = _signed(values.pop(0), 32)
        if width < 0:
            flags, width = flags + "-", -width
    if precision == "*":
        precision = _signed(values.pop(0), 32)
    assert not isinstance(width, str) and not isinstance(precision, str)
    if precision is not None:
        precision = None if precision < 0 else min(precision, _MOST)
    width = min(width or 0, _MOST)
    value, kind = values[0], conversion.kind
    if kind == "n":  # not supported by devices: nothing is stored
        return b""
    if kind == "c":
        return _pad(b"", bytes([value & 255]), width, flags, zeros=False)
    if kind == "s":
        return _pad(b"", (string(value) if value else b"(null)")[:precision], width, flags, zeros=False)
    if kind == "p":
        return _pad(b"", f"{value:#x}".encode() if value else b"(nil)", width, flags, zeros=False)
    if kind in "diouxX":
        return _integer(kind, value, flags, width, precision, _BITS.get(conversion.length, 64))
    return _float(kind, struct.unpack("<d", value.to_bytes(8, "little"))[0], flags, width, precision)


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


def _integer(kind: str, value: int, flags: str, width: int, precision: int | None, bits: int) -> bytes:
    if kind in "di":
        number = _signed(value, bits)
        sign, digits = _sign(number < 0, flags), str(abs(number))
    else:
        number = value & (1 << bits) - 1
        form = "d" if kind == "u" else kind
        sign, digits = "", format(number, form)
        if "#" in flags and number and kind in "xX":
            sign = "0" + kind
    if precision is not None:
        digits = digits.rjust(precision, "0") if precision or number else ""
    if kind == "o" and "#" in flags and not digits.startswith("0"):
        digits = "0" + digits
    return _pad(sign.encode(), digits.encode(), width, flags, zeros=precision is None)


def _float(kind: str, value: float, flags: str, width: int, precision: int | None) -> bytes:
    sign = _sign(math.copysign(1.0, value) < 0, flags)
    value = abs(value)
    if not math.isfinite(value):
        digits = "inf" if math.isinf(value) else "nan"
        digits = digits.upper() if kind.isupper() else digits
        return _pad(sign.encode(), digits.encode(), width, flags, zeros=False)
    if kind in "aA":
        sign += "0" + ("X" if kind == "A" else "x")
        digits = _hexadecimal(value, precision, "#" in flags)
        digits = digits.upper() if kind == "A" else digits
    else:
        alternative = "#" if "#" in flags else ""
        digits = f"%{alternative}.{6 if precision is None else precision}{kind}" % value
    return _pad(sign.encode(), digits.encode(), width, flags, zeros=True)


def _hexadecimal(value: float, precision: int | None, point: bool) -> str:
    """What follows `0x` in %a: a digit, the fraction's digits (without trailing zeros, or `precision`), exponent."""
    bits = int.from_bytes(struct.pack("<d", value), "little")
    exponent, fraction = bits >> 52, bits & (1 << 52) - 1
    lead = 1 if exponent else 0
    power = (exponent or 1) - 1023 if bits else 0
    if precision is not None and precision < 13:  # round half to even, as the default rounding mode does
        drop = 52 - 4 * precision
        whole = lead << 52 | fraction
        kept, rest, half = whole >> drop, whole & (1 << drop) - 1, 1 << drop - 1
        kept += rest > half or (rest == half and kept & 1)
        lead, fraction = kept >> 4 * precision, kept & (1 << 4 * precision) - 1
        digits = f"{fraction:0{precision}x}" if precision else ""
    else:
        digits = f"{fraction:013x}"
        digits = digits.rstrip("0") if precision is None else digits.ljust(precision, "0")
    return f"{lead}{'.' if digits or point else ''}{digits}p{power:+d}"


def _sign(negative: bool, flags: str) -> str:
    return "-" if negative else "+" if "+" in flags else " " if " " in flags else ""


def _pad(sign: bytes, digits: bytes, width: int, flags: str, *, zeros: bool) -> bytes:
    """Fill a field: to the right with `-`, with zeros behind the sign with `0` where that is allowed."""
    if "-" in flags:
        return (sign + digits).ljust(width)
    if zeros and "0" in flags:
        return sign + digits.rjust(width - len(sign), b"0")
    return (sign + digits).rjust(width)
