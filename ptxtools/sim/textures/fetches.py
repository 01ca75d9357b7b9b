"""tex and tld4 (9.7.10.3, 9.7.10.4)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ptxtools.machine.events import View, serves
from ptxtools.program.details import TexturePlace
from ptxtools.program.program import LANES
from ptxtools.records import replace

from .access import Array, groups, lanes_of, reader, textures_of
from .cubes import cube_face, slope
from .levels import gradient_lod, levels_of
from .objects import Sampler, Texture
from .sampling import Fetch, Image, Touched

#: Kinds of textures that an instruction's geometry may meet.
_FITTING = {"1d": ("1d", "linear"), "a1d": ("a1d",), "2d": ("2d",), "a2d": ("a2d",), "3d": ("3d",),
            "cube": ("cube", "acube"), "acube": ("acube", "cube"), "2dms": ("2dms",), "a2dms": ("a2dms",)}  # fmt: skip


class _Operands:
    """The operands of some lanes of a fetch."""

    def __init__(self, view: View, lanes: Array) -> None:
        count, extra, offsets, references = view.op.of(TexturePlace).values()
        self.mods: dict[str, str] = view.op.opcode.mods  # type: ignore[union-attr]
        ends = np.cumsum([2, count, extra, offsets, references]).tolist()
        parts = [[_numbers(view, n, lanes) for n in range(*pair)] for pair in pairwise(ends)]
        self.coordinates, self.extra, self.offsets, last = parts
        self.reference: Array | None = last[0] if last else None

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
    values, resident = np.zeros((LANES, 4), np.uint32), np.ones(LANES, np.bool_)
    for texture, mask, sampler in groups(view):
        lanes = lanes_of(mask)
        operands = _checked(view, texture, sampler, lanes)
        found, there = _Lookup(view, texture, sampler, operands, lanes).sampled()
        values[lanes], resident[lanes] = _bits(view, found), there
    _answer(view, values, resident)
    if not _heard(view):
        view.offer_fetch(textures_of(view))


@serves("tld4")
def tld4(view: View) -> None:
    """Fetch one channel of four texels."""
    values, resident = np.zeros((LANES, 4), np.uint32), np.ones(LANES, np.bool_)
    channel = "rgba".index(view.op.opcode.mods["comp"])  # type: ignore[union-attr]
    for texture, mask, sampler in groups(view):
        lanes = lanes_of(mask)
        operands = _checked(view, texture, sampler, lanes)
        found, there = _Lookup(view, texture, sampler, operands, lanes).gathered(channel)
        values[lanes], resident[lanes] = _bits(view, found), there
    _answer(view, values, resident)


def _heard(view: View) -> bool:
    """Whether an observer wants to know of texels."""
    return view.launch.observers is not None and view.launch.observers.hear("sampled")


def _checked(view: View, texture: Texture, sampler: Sampler, lanes: Array) -> _Operands:
    """The operands of lanes, if the instruction fits the texture and the sampler. Raises `Trap`."""
    lane = int(lanes[0])
    operands = _Operands(view, lanes)
    geometry = operands.mods["geom"]
    if texture.kind not in _FITTING[geometry]:
        raise view.trap(f".{geometry} does not fit a texture of kind {texture.kind}", lane)
    if not texture.is_float and operands.reference is not None:
        raise view.trap(f"depth comparison requires floats, but the texture gives integers ({texture.type})", lane)
    if not texture.is_float and sampler.filter == "linear" and not operands.whole and "comp" not in operands.mods:
        raise view.trap(f"linear filtering requires floats, but the texture gives integers ({texture.type})", lane)
    return operands


class _Lookup:
    """A fetch of some lanes from one texture: layer, sample and place inside the layer; cubes are a face and normalized
    coordinates on it."""

    def __init__(self, view: View, texture: Texture, sampler: Sampler, operands: _Operands, lanes: Array) -> None:
        self._view, self._lanes = view if _heard(view) else None, lanes
        self.memory, self.texture, self.sampler, self.operands = reader(view, texture), texture, sampler, operands
        coordinates, geometry = operands.coordinates, operands.mods["geom"]
        zero = np.zeros(len(coordinates[0]), np.int64)
        self.layer = coordinates.pop(0).astype(np.int64) if geometry.startswith("a") else zero
        self.sample = coordinates.pop(0).astype(np.int64) if "ms" in geometry else zero
        self.place = coordinates
        self.cube = "cube" in geometry
        if self.cube:
            self.sampler = replace(sampler, address=("clamp",) * 3, normalized=True, force_unnormalized=False)

    def gathered(self, channel: int) -> tuple[Array, Array]:
        """Four texels (lanes x 4), and whether they are resident."""
        layer, place = self._on_faces(self.place)
        fetch = Fetch(Image(self.texture, 0, self.memory), self.sampler, layer, self.sample,
                      [o.astype(np.int64) for o in self.operands.offsets], self.operands.reference)  # fmt: skip
        fetch.touched = self._touched(np.arange(len(layer)))
        found = fetch.gathered(place, channel)
        return _or_zero(found, fetch.resident), fetch.resident

    def _touched(self, here: Array) -> Touched | None:
        """Tells observers of the texels of some of the lanes."""
        view = self._view
        if view is None or view.launch.observers is None:
            return None
        listeners, lanes = view.launch.observers, self._lanes[here]

        def tell(mine: Array, addresses: Array) -> None:
            if mine.any():
                listeners.tell("sampled", view, lanes[mine], addresses[mine], self.texture.texel)

        return tell

    def sampled(self) -> tuple[Array, Array]:
        """Channel values (lanes x 4), and whether all texels that counted are resident."""
        mode = self.operands.mods.get("mode")
        if mode != "grad":
            lod = self.operands.extra[0] if mode == "level" else np.zeros(len(self.layer))
            values, there = self._level(self.place, lod if mode == "level" else None)
        else:
            values, there = self._along_gradient()
        return _or_zero(values, there), there

    def _along_gradient(self) -> tuple[Array, Array]:
        extra = self.operands.extra
        gradients = extra[: len(extra) // 2], extra[len(extra) // 2 :]
        slopes = [slope(self.place, g) for g in gradients] if self.cube else gradients
        lod, count, along = gradient_lod(self.texture, self.sampler, *slopes)
        if self.cube:  # the direction moves, so that samples may lie on the next face
            first = np.equal(along[0], slopes[0][0]) & np.equal(along[1], slopes[0][1])
            along = [np.where(first, a, b).astype(np.float64) for a, b in zip(*gradients, strict=True)]
        most = int(count.max())
        if most == 1 or not self.texture.is_float or self.operands.whole:
            return self._level(self.place, lod)
        total, there = np.zeros((len(count), 4), np.float64), np.ones(len(count), np.bool_)
        for number in range(most):
            part = (number + 0.5) / count - 0.5
            with np.errstate(all="ignore"):
                place = [c.astype(np.float64) + part * step for c, step in zip(self.place, along, strict=True)]
            values, resident = self._level(place, lod)
            counts = number < count
            total += np.where(counts[:, None], values, 0.0)
            there &= resident | ~counts
        return total / count[:, None], there

    def _on_faces(self, place: Sequence[Array]) -> tuple[Array, list[Array]]:
        if not self.cube:
            return self.layer, list(place)
        face, s, t = cube_face(*place)
        return 6 * np.minimum(self.layer, self.texture.layers // 6 - 1) + face, [s, t]

    def _level(self, place: Sequence[Array], lod: Array | None) -> tuple[Array, Array]:
        """Of one level, or of two with their weights; lod None: of the base level."""
        layer, place = self._on_faces(place)
        texture, operands = self.texture, self.operands
        zero = np.zeros(len(layer), np.int64)
        lower, upper, weight = (
            (zero, zero, zero.astype(np.float64)) if lod is None else levels_of(texture, self.sampler, lod)
        )
        resident = np.ones(len(layer), np.bool_)

        def at(levels: Array, counts: Array) -> Array:
            found = np.zeros((len(layer), 4), np.float64 if texture.is_float else np.int64)
            for level in np.unique(levels[counts]):
                here = np.flatnonzero((levels == level) & counts)
                offsets = [o[here].astype(np.int64) for o in operands.offsets]
                reference = None if operands.reference is None else operands.reference[here]
                fetch = Fetch(Image(texture, int(level), self.memory), self.sampler, layer[here], self.sample[here],
                              offsets, reference)  # fmt: skip
                fetch.touched = self._touched(here)
                chosen = [c[here] for c in place]
                if operands.whole:
                    found[here] = fetch.whole([c.astype(np.int64) for c in chosen])
                else:
                    found[here] = fetch.filtered(chosen)
                resident[here] &= fetch.resident
            return found

        values = at(lower, np.ones(len(layer), np.bool_))
        mixed = weight != 0
        if texture.is_float and mixed.any():
            blend = (1 - weight)[:, None] * values + weight[:, None] * at(upper, mixed)
            values = np.where(mixed[:, None], blend, values)
        return values, resident


def _or_zero(values: Array, resident: Array) -> Array:
    """What is not resident reads as zeros (9.7.10.3)."""
    return values if resident.all() else np.where(resident[:, None], values, np.zeros((), values.dtype))


def _bits(view: View, values: Array) -> Array:
    """Values as the bits of the destination type: floats in single or half precision, integers as they are."""
    half = view.op.opcode.mods["dtype"] in ("f16", "f16x2")  # type: ignore[union-attr]
    if values.dtype != np.float64:
        return values.astype(np.int64).astype(np.uint32)
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
        return single.astype(np.float16).view(np.uint16).astype(np.uint32) if half else single.view(np.uint32)


def _answer(view: View, values: Array, resident: Array) -> None:
    """Write the destinations; the predicate of `d|p` says whether the texels are resident."""
    dtype = view.op.opcode.mods["dtype"]  # type: ignore[union-attr]
    columns = [values[:, n] for n in range(4)]
    if dtype == "f16x2":
        columns = [columns[0] | columns[1] << np.uint32(16), columns[2] | columns[3] << np.uint32(16)]
    elif dtype == "f16":
        columns = [column.astype(np.uint16) for column in columns]
    for position, column in enumerate(columns):
        view.result(position, column)
    if len(view.op.dst) > len(columns):
        view.result(len(columns), resident)
