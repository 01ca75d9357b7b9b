"""Global memory of each CTA of a grid (`.minperctamemory`, 11.4.10)."""

from __future__ import annotations

from ptxtools.records import NamedTuple

from .arena import Arena
from .poison import poison

#: %perctamemorysize is a multiple of it (10.35).
_UNIT = 1024


class CtaMemory(NamedTuple):
    """Slices of `pitch` bytes, one for each CTA, from `address` on."""

    address: int
    pitch: int

    @property
    def specials(self) -> dict[str, int]:
        """What the lowered registers read (10.34, 10.35)."""
        return {"%cta_memory": self.address, "%perctamemorysize": self.pitch}


def cta_memory(arena: Arena, least: int, ctas: int) -> CtaMemory:
    """Slices of at least `least` bytes for so many CTAs. Nobody has written them: they hold poison. Raises
    `OutOfMemory`."""
    pitch = -(-least // _UNIT) * _UNIT
    address = arena.allocate(pitch * ctas).address
    for start in range(address, address + pitch * ctas, pitch):
        arena.view(start, pitch)[:] = poison(start, pitch)
    return CtaMemory(address, pitch)
