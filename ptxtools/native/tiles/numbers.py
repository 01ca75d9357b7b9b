"""Elements as native code multiplies them: f32 if products are exact in it, else f64."""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np

from ptxtools.machine.arrays import NumpyAlgebra, quiet
from ptxtools.machine.products import Array, Numbers, Products
from ptxtools.records import dataclass
from ptxtools.semantics import tensorcore
from ptxtools.semantics.tensorcore import LEAST

from . import interface as tiles

_FIELDS = {4: (np.uint32, np.uint32(0x7F80_0000)), 8: (np.uint64, np.uint64(0x7FF0_0000_0000_0000))}
_DEFINED = Products()
_A = NumpyAlgebra()


@dataclass(frozen=True)
class TileNumbers(Numbers):
    """A matrix whose values and powers are both f32 or both f64."""

    @cached_property
    def turned(self) -> tuple[Array, Array]:
        """Values and powers as K x rows, with the rows padded to whole vectors: the second factor for `tiles.rows`."""
        return _turned(self.values), _turned(self.powers)

    @property
    def is_wide(self) -> bool:
        return bool(self.values.dtype == np.float64)

    def wide(self) -> TileNumbers:
        """The same in f64."""
        return TileNumbers(self.values.astype(np.float64), self.powers.astype(np.float64))

    def single(self) -> TileNumbers:
        """The values in f32, whatever the powers are."""
        return self if not self.is_wide else TileNumbers(self.values.astype(np.float32), self.powers)

    def scaled(self, scale: Numbers) -> TileNumbers:
        """Each number times the factor of its block of columns; the exponents add."""
        wide = self.values.shape[1] // scale.values.shape[1]
        values, powers = (np.repeat(m, wide, axis=1) for m in (scale.values, scale.powers))
        return fit(self.values * values, self.powers * powers)


def _turned(columns: Array) -> Array:
    count, k = columns.shape
    turned = np.zeros((k, -(-count // tiles.WIDTH) * tiles.WIDTH), columns.dtype)
    turned[:, :count] = columns.T
    return turned


def fit(values: Array, powers: Array) -> TileNumbers:
    """Numbers in f32 if they fit."""
    some = powers[powers != 0]
    with np.errstate(invalid="ignore"):
        if not len(some) or (some.min() >= tiles.NARROW[0] and some.max() <= tiles.NARROW[1]):
            return TileNumbers(values.astype(np.float32), powers.astype(np.float32))
        return TileNumbers(values, powers).wide()


def power(values: Array, least: int) -> Array:
    """`tensorcore.power` of each f32 or f64."""
    bits, exponent = _FIELDS[values.dtype.itemsize]
    own: Array = (values.view(bits) & exponent).view(values.dtype)
    np.maximum(own, values.dtype.type(2.0**least), out=own)
    np.copyto(own, 0, where=values == 0)
    return own


def numbers(t: str, codes: Array) -> TileNumbers:
    """`Products.numbers`, narrow where possible."""
    if codes.dtype == np.uint8:
        values, powers = _table(t)
        return TileNumbers(values[codes], powers[codes])
    if t == "f16" and codes.size % tiles.WIDTH == 0:
        return TileNumbers(*tiles.halves(codes))
    with quiet():
        single = tensorcore.decode_single(_A, t, codes.astype(np.uint32, copy=False)).view(np.float32)
    return fit(single, power(single, LEAST[t]))


@cache
def _table(t: str) -> tuple[Array, Array]:
    """Value and power for each of the 256 bytes, in f32."""
    found = _DEFINED.numbers(t, np.arange(256, dtype=np.uint8))
    with np.errstate(invalid="ignore"):
        return found.values.astype(np.float32), found.powers.astype(np.float32)
