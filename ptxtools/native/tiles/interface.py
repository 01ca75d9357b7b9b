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
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ptxtools.records import dataclass
from ptxtools.semantics.accumulation import RESULTS, SCALED_GROUP, Rule

from . import fused, steps
from .rows import GROUPS, HALVES, module
from .sums import MOST_FRACTION, ROWS, STEP, WIDTH

__all__ = [
    "NARROW", "ROWS", "STEP", "WIDTH", "Rounding", "addresses", "form_of", "functions", "grouped", "halves",
    "rounding_of", "rows", "suits",
]  # fmt: skip

Array: TypeAlias = npt.NDArray[Any]
T = TypeVar("T")

#: Powers between these, both included, are fit for f32.
NARROW = (2.0**-30, 2.0**30)


#: How soon functions are compiled well (`tiers.beside`): programs that have products need them for most of their time.
_SHARE = 0.5
#: Fraction bits of f64 and f32, and the bias of f32's exponents.
_DOUBLE, _SINGLE, _BIAS = 52, RESULTS["f32"].fraction, 127


@dataclass(frozen=True)
class Rounding:
    """A rule as the functions take it: `fraction` bits below the largest exponent, 0 for plain arithmetic; `mask`: bits
    of an f64 that are kept; `odd`: the bit that is set if something was cut off (for a second rounding to f16);
    `least`: the least power of two of an addend, as f32. A result is cut off to f32 or fewer bits."""

    fraction: int
    mask: int
    odd: int
    least: int


#: For whole numbers.
NO_ROUNDING = Rounding(0, 0, 0, 0)


@cache
def rounding_of(rule: Rule) -> Rounding:
    """The numbers of a rule that `suits`."""
    result = rule.format
    lost = _DOUBLE - (_SINGLE if result.nearest else result.fraction)
    odd = 1 << lost if result.nearest else 0
    return Rounding(rule.fraction, (1 << 64) - (1 << lost), odd, result.least + _BIAS << _SINGLE)


@cache
def suits(rule: Rule, k: int) -> bool:
    """Whether this code adds by a rule: all of K at once, in a chain, or in groups; c is never added last."""
    if rule.late or rule.paired or (rule.fraction and rule.chunk < k):
        return False
    return rule.group == SCALED_GROUP if rule.group > 1 else rule.fraction <= MOST_FRACTION


@cache
def fuses() -> bool:
    """Whether this CPU has the functions of `fused`."""
    from ptxtools.native.code import jit

    return fused.possible(jit.host_features())


class _Functions(dict[str, T]):
    """Functions by name, each made when it is first asked for."""

    def __init__(self, make: Callable[[str], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> T:
        value = self[name] = self._make(name)
        return value


@cache
def addresses() -> Mapping[str, int]:
    """Addresses of the compiled functions by name: each is taken from the disk cache, or compiled, when it is first
    asked for, with those that belong to it."""
    return _Functions(lambda name: _compiled(next(group for group in GROUPS if name in group))[name])


@cache
def _compiled(names: tuple[str, ...]) -> dict[str, int]:
    from ptxtools.native.code import jit, library

    features = jit.host_features()
    return library.functions_of(
        names,
        lambda attributes: module(names, attributes, features),
        lambda attributes: module(names, attributes, features, brief=True),
        _SHARE,
    )


@cache
def functions() -> Mapping[str, Any]:
    """The functions that Python calls, by name."""
    return callable_functions(addresses())


def callable_functions(addresses: Mapping[str, int]) -> Mapping[str, Any]:
    """The functions that Python can call, from the addresses of all functions."""
    return _Functions(lambda name: _prototype(name)(addresses[name]))


def _prototype(name: str) -> Any:
    pointer, long, word = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
    if name == HALVES:
        return ctypes.CFUNCTYPE(None, pointer, pointer, pointer, long)
    if name == steps.RUN:
        return ctypes.CFUNCTYPE(word, pointer, long)
    rounding = (word, ctypes.c_uint64, ctypes.c_uint64, word, ctypes.c_uint32)
    return ctypes.CFUNCTYPE(None, *[pointer] * 6, *[long] * 5, *rounding)


def address_of(array: Array) -> int:
    """Host address of an array's first element; `ctypes.data` would take three times as long."""
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def form_of(rule: Rule, *, wide: bool) -> str:
    """The function for a rule and the type of the numbers, f64 or f32."""
    if not rule.fraction:
        return "chain_wide" if wide else "chain"
    return "wide" if wide else "narrow"


def rows(
    form: str, a: tuple[Array, Array], b: tuple[Array, Array], c: Array | None, rounding: Rounding, out: Array
) -> None:
    """D = A * B + C into `out` (M x N, f32, rows may lie apart).

    form: `form_of`, or "whole" for a chain in f32 that is exact. a: values and powers, M x K; b: K x N; all f32, or all
    f64, as the form has it; N a multiple of 16, M of 4, K of 8. c: like out.
    """
    values, powers = a
    right, right_powers = b
    m, k = values.shape
    source = out if c is None else c
    functions()[f"tile_rows_{form}"](
        address_of(values), address_of(powers), address_of(right), address_of(right_powers), address_of(source),
        address_of(out), m, right.shape[1], k, source.strides[0] // 4, out.strides[0] // 4, rounding.fraction,
        rounding.mask, rounding.odd, rounding.least, 0 if c is None else 0xFFFF_FFFF,
    )  # fmt: skip


def grouped(
    a: Array, b: Array, scales: tuple[Array, Array], c: Array | None, rounding: Rounding, out: Array
) -> None:  # fmt: skip
    """D = A * B + C for block-scaled fp4, as `rows`.

    a: M x K, b: K x N, both f32; scales: those of A, M x groups x 2, and of B, groups x 2 x N, value and power (f64).
    """
    source = out if c is None else c
    functions()["tile_rows_grouped"](
        address_of(a), address_of(scales[0]), address_of(b), address_of(scales[1]), address_of(source),
        address_of(out), len(a), b.shape[1], a.shape[1],
        source.strides[0] // 4, out.strides[0] // 4, rounding.fraction, rounding.mask, rounding.odd, rounding.least,
        0 if c is None else 0xFFFF_FFFF,
    )  # fmt: skip


def halves(codes: Array) -> tuple[Array, Array]:
    """f16 (u16, a multiple of 16 of them) as f32, and their powers, in the shape of `codes`."""
    codes = np.ascontiguousarray(codes)
    values, powers = np.empty(codes.shape, np.float32), np.empty(codes.shape, np.float32)
    functions()[HALVES](address_of(codes), address_of(values), address_of(powers), codes.size)
    return values, powers
