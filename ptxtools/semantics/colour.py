"""Colours: the values of sRGB channels."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt


@cache
def linear_light() -> npt.NDArray[Any]:
    """The 256 values of an sRGB channel in proportion to light (IEC 61966-2-1), in single precision."""
    encoded = np.arange(256) / 255
    light = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    return light.astype(np.float32)
