"""Tables of profiles, for `ptx-run --profile` and `--profile-compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import shown

from .tables import plain

if TYPE_CHECKING:
    from ptxtools.observe.profile import KernelProfile, Profile, Row

#: Lines of the PTX in the table.
_HOT = 12
#: Columns of the tables where there is no terminal.
_WIDE = 110


def table(profile: Profile) -> str:
    """All kernels."""

    def write(console: Any) -> None:
        for kernel in profile.kernels:
            _kernel(console, kernel)

    return plain(write, _WIDE)


def _kernel(console: Any, kernel: KernelProfile) -> None:
    from ptxtools.observe.profile_figures import figures, limiter, shape

    console.print(f"{shown(kernel.name)}  {shape(kernel)}  {kernel.chip}", soft_wrap=True)
    for figure in figures(kernel):
        console.print(f"  {figure.label:<42} {figure.text:>20}")
    console.print(
        f"  occupancy is limited by {limiter(kernel)}; the model's L2 has {kernel.l2 >> 20} MiB", soft_wrap=True
    )
    for note in kernel.notes:
        console.print(f"  {note}", soft_wrap=True)
    for attribute, label in (("name", "class"), ("pipe", "pipe")):
        rows = _table(label, "warps", "%", "active lanes")
        for name, (warps, lanes) in kernel.by(attribute).items():
            rows.add_row(name, f"{warps:,}", _percent(warps, kernel.warps), f"{lanes / warps:.1f}")
        console.print(rows)
    _hot(console, kernel)


def _hot(console: Any, kernel: KernelProfile) -> None:
    hottest = sorted(kernel.lines(), key=lambda line: -sum(map(_work, line[2])))[:_HOT]
    rows = _table("line", "warps", "%", "lanes", "live", "sectors", "conflicts", "PTX")
    rows.columns[-1].justify, rows.columns[-1].no_wrap, rows.columns[-1].overflow = "left", True, "ellipsis"
    for _, number, line in sorted(hottest, key=lambda line: line[:2]):
        warps, lanes = sum(row.warps for row in line), sum(row.lanes for row in line)
        if warps:
            rows.add_row(
                str(number), f"{warps:,}", _percent(warps, kernel.warps), f"{lanes / warps:.1f}",
                "" if line[0].live is None else str(line[0].live), _sectors(line), _conflicts(line),
                " ".join("; ".join(row.text for row in line).split()),
            )  # fmt: skip
    console.print(rows)


def _work(row: Row) -> int:
    """What brings a line into the table: instructions, and what their accesses take beside them."""
    sectors = 0 if row.memory is None else row.memory.sectors
    return row.warps + sectors + (0 if row.shared is None else row.shared.conflicts)


def _sectors(rows: list[Row]) -> str:
    """Sectors for each access of a warp."""
    found = [row.memory for row in rows if row.memory is not None and row.memory.warps]
    return f"{sum(m.sectors for m in found) / sum(m.warps for m in found):.1f}" if found else ""


def _conflicts(rows: list[Row]) -> str:
    found = [row.shared for row in rows if row.shared is not None and row.shared.warps]
    return f"{sum(shared.conflicts for shared in found):,}" if found else ""


def _table(first: str, *others: str) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    made.add_column(first, no_wrap=True)
    for name in others:
        made.add_column(name, justify="right", no_wrap=True)
    return made


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else ""


def comparison(before: dict[str, Any], after: dict[str, Any]) -> str:
    """What differs between two profiles."""
    from ptxtools.observe.profile_figures import changes

    found = changes(before, after)
    if not found:
        return "no difference\n"
    rows = _table("kernel", "figure", "before", "after", "change")
    rows.columns[1].justify = "left"
    last = None
    for change in found:
        name, last = ("" if change.kernel == last else shown(change.kernel)), change.kernel
        ratio = "" if change.ratio is None else f"{100 * (change.ratio - 1):+.1f} %"
        rows.add_row(name, change.what.replace("_", " "), _number(change.before), _number(change.after), ratio)
    return plain(lambda console: console.print(rows), _WIDE)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
