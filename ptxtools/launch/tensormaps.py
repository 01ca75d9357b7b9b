"""Tensor maps of launch files and Python programs, by the fields of cuTensorMapEncodeTiled and Im2col."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import LaunchError
from ptxtools.records import dataclass, field
from ptxtools.sim.tensormap import TYPES, TensorMap, TensorMapError
from ptxtools.sim.tensormap.descriptor import FILLS, INTERLEAVES, SWIZZLES

from .errors import nearest

if TYPE_CHECKING:
    from .table import Table

#: Fields with words as values, and their values.
_WORDS: dict[str, tuple[str, ...]] = {
    "type": tuple(TYPES), "swizzle": tuple(SWIZZLES), "interleave": INTERLEAVES, "fill": FILLS,
}  # fmt: skip
_LISTS = ("shape", "strides", "box", "element_strides", "lower_corner", "upper_corner")
_NUMBERS = ("channels_per_pixel", "pixels_per_column")
_IM2COL = ("lower_corner", "upper_corner", "channels_per_pixel", "pixels_per_column")
FIELDS = (*_WORDS, *_LISTS, *_NUMBERS, "im2col_w")


@dataclass(slots=True)
class TensorMapPlan:
    """A tensor map over a buffer of a launch file. offset: bytes; fields: arguments of `tensor_map`."""

    name: str
    buffer: str
    offset: int = 0
    fields: dict[str, Any] = field(default_factory=dict)


def read_plan(name: str, table: Table) -> TensorMapPlan:
    """A `[tensormaps.NAME]` table; raises `SpecError`."""
    fields: dict[str, Any] = {}
    for key in _WORDS:
        if table.has(key):
            fields[key] = table.text(key)
            if fields[key] not in _WORDS[key]:
                raise table.error(_unknown_word(key, fields[key]), key)
    for key in _LISTS:
        if table.has(key):
            values = table.take(key, list)
            if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
                raise table.error(f"must be a list of whole numbers, not {values!r}", key)
            fields[key] = values
    for key in _NUMBERS:
        if table.has(key):
            fields[key] = table.whole(key, least=1)
    if table.has("im2col_w"):
        fields["im2col_w"] = table.take("im2col_w", bool)
    plan = TensorMapPlan(name, table.text("buffer"), table.take("offset", int, 0), fields)
    table.finish()
    for key in ("buffer", "type", "shape"):
        if not table.has(key):
            raise table.error(f"{key} is missing")
    return plan


def tensor_map(address: int, **fields: Any) -> bytes:
    """The 128 bytes of a tensor map (`docs/tensormap.md`). Raises `LaunchError` for invalid values."""
    for key in fields:
        if key not in FIELDS:
            raise LaunchError(f"a tensor map has no field '{key}'{nearest(key, FIELDS)}")
    for key, values in _WORDS.items():
        if key in fields and fields[key] not in values:
            raise LaunchError(_unknown_word(key, fields[key]))
    for key in ("type", "shape"):
        if key not in fields:
            raise LaunchError(f"{key} is missing")
    lists = {key: tuple(int(value) for value in fields.get(key, ())) for key in _LISTS}
    type_, shape = TYPES[fields["type"]], lists["shape"]
    made = TensorMap(
        address, type_, shape, lists["strides"],
        element_strides=lists["element_strides"], swizzle=fields.get("swizzle", "none"),
        interleave=fields.get("interleave", "none"), fill=fields.get("fill", "zero"),
    )  # fmt: skip
    if "strides" not in fields:
        made.strides = _dense(made)
    im2col = [key for key in _IM2COL if key in fields]
    if im2col and "box" in fields:
        raise LaunchError(f"a tensor map takes either box or {im2col[0]}")
    if im2col:
        made.mode = "im2col_w" if fields.get("im2col_w") else "im2col"
        made.lower, made.upper = lists["lower_corner"], lists["upper_corner"]
        made.channels, made.pixels = fields.get("channels_per_pixel", 0), fields.get("pixels_per_column", 0)
    else:
        made.box = lists["box"]
    try:
        return made.encode()
    except TensorMapError as error:
        raise LaunchError(str(error)) from None


def _unknown_word(key: str, word: Any) -> str:
    hint = nearest(str(word), _WORDS[key]) or f"; use {', '.join(_WORDS[key])}"
    return f"there is no {key} '{word}'{hint}"


def _dense(map_: TensorMap) -> tuple[int, ...]:
    """Byte strides of dimensions 1 and up of a tensor without gaps."""
    strides, shape, type_ = [], map_.shape, map_.type
    stride = shape[0] * (map_.slice_bytes or type_.memory) // (1 if map_.slice_bytes else type_.group) if shape else 0
    for size in shape[1:]:
        strides.append(stride)
        stride *= size
    return tuple(strides)
