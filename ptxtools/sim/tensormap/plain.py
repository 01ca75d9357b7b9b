"""Tensor maps in plain terms, integers and bytes, for those who have no device: which bytes a copy moves where, and
what `tensormap.replace` changes. Raises `TensorMapError` for what a chip refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ptxtools.records import dataclass, replace

from . import fields, tiles
from .boxes import Array, Region
from .descriptor import BYTES, TYPES, TensorMap, TensorMapError
from .modes import region

Convert = Callable[[bytes], bytes]
#: Bits of a distance in bytes that are followed, in steps of a byte.
_DIGITS = 4
#: Bytes of sixteen elements of six bits in global memory.
_PACKED = 12
#: Fields that fill their bytes; all others share words with other fields.
_WHOLE = ("global_address", "global_dim")


@dataclass(frozen=True, slots=True)
class Run:
    """Bytes that lie together on both sides. tensor: from the map's address on, -1 for what is outside of the tensor
    and is filled; shared: from the tile's address on; size: there as well, unless `taken` says how many bytes of shared
    memory are packed into these; fill: the bytes that are written then."""

    tensor: int
    shared: int
    size: int
    fill: bytes = b""
    taken: int = 0


@dataclass(frozen=True, slots=True)
class Transfer:
    """What a copy moves. address: that of the map's tensor; bytes: what an mbarrier counts (9.7.9.25.5.2); element:
    bytes of an element; type: its name; convert: what becomes of elements on their way, None if they stay."""

    address: int
    bytes: int
    element: int
    type: str
    runs: tuple[Run, ...]
    convert: Convert | None = None


def transfer(map_: bytes, mode: str, coordinates: Sequence[int], offsets: Sequence[int], start: int, *, store: bool,
             reduction: str = "") -> Transfer:  # fmt: skip
    """What a copy with such a map moves. start: address of the tile in shared memory."""
    try:
        made = TensorMap.decode(map_)
        place = region(made, mode, coordinates, offsets)
    except (KeyError, ValueError, IndexError) as error:
        raise TensorMapError(str(error)) from None
    if store:
        tiles.check_store(made)
    if reduction:
        tiles.check_reduction(made, reduction)
    if made.type.padded and store:
        packed = tuple(_packed(made, place, start))
        return Transfer(made.address, place.bytes, _PACKED, made.type.name, packed, _pack)
    rounds = made.type.name.startswith("tf32") and not store
    moved = replace(made, type=TYPES["f32"]) if rounds else made  # as it is, so that places can be followed
    pairs = _stored(moved, place, start) if store else _loaded(moved, place, start)
    convert = _rounded if rounds else None
    return Transfer(made.address, place.bytes, made.type.memory, made.type.name, tuple(_runs(pairs)), convert)


def _pack(data: bytes) -> bytes:
    """Sixteen elements of six bits, from a byte each to all bits of fewer bytes."""
    return tiles.pack(np.frombuffer(data, np.uint8)).tobytes()


def _packed(map_: TensorMap, place: Region, start: int) -> list[Run]:
    """Groups of elements, which lie in a chunk of shared memory each."""
    taken = map_.type.shared
    layout = tiles.layout(map_, place, store=True)
    _check_places(place)
    found: Array = np.zeros(place.bytes // _PACKED, np.int64)
    groups: Array = np.zeros(0, np.int64)
    whole, low = _kept(place, map_.address, np.ones(place.bytes, np.uint8))
    groups = np.zeros(len(whole), np.int64)
    numbers = np.arange(place.bytes, dtype=np.int64) // _PACKED
    for digit in range(_DIGITS):
        chunks = layout.gather(_digits(0, layout.extent + BYTES, digit), start).reshape(-1, taken)[:, 0]
        found |= chunks.astype(np.int64) << 8 * digit
        part = (numbers >> 8 * digit & 255).astype(np.uint8)
        groups |= _kept(place, map_.address, part)[0].astype(np.int64) << 8 * digit
    firsts = [at for at in np.flatnonzero(whole) if at == 0 or not whole[at - 1] or groups[at] != groups[at - 1]]
    return [Run(int(at) + low, int(found[groups[at]]), _PACKED, taken=taken) for at in firsts]


def _rounded(data: bytes) -> bytes:
    """Numbers of f32 as elements of tf32 maps arrive."""
    return tiles.to_tf32(np.frombuffer(data, np.uint8)).tobytes()


def _loaded(map_: TensorMap, place: Region, start: int) -> list[tuple[int, int, int]]:
    """(distance in the tensor or -1, distance in shared memory, byte that is filled in) of each byte of a tile."""
    size = tiles.layout(map_, place).extent + BYTES
    inside, touched, blank = (np.zeros(size, np.uint8) for _ in range(3))
    found: Array = np.zeros(size, np.int64)
    tiles.load(map_, place, lambda _, count, __: np.full(count, 1, np.uint8), blank, start)
    for digit in range(_DIGITS):
        part = np.zeros(size, np.uint8)

        def numbered(at: int, count: int, _: bool, digit: int = digit) -> Array:
            return _digits(at - map_.address, count, digit)

        tiles.load(map_, place, numbered, part, start)
        found |= part.astype(np.int64) << 8 * digit
    tile = np.zeros(place.bytes, np.uint8)
    place.load(lambda _, count, __: np.ones(count, np.uint8), tile)
    tiles.layout(map_, place).scatter(tile, inside, start)
    tiles.layout(map_, place).scatter(np.ones(place.bytes, np.uint8), touched, start)
    return [
        (int(found[at]) if inside[at] else -1, int(at), 0 if inside[at] else int(blank[at]))
        for at in np.flatnonzero(touched)
    ]  # fmt: skip


def _stored(map_: TensorMap, place: Region, start: int) -> list[tuple[int, int, int]]:
    size = tiles.layout(map_, place, store=True).extent + BYTES
    _check_places(place)
    whole, low = _kept(place, map_.address, np.ones(place.bytes, np.uint8))
    found: Array = np.zeros(len(whole), np.int64)
    for digit in range(_DIGITS):
        tile = tiles.take(map_, place, _digits(0, size, digit), start)
        found |= _kept(place, map_.address, tile)[0].astype(np.int64) << 8 * digit
    pairs = [(int(at) + low, int(found[at]), 0) for at in np.flatnonzero(whole)]
    return sorted(pairs, key=lambda pair: pair[1])


def _check_places(place: Region) -> None:
    """Raise `TensorMapError` if two rows of a tile are for the same place: which of them stays nobody says."""
    memory: list[Array] = []

    def zeros(_: int, count: int, __: bool) -> Array:
        memory.append(np.zeros(count, np.uint8))
        return memory[-1]

    def add(view: Array, tile: Array) -> None:
        view += tile

    place.change(zeros, np.ones(place.bytes, np.uint8), add)
    if memory and memory[0].max(initial=0) > 1:
        raise TensorMapError("two rows of a tile are written to the same place")


def _kept(place: Region, address: int, tile: Array) -> tuple[Array, int]:
    """What a store of the tile leaves in memory that was 0, and how far from the tensor's address this begins."""
    memory: list[tuple[int, Array]] = []

    def zeros(at: int, count: int, _: bool) -> Array:
        memory.append((at - address, np.zeros(count, np.uint8)))
        return memory[-1][1]

    place.store(zeros, tile)
    return (memory[0][1], memory[0][0]) if memory else (np.zeros(0, np.uint8), 0)


