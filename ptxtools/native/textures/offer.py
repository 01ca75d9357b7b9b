"""Lets native code fetch texels without the service of `sim` (`native.textures.sampling`).

The first fetch of a worker makes the device's textures known, as rows of numbers; the first fetch of each instruction
fills its cell.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.native.code.structures import NO_SLOT, TEXTURE, TextureFetch
from ptxtools.program.details import TexturePlace

from . import sampling

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxtools.machine.textures import TextureFacts, TextureTable
    from ptxtools.native.loop.events import NativeView
    from ptxtools.program.program import Ref, Slot

    Array = npt.NDArray[Any]

#: Bits of the geometries that native code knows, by kind of texture, and by instruction with its axes.
_KINDS = {"1d": 1, "linear": 1, "a1d": 2, "2d": 4, "a2d": 8, "3d": 16}
_GEOMETRIES = {"1d": (1, 1), "a1d": (2, 1), "2d": (4, 2), "a2d": (8, 2), "3d": (16, 3)}
_HALVES = {"f16": 1, "f16x2": 2}


class Rows:
    """The textures of a device as native code reads them: rows are added, and change only when a texture is dropped."""

    def __init__(self) -> None:
        self.array: Array = np.zeros((16, TEXTURE.size), np.uint8)
        self.count = 0
        self._lock = threading.Lock()

    def update(self, known: Sequence[TextureFacts], functions: dict[str, int]) -> None:
        """Have a row for each texture."""
        with self._lock:
            if len(known) > len(self.array):
                larger = np.zeros((2 * len(known), TEXTURE.size), np.uint8)
                larger[: self.count] = self.array[: self.count]
                self.array = larger  # readers of the former table keep it
            for number in range(self.count, len(known)):
                _fill(self.array[number], known[number], functions)
            self.count = max(self.count, len(known))

    def drop(self, number: int) -> None:
        """From now on this texture is left to the service."""
        with self._lock:
            if number < self.count:
                _set(self.array[number], "kinds", 0)


def _fill(row: Array, texture: TextureFacts, functions: dict[str, int]) -> None:
    sampler = texture.sampler
    normalized = texture.read == "normalized_float"
    loader = functions.get(sampling.loader_of(texture.type, normalized, texture.srgb), 0)
    if not loader or not texture.is_whole or texture.samples > 1:
        return
    x, y, z = texture.size
    modes = sampler.mode_numbers
    fields = {
        "levels": texture.levels, "linear": sampler.filter == "linear", "normalized": sampler.normalized,
        "mode_x": modes[0], "mode_y": modes[1], "mode_z": modes[2], "memory": texture.kind == "linear",
        "integers": not texture.is_float, "layers": texture.layers, "channel_bytes": texture.channel_bytes,
        "width": x, "height": y, "depth": z, "start": texture.address, "end": texture.address + texture.bytes,
        "texel": texture.texel, "row": texture.row, "plane": texture.row * y, "layer": texture.row * y * z,
    }  # fmt: skip
    for name, value in fields.items():
        _set(row, name, int(value))
    border = np.array(sampler.border, np.float64 if texture.is_float else np.int64).astype(np.float64)
    for name, bits in zip("rgba", border.view(np.uint64).tolist(), strict=True):
        _set(row, f"border_{name}", bits)
    for name in "rgba"[: texture.channels]:
        _set(row, f"load_{name}", loader)
    if texture.srgb and texture.channels == 4:
        _set(row, "load_a", functions[sampling.loader_of("u8", True, False)])
    _set(row, "kinds", _KINDS.get(texture.kind, 0))  # written last: from here on it can be used


def _set(row: Array, name: str, value: int) -> None:
    TEXTURE.write(row, 0, name, value)


def offer(view: NativeView, textures: TextureTable) -> None:
    """From now on native code does this fetch if it can; never in runs whose accesses are checked."""
    cell = view.cell
    geometry = _GEOMETRIES.get(view.op.opcode.mods["geom"])  # type: ignore[union-attr]
    if geometry is None or view.launch.memory.allowed is not None or view.op.of(TexturePlace).references:
        return
    functions = sampling.addresses()
    if functions is None:
        return
    with cell.lock:
        if cell.payload is None and not cell.refused:
            payload = _payload(view, *geometry)
            cell.refused = payload is None
            if payload is not None:
                cell.write(payload)
        if cell.refused:
            return
        rows = textures.kept
        if not isinstance(rows, Rows):
            rows = textures.kept = Rows()
        rows.update(textures.known, functions)
        view.worker.show(rows.array, rows.count)
        cell.serve(functions[sampling.NAME])


def _payload(view: NativeView, kind: int, axes: int) -> TextureFetch | None:
    """The payload of a fetch; None if native code cannot do it."""
    op = view.op
    mods = op.opcode.mods  # type: ignore[union-attr]
    count, extra, offsets, _ = op.of(TexturePlace).values()
    halves = _HALVES.get(mods["dtype"], 0)
    results = {0: 4, 1: 4, 2: 2}[halves]
    if halves and sampling.loader_of("f16", False, False) not in (sampling.addresses() or ()):
        return None
    words: list[Ref | None] = [*op.src[2:], *([] if halves == 1 else op.dst[:results])]
    if any(ref is not None and ref.type != "b32" for ref in words):
        return None
    if halves == 1 and any(ref is not None and ref.type != "b16" for ref in op.dst[:results]):
        return None
    if op.src[0] is None or op.src[0].type != "b64" or (op.src[1] is not None and op.src[1].type != "b64"):
        return None
    places = list(op.src[2 : 2 + count])
    layer = places.pop(0) if mods["geom"].startswith("a") else None
    moved = op.src[2 + count + extra : 2 + count + extra + offsets]
    slots = {
        **_named("place", "xyz", places), **_named("offset", "xyz", moved), **_named("to", "rgba", op.dst[:results]),
    }  # fmt: skip
    channels = [n for n in range(4) if halves == 2 or op.dst[n] is not None]
    return TextureFetch(
        handle_slot=_slot(op.src[0]),
        sampler_slot=_slot(op.src[1]),
        layer_slot=_slot(layer),
        resident_slot=_slot(op.dst[results] if len(op.dst) > results else None),
        kind=kind,
        axes=axes,
        whole=mods.get("ctype") == "s32",
        levels=extra > 0,
        halves=halves,
        wanted=sum(1 << n for n in channels),
        **slots,
    )


def _slot(ref: Ref | None) -> Slot:
    return NO_SLOT if ref is None else ref.slot


def _named(prefix: str, letters: str, refs: Iterable[Ref | None]) -> dict[str, Slot]:
    """Slots of operands by the fields for them."""
    given = [*refs, None, None, None, None]
    return {f"{prefix}_{letter}": _slot(ref) for letter, ref in zip(letters, given, strict=False)}
