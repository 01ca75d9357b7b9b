"""What notebooks show of profiles, coverage, estimates and trace records: HTML without styles or scripts of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING

from ptxtools.diagnostics import shown

if TYPE_CHECKING:
    from .coverage import Coverage
    from .estimate import Estimate
    from .profile import KernelProfile, Profile, Row
    from .trace import Record

#: Lines that a table of hot lines has.
_HOT = 12


def of_profile(profile: Profile) -> str:
    """Totals of each kernel, its classes of instructions, its hottest lines and its roofline."""
    return "".join(part for kernel in profile.kernels for part in _kernel(kernel)) or "<p>nothing was profiled</p>"


def of_coverage(coverage: Coverage) -> str:
    """The shares that were reached, and the annotated PTX."""
    from .coverage_files import as_text

    text = escape(as_text(coverage))
    return f"<p>{escape(str(coverage))}</p><details><summary>PTX</summary><pre>{text}</pre></details>"


def of_estimate(estimate: Estimate) -> str:
    """Cycles of each kernel, and the bounds that they come from, the longest first."""
    parts = []
    for kernel in estimate.kernels:
        parts.append(f"<h4>{escape(shown(kernel.name))}</h4>")
        rows = [(name, f"{cycles:,.0f}") for name, cycles in kernel.bounds.items()]
        parts.append(_table([("bound", "cycles (a model)"), *rows]))
    return "".join(parts) or "<p>nothing was estimated</p>"


def of_record(record: Record) -> str:
    """One event of a trace, as its text."""
    from .tracelines import as_text

    return f"<pre>{escape(as_text(record))}</pre>"


def _kernel(kernel: KernelProfile) -> Iterator[str]:
    from .profile_figures import figures, shape
    from .roofline import as_svg, roofline

    yield f"<h4>{escape(shown(kernel.name))}, {escape(shape(kernel))}, {escape(kernel.chip)}</h4>"
    yield _table([(figure.label, figure.text) for figure in figures(kernel)])
    classes = [(name, f"{warps:,}", f"{lanes / warps:.1f}") for name, (warps, lanes) in kernel.by("name").items()]
    yield _table([("class", "warps", "active lanes"), *classes])
    lines = sorted(kernel.lines(), key=lambda line: -sum(row.warps for row in line[2]))[:_HOT]
    yield _table([("line", "warps", "PTX"), *map(_line, lines)])
    found = roofline(kernel)
    if found is not None:
        yield from as_svg(found)


def _line(line: tuple[str, int, list[Row]]) -> tuple[str, str, str]:
    _, number, rows = line
    return str(number), f"{sum(row.warps for row in rows):,}", "; ".join(row.text for row in rows)


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    """Rows of cells."""
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"
