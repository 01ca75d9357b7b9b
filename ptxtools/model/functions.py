"""What instructions of litmus tests compute on integers."""

from __future__ import annotations

from collections.abc import Callable

from ptxtools.records import dataclass

from . import floats
from .mbarriers import pending_count
from .programs import UNTYPED, Type


@dataclass(frozen=True, slots=True)
class Function:
    """operands: how many; compute: from the type and the operands, the value before it is wrapped into the type; wide:
    the result has twice the width, and a third operand that is added."""

    operands: int
    compute: Callable[..., int]
    wide: bool = False


def _divided(_: Type, a: int, b: int) -> int:
    """Towards zero, as 9.7.1; all ones for a division by zero, whose result 9.7.1 leaves open."""
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(type_: Type, a: int, b: int) -> int:
    return a if b == 0 else a - b * _divided(type_, a, b)


def _shifted(type_: Type, a: int, b: int, *, left: bool) -> int:
    amount = min(b & 0xFFFFFFFF, type_.bits)
    return a << amount if left else a >> amount


#: setp and the branches: 1 if it holds.
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def _compared(compare: Callable[[int, int], bool]) -> Function:
    return Function(2, lambda _, a, b: int(compare(a, b)))


FUNCTIONS: dict[str, Function] = {
    "mov": Function(1, lambda _, a: a),
    "add": Function(2, lambda _, a, b: a + b),
    "sub": Function(2, lambda _, a, b: a - b),
    "mul": Function(2, lambda _, a, b: a * b),
    "mul.wide": Function(2, lambda _, a, b: a * b, wide=True),
    "mul.hi": Function(2, lambda t, a, b: a * b >> t.bits),
    "mad": Function(3, lambda _, a, b, c: a * b + c),
    "mad.wide": Function(3, lambda _, a, b, c: a * b + c, wide=True),
    "mad.hi": Function(3, lambda t, a, b, c: (a * b >> t.bits) + c),
    "sad": Function(3, lambda _, a, b, c: abs(a - b) + c),
    "abs": Function(1, lambda _, a: abs(a)),
    "popc": Function(1, lambda t, a: (a & (1 << t.bits) - 1).bit_count()),
    "clz": Function(1, lambda t, a: t.bits - (a & (1 << t.bits) - 1).bit_length()),
    "brev": Function(1, lambda t, a: int(f"{a & (1 << t.bits) - 1:0{t.bits}b}"[::-1], 2)),
    "div": Function(2, _divided),
    "rem": Function(2, _remainder),
    "and": Function(2, lambda _, a, b: a & b),
    "or": Function(2, lambda _, a, b: a | b),
    "xor": Function(2, lambda _, a, b: a ^ b),
    "not": Function(1, lambda _, a: ~a),
    "neg": Function(1, lambda _, a: -a),
    "shl": Function(2, lambda t, a, b: _shifted(t, a, b, left=True)),
    "shr": Function(2, lambda t, a, b: _shifted(t, a, b, left=False)),
    "min": Function(2, lambda _, a, b: min(a, b)),
    "max": Function(2, lambda _, a, b: max(a, b)),
    "mbarrier.pending_count": Function(1, lambda _, state: pending_count(state)),
    "selp": Function(3, lambda _, a, b, p: a if p else b),
    **{name: _compared(compare) for name, compare in COMPARISONS.items()},
}

#: atom and red (9.7.13): old value and operand to the new value.
ATOMIC: dict[str, Function] = {
    **{name: FUNCTIONS[name] for name in ("add", "sub", "mul", "div", "and", "or", "xor", "min", "max")},
    "inc": Function(2, lambda _, old, limit: 0 if old >= limit else old + 1),
    "dec": Function(2, lambda _, old, limit: limit if old == 0 or old > limit else old - 1),
    "exch": Function(2, lambda _, old, value: value),
    "cas": Function(2, lambda _, old, value: value),
}

#: Names that public suites have for them.
OTHER_NAMES = {"plus": "add", "minus": "sub", "mult": "mul"}


def atomic_function(name: str) -> str:
    """The name of an atomic operation as `ATOMIC` has it; "" if it is none."""
    name = OTHER_NAMES.get(name, name)
    return name if name in ATOMIC else ""


def computed(function: str, type_: Type | None, values: list[int], *, atomic: bool = False) -> int:
    """The value of a function: operands and result are wrapped into the type; floating-point numbers are their bits."""
    held = type_ or UNTYPED
    if held.kind in ("f", "bf") and function in floats.FUNCTIONS:
        return floats.combined(function, held.float_name, values)
    chosen = (ATOMIC if atomic else FUNCTIONS)[function]
    wide = Type(held.kind, 2 * held.bits) if chosen.wide else held
    given = [(held if at < 2 else wide).wrap(value) for at, value in enumerate(values)]
    return wide.wrap(chosen.compute(held, *given))
