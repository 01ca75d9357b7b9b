"""Find the texture, surface or sampler for the handle in an instruction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.diagnostics import Cause
from ptxtools.machine.events import View
from ptxtools.records import replace

from .handles import Textures, is_handle
from .objects import Sampler, Texture, sampler_of

Array: TypeAlias = npt.NDArray[Any]


def textures_of(view: View) -> Textures:
    """The textures of the device."""
    textures: Textures = view.launch.device.runtime.textures
    return textures


def content(view: View, handle: int, lane: int) -> int:
    """The handle, or the content of the variable at that address."""
    return handle if is_handle(handle) else int.from_bytes(view.fetch(handle, 8, lane=lane, align=8), "little")


def groups(view: View) -> Iterator[tuple[Texture, int, Sampler]]:
    """The textures that lanes access: each with its lanes as a mask, and its sampler. Raises `Trap`.

    Usually all lanes use the same one.
    """
    handles, samplers = view.source(0), view.source(1)
    own = view.op.src[1] is None
    waiting = view.mask
    while waiting:
        lane = (waiting & -waiting).bit_length() - 1
        same = (handles == handles[lane]) & (samplers == samplers[lane])
        mask = int(np.packbits(same, bitorder="little").view(np.uint32)[0]) & waiting
        waiting &= ~mask
        texture = texture_at(view, int(handles[lane]), lane)
        sampler = texture.sampler
        if not own:
            # A sampler determines filtering; the texture determines whether coordinates are normalized (5.3.2).
            sampler = replace(sampler_at(view, int(samplers[lane]), lane), normalized=texture.sampler.normalized)
        yield texture, mask, sampler


def texture_at(view: View, handle: int, lane: int) -> Texture:
    """The texture or surface of a handle or variable."""
    held = content(view, handle, lane)
    texture = textures_of(view).find(held)
    if texture is None:
        what = f"{handle:#x} is not a texture or surface"
        raise view.trap(
            what if is_handle(handle) or held else f"{what}: nothing is bound to that variable",
            lane,
            cause=Cause.DESCRIPTOR,
        )
    if texture.freed:
        raise view.trap("the memory of the texture has been freed", lane, cause=Cause.OUT_OF_BOUNDS)
    return texture


def sampler_at(view: View, handle: int, lane: int) -> Sampler:
    """The sampler of a variable; for a texture's handle, the texture's."""
    held = content(view, handle, lane)
    texture = textures_of(view).find(held)
    if texture is not None:
        return texture.sampler
    sampler = sampler_of(held)
    if sampler is None and held:
        raise view.trap(f"{handle:#x} is not a sampler", lane, cause=Cause.DESCRIPTOR)
    return sampler or Sampler()


def reader(view: View, texture: Texture) -> Callable[[int, int], memoryview]:
    """Gives the bytes of the texture's memory."""

    def bytes_at(address: int, size: int) -> memoryview:
        return view.memory(address, size, "global", write=texture.surface)

    return bytes_at


def lanes_of(mask: int) -> Array:
    """Numbers of the lanes in a mask."""
    return np.flatnonzero(mask >> np.arange(32, dtype=np.uint64) & np.uint64(1))
