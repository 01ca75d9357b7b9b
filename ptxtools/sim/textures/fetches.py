"""tex and tld4 (9.7.10.3, 9.7.10.4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxtools.machine.events import View, serves
from ptxtools.program.details import TexturePlace
from ptxtools.program.program import LANES

from .access import Array, groups, lanes_of, reader
from .objects import Sampler, Texture
from .sampling import Fetch, Image, cube_face, gradient_lod, levels_of

#: Kinds of textures that an instruction's geometry may meet.
_FITTING = {"1d": ("1d", "linear"), "a1d": ("a1d",), "2d": ("2d",), "a2d": ("a2d",), "3d": ("3d",),
            "cube": ("cube", "acube"), "acube": ("acube", "cube"), "2dms": ("2dms",), "a2dms": ("a2dms",)}  # fmt: skip


class _Operands:
    """The operands of some lanes of a fetch."""

    def __init__(self, view: View, lanes: Array) -> None:
        count, extra, offsets = view.op.of(TexturePlace).values()
        self.mods: dict[str, str] = view.op.opcode.mods  # type: ignore[union-attr]
        at = 2
        self.coordinates = [_numbers(view, at + n, lanes) for n in range(count)]
        at += count
        self.extra = [_numbers(view, at + n, lanes) for n in range(extra)]
        at += extra
        self.offsets = [_numbers(view, at + n, lanes) for n in range(offsets)]

    @property
    def whole(self) -> bool:
        """Whether coordinates are whole texels."""
        return self.mods.get("ctype") == "s32"


def _numbers(view: View, position: int, lanes: Array) -> Array:
    """A source of some lanes as numbers of its type."""
    bits = view.source(position)[lanes]
    kind: Any = {"f32": np.float32, "s32": np.int32}.get(view.op.src_types[position], np.uint32)
    numbers: Array = bits.view(kind)
    return numbers


@serves("tex")
def tex(view: View) -> None:
    """Fetch four channel values."""
    values = np.zeros((LANES, 4), np.uint32)
    for texture, mask, sampler in groups(view):
        lanes = lanes_of(mask)
        _check_kind(view, texture, int(lanes[0]))
        values[lanes] = _bits(view, _sampled(view, texture, sampler, _Operands(view, lanes)))
    _answer(view, values)


@serves("tld4")
def tld4(view: View) -> None:
    """Fetch one channel of four texels."""
    values = np.zeros((LANES, 4), np.uint32)
    channel = "rgba".index(view.op.opcode.mods["comp"])  # type: ignore[union-attr]
    for texture, mask, sampler in groups(view):
        lanes = lanes_of(mask)
        _check_kind(view, texture, int(lanes[0]))
        operands = _Operands(view, lanes)
        layer, sample, place, sampler = _placed(texture, sampler, operands)
        image = Image(texture, 0, reader(view, texture))
        fetched = Fetch(image, sampler, layer, sample, operands.offsets).gathered(place, channel)
        values[lanes] = _bits(view, fetched)
    _answer(view, values)


def _check_kind(view: View, texture: Texture, lane: int) -> None:
    geometry = view.op.opcode.mods["geom"]  # type: ignore[union-attr]
    if texture.kind not in _FITTING[geometry]:
        raise view.trap(f".{geometry} does not fit a texture of kind {texture.kind}", lane)


def _placed(texture: Texture, sampler: Sampler, operands: _Operands) -> tuple[Array, Array, list[Array], Sampler]:
    """Layer, sample and place inside the layer; cubes are a face and normalized coordinates on it."""
    coordinates = operands.coordinates
    geometry = operands.mods["geom"]
    zero = np.zeros(len(coordinates[0]), np.int64)
    layer = coordinates.pop(0).astype(np.int64) if geometry.startswith("a") else zero
    sample = coordinates.pop(0).astype(np.int64) if "ms" in geometry else zero
    if "cube" not in geometry:
        return layer, sample, coordinates, sampler
    face, s, t = cube_face(*coordinates)
    plain = Sampler(sampler.filter, ("clamp",) * 3, True, sampler.border, sampler.mip_filter)
    return 6 * np.minimum(layer, texture.layers // 6 - 1) + face, sample, [s, t], plain


def _sampled(view: View, texture: Texture, sampler: Sampler, operands: _Operands) -> Array:
    """Channel values: of one level, or of two with their weights."""
    mode = operands.mods.get("mode")
    layer, sample, place, sampler = _placed(texture, sampler, operands)
    lod = np.zeros(len(layer))
    if mode == "level":
        lod = operands.extra[0].astype(np.float64)
    elif mode == "grad":
        half = len(operands.extra) // 2
        lod = gradient_lod(texture, sampler, operands.extra[:half], operands.extra[half:])
    lower, upper, weight = levels_of(texture, sampler, lod)

    def at(levels: Array) -> Array:
        found = np.zeros((len(layer), 4), np.float64 if texture.is_float else np.int64)
        for level in np.unique(levels):
            here = np.flatnonzero(levels == level)
            image = Image(texture, int(level), reader(view, texture))
            offsets = [o[here].astype(np.int64) for o in operands.offsets]
            fetch = Fetch(image, sampler, layer[here], sample[here], offsets)
            chosen = [c[here] for c in place]
            if operands.whole:
                found[here] = fetch.whole([c.astype(np.int64) for c in chosen])
            else:
                found[here] = fetch.filtered(chosen)
        return found

    values = at(lower)
    if texture.is_float and weight.any():
        values = (1 - weight)[:, None] * values + weight[:, None] * at(upper)
    return values


def _bits(view: View, values: Array) -> Array:
    """Values as the bits of the destination type: floats in single or half precision, integers as they are."""
    half = view.op.opcode.mods["dtype"] in ("f16", "f16x2")  # type: ignore[union-attr]
    if values.dtype != np.float64:
        return values.astype(np.int64).astype(np.uint32)
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
        return single.astype(np.float16).view(np.uint16).astype(np.uint32) if half else single.view(np.uint32)


def _answer(view: View, values: Array) -> None:
    """Write the destinations; the predicate of `d|p` says that the texels are resident, as they all are."""
    dtype = view.op.opcode.mods["dtype"]  # type: ignore[union-attr]
    columns = [values[:, n] for n in range(4)]
    if dtype == "f16x2":
        columns = [columns[0] | columns[1] << np.uint32(16), columns[2] | columns[3] << np.uint32(16)]
    elif dtype == "f16":
        columns = [column.astype(np.uint16) for column in columns]
    for position, column in enumerate(columns):
        view.result(position, column)
    if len(view.op.dst) > len(columns):
        view.result(len(columns), np.ones(LANES, np.bool_))
