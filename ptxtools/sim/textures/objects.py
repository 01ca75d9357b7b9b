"""Textures, surfaces and samplers of a device, and the 64-bit handles that kernels know them by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ptxtools.diagnostics import LaunchError

#: Handles have these 16 bits on top, where no address has them.
_TAG = 0x7E58
_OBJECT, _SAMPLER = 1 << 40, 2 << 40

#: Values of txq.addr_mode (9.7.10.5). "clamp" is clamp_to_edge; clamp_ogl acts like it here.
ADDRESS_MODES = {"wrap": 0, "mirror": 1, "clamp_ogl": 2, "clamp": 3, "border": 4}
FILTERS = {"point": 0, "linear": 1}
READS = ("element", "normalized_float")

#: Words of sampler initialisers in PTX (5.3).
_WORDS = {"clamp_to_edge": "clamp", "clamp_to_border": "border", "nearest": "point"}


@dataclass(frozen=True, slots=True)
class Channel:
    """Type of a channel: NumPy code, and channel_data_type as read plainly and as normalised (OpenCL's numbers)."""

    name: str
    code: str
    data_type: int
    normalized: int = 0

    @property
    def bytes(self) -> int:
        return int(self.code[1])

    @property
    def is_float(self) -> bool:
        return self.code[0] == "f"


CHANNELS = {
    c.name: c
    for c in (
        Channel("u8", "u1", 0x10DA, 0x10D2), Channel("s8", "i1", 0x10D7, 0x10D0),
        Channel("u16", "u2", 0x10DB, 0x10D3), Channel("s16", "i2", 0x10D8, 0x10D1),
        Channel("u32", "u4", 0x10DC), Channel("s32", "i4", 0x10D9),
        Channel("f16", "f2", 0x10DD), Channel("f32", "f4", 0x10DE),
    )
}  # fmt: skip
#: channel_order by the number of channels: R, RG, RGBA.
ORDERS = {1: 0x10B0, 2: 0x10B1, 4: 0x10B5}

#: Dimensions by kind: axes of a texel's place, and whether layers (or cube faces), or samples, come on top.
KINDS = {
    "1d": (1, False, False), "2d": (2, False, False), "3d": (3, False, False), "linear": (1, False, False),
    "a1d": (1, True, False), "a2d": (2, True, False), "cube": (2, True, False), "acube": (2, True, False),
    "2dms": (2, False, True), "a2dms": (2, True, True),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sampler:
    """How coordinates and texels are treated. border: the colour outside under "border"; lod: range of levels."""

    filter: str = "point"
    address: tuple[str, str, str] = ("clamp", "clamp", "clamp")
    normalized: bool = False
    border: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    mip_filter: str = "point"
    force_unnormalized: bool = False


@dataclass(frozen=True, slots=True)
class Texture:
    """Texels in device memory, row by row: [layer][sample][z][y][x][channel], each mipmap level behind the last.

    size: width, height, depth of the base level in texels (1 where there is no such axis); layers: of an array, six to
    a cube; pitch: bytes from row to row of the base level (0: no gap). surface: it may be written.
    """

    kind: str
    address: int
    type: str
    channels: int
    size: tuple[int, int, int]
    layers: int = 1
    samples: int = 1
    levels: int = 1
    pitch: int = 0
    read: str = "element"
    sampler: Sampler = field(default_factory=Sampler)
    surface: bool = False

    @property
    def channel(self) -> Channel:
        return CHANNELS[self.type]

    @property
    def texel(self) -> int:
        """Bytes of a texel."""
        return self.channel.bytes * self.channels

    @property
    def row(self) -> int:
        """Bytes from row to row of the base level."""
        return self.pitch or self.size[0] * self.texel

    def level_size(self, level: int) -> tuple[int, int, int]:
        """Width, height and depth of a level."""
        x, y, z = (max(1, extent >> level) for extent in self.size)
        return x, y, z

    def level_bytes(self, level: int) -> int:
        """Bytes of a level with all its layers and samples."""
        x, y, z = self.level_size(level)
        row = self.row if level == 0 else x * self.texel
        return row * y * z * self.layers * self.samples

    @property
    def bytes(self) -> int:
        """Bytes of all levels; the last row has no gap behind it."""
        return sum(map(self.level_bytes, range(self.levels))) - (self.row - self.size[0] * self.texel)

    @property
    def is_float(self) -> bool:
        """Whether a fetch gives floats."""
        return self.channel.is_float or self.read == "normalized_float"


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
) -> Texture:
    """A texture or, with a kind such as "surface2d", a surface, over `room` bytes at a device address.

    kind: one of KINDS. size: width, height and depth in texels as far as the kind has them; an array's last number is
    its layers (or give `layers`), a cube array's counts cubes. Raises `LaunchError` with what is wrong.
    """
    surface = kind.startswith("surface")
    kind = kind.removeprefix("surface")
    _one_of(kind, KINDS, "kind of texture")
    _one_of(type, CHANNELS, "channel type")
    _one_of(filter, FILTERS, "filter")
    _one_of(mip_filter, FILTERS, "filter")
    _one_of(read, READS, "read mode")
    if channels not in ORDERS:
        raise LaunchError(f"a texel has 1, 2 or 4 channels, not {channels}")
    modes = [*address_modes]
    for mode in modes:
        _one_of(mode, ADDRESS_MODES, "address mode")
    if len(modes) > 3:
        raise LaunchError(f"{len(modes)} address modes; there are at most three axes")
    modes += [modes[-1] if modes else "clamp"] * (3 - len(modes))
    extents, count = _extents(kind, [*size], layers)
    colour = [*border] + [0.0] * 4
    sampler = Sampler(filter, (modes[0], modes[1], modes[2]), normalized, (*colour[:4],), mip_filter)  # type: ignore[arg-type]
    texture = Texture(kind, address, type, channels, extents, count, samples, levels, pitch, read, sampler, surface)
    _check(texture, room)
    return texture


def _one_of(value: str, known: Iterable[str], what: str) -> None:
    if value not in known:
        raise LaunchError(f"there is no {what} '{value}'; there are {', '.join(known)}")


def _extents(kind: str, size: list[int], layers: int | None) -> tuple[tuple[int, int, int], int]:
    """Width, height, depth; and layers."""
    axes, layered, _ = KINDS[kind]
    count = layers or 1
    if layered and kind != "cube" and layers is None and len(size) == axes + 1:
        count = size.pop()
    if kind in ("cube", "acube"):
        count = 6 * (count if kind == "acube" else 1)
    if len(size) != axes:
        raise LaunchError(f"the size of a {kind} texture has {axes} number{'s' if axes > 1 else ''}, not {len(size)}")
    if min(*size, count) < 1:
        raise LaunchError(f"a texture of size {size} with {count} layers is empty")
    x, y, z = (*size, 1, 1)[:3]
    return (x, y, z), count


def _check(texture: Texture, room: int) -> None:
    if texture.levels < 1 or texture.samples < 1:
        raise LaunchError("a texture has at least one level and one sample")
    if texture.levels > max(texture.size).bit_length():
        raise LaunchError(f"{texture.levels} levels are too many for a size of {max(texture.size)}")
    if texture.pitch and texture.pitch < texture.size[0] * texture.texel:
        raise LaunchError(f"a pitch of {texture.pitch} bytes is less than a row of {texture.size[0] * texture.texel}")
    if texture.bytes > room:
        raise LaunchError(f"the texture takes {texture.bytes:,} bytes; its buffer has {room:,}")
    if texture.read == "normalized_float" and not texture.channel.normalized:
        raise LaunchError(f"channels of {texture.type} cannot be read as normalized floats")
    if texture.sampler.filter == "linear" and not texture.is_float:
        raise LaunchError(f'linear filtering needs floats: {texture.type} with read = "normalized_float", f16 or f32')


class Textures:
    """The textures and surfaces of a device by handle."""

    def __init__(self) -> None:
        self._known: list[Texture] = []

    def add(self, texture: Texture) -> int:
        """The handle of a new texture or surface."""
        self._known.append(texture)
        return _TAG << 48 | _OBJECT | len(self._known)

    def find(self, handle: int) -> Texture | None:
        """The texture of a handle; None for any other number."""
        number = handle & (1 << 32) - 1
        if handle & ~((1 << 32) - 1) == _TAG << 48 | _OBJECT and 0 < number <= len(self._known):
            return self._known[number - 1]
        return None


def is_handle(value: int) -> bool:
    """Whether a number is a handle, not the address of a .texref, .samplerref or .surfref variable."""
    return value >> 48 == _TAG


# --- samplers: the content of a .samplerref variable is the sampler itself --------------------------------------------


def sampler_handle(fields: dict[str, str | int]) -> int:
    """The eight bytes of a .samplerref variable with such an initialiser (5.3)."""
    modes = list(ADDRESS_MODES)
    packed = 0
    for axis in range(3):
        word = str(fields.get(f"addr_mode_{axis}", "clamp"))
        word = _WORDS.get(word, word)
        packed |= (modes.index(word) if word in modes else modes.index("clamp")) << 4 * axis
    packed |= (_WORDS.get(str(fields.get("filter_mode")), str(fields.get("filter_mode"))) == "linear") << 12
    packed |= bool(fields.get("force_unnormalized_coords", 0)) << 13
    return _TAG << 48 | _SAMPLER | packed


def sampler_of(handle: int) -> Sampler | None:
    """The sampler that a .samplerref variable holds; None for any other number."""
    if handle >> 40 << 40 != _TAG << 48 | _SAMPLER:
        return None
    modes = list(ADDRESS_MODES)
    axes = [modes[handle >> 4 * axis & 15] for axis in range(3)]
    return Sampler(
        "linear" if handle >> 12 & 1 else "point", (axes[0], axes[1], axes[2]), True,
        force_unnormalized=bool(handle >> 13 & 1),
    )  # fmt: skip
