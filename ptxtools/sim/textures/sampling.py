"""What a texture fetch gives: coordinates to texels, filters, and texels to channel values.

Formulas of the CUDA C++ Programming Guide, appendix "Texture Fetching". Arrays have one element for each lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .objects import Sampler, Texture

Array: TypeAlias = npt.NDArray[Any]
#: Bytes of device memory: (address, size) to a view.
Memory: TypeAlias = Callable[[int, int], memoryview]

#: Filter weights have 8 bits of fraction.
_STEPS = 256.0
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
        end = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)) + item
        self.texels: Array = np.ndarray(shape, "<" + texture.channel.code, memory(start, end), strides=strides)

    def values(
        self, layer: Array, sample: Array, place: Sequence[Array], inside: Array, border: Sequence[float]
    ) -> Array:
        """Channel values (lanes x 4) at x[, y[, z]]; lanes that are not `inside` get the border's colour.

        Floats are float64, integers int64.
        """
        zero = np.zeros_like(place[0])
        x, y, z = (*place, zero, zero)[:3]
        found = self.texels[layer, sample, z, y, x]
        texture = self.texture
        values = np.zeros((len(x), 4), np.float64 if texture.is_float else np.int64)
        values[:, 3] = 1
        values[:, : texture.channels] = _normalized(found, texture) if texture.read != "element" else found
        colour = np.array(border, values.dtype)
        return np.where(inside[:, None], values, colour)


def _normalized(found: Array, texture: Texture) -> Array:
    """Integers as floats: unsigned to [0, 1], signed to [-1, 1]."""
    if texture.channel.is_float:
        return found
    largest = np.iinfo(found.dtype).max
    # Single precision, as the hardware gives it.
    values: Array = np.maximum(found.astype(np.float32) / np.float32(largest), np.float32(-1))
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


def _mode(sampler: Sampler, axis: int, normalized: bool) -> str:
    """Address mode of an axis: wrap and mirror need normalized coordinates, and clamp otherwise."""
    mode = sampler.address[axis]
    return "clamp" if mode in ("wrap", "mirror") and not normalized else mode


def _finite(coordinate: Array) -> Array:
    held: Array = np.clip(np.nan_to_num(coordinate, nan=0.0, posinf=_FAR, neginf=-_FAR), -_FAR, _FAR)
    return held


class Fetch:
    """A fetch of all lanes from one level. offsets: whole texels added on each axis."""

    def __init__(self, image: Image, sampler: Sampler, layer: Array, sample: Array, offsets: Sequence[Array]) -> None:
        self.image, self.sampler, self.offsets = image, sampler, offsets
        texture = image.texture
        self.layer = np.clip(layer, 0, texture.layers - 1)
        self.sample = np.clip(sample, 0, texture.samples - 1)
        self.normalized = sampler.normalized and not sampler.force_unnormalized

    def _texel(self, index: Sequence[Array]) -> Array:
        """Values at whole texels, each axis by its address mode."""
        place, inside = [], np.ones(len(self.layer), np.bool_)
        for axis, along in enumerate(index):
            mode = _mode(self.sampler, axis, self.normalized)
            shifted = along + self.offsets[axis] if axis < len(self.offsets) else along
            held, within = addressed(shifted, self.image.size[axis], mode)
            place.append(held)
            inside &= within
        return self.image.values(self.layer, self.sample, place, inside, self.sampler.border)

    def _scaled(self, coordinates: Sequence[Array]) -> list[Array]:
        """Coordinates in texels."""
        factors = self.image.size if self.normalized else (1, 1, 1)
        return [_finite(c.astype(np.float64) * n) for c, n in zip(coordinates, factors, strict=False)]

    def whole(self, index: Sequence[Array]) -> Array:
        """Integer coordinates: a texel each, no filter. Linear memory gives zero outside."""
        if self.image.texture.kind == "linear":
            inside = (index[0] >= 0) & (index[0] < self.image.size[0])
            values = self._texel([np.clip(index[0], 0, self.image.size[0] - 1)])
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
            part = self._texel([i + step for i, step in zip(first, corner, strict=True)])
            total += np.where(weight[:, None] != 0, weight[:, None] * part, 0.0)
        return total

    def _footprint(self, texels: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """Lower texel and weight of the upper one, on each axis."""
        lower = [np.floor(x - 0.5) for x in texels]
        weights = [np.floor((x - 0.5 - i) * _STEPS + 0.5) / _STEPS for x, i in zip(texels, lower, strict=True)]
        return [i.astype(np.int64) for i in lower], weights

    def gathered(self, coordinates: Sequence[Array], channel: int) -> Array:
        """One channel of the four texels that a linear filter would use (tld4), from lower left counter-clockwise."""
        (x, y), _ = self._footprint(self._scaled(coordinates))
        corners = ((0, 1), (1, 1), (1, 0), (0, 0))
        return np.stack([self._texel([x + dx, y + dy])[:, channel] for dx, dy in corners], axis=1)


# --- cubes and levels -------------------------------------------------------------------------------------------------


def cube_face(x: Array, y: Array, z: Array) -> tuple[Array, Array, Array]:
    """Face, and normalized coordinates on it, of a direction."""
    ax, ay, az = np.abs(x), np.abs(y), np.abs(z)
    along_x = (ax >= ay) & (ax >= az)
    along_y = ~along_x & (ay >= az)
    m = np.where(along_x, ax, np.where(along_y, ay, az))
    major = np.where(along_x, x, np.where(along_y, y, z))
    face = np.where(along_x, 0, np.where(along_y, 2, 4)) + (np.signbit(major))
    sign = np.where(np.signbit(major), -1.0, 1.0)
    s = np.where(along_x, -sign * z, np.where(along_y, x, sign * x))
    t = np.where(along_y, sign * z, -y)
    with np.errstate(all="ignore"):
        return face, (s / m + 1) / 2, (t / m + 1) / 2


def levels_of(texture: Texture, sampler: Sampler, lod: Array) -> tuple[Array, Array, Array]:
    """Level, the next one, and the weight of the next, for a level of detail."""
    last = texture.levels - 1
    lod = np.clip(np.nan_to_num(lod.astype(np.float64)), 0, last)
    if sampler.mip_filter == "point":
        level = np.floor(lod + 0.5).astype(np.int64)
        return level, level, np.zeros(len(lod))
    lower = np.floor(lod).astype(np.int64)
    weight = np.floor((lod - lower) * _STEPS + 0.5) / _STEPS
    return lower, np.minimum(lower + 1, last), weight


def gradient_lod(texture: Texture, sampler: Sampler, dx: Sequence[Array], dy: Sequence[Array]) -> Array:
    """Level of detail of gradients: the larger one's length in texels of the base level."""
    factors = texture.size if sampler.normalized and not sampler.force_unnormalized else (1, 1, 1)
    lengths = [
        np.sqrt(sum((d.astype(np.float64) * n) ** 2 for d, n in zip(parts, factors, strict=False)))
        for parts in (dx, dy)
    ]  # fmt: skip
    with np.errstate(divide="ignore"):
        return np.log2(np.maximum(lengths[0], lengths[1]))
