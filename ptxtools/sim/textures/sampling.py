"""Texture fetches: coordinates to texels, filters, and texels to channel values.

Formulas of the CUDA C++ Programming Guide, appendix "Texture Fetching". Arrays have one element for each lane.
`native.textures.sampling` has the same for the common cases, in compiled code: both give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.semantics.colour import linear_light

from .cubes import across
from .objects import COMPARISONS, Sampler, Texture

Array: TypeAlias = npt.NDArray[Any]
#: Bytes of device memory: (address, size) to a view.
Memory: TypeAlias = Callable[[int, int], memoryview]
#: Is told which lanes read texels, and of all lanes the addresses.
Touched: TypeAlias = Callable[[Array, Array], None]

#: Filter weights have 8 bits of fraction.
STEPS = 256.0
_FAR = float(1 << 40)  # coordinates are held to this, so that they are numbers of texels


class Image:
    """One mipmap level of a texture as an array [layer, sample, z, y, x, channel]."""

    def __init__(self, texture: Texture, level: int, memory: Memory) -> None:
        start = texture.address + sum(map(texture.level_bytes, range(level)))
        x, y, z = self.size = texture.level_size(level)
        item = texture.channel.bytes
        row = texture.row if level == 0 else x * texture.texel
        plane = row * y
        sample = plane * z
        layer = sample * texture.samples
        shape = (texture.layers, texture.samples, z, y, x, texture.channels)
        strides = (layer, sample, plane, row, texture.texel, item)
        self.texture = texture
        self.absent = [region for region in texture.absent if region.level == level]
        end = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)) + item
        self.start, self.strides = start, strides
        self.texels: Array = np.ndarray(shape, "<" + texture.channel.code, memory(start, end), strides=strides)

    def values(self, layer: Array, sample: Array, place: Sequence[Array]) -> Array:
        """Channel values (lanes x 4) at x[, y[, z]]: floats are float64, integers int64."""
        x, y, z = _three(place)
        found = self.texels[layer, sample, z, y, x]
        texture = self.texture
        values = np.zeros((len(x), 4), np.float64 if texture.is_float else np.int64)
        values[:, 3] = 1
        values[:, : texture.channels] = _normalized(found, texture) if texture.read != "element" else found
        return values

    def addresses(self, layer: Array, sample: Array, place: Sequence[Array]) -> Array:
        """Where texels are in global memory."""
        x, y, z = _three(place)
        parts = zip((layer, sample, z, y, x), self.strides, strict=False)
        return self.start + sum((along * stride for along, stride in parts), np.zeros(len(x), np.int64))

    def resident(self, layer: Array, place: Sequence[Array]) -> Array:
        """Whether texels are there."""
        x, y, z = _three(place)
        there = np.ones(len(x), np.bool_)
        for region in self.absent:
            there &= ~region.covers(layer, x, y, z)
        return there


def _three(place: Sequence[Array]) -> tuple[Array, Array, Array]:
    zero = np.zeros_like(place[0])
    x, y, z = (*place, zero, zero)[:3]
    return x, y, z


def _normalized(found: Array, texture: Texture) -> Array:
    """Integers as floats: unsigned to [0, 1], signed to [-1, 1]; of sRGB all but alpha in proportion to light."""
    if texture.channel.is_float:
        return found
    largest = np.iinfo(found.dtype).max
    # Single precision, as the hardware gives it.
    values: Array = np.maximum(found.astype(np.float32) / np.float32(largest), np.float32(-1))
    if texture.srgb:
        values[:, :3] = linear_light()[found[:, :3]]
    return values


# --- axes -------------------------------------------------------------------------------------------------------------


def addressed(index: Array, extent: int, mode: str) -> tuple[Array, Array]:
    """Indices inside 0 … extent-1 by the address mode, and whether the border's colour does not take their place."""
    inside = np.ones(index.shape, np.bool_)
    if mode == "wrap":
        return index % extent, inside
    if mode == "mirror":
        folded = index % (2 * extent)
        return np.minimum(folded, 2 * extent - 1 - folded), inside
    if mode == "border":
        inside = (index >= 0) & (index < extent)
    return np.clip(index, 0, extent - 1), inside


def _finite(coordinate: Array) -> Array:
    held: Array = np.clip(np.nan_to_num(coordinate, nan=0.0, posinf=_FAR, neginf=-_FAR), -_FAR, _FAR)
    return held


