"""A tensor map and its 128 bytes (`docs/tensormap.md`).

NVIDIA's CUtensorMap is opaque. The encoding here follows the one field layout that is public, that of sm_90, and adds
swizzle atomicity and the im2col::w mode in bits that it leaves free. Programs see it only through `tensormap.replace`.
"""

from __future__ import annotations

import struct

from ptxtools.records import dataclass

#: Size and alignment of a tensor map in memory.
BYTES, ALIGNMENT = 128, 64


class TensorMapError(ValueError):
    """Invalid values for a tensor map; the message says which and why."""


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type. `group` elements take `memory` bytes in global and `shared` bytes in shared memory.

    code: in the map, and of tensormap.replace; format: of NumPy, "" for packed sub-byte types.
    """

    name: str
    code: int
    memory: int
    shared: int
    group: int = 1
    format: str = ""

    @property
    def padded(self) -> bool:
        return self.group == 16


#: By the names that launch files use. b4x16 is the type without padding (5.5.1.1).
TYPES: dict[str, ElementType] = {
    t.name: t
    for t in (
        ElementType("u8", 0, 1, 1, 1, "u1"), ElementType("u16", 1, 2, 2, 1, "u2"), ElementType("u32", 2, 4, 4, 1, "u4"),
        ElementType("s32", 3, 4, 4, 1, "i4"), ElementType("u64", 4, 8, 8, 1, "u8"),
        ElementType("s64", 5, 8, 8, 1, "i8"),
        ElementType("f16", 6, 2, 2, 1, "f2"), ElementType("f32", 7, 4, 4, 1, "f4"),
        ElementType("f32.ftz", 8, 4, 4, 1, "f4"), ElementType("f64", 9, 8, 8, 1, "f8"),
        ElementType("bf16", 10, 2, 2, 1, "bf16"), ElementType("tf32", 11, 4, 4, 1, "f4"),
        ElementType("tf32.ftz", 12, 4, 4, 1, "f4"), ElementType("b4x16", 13, 1, 1, 2),
        ElementType("b4x16_p64", 14, 8, 16, 16), ElementType("b6x16_p32", 15, 12, 16, 16),
    )
}  # fmt: skip
_BY_CODE = {t.code: t for t in TYPES.values()}

#: Bytes of channels that an interleaved layout keeps together.
SLICES = {"none": 0, "16B": 16, "32B": 32}
INTERLEAVES = tuple(SLICES)
#: Name in launch files: (mode, atomicity).
SWIZZLES: dict[str, tuple[int, int]] = {
    "none": (0, 0), "32B": (1, 0), "64B": (2, 0), "128B": (3, 0),
    "128B_atom_32B": (3, 1), "128B_atom_32B_flip_8B": (3, 2), "128B_atom_64B": (3, 3),
}  # fmt: skip
#: Swizzle modes that im2col::w modes and padded types go with (9.7.9.25.5.1, cuTensorMapEncodeIm2colWide).
_WIDE_SWIZZLES = ("64B", "128B", "128B_atom_32B")
_PADDED_SWIZZLES = ("none", "128B", "128B_atom_32B", "128B_atom_64B")
_SWIZZLE_NAMES = {value: name for name, value in SWIZZLES.items()}
#: Bytes of the rows that a swizzle mode mixes.
SWIZZLE_SPAN = (0, 32, 64, 128)
FILLS = ("zero", "nan")
MODES = ("tile", "im2col", "im2col_w")

_VERSION = 1
_FORMAT = struct.Struct("<Q I 4I I 5I 3I 64x")
assert _FORMAT.size == BYTES
#: Bits of a corner of the im2col bounding box, by rank.
_CORNER_BITS = {3: 16, 4: 8, 5: 5}


def swizzle_name(mode: int, atomicity: int) -> str:
    """Name of a swizzle; raises `TensorMapError` for pairs that do not exist."""
    try:
        return _SWIZZLE_NAMES[mode, atomicity]
    except KeyError:
        raise TensorMapError(f"swizzle mode {mode} cannot be combined with atomicity {atomicity}") from None


@dataclass(slots=True)
class TensorMap:
    """A tensor in global memory and the boxes in which it is copied.

    address: device address; type: element type; shape: elements, innermost first; strides: bytes between elements of
    dimension 1 and up; box, element_strides: elements (of interleaved tensors dimension 0 counts pixels, the last but
    one slices); swizzle, interleave, fill: names of launch files; mode: "tile",
    "im2col" or "im2col_w"; of im2col modes lower and upper corner of the bounding box (W first), channels of a pixel,
    pixels of a column.
    """

    address: int
    type: ElementType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...] = ()
    element_strides: tuple[int, ...] = ()
    swizzle: str = "none"
    interleave: str = "none"
    fill: str = "zero"
    mode: str = "tile"
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    channels: int = 0
    pixels: int = 0

    def __post_init__(self) -> None:
        self.element_strides = self.element_strides or (1,) * len(self.shape)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def slice_bytes(self) -> int:
        """Bytes of channels of a pixel of an interleaved tensor (5.5.6); 0: not interleaved."""
        return SLICES[self.interleave]

    @property
    def corner_bits(self) -> int:
        """Bits of a corner of the bounding box, and of an im2col offset."""
        return 16 if self.mode == "im2col_w" else _CORNER_BITS[self.rank]

    @property
    def span(self) -> int:
        """Bytes of the rows that the swizzle mixes; 0 without one."""
        return SWIZZLE_SPAN[SWIZZLES[self.swizzle][0]]

    def row(self) -> int:
        """Elements of dimension 0 in a box."""
        return self.box[0] if self.mode == "tile" else self.channels

    def row_bytes(self) -> int:
        """Bytes of a box's innermost rows in shared memory."""
        return self.row() * self.type.shared // self.type.group

    # --- validity -----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise `TensorMapError` unless cuTensorMapEncode would accept the values."""
        for rule in (self._check_shape, self._check_strides, self._check_box, self._check_layout):
            rule()

    def _check_shape(self) -> None:
        if not 1 <= self.rank <= 5:
            raise TensorMapError(f"a tensor map has 1 to 5 dimensions, not {self.rank}")
        if self.mode != "tile" and self.rank < 3:
            raise TensorMapError(f"an im2col tensor map has 3 to 5 dimensions, not {self.rank}")
        if not all(1 <= size <= 1 << 32 for size in self.shape):
            raise TensorMapError(f"shape {_list(self.shape)}: sizes must be 1 to 2^32")
        if self.type.padded and self.shape[0] % 128:
            raise TensorMapError(f"size {self.shape[0]} of dimension 0 is not a multiple of 128 ({self.type.name})")
        if self.shape[0] % min(self.type.group, 2):
            raise TensorMapError(f"size {self.shape[0]} of dimension 0 is odd; {self.type.name} elements come in pairs")

    def _check_strides(self) -> None:
        unit = 32 if self.interleave == "32B" or self.type.padded else 16
        if len(self.strides) != self.rank - 1:
            raise TensorMapError(f"{len(self.strides)} strides for {self.rank} dimensions; expected {self.rank - 1}")
        if not all(0 <= stride < 1 << 40 and stride % unit == 0 for stride in self.strides):
            raise TensorMapError(f"strides {_list(self.strides)}: must be multiples of {unit} bytes below 2^40")
        if self.address % unit:
            raise TensorMapError(f"address {self.address:#x} is not aligned to {unit} bytes")
        if len(self.element_strides) != self.rank or not all(1 <= s <= 8 for s in self.element_strides):
            raise TensorMapError(f"element strides {_list(self.element_strides)}: must be 1 to 8 for each dimension")

    def _check_box(self) -> None:
        if self.mode != "tile":
            self._check_im2col()
        elif len(self.box) != self.rank or not all(1 <= size <= 256 for size in self.box):
            raise TensorMapError(f"box {_list(self.box)}: must be one size of 1 to 256 for each dimension")
        if self.type.padded and self.row() != 128:
            raise TensorMapError(f"rows of a box must have 128 elements of {self.type.name}, not {self.row()}")
        if not self.slice_bytes and (self.row_bytes() % 16 or self.row() % self.type.group):
            raise TensorMapError(f"rows of a box have {self.row_bytes()} bytes; this must be a multiple of 16")

    def _check_im2col(self) -> None:
        count, bits = 1 if self.mode == "im2col_w" else self.rank - 2, self.corner_bits
        for corner in (self.lower, self.upper):
            if len(corner) != count or not all(-(1 << bits - 1) <= c < 1 << bits - 1 for c in corner):
                raise TensorMapError(f"corner {_list(corner)}: must be {count} signed values of {bits} bits")
        if not 1 <= self.channels <= 256 or not 1 <= self.pixels <= 1024:
            raise TensorMapError("a pixel has 1 to 256 channels, and a column 1 to 1024 pixels")
        sizes = self.shape[0 if self.slice_bytes else 1 :]
        for d, (size, low, high) in enumerate(zip(sizes, self.lower, self.upper, strict=False)):
            if low > size - 1 + high:
                raise TensorMapError(f"the bounding box is empty along {'WHD'[d]}: {low} to {size - 1 + high}")

    def _check_layout(self) -> None:
        if self.interleave == "none":
            if self.span and self.row_bytes() > self.span:
                raise TensorMapError(f"rows of {self.row_bytes()} bytes are longer than swizzle {self.swizzle} allows")
        elif self.rank < 3 or self.mode == "im2col_w" or self.type.group > 1:
            raise TensorMapError("interleaved tensors must have 3 to 5 dimensions, whole bytes and no im2col::w mode")
        if self.interleave == "32B" and self.swizzle != "32B":
            raise TensorMapError("interleave 32B requires swizzle 32B")
        if self.mode == "im2col_w" and self.swizzle not in _WIDE_SWIZZLES:
            raise TensorMapError(f"im2col::w requires swizzle {' or '.join(_WIDE_SWIZZLES)}, not {self.swizzle}")
        if self.type.padded and self.swizzle not in _PADDED_SWIZZLES:
            raise TensorMapError(f"{self.type.name} elements require swizzle none or 128B, not {self.swizzle}")
        if self.fill == "nan" and self.type.format not in ("f2", "f4", "f8", "bf16"):
            raise TensorMapError(f"fill nan is for floating-point types, not {self.type.name}")

    # --- bytes --------------------------------------------------------------------------------------------------------

    def encode(self) -> bytes:
        """The 128 bytes. Raises `TensorMapError`."""
        self.check()
        mode, atomicity = SWIZZLES[self.swizzle]
        flags = int(self.mode != "tile") | _VERSION << 1 | self.rank - 1 << 4 | self.type.code << 7
        flags |= INTERLEAVES.index(self.interleave) << 11 | mode << 13 | FILLS.index(self.fill) << 15
        flags |= atomicity << 19 | int(self.mode == "im2col_w") << 22
        strides = [stride >> 4 for stride in self.strides] + [0] * (5 - self.rank)
        high = sum((stride >> 32) << 4 * i for i, stride in enumerate(strides))
        sizes = [size - 1 for size in self.shape] + [0] * (5 - self.rank)
        traversal = sum(step - 1 << 3 * d for d, step in enumerate(self.element_strides)) | self.row() - 1 << 24
        return _FORMAT.pack(
            self.address, flags, *(stride & 0xFFFF_FFFF for stride in strides), high, *sizes, traversal,
            self._window(), self.pixels - 1 if self.mode != "tile" else 0,
        )  # fmt: skip

    def _window(self) -> int:
        if self.mode == "tile":
            return sum(size - 1 << 8 * d for d, size in enumerate(self.box[1:]))
        bits = self.corner_bits
        low, high = (sum((c & (1 << bits) - 1) << bits * d for d, c in enumerate(x)) for x in (self.lower, self.upper))
        return low | high << 16

    @classmethod
    def decode(cls, data: bytes) -> TensorMap:
        """Decode a map from 128 bytes. Raises `TensorMapError` for invalid bytes."""
        address, flags, *words = _FORMAT.unpack(data)
        rank = (flags >> 4 & 7) + 1
        if flags >> 1 & 7 != _VERSION or rank > 5 or flags >> 11 & 3 == 3:
            raise TensorMapError("these 128 bytes are not a tensor map")
        strides = [words[i] << 4 | (words[4] >> 4 * i & 15) << 36 for i in range(rank - 1)]
        traversal, window, pixels = words[10], words[11], words[12]
        made = cls(
            address, _BY_CODE[flags >> 7 & 15], tuple(size + 1 for size in words[5 : 5 + rank]), tuple(strides),
            element_strides=tuple((traversal >> 3 * d & 7) + 1 for d in range(rank)),
            swizzle=swizzle_name(flags >> 13 & 3, flags >> 19 & 7), interleave=INTERLEAVES[flags >> 11 & 3],
            fill=FILLS[flags >> 15 & 1],
        )  # fmt: skip
        row = (traversal >> 24) + 1
        if not flags & 1:
            made.box = (row, *((window >> 8 * d & 255) + 1 for d in range(rank - 1)))
            return made
        made.mode = "im2col_w" if flags >> 22 & 3 else "im2col"
        made.channels, made.pixels = row, (pixels & 1023) + 1
        count, bits = (1, 16) if made.mode == "im2col_w" else (rank - 2, _CORNER_BITS.get(rank, 16))
        made.lower, made.upper = (_corner(part, count, bits) for part in (window & 0xFFFF, window >> 16))
        return made


def _corner(word: int, count: int, bits: int) -> tuple[int, ...]:
    """Signed fields of `bits` bits, lowest first."""
    half = 1 << bits - 1
    return tuple(((word >> bits * d & (1 << bits) - 1) ^ half) - half for d in range(count))


def _list(values: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, values)) + "]"
