"""Expressions over the registers and the memory of one lane, as conditions, addresses and things to print have them.

    %r1 + 4            registers by their PTX names, special registers, decimal and 0x numbers
    f32[%rd4 + 8]      memory: a PTX type, then an address in the generic space
    u32@shared[0x40]   the same in another space: global, shared, local, const, param
    sums               the address of a variable, in its space; a kernel parameter: its value
    %tid.x == 3 && %f1 > 0.5

Operators and their ranks are those of C; integers do not wrap.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from ptxtools.diagnostics import Trap
from ptxtools.machine.registers import named
from ptxtools.records import dataclass

if TYPE_CHECKING:
    from ptxtools.machine.events import View

Number: TypeAlias = "int | float | bool"

#: Bytes of the PTX types that memory can be read as.
SIZES = {
    **{f"{kind}{bits}": bits // 8 for kind in "usb" for bits in (8, 16, 32, 64)},
    "b128": 16, "f16": 2, "bf16": 2, "f32": 4, "tf32": 4, "f64": 8, "e4m3": 1, "e5m2": 1, "ue8m0": 1,
}  # fmt: skip
_DTYPES = {"f16": "float16", "f32": "float32", "tf32": "float32", "f64": "float64"}
_SMALL = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "ue8m0": "float8_e8m0fnu"}
SPACES = ("global", "shared", "local", "const", "param", "generic")

_TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]{1,99}|\d{1,99}\.\d{0,99}(?:[eE][-+]?\d{1,9})?|\d{1,99}(?:[eE][-+]?\d{1,9})?)"
    r"|((?:%[a-zA-Z_$]|[$_a-zA-Z])[\w$]*(?:\.[xyzw](?!\w))?)"
    r"|(<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!<>()\[\]@]))"
)
#: Binary operators, weakest first.
_RANKS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"),
          ("*", "/", "%"))  # fmt: skip


class ExpressionError(ValueError):
    """An expression is malformed, or has no value here; the message says why."""


@dataclass(frozen=True, slots=True)
class Lane:
    """What an expression is about: a lane of a stopped warp."""

    view: View
    lane: int


def decode(data: bytes, type_: str) -> Number:
    """A value of a PTX type in memory."""
    if type_ in _DTYPES:
        return float(np.frombuffer(data, _DTYPES[type_])[0])
    if type_ in _SMALL:
        import ml_dtypes

        return float(np.frombuffer(data, getattr(ml_dtypes, _SMALL[type_]))[0])
    return int.from_bytes(data, "little", signed=type_[0] == "s")


def encode(value: Number, type_: str) -> bytes:
    """The bytes of a value of a PTX type. Raises `ExpressionError` if it has no such value."""
    try:
        if type_ in _DTYPES:
            return np.array([value], _DTYPES[type_]).tobytes()
        if type_ in _SMALL:
            import ml_dtypes

            return np.array([value], getattr(ml_dtypes, _SMALL[type_])).tobytes()
        size = SIZES[type_]
        return (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little")
    except (ValueError, OverflowError) as error:
        raise ExpressionError(f"{value} is no {type_}: {error}") from None


def register(at: Lane, name: str) -> Number:
    """A register of the lane, or a special register. Raises `ExpressionError`."""
    value = special(at, name)
    if value is not None:
        return value
    try:
        found = at.view.register(name)
    except KeyError:
        raise ExpressionError(f"no register {name} is known at this line") from None
    if isinstance(found, tuple):
        return int(found[0][at.lane]) | int(found[1][at.lane]) << 64
    number: Number = found[at.lane].item()
    return number


def special(at: Lane, name: str) -> int | None:
    """A special register that says who the lane is (chapter 10); None: it is another one."""
    base, _, axis = name.partition(".")
    view = at.view
    if base in ("%tid", "%ctaid", "%ntid", "%nctaid") and axis in ("x", "y", "z"):
        launch = view.launch
        of = {"%tid": view.thread(at.lane), "%ctaid": view.cta.place, "%ntid": launch.block, "%nctaid": launch.grid}
        return of[base]["xyz".index(axis)]
    return {"%laneid": at.lane, "%warpid": view.warp, "%cluster_ctarank": view.cta.rank}.get(name)


def symbol(view: View, name: str) -> tuple[str, int, int] | None:
    """Space, address and bytes of a variable of the module; -1 bytes if that is not known."""
    for known, offset, size in view.launch.program.shared:
        if known == name:
            return "shared", offset + view.cta.window, size
    device, context = view.launch.device, view.launch.context
    if device is not None and context is not None:
        image = device.load(context.places.module)
        if name in image.addresses:
            storage = image.variables[name]
            return storage.space, image.addresses[name], storage.size
    return None


def parameter(view: View, name: str) -> tuple[int, int, str] | None:
    """Offset, bytes and PTX type of a parameter of the kernel."""
    context = view.launch.context
    kernel = None if context is None else context.places.module.contents.kernels.get(view.launch.program.kernel)
    for one in () if kernel is None else kernel.parameters:
        if one.name == name:
            return one.offset, one.size, one.type
    return None


def fetch(at: Lane, address: int, size: int, space: str) -> bytes:
    """Memory as the lane sees it. Raises `ExpressionError`."""
    try:
        return at.view.fetch(address, size, "" if space == "generic" else space, lane=at.lane)
    except Trap as trap:
        raise ExpressionError(trap.reason) from None


def evaluate(text: str, at: Lane) -> Number:
    """The value of an expression for a lane. Raises `ExpressionError`."""
    return _parsed(lambda: _Parser(text, at).whole())


def register_word(at: Lane, name: str) -> list[tuple[int, int]]:
    """Host memory of a register of a lane (`View.words`). Raises `ExpressionError`."""
    known = named(at.view).get(name)
    if known is None:
        raise ExpressionError(f"no register {name} is known at this line")
    return at.view.words(known[0], at.lane)


@dataclass(frozen=True, slots=True)
class Memory:
    """A place in memory that an expression names."""

    type: str
    space: str
    address: int


def place(text: str, at: Lane) -> str | Memory:
    """What can be changed or watched: the name of a register, or a place in memory. Raises `ExpressionError`."""
    return _parsed(lambda: _Parser(text, at).place())


T = TypeVar("T")


def _parsed(read: Callable[[], T]) -> T:
    try:
        return read()
    except RecursionError:
        raise ExpressionError("the expression is nested too deeply") from None


class _Parser:
    """Recursive descent; values are computed as they are read."""

    def __init__(self, text: str, at: Lane) -> None:
        self._at, self._text = at, text
        self._tokens: list[tuple[str, str]] = []
        start = 0
        while text[start:].strip():
            match = _TOKEN.match(text, start)
            if match is None:
                raise ExpressionError(f"'{text[start:].strip()[:1]}' is unexpected in '{text}'")
            kind = ("number", "name", "sign")[match.lastindex - 1] if match.lastindex else ""
            self._tokens.append((kind, match[match.lastindex or 0]))
            start = match.end()
        self._next = 0

    def whole(self) -> Number:
        value = self._binary(0)
        if self._next < len(self._tokens):
            raise ExpressionError(f"'{self._tokens[self._next][1]}' is unexpected in '{self._text}'")
        return value

    def place(self) -> str | Memory:
        kind, name = self._peek()
        if kind == "name" and len(self._tokens) == 1:
            found = symbol(self._at.view, name)
            if found is None:
                return name
            return Memory("b32" if found[2] % 4 == 0 else "b8", found[0], found[1])
        self._next = 1
        if kind == "name" and name in SIZES and self._peek()[1] in ("@", "["):
            memory = self._memory(name)
            if self._next == len(self._tokens):
                return memory
        raise ExpressionError(f"'{self._text}' is neither a register nor memory such as u32@shared[0x40]")

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("end", "the end")

    def _take(self, sign: str) -> None:
        if self._peek() != ("sign", sign):
            raise ExpressionError(f"'{sign}' is missing in '{self._text}', before {self._peek()[1]}")
        self._next += 1

    def _binary(self, rank: int) -> Number:
        if rank == len(_RANKS):
            return self._unary()
        left = self._binary(rank + 1)
        while self._peek()[0] == "sign" and self._peek()[1] in _RANKS[rank]:
            sign = self._peek()[1]
            self._next += 1
            left = _apply(sign, left, self._binary(rank + 1))
        return left

    def _unary(self) -> Number:
        kind, text = self._peek()
        self._next += 1
        if kind == "sign" and text in _UNARY:
            operand = self._unary()
            return _guarded(lambda: _UNARY[text](operand))
        if (kind, text) == ("sign", "("):
            value = self._binary(0)
            self._take(")")
            return value
        if kind == "number":
            return int(text, 16) if text[:2] in ("0x", "0X") else float(text) if set(text) & set(".eE") else int(text)
        if kind == "name":
            return self._name(text)
        raise ExpressionError(f"'{text}' is unexpected in '{self._text}'" if kind == "sign" else f"'{self._text}' ends")

    def _name(self, name: str) -> Number:
        at = self._at
        if name in SIZES and self._peek()[1] in ("@", "["):
            memory = self._memory(name)
            return decode(fetch(at, memory.address, SIZES[name], memory.space), name)
        if not name.startswith("%"):
            found = symbol(at.view, name)
            if found is not None:
                return found[1]
            given = parameter(at.view, name)
            if given is not None:
                offset, size, type_ = given
                data = at.view.launch.params[offset : offset + size]
                return decode(data, type_) if SIZES.get(type_) == size else int.from_bytes(data, "little")
        return register(at, name)

    def _memory(self, type_: str) -> Memory:
        space = "generic"
        if self._peek()[1] == "@":
            self._next += 1
            space = self._peek()[1]
            if space not in SPACES:
                raise ExpressionError(f"'{space}' is no state space; there are {', '.join(SPACES)}")
            self._next += 1
        self._take("[")
        named = self._peek()[1]
        found = symbol(self._at.view, named) if space == "generic" else None
        address = self._binary(0)
        self._take("]")
        if isinstance(address, float) or address < 0:
            raise ExpressionError(f"{address} is no address")
        return Memory(type_, found[0] if found else space, int(address))


_UNARY: dict[str, Callable[[Any], Any]] = {
    "-": lambda x: -x, "+": lambda x: +x, "~": lambda x: ~int(x), "!": lambda x: not x,
}  # fmt: skip


def _divided(a: Any, b: Any) -> Any:
    if isinstance(a, float) or isinstance(b, float):
        return a / b
    return int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b))


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "||": lambda a, b: bool(a or b), "&&": lambda a, b: bool(a and b), "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b, "&": lambda a, b: a & b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "<<": lambda a, b: a << min(b, 1024), ">>": lambda a, b: a >> min(b, 1024), "+": lambda a, b: a + b,
    "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": _divided,
    "%": lambda a, b: a - b * _divided(a, b),
}  # fmt: skip


def _apply(sign: str, left: Number, right: Number) -> Number:
    return _guarded(lambda: _BINARY[sign](left, right))


def _guarded(compute: Callable[[], Number]) -> Number:
    try:
        return compute()
    except ZeroDivisionError:
        raise ExpressionError("division by zero") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise ExpressionError(str(error)) from None
