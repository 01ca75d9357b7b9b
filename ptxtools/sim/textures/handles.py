"""The textures and surfaces of a device, and the 64-bit handles that kernels know them by.

A device has these whether or not it has textures: what those are (`objects`) is loaded with the first one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.records import replace

if TYPE_CHECKING:
    from ptxtools.machine.textures import TextureKeeper

    from .objects import Texture

#: Handles have these 16 bits on top, where no address has them.
TAG = 0x7E58
OBJECT, SAMPLER = 1 << 40, 2 << 40


class Textures:
    """The textures and surfaces of a device by handle."""

    def __init__(self) -> None:
        self.known: list[Texture] = []
        self.kept: TextureKeeper | None = None  # what an engine keeps with them

    def add(self, texture: Texture) -> int:
        """The handle of a new texture or surface."""
        self.known.append(texture)
        return TAG << 48 | OBJECT | len(self.known)

    def freed(self, address: int, size: int) -> None:
        """Memory has been given back: textures that lie in it are of no more use."""
        for number, texture in enumerate(self.known):
            if texture.address < address + size and address < texture.address + texture.bytes and not texture.freed:
                self.known[number] = replace(texture, freed=True)
                if self.kept is not None:
                    self.kept.drop(number)

    def find(self, handle: int) -> Texture | None:
        """The texture of a handle; None for any other number."""
        number = handle & (1 << 32) - 1
        if handle & ~((1 << 32) - 1) == TAG << 48 | OBJECT and 0 < number <= len(self.known):
            return self.known[number - 1]
        return None


def is_handle(value: int) -> bool:
    """Whether a number is a handle, not the address of a .texref, .samplerref or .surfref variable."""
    return value >> 48 == TAG
