"""Occupancy: how many CTAs of a kernel an SM holds, and which resource runs out first."""

from __future__ import annotations

from ptxtools.records import dataclass

from .limits import WARP, DeviceLimits
from .residency import ctas_by


@dataclass(frozen=True, slots=True)
class Occupancy:
    """ctas: that an SM holds; warps: of those; most: warps that it could hold; limits: CTAs by each resource; limiter:
    the resources that allow no more."""

    ctas: int
    warps: int
    most: int
    limits: dict[str, int]
    limiter: tuple[str, ...]


def occupancy(threads: int, registers: int, shared: int, limits: DeviceLimits) -> Occupancy:
    """threads: of a CTA; registers: of a thread; shared: bytes of a CTA, static and dynamic."""
    by = ctas_by(threads, registers, shared, limits)
    ctas = max(1, min(by.values()))
    warps = ctas * -(-threads // WARP)
    return Occupancy(ctas, warps, limits.warps, by, tuple(name for name, most in by.items() if most <= ctas))
