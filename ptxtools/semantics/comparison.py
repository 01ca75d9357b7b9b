"""Comparison and selection (9.7.6), half precision too (9.7.7).

A source predicate arrives as it counts: the negation of `!c` is done. setp returns both p and q.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ptxtools.semantics import floating, half
from ptxtools.semantics.algebra import Algebra, Value
from ptxtools.semantics.registry import Outputs, defines, defines_value
from ptxtools.semantics.types import element_of, is_signed, unsigned, word_bits

if TYPE_CHECKING:
    from ptxtools.isa import Opcode

comparison = partial(defines_value, "comparison")

_FLOAT_ONLY = frozenset({"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"})
_INTEGER = {c: c for c in ("eq", "ne", "lt", "le", "gt", "ge")} | {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_ONE = {"f32": 0x3F80_0000, "f16": 0x3C00, "bf16": 0x3F80}


def condition_of(op: Opcode) -> str:
    """The comparison operator among the opcode's modifiers."""
    return next(text for text in op.mods.values() if text in _FLOAT_ONLY or text in _INTEGER)


def compare(A: Algebra, op: Opcode, t: str, a: Value, b: Value) -> Value:
    """The opcode's comparison of two elements of type `t`."""
    condition = condition_of(op)
    if t in ("f16", "bf16"):
        a, b = (half.to_single(A, t, half.flush(A, op, t, value)) for value in (a, b))
        return A.fcompare(condition, "f32", a, b)
    if t in ("f32", "f64"):
        return A.fcompare(condition, t, floating.flush(A, op, t, a), floating.flush(A, op, t, b))
    if condition in ("lo", "ls", "hi", "hs"):
        t = unsigned(word_bits(t))
    return A.compare(_INTEGER[condition], t, a, b)


def combine(A: Algebra, op: Opcode, p: Value, c: Value | None) -> Value:
    """The boolean operator with the source predicate, if there is one."""
    if c is None:
        return p
    if op.has("and"):
        return A.and_("pred", p, c)
    return A.or_("pred", p, c) if op.has("or") else A.xor("pred", p, c)


@defines("comparison", "setp")
def setp(A: Algebra, op: Opcode, a: Value, b: Value, c: Value | None = None) -> Outputs:
    """9.7.6.2, 9.7.7.2: (p, q); of a pair p is the low half's comparison and q the high half's."""
    assert op.type is not None
    t, count = element_of(op.type)
    if count == 1:
        p = compare(A, op, t, a, b)
        return combine(A, op, p, c), combine(A, op, A.not_("pred", p), c)
    halves = zip(A.unpack(t, count, a), A.unpack(t, count, b), strict=True)
    return tuple(combine(A, op, compare(A, op, t, x, y), c) for x, y in halves)


@comparison("set")
def set_(A: Algebra, op: Opcode, a: Value, b: Value, c: Value | None = None) -> Value:
    """9.7.6.1, 9.7.7.1: all ones or 1.0 where true, else zero; of a pair each half by itself."""
    target, source = op.types[0], op.types[-1]
    t, count = element_of(source)
    if count == 1:
        return _flag(A, target, combine(A, op, compare(A, op, t, a, b), c))
    element, packed = element_of(target)
    if packed == 1:
        element = unsigned(word_bits(target) // count)
    halves = zip(A.unpack(t, count, a), A.unpack(t, count, b), strict=True)
    return A.pack(element, [_flag(A, element, combine(A, op, compare(A, op, t, x, y), c)) for x, y in halves])


def _flag(A: Algebra, t: str, p: Value) -> Value:
    return A.select(t, p, A.const(t, _ONE.get(t, -1)), A.const(t, 0))


@comparison("selp")
def selp(A: Algebra, op: Opcode, a: Value, b: Value, p: Value) -> Value:
    """9.7.6.3"""
    assert op.type is not None
    return A.select(op.type, p, a, b)


@comparison("slct")
def slct(A: Algebra, op: Opcode, a: Value, b: Value, c: Value) -> Value:
    """9.7.6.4: a NaN selects `b`."""
    target, source = op.types[-2], op.types[-1]
    if is_signed(source):
        chosen = A.compare("ge", source, c, A.const(source, 0))
    else:
        chosen = A.fcompare("ge", source, floating.flush(A, op, source, c), A.const(source, 0))
    return A.select(target, chosen, a, b)
