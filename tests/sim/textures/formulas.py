"""Texture fetches in float64, one at a time, from the formulas of the CUDA C++ Programming Guide ("Texture Fetching")
and of the OpenGL specification (cubes, sRGB, comparison of depth). Shares nothing with the package."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np


def index(i: int, n: int, mode: str) -> int | None:
    """Texel by address mode; None outside of a border."""
    if mode == "wrap":
        return i % n
    if mode == "mirror":
        i %= 2 * n
        return i if i < n else 2 * n - 1 - i
    if mode == "border":
        return i if 0 <= i < n else None
    return min(max(i, 0), n - 1)


def footprint(x: float, linear: bool) -> list[tuple[int, float]]:
    """Texels along an axis with their weights, which have 8 bits of fraction; x in texels."""
    if not linear:
        return [(math.floor(x), 1.0)]
    first = math.floor(x - 0.5)
    alpha = math.floor((x - 0.5 - first) * 256 + 0.5) / 256
    return [(first, 1 - alpha), (first + 1, alpha)]


def fetch(
    texels: Any,
    place: tuple[float, ...],
    *,
    linear: bool,
    modes: tuple[str, ...],
    normalized: bool,
    offsets: tuple[int, ...] = (0, 0, 0),
    border: Any = 0.0,
    whole: bool = False,
) -> Any:
    """One fetch; place and modes are x first, axes of `texels` the other way round, channels last."""
    extents = texels.shape[-2::-1][: len(place)]
    if normalized and not whole:
        place = tuple(x * n for x, n in zip(place, extents, strict=True))
    if not normalized:
        modes = tuple("clamp" if m in ("wrap", "mirror") else m for m in modes)
    axes = [[(int(x), 1.0)] if whole else footprint(x, linear) for x in place]
    total = np.zeros(texels.shape[-1])
    for corner in product(*axes):
        at = [index(i + o, n, m) for (i, _), o, n, m in zip(corner, offsets, extents, modes, strict=False)]
        weight = math.prod(w for _, w in corner)
        if weight:
            texel = np.broadcast_to(border, total.shape) if None in at else texels[tuple(at[::-1])]
            total = total + weight * np.asarray(texel, np.float64)
    return total


def light(code: int) -> float:
    """An 8-bit sRGB channel in proportion to light (IEC 61966-2-1)."""
    c = code / 255
    return c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4


#: Outward axis of each face of a cube, and the directions of its s and t (OpenGL, table of cube map targets).
FACES = (
    ((1, 0, 0), (0, 0, -1), (0, -1, 0)), ((-1, 0, 0), (0, 0, 1), (0, -1, 0)),
    ((0, 1, 0), (1, 0, 0), (0, 0, 1)), ((0, -1, 0), (1, 0, 0), (0, 0, -1)),
    ((0, 0, 1), (1, 0, 0), (0, -1, 0)), ((0, 0, -1), (-1, 0, 0), (0, -1, 0)),
)  # fmt: skip


def face_of(direction: Any) -> tuple[int, float, float]:
    """Face that a direction meets, and s and t from -1 to 1 on it."""
    vector = np.asarray(direction, np.float64)
    axis = int(np.argmax(np.abs(vector)))  # the first of equals: x before y before z
    face = 2 * axis + int(math.copysign(1, vector[axis]) < 0)
    _, s, t = FACES[face]
    m = abs(vector[axis])
    return face, float(vector @ s / m), float(vector @ t / m)


def beyond(face: int, x: int, y: int, n: int) -> list[tuple[int, int, int]]:
    """Texels (face, x, y) that stand for one that may be a step beyond an edge: the one across the edge; at a corner
    the three that meet there."""
    if 0 <= x < n and 0 <= y < n:
        return [(face, x, y)]
    inner_x, inner_y = min(max(x, 0), n - 1), min(max(y, 0), n - 1)
    if x != inner_x and y != inner_y:
        return [(face, inner_x, inner_y), *beyond(face, x, inner_y, n), *beyond(face, inner_x, y, n)]
    # The nearest texel of another face to the centre of the texel at the edge, which lies just behind that edge.
    own = centre(face, inner_x, inner_y, n)
    out = np.asarray(FACES[face][1]) * (x - inner_x) + np.asarray(FACES[face][2]) * (y - inner_y)
    new = next(f for f in range(6) if (np.asarray(FACES[f][0]) == out).all())
    texels = [(new, i, j) for j in range(n) for i in range(n)]
    return [min(texels, key=lambda place: float(np.sum((centre(*place, n) - own) ** 2)))]


def centre(face: int, x: int, y: int, n: int) -> Any:
    """Centre of a texel on the cube from -1 to 1."""
    m, s, t = (np.asarray(axis, np.float64) for axis in FACES[face])
    return m + s * ((2 * x + 1) / n - 1) + t * ((2 * y + 1) / n - 1)


def cube(faces: Any, direction: Any, *, linear: bool, seamless: bool) -> float:
    """One fetch from a cube (6 x n x n)."""
    n = faces.shape[-1]
    face, s, t = face_of(direction)
    total = 0.0
    for (x, u), (y, v) in product(footprint((s + 1) / 2 * n, linear), footprint((t + 1) / 2 * n, linear)):
        held = [(face, min(max(x, 0), n - 1), min(max(y, 0), n - 1))]
        around = beyond(face, x, y, n) if seamless else held
        if u * v:
            total += u * v * float(np.mean([float(faces[f, j, i]) for f, i, j in around]))
    return total
