"""The memory results of atom and red (9.7.13.5, 9.7.13.6), one element at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from ptxtools.semantics import exact, half
from ptxtools.semantics.algebra import Algebra, Value
from ptxtools.semantics.floating import canonical, flush_subnormal, propagate
from ptxtools.semantics.types import bits_of, element_of

if TYPE_CHECKING:
    from ptxtools.isa import Opcode

#: new = fn(A, type, old, b), for cas fn(A, type, old, b, c)
Atomic: TypeAlias = Callable[..., Value]

OPERATIONS = ("and", "or", "xor", "cas", "exch", "add", "inc", "dec", "min", "max")


def atomic(op: Opcode) -> Atomic | None:
    """The new value of an atomic operation's memory; None if the opcode has no such operation."""
    operation = next((name for name in OPERATIONS if op.has(name)), None)
    if operation is None:
        return None
    # The hardware's f32 adder for global memory has no subnormals; shared memory is updated by ordinary additions.
    flushes = not (op.space or "").startswith("shared") and not op.has("noftz")

    def new_value(A: Algebra, t: str, old: Value, *operands: Value) -> Value:
        return combine(A, operation, t, old, *operands, flushes=flushes)

    return new_value


def combine(A: Algebra, operation: str, t: str, old: Value, *operands: Value, flushes: bool = False) -> Value:
    """One step of an atomic operation or reduction on values of type `t`, packed ones element by element.

    flushes: f32 subnormals count as zeros, in operands and result.
    """
    element, count = element_of(t)
    if count > 1:
        return A.elementwise("u32", "u16", lambda B, *parts: combine(B, operation, element, *parts), old, *operands)
    if operation == "cas":
        return A.select(t, _equal(A, t, old, operands[0]), operands[1], old)
    b = operands[0]
    if operation == "exch":
        return b
    if t in ("f16", "bf16"):
        return _half(A, operation, t, old, b)
    if t in ("f32", "f64"):
        return _float(A, operation, t, old, b, flushes)
    return _integer(A, operation, t, old, b)


def _equal(A: Algebra, t: str, a: Value, b: Value) -> Value:
    if bits_of(t) < 128:
        return A.compare("eq", t, a, b)
    pairs = zip(A.split(a), A.split(b), strict=True)
    low, high = (A.compare("eq", "u64", x, y) for x, y in pairs)
    return A.and_("pred", low, high)


def _integer(A: Algebra, operation: str, t: str, old: Value, b: Value) -> Value:
    if operation == "inc":
        return A.select(t, A.compare("ge", t, old, b), A.const(t, 0), A.add(t, old, A.const(t, 1)))
    if operation == "dec":
        wraps = A.or_("pred", A.is_zero(t, old), A.compare("gt", t, old, b))
        return A.select(t, wraps, b, A.sub(t, old, A.const(t, 1)))
    plain = {"and": A.and_, "or": A.or_, "xor": A.xor, "add": A.add, "min": A.minimum, "max": A.maximum}
    return plain[operation](t, old, b)


def _float(A: Algebra, operation: str, t: str, old: Value, b: Value, flushes: bool) -> Value:
    if operation != "add":
        return _extreme(A, operation, t, old, b)
    if t == "f64":
        return propagate(A, A.fadd(t, old, b), old, b)
    if flushes:
        old, b = flush_subnormal(A, old), flush_subnormal(A, b)
    total = A.fadd(t, old, b)
    return canonical(A, flush_subnormal(A, total) if flushes else total)


def _extreme(A: Algebra, operation: str, t: str, old: Value, b: Value) -> Value:
    """min or max of f32 or f64 (reductions have it): -0 below +0, a NaN gives the other operand."""
    signed, width = f"s{bits_of(t)}", bits_of(t)
    keys = []
    for value in (old, b):
        mask = A.and_with(signed, A.shr_by(signed, value, width - 1), (1 << (width - 1)) - 1)
        keys.append(A.xor(signed, value, mask))
    first = A.compare("le" if operation == "min" else "ge", signed, *keys)
    result = A.select(t, first, old, b)
    old_nan, b_nan = A.fcompare("nan", t, old, old), A.fcompare("nan", t, b, b)
    result = A.select(t, old_nan, b, A.select(t, b_nan, old, result))
    nan = A.const(t, exact.FORMATS[t].nan or 0)
    return A.select(t, A.and_("pred", old_nan, b_nan), nan, result)


def _half(A: Algebra, operation: str, t: str, old: Value, b: Value) -> Value:
    if operation == "add":
        total = A.fadd("f32", half.to_single(A, t, old), half.to_single(A, t, b))
        return half.canonical(A, t, half.from_single(A, t, total))
    return half.extreme(A, t, old, b, largest=operation == "max", nan=False)
