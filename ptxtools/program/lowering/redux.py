"""redux.sync of f32 (9.7.13.12): the order of floats is that of integers made from their bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.isa import Opcode, resolve
from ptxtools.program.program import Op, Ref

if TYPE_CHECKING:
    from .function import FunctionLowering

_SIGN, _ALL, _INFINITY, _CANONICAL_NAN = 0x8000_0000, 0xFFFF_FFFF, 0x7F80_0000, 0x7FFF_FFFF


def float_redux(f: FunctionLowering, op: Opcode, source: Ref, mask: Ref) -> Ref:
    """The reduction as an operation on u32; the members of `mask` have met.

    Negative numbers count down from the middle, the others up; -0 is below +0. A NaN becomes a number beyond all
    others: on the side that loses, or, with .NaN, on the side that wins. If it is the result, the result is NaN.
    """
    action = "min" if op.has("min") else "max"
    loses = _ALL if action == "min" else 0
    nan_key = loses ^ _ALL if op.has("NaN") else loses

    def word(value: int) -> Ref:
        return f.constant(value, "b32")

    def combine(operation: str, a: Ref, b: Ref) -> Ref:
        return f.compute(f"{operation}.b32", ("b32", "b32"), (a, b), "b32")

    magnitude = combine("and", source, word(_SIGN ^ _ALL))
    value = magnitude if op.has("abs") else source
    missing = f.compute("setp.gt.u32", ("u32", "u32"), (magnitude, word(_INFINITY)), "pred")
    signs = f.compute("shr.s32", ("s32", "u32"), (value, word(31)), "s32")
    key = combine("xor", value, combine("or", signs, word(_SIGN)))
    key = f.compute("selp.b32", ("b32", "b32", "pred"), (word(nan_key), key, missing), "b32")
    found = f.new("b32")
    integer = resolve(f"redux.sync.{action}.u32")
    f.emit(Op("redux", integer, (found,), (key, mask), ("u32",), ("u32", "b32")))
    back = f.compute("shr.s32", ("s32", "u32"), (combine("xor", found, word(_SIGN)), word(31)), "s32")
    bits = combine("xor", found, combine("or", back, word(_SIGN)))
    nothing = f.compute("setp.eq.u32", ("u32", "u32"), (found, word(nan_key)), "pred")
    return f.compute("selp.b32", ("b32", "b32", "pred"), (word(_CANONICAL_NAN), bits, nothing), "b32")
