"""Elements of matrices as numbers: every format that the asynchronous tensor cores take (5.2.3, 9.7.16.10.4).

With a number goes its `power`: 2 to its exponent, where subnormal numbers have the least exponent of their format, and
zero has 0. Numbers are f32 where all powers are such that products are exact in f32 too (`NARROW`), else f64.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.native.tiles import interface as tiles
from ptxtools.semantics.exact import FORMATS
from ptxtools.semantics.tensorcore import LEAST

Array: TypeAlias = npt.NDArray[Any]

#: Bits that an element takes in memory; 6- and 4-bit floats stand in bytes, except "fp4": two e2m1 to a byte.
BITS = {
    "tf32": 32, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "e2m1": 8, "fp4": 4, "s8": 8,
    "u8": 8, "b1": 1,
}  # fmt: skip
_FIELDS = {4: (np.uint32, np.uint32(0x7F80_0000)), 8: (np.uint64, np.uint64(0x7FF0_0000_0000_0000))}


@dataclass(frozen=True)
class Numbers:
    """A matrix: `values` and the `powers` of the values, both rows x K, both f32 or both f64."""

    values: Array
    powers: Array

    @property
    def finite(self) -> bool:
        return bool(self.powers.max(initial=0) < np.inf)

    @cached_property
    def turned(self) -> tuple[Array, Array]:
        """Values and powers as K x rows, with the rows filled up to whole vectors: what `tiles.rows` multiplies by."""
        return _turned(self.values), _turned(self.powers)

    def wide(self) -> Numbers:
        """The same in f64."""
        return Numbers(self.values.astype(np.float64), self.powers.astype(np.float64))

    def scaled(self, factors: Array, powers: Array) -> Numbers:
        """Each number times a factor (f64); the exponents add."""
        return _fit(self.values * factors, self.powers * powers)

    def negated(self) -> Numbers:
        return Numbers(-self.values, self.powers)

    def part(self, rows: slice | Array) -> Numbers:
        return Numbers(self.values[rows], self.powers[rows])


def _turned(columns: Array) -> Array:
    count, k = columns.shape
    turned = np.zeros((k, -(-count // tiles.WIDTH) * tiles.WIDTH), columns.dtype)
    turned[:, :count] = columns.T
    return turned


def _fit(values: Array, powers: Array) -> Numbers:
    """Numbers in f32 if they fit."""
    some = powers[powers != 0]
    if not len(some) or (some.min() >= tiles.NARROW[0] and some.max() <= tiles.NARROW[1]):
        return Numbers(values.astype(np.float32), powers.astype(np.float32))
    with np.errstate(invalid="ignore"):
        return Numbers(values, powers).wide()


def power(values: Array, least: int) -> Array:
    """2 to the exponent of each f32 or f64, at least `least`; 0 for zero, infinite for what is not finite."""
    bits, exponent = _FIELDS[values.dtype.itemsize]
    own: Array = (values.view(bits) & exponent).view(values.dtype)
    np.maximum(own, values.dtype.type(2.0**least), out=own)
    np.copyto(own, 0, where=values == 0)
    return own


def numbers(t: str, codes: Array) -> Numbers:
    """Elements from their bits: u32 for tf32, u16 for 16-bit types, u8 for all others (of "fp4" one a byte)."""
    if BITS[t] <= 8:
        table, powers = _table(t)
        return Numbers(table[codes], powers[codes])
    values: Array
    if t == "f16":
        found = tiles.halves(codes)
        if found is None:
            with np.errstate(invalid="ignore"):
                values = codes.view(np.float16).astype(np.float32)
            found = values, power(values, LEAST[t])
        return Numbers(*found)
    if t == "bf16":
        values = (codes.astype(np.uint32) << np.uint32(16)).view(np.float32)
    else:
        values = (codes & np.uint32(0xFFFF_E000)).view(np.float32)  # the low 13 bits do not count
    return _fit(values, power(values, LEAST[t]))


def integers(t: str, codes: Array) -> Array:
    """Bytes as whole numbers in f32, in which sums of K products are exact."""
    return codes.view(np.int8 if t == "s8" else np.uint8).astype(np.float32)


@cache
def _table(t: str) -> tuple[Array, Array]:
    """Value and power for each of the 256 bytes."""
    name, shift = ("e2m1", 0) if t == "fp4" else (t, 2 if t == "e2m1" else 0)
    values = np.array([_value(name, byte >> shift) for byte in range(256)], np.float32)
    return values, power(values, LEAST[name])


def _value(name: str, code: int) -> float:
    """Value of a narrow float, from the low bits of `code`."""
    form = FORMATS[name]
    code &= (1 << form.bits) - 1
    magnitude = code & (form.sign - 1)
    exponent, fraction = magnitude >> form.mantissa, magnitude & ((1 << form.mantissa) - 1)
    if form.infinity is not None and magnitude >= form.infinity:
        size = float("inf") if magnitude == form.infinity else float("nan")
    elif form.nan is not None and magnitude == form.nan:
        size = float("nan")
    elif exponent == 0:
        size = fraction * 2.0 ** (1 - form.bias - form.mantissa)
    else:
        size = (fraction + (1 << form.mantissa)) * 2.0 ** (exponent - form.bias - form.mantissa)
    return -size if code & form.sign else size


@cache
def scale_table(t: str) -> tuple[Array, Array]:
    """Scale factors "ue8m0" or "ue4m3" by their byte: value, and 2 to the exponent (5.2.3). The sign of ue4m3 is
    ignored; its subnormal numbers have its least exponent."""
    if t == "ue8m0":
        values = np.array([2.0 ** (byte - 127) for byte in range(255)] + [float("nan")])
        return values, values
    values = np.array([_value("e4m3", byte & 0x7F) for byte in range(256)])
    return values, power(values, LEAST["ue4m3"])


def unpack_fours(data: Array) -> Array:
    """Bytes of two 4-bit elements each, the lower first, as bytes of one: the last axis doubles."""
    pairs = np.stack((data & np.uint8(15), data >> np.uint8(4)), axis=-1)
    return pairs.reshape(*data.shape[:-1], -1)


def unpack_containers(bits: int, data: Array) -> Array:
    """Groups of 16 elements of 6 or 4 bits, packed at the low end of 16 bytes, as 16 bytes (9.7.16.10.4.4).

    The last axis is a multiple of 16. A 6-bit element comes to bits 0 to 5 of its byte, a 4-bit one to bits 2 to 5.
    """
    groups = data.reshape(*data.shape[:-1], -1, 16)
    if bits == 4:
        return (unpack_fours(groups[..., :8]) << np.uint8(2)).reshape(data.shape)
    triples = groups[..., :12].reshape(*groups.shape[:-1], 4, 3).astype(np.uint32)
    words = triples[..., 0] | triples[..., 1] << np.uint32(8) | triples[..., 2] << np.uint32(16)
    sixes = words[..., None] >> np.array([0, 6, 12, 18], np.uint32) & np.uint32(63)
    found: Array = sixes.astype(np.uint8).reshape(data.shape)
    return found


def unpack_bits(data: Array) -> Array:
    """Bytes as single bits, the lowest first: the last axis grows by 8."""
    return np.unpackbits(data, axis=-1, bitorder="little")
