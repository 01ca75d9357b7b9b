"""Tables of estimates, for `ptx-run --estimate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import shown

from .tables import plain

if TYPE_CHECKING:
    from ptxtools.observe.estimate import Estimate, KernelEstimate

_WIDE = 110


def table(estimate: Estimate) -> str:
    """All launches."""

    def write(console: Any) -> None:
        for kernel in estimate.kernels:
            for line in _lines(kernel):
                console.print(line, soft_wrap=True, highlight=False, markup=False)

    return plain(write, _WIDE)


def _lines(kernel: KernelEstimate) -> list[str]:
    shape = "grid {},{},{} block {},{},{}".format(*kernel.grid, *kernel.block)
    margin = "" if kernel.margin == float("inf") else f", {kernel.margin:.1f} times the next"
    sample = f"{kernel.followed} CTAs of {kernel.instructions:,} instructions of warps"
    if not kernel.complete:
        sample += ", the first ones only, scaled up to all"
    lines = [
        f"{shown(kernel.name)}  {shape}  a model of {kernel.chip} ({kernel.product}, {kernel.clock:,} MHz)",
        f"  {kernel.cycles:,.0f} cycles, {kernel.microseconds:,.2f} microseconds",
        f"  bound by {kernel.bound}{margin}",
    ]
    lines += [
        f"    {name:<12} {cycles:>16,.0f} cycles {100 * cycles / kernel.cycles:>7.1f} %"
        for name, cycles in kernel.bounds.items()
    ]
    lines += [
        f"  waves: {kernel.waves:,}; up to {kernel.ctas_per_sm} CTAs on an SM, limited by {', '.join(kernel.limiter)}",
        f"  SMs with work: {kernel.sms:,}; the fullest has {100 * (kernel.tail - 1):.1f} % more than their average",
        f"  a CTA alone takes {kernel.path:,.0f} cycles (followed: {sample})",
    ]
    if kernel.waits:
        waits = ", ".join(f"{reason} {cycles:,.0f}" for reason, cycles in kernel.waits.items())
        lines.append(f"  of which a warp waits for {waits}")
    return [*lines, *(f"  {note}" for note in kernel.notes)]
