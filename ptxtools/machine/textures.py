"""The properties of a device's textures for an engine that fetches texels itself (9.7.10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class SamplerFacts(Protocol):
    """How coordinates and texels are treated."""

    @property
    def filter(self) -> str: ...
    @property
    def normalized(self) -> bool: ...
    @property
    def border(self) -> tuple[float, float, float, float]: ...
    @property
    def mode_numbers(self) -> tuple[int, int, int]:
        """Address modes of the axes, as txq.addr_mode has them (9.7.10.5)."""


class TextureFacts(Protocol):
    """A texture: sizes in texels, `address`, `bytes`, `texel` and `row` in bytes of device memory."""

    @property
    def kind(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def read(self) -> str: ...
    @property
    def srgb(self) -> bool: ...
    @property
    def channels(self) -> int: ...
    @property
    def channel_bytes(self) -> int: ...
    @property
    def is_float(self) -> bool: ...
    @property
    def size(self) -> tuple[int, int, int]: ...
    @property
    def levels(self) -> int: ...
    @property
    def layers(self) -> int: ...
    @property
    def samples(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def texel(self) -> int: ...
    @property
    def row(self) -> int: ...
    @property
    def is_whole(self) -> bool:
        """Whether all of its texels are in memory that has not been freed."""

    @property
    def sampler(self) -> SamplerFacts: ...


class TextureTable(Protocol):
    """The textures of a device in the order of their handles. kept: what an engine keeps with them; it is told by
    `drop(number)` when a texture is of no more use."""

    kept: TextureKeeper | None

    @property
    def known(self) -> Sequence[TextureFacts]: ...


class TextureKeeper(Protocol):
    """Data that an engine keeps about a device's textures."""

    def drop(self, number: int) -> None: ...
