"""suld, sust and sured (9.7.11.1 to 9.7.11.3)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np

from ptxtools.diagnostics import Cause
from ptxtools.machine.events import View, serves
from ptxtools.program.details import TexturePlace
from ptxtools.program.program import LANES
from ptxtools.records import NamedTuple
from ptxtools.sim.accesses import tell

from .access import Array, groups, lanes_of
from .objects import Texture

_FITTING = {"1d": ("1d", "linear"), "2d": ("2d",), "3d": ("3d",), "a1d": ("a1d",), "a2d": ("a2d", "cube", "acube")}
_lock = threading.Lock()


class _Access(NamedTuple):
    """What some lanes do with one surface: `bytes` of all of its memory, `places` (lanes x size) in them."""

    texture: Texture
    lanes: Array
    bytes: Array
    places: Array


def _accesses(view: View, size: int | None, action: str) -> Iterator[_Access]:
    """Each surface with the lanes that access `size` bytes of it (None: a texel); .zero leaves lanes out. action: as in
    `accesses.tell`.

    Raises `Trap`. The x coordinate counts bytes, or samples with `.p`.
    """
    opcode = view.op.opcode
    assert opcode is not None
    mods = opcode.mods
    count = view.op.of(TexturePlace).coordinates
    columns = [view.source(2 + n).astype(np.uint32).view(np.int32).astype(np.int64) for n in range(count)]
    for texture, mask, _ in groups(view):
        lanes = lanes_of(mask)
        if not texture.surface or texture.kind not in _FITTING[mods["geom"]]:
            kind = f"surface of kind {texture.kind}" if texture.surface else "texture, which is not a surface"
            raise view.trap(f".{mods['geom']} does not fit a {kind}", int(lanes[0]))
        place = [column[lanes] for column in columns]
        layer = place.pop(0) & (1 << 32) - 1 if mods["geom"].startswith("a") else np.zeros(len(lanes), np.int64)
        step = size or texture.texel
        there, offsets = _offsets(view, texture, lanes, place, layer, step)
        if len(there):
            lane, write = int(there[0]), action != "read"
            memory = view.memory(texture.address, texture.bytes, "global", lane=lane, write=write, told=False)
            tell(view, "global", action, step, there, texture.address + offsets)
            places = offsets[:, None] + np.arange(step)
            yield _Access(texture, there, np.frombuffer(memory, np.uint8), places)


def _offsets(
    view: View, texture: Texture, lanes: Array, place: list[Array], layer: Array, size: int
) -> tuple[Array, Array]:
    """Lanes that access something, and the offsets of their bytes in the surface."""
    opcode = view.op.opcode
    assert opcode is not None
    width, height, depth = texture.size
    zero = np.zeros(len(lanes), np.int64)
    x, y, z = (*place, zero, zero)[:3]
    if opcode.has("p"):
        x = x * texture.texel
    last = width * texture.texel - size
    inside = (x >= 0) & (x <= last) & (y >= 0) & (y < height) & (z >= 0) & (z < depth) & (layer < texture.layers)
    if not inside.all():
        if opcode.has("zero"):
            lanes, x, y, z, layer = (values[inside] for values in (lanes, x, y, z, layer))
        elif opcode.has("trap"):
            first = int(np.argmin(inside))
            where = ", ".join(str(int(values[first])) for values in place)
            reason = f"surface access at ({where}) of layer {layer[first]} is outside the surface"
            raise view.trap(reason, int(lanes[first]), cause=Cause.OUT_OF_BOUNDS)
        elif last < 0:
            reason = f"surface access of {size} bytes is wider than a row of {width * texture.texel}"
            raise view.trap(reason, int(lanes[0]), cause=Cause.OUT_OF_BOUNDS)
        else:
            x = np.where(inside, x, np.clip(x, 0, last) // size * size)
            y, z = np.clip(y, 0, height - 1), np.clip(z, 0, depth - 1)
            layer = np.minimum(layer, texture.layers - 1)
    odd = np.flatnonzero(x % size)
    if len(odd):
        reason = f"surface access at byte {x[odd[0]]} of a row is not aligned to {size} bytes"
        raise view.trap(reason, int(lanes[odd[0]]), cause=Cause.MISALIGNED)
    return lanes, ((layer * depth + z) * height + y) * texture.row + x


def _element(view: View) -> tuple[str, int]:
    mods = view.op.opcode.mods  # type: ignore[union-attr]
    type_name = mods.get("dtype") or mods["ctype"]
    return type_name, int(type_name[1:]) // 8


@serves("suld")
def suld(view: View) -> None:
    """Load bytes."""
    _, item = _element(view)
    values = np.zeros((len(view.op.dst), LANES), f"u{item}")
    for access in _accesses(view, item * len(view.op.dst), "read"):
        values[:, access.lanes] = access.bytes[access.places].view(f"<u{item}").T
    for position, column in enumerate(values):
        view.result(position, column.astype(np.uint16) if item == 1 else column)


@serves("sust")
def sust(view: View) -> None:
    """Store bytes (.b), or samples in the surface's format (.p). Where lanes meet, the last one's stay."""
    opcode = view.op.opcode
    assert opcode is not None
    _, item = _element(view)
    first = 2 + view.op.of(TexturePlace).coordinates
    columns = np.stack([view.source(n) for n in range(first, len(view.op.src))], axis=1)
    formatted = opcode.has("p")
    for access in _accesses(view, None if formatted else item * columns.shape[1], "write"):
        own = columns[access.lanes]
        samples = _formatted(access.texture, own.astype(np.uint32)) if formatted else own.astype(f"<u{item}")
        raw = np.ascontiguousarray(samples).view(np.uint8)
        access.bytes[access.places[:, : raw.shape[1]]] = raw


def _formatted(texture: Texture, words: Array) -> Array:
    """Source words (lanes x up to 4) as channels of the surface: floats are converted, to normalized integers too, and
    integers cut."""
    channel = texture.channel
    words = np.ascontiguousarray(words[:, : texture.channels])
    if texture.read == "normalized_float":
        signed = channel.code[0] == "i"
        largest = (1 << 8 * channel.bytes - signed) - 1
        floats = np.clip(np.nan_to_num(words.view(np.float32).astype(np.float64)), -1.0 if signed else 0.0, 1.0)
        return np.rint(floats * largest).astype("<" + channel.code)
    if channel.is_float:
        with np.errstate(over="ignore"):
            return words.view(np.float32).astype("<" + channel.code)
    return words.astype(f"<u{channel.bytes}")


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "min": min, "max": max, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
}  # fmt: skip


@serves("sured")
def sured(view: View) -> None:
    """Reduce into bytes (.b), or into samples by the surface's signedness (.p)."""
    opcode = view.op.opcode
    assert opcode is not None
    type_name, item = _element(view)
    values = view.source(2 + view.op.of(TexturePlace).coordinates)
    operation = _OPERATIONS[opcode.mods["op"]]
    with _lock:
        for access in _accesses(view, item, "atomic"):
            texture = access.texture
            if opcode.has("p") and texture.is_float:
                raise view.trap(f"sured.p requires integers, but the surface has {texture.type}", int(access.lanes[0]))
            signed = type_name[0] == "s" or (opcode.has("p") and texture.type[0] == "s")
            for lane, places in zip(access.lanes.tolist(), access.places, strict=True):
                old = int.from_bytes(access.bytes[places].tobytes(), "little", signed=signed)
                own = int.from_bytes(int(values[lane]).to_bytes(item, "little"), "little", signed=signed)
                new = (operation(old, own) & (1 << 8 * item) - 1).to_bytes(item, "little")
                access.bytes[places] = np.frombuffer(new, np.uint8)
