"""suld, sust and sured (9.7.11.1 to 9.7.11.3): lanes one after another, in their order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np

from ptxtools.machine.events import View, serves
from ptxtools.program.details import TexturePlace
from ptxtools.program.program import LANES

from .access import groups, lanes_of
from .objects import Texture

_FITTING = {"1d": ("1d", "linear"), "2d": ("2d",), "3d": ("3d",), "a1d": ("a1d",), "a2d": ("a2d", "cube", "acube")}
_lock = threading.Lock()


def _accesses(view: View, size: int) -> Iterator[tuple[int, Texture, memoryview | None]]:
    """Each lane with its surface and the `size` bytes that it accesses; None where .zero leaves it out.

    The x coordinate counts bytes, or samples with `.p`.
    """
    mods = view.op.opcode.mods  # type: ignore[union-attr]
    count = view.op.of(TexturePlace).coordinates
    columns = [view.source(2 + n).astype(np.int64) for n in range(count)]
    columns = [np.where(column >= 1 << 31, column - (1 << 32), column) for column in columns]
    for texture, mask, _ in groups(view):
        lanes = lanes_of(mask)
        if not texture.surface or texture.kind not in _FITTING[mods["geom"]]:
            kind = f"surface of kind {texture.kind}" if texture.surface else "texture, which is no surface"
            raise view.trap(f".{mods['geom']} does not fit a {kind}", int(lanes[0]))
        for lane in lanes.tolist():
            place = [int(column[lane]) for column in columns]
            layer = place.pop(0) & (1 << 32) - 1 if mods["geom"].startswith("a") else 0
            yield lane, texture, _bytes(view, texture, lane, place, layer, size)


def _bytes(view: View, texture: Texture, lane: int, place: list[int], layer: int, size: int) -> memoryview | None:
    opcode = view.op.opcode
    assert opcode is not None
    width, height, depth = texture.size
    x, y, z = (*place, 0, 0)[:3]
    if opcode.has("p"):
        x *= texture.texel
    last = width * texture.texel - size
    inside = 0 <= x <= last and 0 <= y < height and 0 <= z < depth and layer < texture.layers
    if not inside:
        if opcode.has("zero"):
            return None
        if opcode.has("trap"):
            where = ", ".join(map(str, place))
            raise view.trap(f"surface access at ({where}) of layer {layer} is outside the surface", lane)
        x = min(max(x, 0), last) // size * size
        y, z = min(max(y, 0), height - 1), min(max(z, 0), depth - 1)
        layer = min(layer, texture.layers - 1)
    if x % size:
        raise view.trap(f"surface access at byte {x} of a row is not aligned to {size} bytes", lane)
    address = texture.address + ((layer * depth + z) * height + y) * texture.row + x
    return view.memory(address, size, "global", lane=lane)


def _element(view: View) -> tuple[str, int]:
    mods = view.op.opcode.mods  # type: ignore[union-attr]
    type_name = mods.get("dtype") or mods["ctype"]
    return type_name, int(type_name[1:]) // 8


@serves("suld")
def suld(view: View) -> None:
    """Load bytes."""
    _, item = _element(view)
    values = np.zeros((len(view.op.dst), LANES), f"u{item}")
    for lane, _, data in _accesses(view, item * len(view.op.dst)):
        if data is not None:
            values[:, lane] = np.frombuffer(data, f"<u{item}")
    for position, column in enumerate(values):
        view.result(position, column.astype(np.uint16) if item == 1 else column)


@serves("sust")
def sust(view: View) -> None:
    """Store bytes (.b), or samples in the surface's format (.p)."""
    opcode = view.op.opcode
    assert opcode is not None
    _, item = _element(view)
    first = 2 + view.op.of(TexturePlace).coordinates
    columns = [view.source(n) for n in range(first, len(view.op.src))]
    if not opcode.has("p"):
        for lane, _, data in _accesses(view, item * len(columns)):
            if data is not None:
                data[:] = np.array([column[lane] for column in columns]).astype(f"<u{item}").tobytes()
        return
    for texture, _, _ in groups(view):
        texel = texture.texel
        break
    for lane, texture, data in _accesses(view, texel):
        if data is not None:
            sample = _formatted(texture, np.array([column[lane] for column in columns], np.uint32))
            data[: len(sample)] = sample


def _formatted(texture: Texture, words: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> bytes:
    """Source words as channels of the surface: floats are converted, integers cut."""
    channel = texture.channel
    words = words[: texture.channels]
    if channel.is_float:
        with np.errstate(over="ignore"):
            return words.view(np.float32).astype("<" + channel.code).tobytes()
    return words.astype(f"<u{channel.bytes}").tobytes()


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
        for lane, texture, data in _accesses(view, item):
            if data is None:
                continue
            signed = type_name[0] == "s" or (opcode.has("p") and texture.type[0] == "s")
            old = int.from_bytes(data, "little", signed=signed)
            own = int.from_bytes(int(values[lane]).to_bytes(item, "little"), "little", signed=signed)
            data[:] = (operation(old, own) & (1 << 8 * item) - 1).to_bytes(item, "little")
