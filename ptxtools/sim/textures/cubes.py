"""Cube maps: map directions to faces, and one face to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


def cube_face(x: Array, y: Array, z: Array) -> tuple[Array, Array, Array]:
    """Face, and normalized coordinates on it, of a direction."""
    face, m, s, t = project(x, y, z)
    with np.errstate(all="ignore"):
        return face, (s / m + 1) / 2, (t / m + 1) / 2


def project(x: Array, y: Array, z: Array) -> tuple[Array, Array, Array, Array]:
    """Face of a direction, its length along the major axis, and along the axes s and t of that face."""
    ax, ay, az = np.abs(x), np.abs(y), np.abs(z)
    along_x = (ax >= ay) & (ax >= az)
    along_y = ~along_x & (ay >= az)
    major = np.where(along_x, x, np.where(along_y, y, z))
    face = np.where(along_x, 0, np.where(along_y, 2, 4)) + np.signbit(major)
    return face, *on_face(face, x, y, z)


def on_face(face: Array, x: Array, y: Array, z: Array) -> tuple[Array, Array, Array]:
    """Components of a vector along the outward axis of a face, and along its s and t."""
    axis, sign = face // 2, np.where(face % 2 == 1, -1.0, 1.0)
    along_x, along_y = axis == 0, axis == 1
    m = sign * np.where(along_x, x, np.where(along_y, y, z))
    s = np.where(along_x, -sign * z, np.where(along_y, x, sign * x))
    t = np.where(along_y, sign * z, -y)
    return m, s, t


def slope(direction: Sequence[Array], gradient: Sequence[Array]) -> list[Array]:
    """Change of the normalized coordinates on the face when a direction changes by a gradient."""
    face, m, s, t = project(*(c.astype(np.float64) for c in direction))
    dm, ds, dt = on_face(face, *(g.astype(np.float64) for g in gradient))
    with np.errstate(all="ignore"):
        return [(d * m - value * dm) / (2 * m * m) for d, value in ((ds, s), (dt, t))]


def across(layer: Array, x: Array, y: Array, n: int) -> tuple[Array, Array, Array]:
    """Layer and texel of a place on a cube of n x n texels that may be one texel beyond one edge of its face.

    Distances are in half texels from the middle: texel i is at 2i + 1 - n, a face is n away. Beyond an edge the place
    lies on the next face, in the row of texels along that edge.
    """
    face = layer % 6
    a, b = 2 * x + 1 - n, 2 * y + 1 - n
    beyond = (np.abs(a) > n) | (np.abs(b) > n)
    m = np.where(beyond, n - 1, n)
    a, b = (np.where(np.abs(v) > n, np.sign(v) * n, v) for v in (a, b))
    sign = np.where(face % 2 == 1, -1, 1)
    along_x, along_y = face // 2 == 0, face // 2 == 1
    vector_x = np.where(along_x, sign * m, np.where(along_y, a, sign * a))
    vector_y = np.where(along_y, sign * m, -b)
    vector_z = np.where(along_x, -sign * a, np.where(along_y, sign * b, sign * m))
    new, _, s, t = project(vector_x, vector_y, vector_z)
    places = ((s + n - 1) / 2, (t + n - 1) / 2)
    return layer - face + new, places[0].astype(np.int64), places[1].astype(np.int64)