class Fetch:
    """A fetch of all lanes from one level. offsets: whole texels added on each axis; reference: what depth is compared
    with. resident: whether all texels that counted so far were there."""

    def __init__(self, image: Image, sampler: Sampler, layer: Array, sample: Array, offsets: Sequence[Array],
                 reference: Array | None = None) -> None:  # fmt: skip
        self.image, self.sampler, self.offsets, self.reference = image, sampler, offsets, reference
        texture = image.texture
        self.layer = np.clip(layer, 0, texture.layers - 1)
        self.sample = np.clip(sample, 0, texture.samples - 1)
        self.seamless = sampler.seamless and texture.is_cube
        self.resident = np.ones(len(layer), np.bool_)
        self.touched: Touched | None = None

    def _texel(self, index: Sequence[Array], counts: Array | None = None) -> Array:
        """Values at whole texels, each axis by its address mode. counts: lanes to which it matters."""
        if self.seamless:
            return self._around(index[0], index[1], counts)
        place, inside = [], np.ones(len(self.layer), np.bool_)
        for axis, along in enumerate(index):
            shifted = along + self.offsets[axis] if axis < len(self.offsets) else along
            held, within = addressed(shifted, self.image.size[axis], self.sampler.mode(axis))
            place.append(held)
            inside &= within
        return self._found(self.layer, place, inside, inside if counts is None else inside & counts)

    def _found(self, layer: Array, place: Sequence[Array], inside: Array, counts: Array | None) -> Array:
        """Values at places inside of the level; lanes that are not `inside` get the border's colour."""
        values = self.image.values(layer, self.sample, place)
        if self.touched is not None:
            mine = inside if counts is None else inside & counts
            self.touched(mine, self.image.addresses(layer, self.sample, place))
        values = np.where(inside[:, None], values, np.array(self.sampler.border, values.dtype))
        if self.image.absent:
            there = self.image.resident(layer, place)
            self.resident &= there if counts is None else there | ~counts
        if self.reference is not None:
            channels = self.image.texture.channels
            passes = COMPARISONS[self.sampler.compare](self._reference()[:, None], values[:, :channels])
            values[:, :channels] = passes
        return values

    def _reference(self) -> Array:
        """The value to compare with; as fixed-point depth it is held to the format's range."""
        assert self.reference is not None
        given = self.reference.astype(np.float64)
        kind = self.image.texture.type
        return given if kind[0] == "f" else np.clip(given, -1.0 if kind[0] == "s" else 0.0, 1.0)

    def _around(self, x: Array, y: Array, counts: Array | None) -> Array:
        """Texels of a face, or beyond its edge on the next face; beyond a corner the mean of the three around it."""
        n = self.image.size[0]
        x, y = np.clip(x, -1, n), np.clip(y, -1, n)
        inner_x, inner_y = np.clip(x, 0, n - 1), np.clip(y, 0, n - 1)
        corner = (x != inner_x) & (y != inner_y)
        everywhere = np.ones(len(x), np.bool_)

        def at(along_x: Array, along_y: Array) -> Array:
            layer, *place = across(self.layer, along_x, along_y, n)
            return self._found(layer, place, everywhere, counts)

        values = at(np.where(corner, inner_x, x), np.where(corner, inner_y, y))
        if not self.image.texture.is_float or not corner.any():
            return values
        mean = (values + at(np.where(corner, x, inner_x), inner_y) + at(inner_x, np.where(corner, y, inner_y))) / 3
        return np.where(corner[:, None], mean, values)

    def _scaled(self, coordinates: Sequence[Array]) -> list[Array]:
        """Coordinates in texels."""
        factors = self.image.size if self.sampler.scales else (1, 1, 1)
        return [_finite(c.astype(np.float64) * n) for c, n in zip(coordinates, factors, strict=False)]

    def whole(self, index: Sequence[Array]) -> Array:
        """Integer coordinates: a texel each, no filter. Linear memory gives zero outside."""
        if self.image.texture.kind == "linear":
            index = [index[0] + self.offsets[0]] if self.offsets else index
            inside = (index[0] >= 0) & (index[0] < self.image.size[0])
            values = self._found(self.layer, [np.clip(index[0], 0, self.image.size[0] - 1)], inside, inside)
            return np.where(inside[:, None], values, np.zeros((), values.dtype))
        return self._texel(index)

    def filtered(self, coordinates: Sequence[Array]) -> Array:
        """Floating-point coordinates: the nearest texel, or a weighted mean of the 2, 4 or 8 around."""
        texels = self._scaled(coordinates)
        if self.sampler.filter == "point":
            return self._texel([np.floor(x).astype(np.int64) for x in texels])
        first, weights = self._footprint(texels)
        total = np.zeros((len(self.layer), 4), np.float64)
        for corner in product((0, 1), repeat=len(texels)):
            weight = np.ones(len(self.layer), np.float64)
            for step, alpha in zip(corner, weights, strict=True):
                weight = weight * (alpha if step else 1 - alpha)
            part = self._texel([i + step for i, step in zip(first, corner, strict=True)], weight != 0)
            with np.errstate(invalid="ignore"):
                total += np.where(weight[:, None] != 0, weight[:, None] * part, 0.0)
        return total

    def _footprint(self, texels: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """Lower texel and weight of the upper one, on each axis."""
        lower = [np.floor(x - 0.5) for x in texels]
        weights = [np.floor((x - 0.5 - i) * STEPS + 0.5) / STEPS for x, i in zip(texels, lower, strict=True)]
        return [i.astype(np.int64) for i in lower], weights

    def gathered(self, coordinates: Sequence[Array], channel: int) -> Array:
        """One channel of the four texels that a linear filter would use (tld4), from lower left counter-clockwise."""
        (x, y), _ = self._footprint(self._scaled(coordinates))
        corners = ((0, 1), (1, 1), (1, 0), (0, 0))
        return np.stack([self._texel([x + dx, y + dy])[:, channel] for dx, dy in corners], axis=1)
