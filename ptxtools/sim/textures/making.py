"""Create textures and surfaces from user input: every field is checked here, so that sampling can rely on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ptxtools.diagnostics import LaunchError
from ptxtools.records import fields

from .objects import (
    ADDRESS_MODES,
    CHANNELS,
    COMPARISONS,
    EVERY_LEVEL,
    FILTERS,
    KINDS,
    MOST_ANISOTROPY,
    ORDERS,
    READS,
    Region,
    Sampler,
    Texture,
)

_REGION_FIELDS = tuple(field.name for field in fields(Region))
#: Kinds that support mipmaps.
_MIPMAPPED = ("1d", "2d", "3d", "a1d", "a2d", "cube", "acube")
#: An extent, or a number of layers or samples, beyond which there is no memory anyway.
_MOST = 1 << 31


def make(
    kind: str,
    address: int,
    room: int,
    *,
    type: str,
    size: Iterable[int],
    channels: int = 1,
    filter: str = "point",
    address_modes: Iterable[str] = (),
    normalized: bool = False,
    read: str = "element",
    border: Iterable[float] = (),
    layers: int | None = None,
    levels: int = 1,
    samples: int = 1,
    pitch: int = 0,
    mip_filter: str = "point",
    compare: str = "less_equal",
    srgb: bool = False,
    anisotropy: int = 1,
    seamless: bool = False,
    level_bias: float = 0.0,
    level_clamp: Iterable[float] = (),
    absent: Iterable[Mapping[str, int]] = (),
) -> Texture:
    """A texture or, with a kind such as "surface2d", a surface, over `room` bytes at a device address.

    kind: one of KINDS. size: width, height and depth in texels as far as the kind has them; an array's last number is
    its layers (or give `layers`), a cube array's counts cubes. absent: fields of `Region`. Raises `LaunchError` with
    what is wrong.
    """
    surface = kind.startswith("surface")
    kind = kind.removeprefix("surface")
    for value, known, what in (
        (kind, KINDS, "kind of texture"), (type, CHANNELS, "channel type"), (filter, FILTERS, "filter"),
        (mip_filter, FILTERS, "filter"), (read, READS, "read mode"), (compare, COMPARISONS, "comparison"),
    ):  # fmt: skip
        _one_of(value, known, what)
    if channels not in ORDERS:
        raise LaunchError(f"a texel has 1, 2 or 4 channels, not {channels}")
    modes = _listed(address_modes, "address")
    for mode in modes:
        _one_of(mode, ADDRESS_MODES, "address mode")
    if len(modes) > 3:
        raise LaunchError(f"{len(modes)} address modes; a texture has at most three axes")
    modes += [modes[-1] if modes else "clamp"] * (3 - len(modes))
    extents, count = _extents(kind, [_whole(n, "a size") for n in _listed(size, "size")], layers)
    for number, what in ((levels, "levels"), (samples, "samples"), (pitch, "pitch")):
        _whole(number, what)
    if not 1 <= _whole(anisotropy, "anisotropy") <= MOST_ANISOTROPY:
        raise LaunchError(f"anisotropy must be 1 to {MOST_ANISOTROPY}, not {anisotropy}")
    colour = [*(_number(v, "a border") for v in _listed(border, "border")), 0.0, 0.0, 0.0, 0.0]
    bounds = [_number(v, "a level clamp") for v in _listed(level_clamp, "level_clamp")]
    if len(bounds) not in (0, 2):
        raise LaunchError(f"a level clamp is two numbers, the lowest and the highest level, not {len(bounds)}")
    sampler = Sampler(
        filter, (modes[0], modes[1], modes[2]), bool(normalized), (colour[0], colour[1], colour[2], colour[3]),
        mip_filter, compare=compare, anisotropy=anisotropy, seamless=bool(seamless),
        level_bias=_number(level_bias, "a level bias"),
        level_clamp=(bounds[0], bounds[1]) if bounds else EVERY_LEVEL,
    )  # fmt: skip
    texture = Texture(
        kind, address, type, channels, extents, count, samples, levels, pitch, read, sampler, surface, bool(srgb),
        tuple(_region(number, region) for number, region in enumerate(_listed(absent, "absent"))),
    )  # fmt: skip
    _check(texture, room)
    return texture


def _one_of(value: str, known: Iterable[str], what: str) -> None:
    if not isinstance(value, str) or value not in known:
        raise LaunchError(f"there is no {what} '{value}'; use {', '.join(known)}")


def _listed(values: Any, what: str) -> list[Any]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise LaunchError(f"{what} must be a list, not {values!r}")
    return [*values]


def _whole(value: Any, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise LaunchError(f"{what} must be a whole number, not {value!r}")
    return int(value)


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not hasattr(value, "__float__") or math.isnan(float(value)):
        raise LaunchError(f"{what} must be a number, not {value!r}")
    return float(value)


def _region(number: int, given: Mapping[str, int]) -> Region:
    if not isinstance(given, Mapping):
        raise LaunchError(f"absent[{number}] must be a table of {', '.join(_REGION_FIELDS)}")
    for key in given:
        _one_of(key, _REGION_FIELDS, f"field of absent[{number}]")
    return Region(**{key: _whole(value, f"absent[{number}].{key}") for key, value in given.items()})


def _extents(kind: str, size: list[int], layers: int | None) -> tuple[tuple[int, int, int], int]:
    """Width, height, depth; and layers."""
    axes, layered, _ = KINDS[kind]
    count = 1 if layers is None else _whole(layers, "layers")
    if layers not in (None, 1) and (not layered or kind == "cube"):
        raise LaunchError(f"a {kind} texture has no layers; use a1d, a2d, acube or a2dms")
    if layered and kind != "cube" and layers is None and len(size) == axes + 1:
        count = size.pop()
    if kind in ("cube", "acube"):
        count = 6 * (count if kind == "acube" else 1)
    if len(size) != axes:
        raise LaunchError(f"the size of a {kind} texture has {axes} number{'s' if axes > 1 else ''}, not {len(size)}")
    if min(*size, count) < 1:
        raise LaunchError(f"a texture of size {size} with {count} layers is empty")
    if max(*size, count) >= _MOST:
        raise LaunchError(f"a texture of size {size} with {count} layers is too large")
    if kind in ("cube", "acube") and size[0] != size[1]:
        raise LaunchError(f"the faces of a cube must be square, not {size[0]} x {size[1]}")
    x, y, z = (*size, 1, 1)[:3]
    return (x, y, z), count


def _check(texture: Texture, room: int) -> None:
    row = texture.size[0] * texture.texel
    if not 1 <= texture.samples < _MOST or texture.levels < 1:
        raise LaunchError("a texture has at least one level and one sample")
    if texture.samples > 1 and not KINDS[texture.kind][2]:
        raise LaunchError(f"a {texture.kind} texture has one sample; use 2dms or a2dms")
    if texture.levels > max(texture.size).bit_length():
        raise LaunchError(f"{texture.levels} levels are too many for a size of {max(texture.size)}")
    if texture.levels > 1 and texture.kind not in _MIPMAPPED:
        raise LaunchError(f"a {texture.kind} texture has one level")
    if texture.pitch and not row <= texture.pitch < _MOST * 16:
        much = "less" if texture.pitch < row else "far more"
        raise LaunchError(f"a pitch of {texture.pitch} bytes is {much} than a row of {row}")
    if texture.bytes > room:
        raise LaunchError(f"the texture takes {texture.bytes:,} bytes; its buffer has {room:,}")
    if texture.read == "normalized_float" and not texture.channel.normalized:
        raise LaunchError(f"channels of {texture.type} cannot be read as normalized floats")
    if texture.sampler.filter == "linear" and not texture.is_float:
        raise LaunchError(f'linear filtering requires floats: {texture.type} with "normalized_float", f16 or f32')
    if texture.srgb and (texture.type != "u8" or texture.read != "normalized_float" or texture.surface):
        raise LaunchError('srgb is for textures of u8 with read = "normalized_float"')
    if texture.sampler.seamless and not texture.is_cube:
        raise LaunchError(f"seamless is for cubes, not for a {texture.kind} texture")
