"""The roofline of a kernel on a chip: what its arithmetic can reach with the bytes that it moves, as a picture.

The roofs are the chip's published peaks (`sim.rates`); operations are counted exactly, bytes of DRAM are those of the
model of the cache. How long a kernel takes is not measured here: its mark stands on the roof that it meets.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log10
from typing import TYPE_CHECKING

from ptxtools.machine.measures import SECTOR_BYTES
from ptxtools.records import dataclass
from ptxtools.sim.limits import limits_of
from ptxtools.sim.rates import rates_of

if TYPE_CHECKING:
    from .profile import KernelProfile

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 460, 260, 60, 34


@dataclass(frozen=True, slots=True)
class Roofline:
    """chip: with its product; peaks: of sorts of arithmetic, in operations a second; bandwidth: of DRAM, in bytes a
    second; intensity: operations of the kernel for each byte of DRAM; sort: which it does most."""

    chip: str
    peaks: dict[str, float]
    bandwidth: float
    intensity: float
    sort: str

    @property
    def reach(self) -> float:
        """Operations a second that the kernel's intensity allows."""
        return min(self.peaks[self.sort], self.intensity * self.bandwidth)

    @property
    def bound(self) -> str:
        """What is the lower roof there."""
        return "DRAM" if self.intensity * self.bandwidth < self.peaks[self.sort] else self.sort


def roofline(kernel: KernelProfile) -> Roofline | None:
    """None where the kernel does no floating-point arithmetic or moves nothing, or the chip has no published rates."""
    rates, limits = rates_of(kernel.chip), limits_of(kernel.chip)
    dram = SECTOR_BYTES * (kernel.memory(False).dram + kernel.memory(True).dram)
    if rates is None or limits is None or not kernel.operations or not dram:
        return None
    second = limits.sms * rates.clock * 1e6
    peaks = {
        "float64": 2 * rates.fp64 * second, "float32": 2 * rates.fp32 * second, "half": 4 * rates.half * second,
        "tensor (f16)": 2 * rates.tensor * second,
    }  # fmt: skip
    sorts = kernel.operations_by
    most = max(sorts, key=lambda name: sorts[name])
    return Roofline(
        f"{rates.name} ({limits.product})", peaks, rates.dram * 1e9, kernel.operations / dram,
        {"matrix": "tensor (f16)"}.get(most, most),
    )  # fmt: skip


def as_svg(line: Roofline) -> Iterator[str]:
    """The picture: logarithmic axes, a roof for each sort of arithmetic, the kernel at its intensity."""
    top = max(line.peaks.values())
    left, right = min(0.01, line.intensity / 3), max(1000.0, line.intensity * 3, 3 * top / line.bandwidth)
    low, high = min(line.reach, left * line.bandwidth) / 2, top * 2

    def x(intensity: float) -> float:
        return _LEFT + (_WIDTH - _LEFT) * log10(intensity / left) / log10(right / left)

    def y(rate: float) -> float:
        return (_HEIGHT - _BOTTOM) * (1 - log10(rate / low) / log10(high / low))

    yield f'<svg width="{_WIDTH}" height="{_HEIGHT}" style="border:1px solid #ddd" font-size="11">'
    yield from _grid(left, right, low, high, x, y)
    ridge = top / line.bandwidth
    yield f'<polyline points="{x(left):.1f},{y(left * line.bandwidth):.1f} {x(ridge):.1f},{y(top):.1f}" '
    yield 'fill="none" stroke="#c33"/>'
    for name, peak in line.peaks.items():
        from_ = x(peak / line.bandwidth)
        yield f'<line x1="{from_:.1f}" y1="{y(peak):.1f}" x2="{_WIDTH}" y2="{y(peak):.1f}" stroke="#35c"/>'
        yield f'<text x="{_WIDTH - 4}" y="{y(peak) - 3:.1f}" text-anchor="end">{name} {_short(peak)}</text>'
    at, reach = x(line.intensity), y(line.reach)
    yield f'<line x1="{at:.1f}" y1="{reach:.1f}" x2="{at:.1f}" y2="{_HEIGHT - _BOTTOM}" stroke="#282"/>'
    yield f'<circle cx="{at:.1f}" cy="{reach:.1f}" r="4" fill="#282"/></svg>'


def _grid(left: float, right: float, low: float, high: float, x: object, y: object) -> Iterator[str]:
    """Decades of both axes."""
    assert callable(x) and callable(y)
    for power in range(int(log10(left)), int(log10(right)) + 1):
        at = x(10.0**power)
        yield f'<line x1="{at:.1f}" y1="0" x2="{at:.1f}" y2="{_HEIGHT - _BOTTOM}" stroke="#eee"/>'
        yield f'<text x="{at:.1f}" y="{_HEIGHT - _BOTTOM + 13}" text-anchor="middle">{10.0**power:g}</text>'
    for power in range(int(log10(low)) + 1, int(log10(high)) + 1):
        at = y(10.0**power)
        yield f'<line x1="{_LEFT}" y1="{at:.1f}" x2="{_WIDTH}" y2="{at:.1f}" stroke="#eee"/>'
        yield f'<text x="{_LEFT - 4}" y="{at + 4:.1f}" text-anchor="end">{_short(10.0**power)}</text>'
    yield f'<text x="{(_LEFT + _WIDTH) / 2:.0f}" y="{_HEIGHT - 5}" text-anchor="middle">'
    yield "operations for each byte of DRAM</text>"


def _short(rate: float) -> str:
    for unit, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if rate >= size:
            return f"{rate / size:.3g} {unit}/s"
    return f"{rate:.3g} /s"


__all__ = ["Roofline", "as_svg", "roofline"]