def _digits(first: int, count: int, digit: int) -> Array:
    """A byte of each number from `first` on."""
    return (first + np.arange(count, dtype=np.int64) >> 8 * digit & 255).astype(np.uint8)


def _runs(pairs: Sequence[tuple[int, int, int]]) -> list[Run]:
    runs: list[Run] = []
    for tensor, shared, fill in pairs:
        last = runs[-1] if runs else None
        joined = last is not None and shared == last.shared + last.size and (
            tensor == last.tensor + last.size if tensor >= 0 and last.tensor >= 0 else tensor == last.tensor
        )  # fmt: skip
        fills = bytes([fill]) if tensor < 0 else b""
        if last is not None and joined:
            runs[-1] = Run(last.tensor, last.shared, last.size + 1, last.fill + fills)
        else:
            runs.append(Run(tensor, shared, 1, fills))
    return runs


def replaced(map_: bytes, field: str, dimension: int, value: int) -> bytes:
    """The map with a field changed (9.7.9.26)."""
    made = np.frombuffer(bytearray(map_), np.uint8)
    bits = 64 if field in ("global_address", "global_stride") else 32
    fields.replace(made, field, dimension, value & (1 << bits) - 1)
    return made.tobytes()


def changed(field: str, dimension: int) -> tuple[tuple[int, int, bool], ...]:
    """The bytes that a field changes: offset, size, and whether all of their bits."""
    if field == "global_address":
        return ((0, 8, True),)
    first, *others = (replaced(bytes(BYTES), field, dimension, value) for value in (0, 1, 2, -1))
    words = sorted({at // 4 for other in others for at in range(BYTES) if first[at] != other[at]})
    return tuple((4 * word, 4, field in _WHOLE) for word in words)
