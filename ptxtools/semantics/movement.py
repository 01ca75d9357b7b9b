"""Moves inside the register file and between address spaces (9.7.9): mov, prmt, cvta, isspacep.

Packing and unpacking vectors is `A.pack` and `A.unpack`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ptxtools.semantics.algebra import Algebra, Value
from ptxtools.semantics.registry import Outputs, defines, defines_value
from ptxtools.semantics.types import unsigned, word_bits

if TYPE_CHECKING:
    from ptxtools.isa import Opcode

movement = partial(defines_value, "movement")

# Spaces with a window in the generic space; an address inside is window + offset. The others are addresses as they are.
_WINDOWS = {"shared": "shared_window", "local": "local_window", "param": "param_window"}

# Byte numbers that each mode of prmt takes for c = 0 to 3, result byte 0 first (9.7.9.7).
_PRMT_MODES: dict[str, tuple[tuple[int, ...], ...]] = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


@defines("movement", "mov")
def mov(A: Algebra, op: Opcode, *elements: Value) -> Outputs:
    """9.7.9.3: one value, or the elements of a vector."""
    return elements


@movement("prmt")
def prmt(A: Algebra, op: Opcode, a: Value, b: Value, c: Value) -> Value:
    """9.7.9.7: four bytes of b:a; a selector nibble's top bit asks for the byte's sign instead."""
    mode = next((mode for mode in _PRMT_MODES if op.has(mode)), None)
    if isinstance(c, int):
        return _fixed_permutation(A, a, b, _selector(mode, c))
    both = A.or_("u64", A.resize("u32", "u64", a), A.shl_by("u64", A.resize("u32", "u64", b), 32))
    if mode is not None:
        return _permute_by_mode(A, mode, a, both, A.shl_by("u32", A.and_with("u32", c, 3), 3))
    result: Value = None
    for i in range(4):
        nibble = A.shr_by("u32", c, 4 * i)
        distance = A.resize("u32", "u64", A.shl_by("u32", A.and_with("u32", nibble, 7), 3))
        byte = A.resize("u64", "u32", A.shr("u64", both, distance))
        sign = A.shr_by("s32", A.shl_by("s32", byte, 24), 31)
        byte = A.select("u32", A.is_nonzero("u32", A.and_with("u32", nibble, 8)), sign, byte)
        byte = A.shl_by("u32", A.and_with("u32", byte, 0xFF), 8 * i)
        result = byte if result is None else A.or_("u32", result, byte)
    return result


def _permute_by_mode(A: Algebra, mode: str, a: Value, both: Value, bits: Value) -> Value:
    """`_PRMT_MODES` in shifts; bits: 0, 8, 16 or 24, the place of byte c."""
    if mode == "f4e":
        return A.resize("u64", "u32", A.shr("u64", both, A.resize("u32", "u64", bits)))
    if mode == "b4e":  # four neighbours of the ring of eight bytes from number 5 + c on, reversed
        left = A.sub("u64", A.const("u64", 24), A.resize("u32", "u64", bits))
        word = A.resize("u64", "u32", A.funnel_left("u64", both, both, left))
        even, odd = A.and_with("u32", word, 0x00FF_00FF), A.and_with("u32", word, 0xFF00_FF00)
        even, odd = (A.funnel_left("u32", part, part, A.const("u32", n)) for part, n in ((even, 24), (odd, 8)))
        return A.or_("u32", even, odd)
    if mode == "rc16":
        half = A.and_with("u32", A.shr("u32", a, A.and_with("u32", A.shl_by("u32", bits, 1), 16)), 0xFFFF)
        return A.mul("u32", half, A.const("u32", 0x0001_0001))
    byte = A.and_with("u32", A.shr("u32", a, bits), 0xFF)
    everywhere = A.mul("u32", byte, A.const("u32", 0x0101_0101))
    if mode == "rc8":
        return everywhere
    if mode == "ecl":  # the bytes below number c
        replaced = A.sub("u32", A.shl("u32", A.const("u32", 1), bits), A.const("u32", 1))
    else:  # those above
        replaced = A.neg("u32", A.shl("u32", A.const("u32", 0x100), bits))
    return A.or_("u32", A.and_("u32", everywhere, replaced), A.and_("u32", a, A.not_("u32", replaced)))


def _selector(mode: str | None, c: int) -> int:
    """The selector of the general form that does what `mode` does for this `c`."""
    if mode is None:
        return c & 0xFFFF
    return sum(byte << 4 * i for i, byte in enumerate(_PRMT_MODES[mode][c & 3]))


def _fixed_permutation(A: Algebra, a: Value, b: Value, selector: int) -> Value:
    if not selector & 0x8888:
        return A.bytes_of(a, b, [selector >> 4 * i & 7 for i in range(4)])
    result: Value = None
    for i in range(4):
        nibble = selector >> 4 * i & 15
        source, byte = (b if nibble & 4 else a), nibble & 3
        if nibble & 8:
            part = A.shr_by("s32", A.shl_by("s32", source, 24 - 8 * byte), 31)
        else:
            part = A.shl_by("u32", source, 8 * (i - byte)) if i >= byte else A.shr_by("u32", source, 8 * (byte - i))
        part = A.and_with("u32", part, 0xFF << 8 * i)
        result = part if result is None else A.or_("u32", result, part)
    return result


def _space(op: Opcode) -> str:
    return (op.space or "global").partition("::")[0]


@movement("cvta")
def cvta(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.9.20: add the space's window, or take it away with .to."""
    assert op.type is not None
    window = _WINDOWS.get(_space(op))
    if window is None:
        return a
    t = unsigned(word_bits(op.type))
    base = A.resize("u64", t, A.context(window))
    return A.sub(t, a, base) if op.has("to") else A.add(t, a, base)


@movement("isspacep")
def isspacep(A: Algebra, op: Opcode, a: Value) -> Value:
    """9.7.9.19: a 64-bit generic address lies in its window, in constant memory, or else in global memory.

    Constant variables lie in the same memory as global ones, between "const_base" and "const_base" + "const_size".
    """
    space = _space(op)
    window = _WINDOWS.get(space)
    if window is not None:
        return _in_window(A, a, window)
    if space == "const":
        offset = A.sub("u64", a, A.context("const_base"))
        return A.compare("lt", "u64", offset, A.context("const_size"))
    # Kernel parameters count as global memory.
    outside = A.or_("pred", _in_window(A, a, "shared_window"), _in_window(A, a, "local_window"))
    return A.not_("pred", outside)


def _in_window(A: Algebra, a: Value, window: str) -> Value:
    """Windows differ in the address's top byte."""
    return A.is_zero("u64", A.shr_by("u64", A.xor("u64", a, A.context(window)), 56))
