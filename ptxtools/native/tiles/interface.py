"""Native code for products of whole tiles, as tensor cores add them (docs/numerics.md).

Each function computes D = A * B + C over vectors of columns. For every element: the largest power of two among C and
the products decides how far down terms count; each term is brought to that scale and cut off, the cut-off terms are
added exactly, and the sum is cut off to the result's precision. Numbers are f32 and exact as long as their powers lie
between 2**-30 and 2**30 (`NARROW`); otherwise f64.

Layouts: "rows" has D and C in rows, A as rows x K, and B as K x columns. "warp" has them as the registers of a warp's
16 rows of wgmma: one register of 32 lanes is 8 rows (lane // 4) of 4 columns (lane % 4).
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import blocks as tileblocks
from . import factors as tilefactors
from .code import GROUP, HALVES, NAMES, ROWS_NAMES, module
from .parts import WIDTH

__all__ = ["GROUP", "MASKS", "NARROW", "WIDTH", "Rounding", "addresses", "functions", "grouped", "halves", "rows"]

Array: TypeAlias = npt.NDArray[Any]

#: Powers between these, both included, are fit for f32.
NARROW = (2.0**-30, 2.0**30)


@dataclass(frozen=True)
class Rounding:
    """How sums are cut off: `fraction` bits below the largest exponent, 0 for plain f32 arithmetic; then bits of an
    f64 that stay (`mask`), and the bit that is set where something was lost (`odd`, for a second rounding to f16)."""

    fraction: int
    mask: int
    odd: int = 0


#: By the result of `semantics.tensorcore.Rule`.
MASKS = {
    "f32": ((1 << 64) - (1 << 29), 0),
    "e8m13": ((1 << 64) - (1 << 39), 0),
    "f16": ((1 << 64) - (1 << 29), 1 << 29),
}


@cache
def addresses() -> dict[str, int] | None:
    """Where the compiled functions are, by name, from the disk cache where possible; None without llvmlite."""
    try:
        from ptxtools.native.code import library
    except ImportError:
        return None
    return library.functions_of(NAMES, module)


@cache
def functions() -> dict[str, Any] | None:
    """The functions that Python calls, by name; None without llvmlite."""
    known = addresses()
    return None if known is None else callable_functions(known)


def callable_functions(addresses: dict[str, int]) -> dict[str, Any]:
    """What can be called from Python, from the addresses of all functions."""
    pointer, long, word = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
    rounding = (word, ctypes.c_uint64, ctypes.c_uint64, word, ctypes.c_uint32)
    rows = ctypes.CFUNCTYPE(None, *[pointer] * 6, *[long] * 5, *rounding)
    found: dict[str, Any] = {name: rows(addresses[name]) for name in ROWS_NAMES}
    found[HALVES] = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, long)(addresses[HALVES])
    factor = ctypes.CFUNCTYPE(word, pointer, pointer, long, long, pointer, pointer)
    found.update((name, factor(addresses[name])) for name in tilefactors.NAMES)
    block = ctypes.CFUNCTYPE(None, *[pointer] * 6, *[long] * 5, *rounding, ctypes.c_bool)
    for plain in (False, True):
        name = tileblocks.name_of("rows", plain=plain)
        found[name] = block(addresses[name])
    return found


def address_of(array: Array) -> int:
    """Host address of an array's first element; `ctypes.data` would take three times as long."""
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def _form(t: Any, rounding: Rounding) -> str:
    return "plain" if not rounding.fraction else "wide" if t == np.float64 else "narrow"


def rows(a: tuple[Array, Array], b: tuple[Array, Array], c: Array | None, rounding: Rounding, out: Array) -> bool:
    """D = A * B + C into `out` (M x N, f32, rows may lie apart); false if there is no native code for it.

    a: values and powers, M x K; b: K x N; all f32, or all f64; N a multiple of 16, M of 4, K of 8. c: like out.
    """
    known = functions()
    if known is None:
        return False
    values, powers = a
    right, right_powers = b
    m, k = values.shape
    source = out if c is None else c
    known["tile_rows_" + _form(values.dtype, rounding)](
        address_of(values), address_of(powers), address_of(right), address_of(right_powers), address_of(source),
        address_of(out), m, right.shape[1], k, source.strides[0] // 4, out.strides[0] // 4, rounding.fraction,
        rounding.mask, rounding.odd, (127 - 14) << 23 if rounding.odd else 1 << 23, 0 if c is None else 0xFFFF_FFFF,
    )  # fmt: skip
    return True


def grouped(a: Array, b: Array, scales: tuple[Array, Array], c: Array | None, rounding: Rounding, out: Array) -> bool:
    """D = A * B + C for block-scaled fp4, as `rows`; false if there is no native code for it.

    a: M x K, b: K x N, both f32; scales: those of A, M x groups x 2, and of B, groups x 2 x N, value and power (f64).
    """
    known = functions()
    if known is None:
        return False
    source = out if c is None else c
    known["tile_rows_grouped"](
        address_of(a), address_of(scales[0]), address_of(b), address_of(scales[1]), address_of(source),
        address_of(out), len(a), b.shape[1], a.shape[1],
        source.strides[0] // 4, out.strides[0] // 4, rounding.fraction, rounding.mask, rounding.odd, 1 << 23,
        0 if c is None else 0xFFFF_FFFF,
    )  # fmt: skip
    return True


def halves(codes: Array) -> tuple[Array, Array] | None:
    """f16 (u16) as f32, and their powers, in the shape of `codes`; None if there is no native code for it."""
    known = functions()
    if known is None or codes.size % WIDTH:
        return None
    codes = np.ascontiguousarray(codes)
    values, powers = np.empty(codes.shape, np.float32), np.empty(codes.shape, np.float32)
    known[HALVES](address_of(codes), address_of(values), address_of(powers), codes.size)
    return values, powers
