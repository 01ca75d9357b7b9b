"""Levels of detail: which mipmap levels a fetch reads, and how far apart the samples of an anisotropic one lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .objects import Sampler, Texture
from .sampling import STEPS

Array: TypeAlias = npt.NDArray[Any]


def levels_of(texture: Texture, sampler: Sampler, lod: Array) -> tuple[Array, Array, Array]:
    """Level, the next one, and the weight of the next, for a level of detail."""
    last = texture.levels - 1
    lowest, highest = sampler.level_clamp
    lod = np.nan_to_num(lod.astype(np.float64)) + sampler.level_bias
    lod = np.clip(np.clip(lod, lowest, max(lowest, highest)), 0, last)
    if sampler.mip_filter == "point":
        level = np.floor(lod + 0.5).astype(np.int64)
        return level, level, np.zeros(len(lod))
    lower = np.floor(lod).astype(np.int64)
    weight = np.floor((lod - lower) * STEPS + 0.5) / STEPS
    return lower, np.minimum(lower + 1, last), weight


def gradient_lod(
    texture: Texture, sampler: Sampler, dx: Sequence[Array], dy: Sequence[Array]
) -> tuple[Array, Array, list[Array]]:
    """Level of detail of gradients, the number of samples, and the gradient along which they lie.

    Isotropic: the longer gradient's length in texels of the base level. Anisotropic (the example of the OpenGL
    extension EXT_texture_filter_anisotropic): as many samples as the longer one is longer than the other, rounded up,
    at most `sampler.anisotropy`; and the level of the length that each of them then covers.
    """
    factors = texture.size if sampler.scales else (1, 1, 1)
    with np.errstate(all="ignore"):
        lengths = [
            np.sqrt(sum((d.astype(np.float64) * n) ** 2 for d, n in zip(parts, factors, strict=False)))
            for parts in (dx, dy)
        ]  # fmt: skip
        longer, shorter = np.maximum(*lengths), np.minimum(*lengths)
        count = np.ceil(longer / shorter)
        count = np.clip(np.where(np.isnan(count), 1, count), 1, sampler.anisotropy)
        lod = np.log2(longer / count)
    first = lengths[0] >= lengths[1]
    along = [np.where(first, a, b).astype(np.float64) for a, b in zip(dx, dy, strict=True)]
    return lod, count.astype(np.int64), along
