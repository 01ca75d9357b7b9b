"""What textures, surfaces and samplers are."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ptxtools.records import dataclass, field

from .handles import SAMPLER, TAG

#: Values of txq.addr_mode (9.7.10.5). "clamp" is clamp_to_edge; clamp_ogl acts like it here.
ADDRESS_MODES = {"wrap": 0, "mirror": 1, "clamp_ogl": 2, "clamp": 3, "border": 4}
FILTERS = {"point": 0, "linear": 1}
READS = ("element", "normalized_float")
#: How a reference value passes against a texel's depth: reference on the left, as OpenGL and Direct3D have it.
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "less_equal": operator.le, "less": operator.lt, "greater_equal": operator.ge, "greater": operator.gt,
    "equal": operator.eq, "not_equal": operator.ne,
    "always": lambda reference, depth: (reference <= depth) | True,
    "never": lambda reference, depth: (reference <= depth) & False,
}  # fmt: skip
#: Most samples of an anisotropic fetch.
MOST_ANISOTROPY = 16
#: Levels of detail that are let through.
EVERY_LEVEL = (0.0, 64.0)

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
    """How coordinates and texels are treated. border: the colour outside under "border"; compare: one of COMPARISONS;
    anisotropy: most samples along a gradient; seamless: filters reach over the edges of a cube's faces; level_bias,
    level_clamp: of the level of detail."""

    filter: str = "point"
    address: tuple[str, str, str] = ("clamp", "clamp", "clamp")
    normalized: bool = False
    border: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    mip_filter: str = "point"
    force_unnormalized: bool = False
    compare: str = "less_equal"
    anisotropy: int = 1
    seamless: bool = False
    level_bias: float = 0.0
    level_clamp: tuple[float, float] = EVERY_LEVEL

    @property
    def mode_numbers(self) -> tuple[int, int, int]:
        """Address modes of the axes, as txq.addr_mode has them."""
        x, y, z = (ADDRESS_MODES[mode] for mode in self.address)
        return x, y, z

    @property
    def scales(self) -> bool:
        """Whether coordinates count whole extents, not texels."""
        return self.normalized and not self.force_unnormalized

    def mode(self, axis: int) -> str:
        """Address mode of an axis: wrap and mirror need normalized coordinates, and clamp otherwise."""
        mode = self.address[axis]
        return "clamp" if mode in ("wrap", "mirror") and not self.scales else mode


@dataclass(frozen=True, slots=True)
class Region:
    """Texels of a sparse texture that are not in memory. Extents of None reach to the end; layer None: all layers."""

    level: int = 0
    layer: int | None = None
    x: int = 0
    y: int = 0
    z: int = 0
    width: int | None = None
    height: int | None = None
    depth: int | None = None

    def covers(self, layer: Any, x: Any, y: Any, z: Any) -> Any:
        """Whether it has these texels (arrays)."""
        inside = (layer == layer) if self.layer is None else layer == self.layer
        for place, first, extent in ((x, self.x, self.width), (y, self.y, self.height), (z, self.z, self.depth)):
            inside = inside & (place >= first)
            if extent is not None:
                inside = inside & (place < first + extent)
        return inside


@dataclass(frozen=True, slots=True)
class Texture:
    """Texels in device memory, row by row: [layer][sample][z][y][x][channel], each mipmap level behind the last.

    size: width, height, depth of the base level in texels (1 where there is no such axis); layers: of an array, six to
    a cube; pitch: bytes from row to row of the base level (0: no gap). surface: it may be written. srgb: colours are
    encoded as sRGB; absent: what is not resident; freed: its memory has been given back.
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
    srgb: bool = False
    absent: tuple[Region, ...] = ()
    freed: bool = False

    @property
    def is_cube(self) -> bool:
        return self.kind in ("cube", "acube")

    @property
    def channel(self) -> Channel:
        return CHANNELS[self.type]

    @property
    def channel_bytes(self) -> int:
        """Bytes of a channel of a texel."""
        return self.channel.bytes

    @property
    def is_whole(self) -> bool:
        """Whether all of its texels are in memory that has not been freed."""
        return not self.absent and not self.freed

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
    return TAG << 48 | SAMPLER | packed


def sampler_of(handle: int) -> Sampler | None:
    """The sampler that a .samplerref variable holds; None for any other number."""
    modes = list(ADDRESS_MODES)
    numbers = [handle >> 4 * axis & 15 for axis in range(3)]
    if handle >> 14 << 14 != TAG << 48 | SAMPLER or max(numbers) >= len(modes):
        return None
    axes = [modes[number] for number in numbers]
    return Sampler(
        "linear" if handle >> 12 & 1 else "point", (axes[0], axes[1], axes[2]), True,
        force_unnormalized=bool(handle >> 13 & 1),
    )  # fmt: skip
