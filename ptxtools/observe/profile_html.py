"""A profile as one HTML file: tables, the PTX beside its source, and registers line by line. It loads nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from typing import TYPE_CHECKING

from ptxtools.diagnostics import shown

from .profile import KernelProfile, Profile, Row
from .profile_figures import figures, limiter, shape
from .roofline import as_svg, roofline

if TYPE_CHECKING:
    from .estimate import Estimate, KernelEstimate

#: The lines of a source file; None if it cannot be read.
ReadLines = Callable[[str], "list[str] | None"]

_STYLE = """
body{font:14px system-ui,sans-serif;margin:1.5em;color:#222;background:#fff}
h1{font-size:1.4em} h2{font-size:1.2em;margin-top:2em;border-top:1px solid #ccc;padding-top:1em} h3{font-size:1em}
table{border-collapse:collapse} td,th{padding:1px 8px;text-align:right;white-space:nowrap}
td.l,th.l{text-align:left} th{border-bottom:1px solid #888;position:sticky;top:0;background:#fff}
.sides{display:flex;gap:1em;align-items:flex-start} .side{overflow:auto;max-height:85vh;border:1px solid #ddd}
.tables{display:flex;gap:3em;flex-wrap:wrap;align-items:flex-start}
code,td.c{font:12px ui-monospace,monospace;white-space:pre}
td.c{text-align:left;tab-size:4} tr:target{background:#fff3b0} .cold{color:#999}
.bar{background:#f4a259;height:9px;display:inline-block}
.bad{background:#fbd5d0} .on{background:#fff3b0} .note{color:#a33}
"""
_SCRIPT = """
document.addEventListener('mouseover',e=>{const r=e.target.closest('tr[data-s]');if(!r)return;
const k=r.closest('section'),s=r.dataset.s;k.querySelectorAll('tr.on').forEach(x=>x.classList.remove('on'));
k.querySelectorAll('tr[data-s]').forEach(x=>{if(x.dataset.s===s)x.classList.add('on')})});
document.addEventListener('click',e=>{const r=e.target.closest('tr[data-s]');if(!r)return;
const other=[...r.closest('section').querySelectorAll('tr[data-s]')].find(
x=>x.dataset.s===r.dataset.s&&x.closest('.side')!==r.closest('.side'));if(other)other.scrollIntoView({block:'center'})});
"""


def as_html(profile: Profile, read: ReadLines, estimate: Estimate | None = None) -> str:
    """The page. read: gives the text of source files that `.loc` names; estimate: of the same launches."""
    parts = [
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Profile</title>\n',
        f"<style>{_STYLE}</style>\n<h1>Profile</h1>\n",
        "<p>Counts are exact. DRAM traffic is that of a model: a direct-mapped L2, empty when a grid begins, and no L1."
        "</p>\n",
    ]
    for number, kernel in enumerate(profile.kernels):
        times = [] if estimate is None else [one for one in estimate.kernels if one.name == kernel.name]
        parts += ["<section>\n", *_kernel(kernel, read, f"k{number}"), *map(_time, times), "</section>\n"]
    parts.append(f"<script>{_SCRIPT}</script>\n</html>\n")
    return "".join(parts)


def _kernel(kernel: KernelProfile, read: ReadLines, mark: str) -> Iterator[str]:
    """mark: begins the marks of the kernel's lines in the page."""
    yield f"<h2>{escape(shown(kernel.name))}</h2><p>{shape(kernel)}, {escape(kernel.chip)}</p>\n"
    for note in kernel.notes:
        yield f'<p class="note">{escape(note)}</p>\n'
    yield '<div class="tables"><table>'
    for figure in figures(kernel):
        yield f'<tr><td class="l">{escape(figure.label)}</td><td>{escape(figure.text)}</td></tr>'
    yield f'<tr><td class="l">occupancy limited by</td><td>{escape(limiter(kernel))}</td></tr>'
    yield f'<tr><td class="l">L2 of the model</td><td>{kernel.l2 >> 20} MiB</td></tr></table>\n'
    for attribute, label in (("name", "class"), ("pipe", "pipe")):
        yield f'<table><tr><th class="l">{label}</th><th>warps</th><th>active lanes</th><th></th></tr>'
        for name, (warps, lanes) in kernel.by(attribute).items():
            yield (
                f'<tr><td class="l">{escape(name)}</td><td>{warps:,}</td><td>{lanes / warps:.1f}</td>'
                f'<td class="l">{_bar(warps, kernel.warps, 120)}</td></tr>'
            )
        yield "</table>\n"
    yield "</div>\n"
    yield from _roofline(kernel)
    yield from _pressure(kernel)
    yield from _hottest(kernel, mark)
    yield '<div class="sides">'
    yield from _ptx(kernel, mark)
    yield from _sources(kernel, read)
    yield "</div>\n"


def _bar(part: int, whole: int, width: int) -> str:
    return f'<span class="bar" style="width:{width * part / whole if whole else 0:.0f}px"></span>'


def _time(estimate: KernelEstimate) -> str:
    """Time in the model: of units, and what a warp waits for."""
    parts = [
        f"<h3>Time on {escape(estimate.chip)} ({escape(estimate.product)}) in a model: {estimate.cycles:,.0f} cycles, "
        f"{estimate.microseconds:,.2f} microseconds, bound by {escape(estimate.bound)}</h3>",
        '<div class="tables">',
    ]
    for label, rows in (("busy", estimate.bounds), ("a warp waits for", estimate.waits)):
        most = max(rows.values(), default=0)
        parts.append(f'<table><tr><th class="l">{label}</th><th>cycles</th><th></th></tr>')
        for name, cycles in rows.items():
            bar = _bar(round(cycles), round(most), 120)
            parts.append(f'<tr><td class="l">{escape(name)}</td><td>{cycles:,.0f}</td><td class="l">{bar}</td></tr>')
        parts.append("</table>")
    return "".join([*parts, "</div>\n"])


def _roofline(kernel: KernelProfile) -> Iterator[str]:
    line = roofline(kernel)
    if line is not None:
        yield f"<h3>Roofline of {escape(line.chip)} (bytes of DRAM are the model's)</h3>"
        yield from as_svg(line)
        yield (
            f"<p>{line.intensity:.3g} operations for each byte: {escape(line.bound)} is the lower roof, at "
            f"{line.reach / 1e9:,.0f} billion operations a second</p>\n"
        )


def _pressure(kernel: KernelProfile) -> Iterator[str]:
    """Registers that are live, line after line."""
    live = [row.live or 0 for row in kernel.rows.values()]
    if not any(live):
        return
    most = max(live)
    points = " ".join(f"{800 * at / max(1, len(live) - 1):.1f},{100 - 95 * n / most:.1f}" for at, n in enumerate(live))
    yield f"<h3>Registers live at each instruction: at most {most}</h3>"
    yield '<svg width="800" height="102" style="border:1px solid #ddd">'
    yield f'<polyline points="{points}" fill="none" stroke="#35c"/></svg>\n'


def _hottest(kernel: KernelProfile, mark: str) -> Iterator[str]:
    """The lines that most warps ran, each with a link to its place."""
    lines = [(sum(row.warps for row in rows), at, line, rows) for at, (_, line, rows) in enumerate(kernel.lines())]
    hottest = sorted((one for one in lines if one[0]), key=lambda one: -one[0])[:_HOTTEST]
    if not hottest:
        return
    yield '<h3>Hottest lines</h3><table><tr><th>line</th><th>warps</th><th></th><th class="l">PTX</th></tr>\n'
    for warps, at, line, rows in hottest:
        text, bar = "; ".join(row.text for row in rows), _bar(warps, hottest[0][0], 60)
        yield (
            f'<tr><td><a href="#{mark}-{at}">{line}</a></td><td>{warps:,}</td><td class="l">{bar}</td>'
            f'<td class="c">{escape(text)}</td></tr>\n'
        )
    yield "</table><h3>Line by line</h3>\n"


_HOTTEST = 12
_COLUMNS = ("line", "warps", "", "lanes", "live", "diverged", "sectors", "DRAM", "conflicts")


def _ptx(kernel: KernelProfile, mark: str) -> Iterator[str]:
    """The PTX with its counts; all lines of its functions, where the text is known."""
    yield (
        '<div class="side"><table><tr>'
        + "".join(f"<th>{name}</th>" for name in _COLUMNS)
        + '<th class="l">PTX</th></tr>\n'
    )
    by_line = {(file, line): rows for file, line, rows in kernel.lines()}
    marks = {place: f"{mark}-{at}" for at, place in enumerate(by_line)}
    most = max((sum(row.warps for row in rows) for rows in by_line.values()), default=0)
    for file in dict.fromkeys(file for file, _ in by_line):
        numbers = [line for name, line in by_line if name == file]
        texts = kernel.texts.get(file)
        for line in range(min(numbers), max(numbers) + 1) if texts else numbers:
            rows = by_line.get((file, line), [])
            text = texts[line - 1] if texts and line <= len(texts) else "; ".join(row.text for row in rows)
            yield (
                _line(rows, line, text, most, marks[file, line])
                if rows
                else (f'<tr class="cold"><td>{line}</td><td colspan="8"></td><td class="c">{escape(text)}</td></tr>\n')
            )
    yield "</table></div>\n"


def _line(rows: list[Row], line: int, text: str, most: int, mark: str) -> str:
    warps, lanes = sum(row.warps for row in rows), sum(row.lanes for row in rows)
    diverged = sum(row.guard.some - row.guard.whole for row in rows if row.guard is not None)
    memory = [row.memory for row in rows if row.memory is not None and row.memory.warps]
    shared = [row.shared for row in rows if row.shared is not None and row.shared.warps]
    sectors = sum(m.sectors for m in memory) / sum(m.warps for m in memory) if memory else 0
    wasted = any(m.moved > 2 * m.asked for m in memory)
    conflicts = sum(s.conflicts for s in shared)
    source = next((row.source for row in rows if row.source is not None), None)
    tie = "" if source is None else f' data-s="{escape(f"{source[0]}:{source[1]}", quote=True)}"'
    cells = [
        f'<td>{line}</td><td>{warps:,}</td><td class="l">{_bar(warps, most, 60)}</td>',
        f"<td>{lanes / warps:.1f}</td>" if warps else "<td></td>",
        f"<td>{'' if rows[0].live is None else rows[0].live}</td>",
        f"<td>{diverged:,}</td>" if any(row.guard for row in rows) else "<td></td>",
        f"<td{' class=bad' if wasted else ''}>{sectors:.1f}</td>" if memory else "<td></td>",
        f"<td>{sum(m.dram for m in memory):,}</td>" if memory else "<td></td>",
        f"<td{' class=bad' if conflicts else ''}>{conflicts:,}</td>" if shared else "<td></td>",
    ]
    cells.append(f'<td class="c">{escape(text)}</td>')
    return f'<tr id="{mark}"{tie}{"" if warps else " class=cold"}>{"".join(cells)}</tr>\n'


def _sources(kernel: KernelProfile, read: ReadLines) -> Iterator[str]:
    """The source files that lines name, with the instructions of warps that their lines took."""
    warps: dict[str, dict[int, int]] = {}
    for row in kernel.rows.values():
        if row.source is not None:
            lines = warps.setdefault(row.source[0], {})
            lines[row.source[1]] = lines.get(row.source[1], 0) + row.warps
    if not warps:
        return
    yield '<div class="side">'
    for name, lines in warps.items():
        most = max(lines.values())
        text = read(name)
        yield f'<table><tr><th>line</th><th>warps</th><th></th><th class="l">{escape(name)}</th></tr>\n'
        for line in sorted(lines) if text is None else range(1, len(text) + 1):
            code = escape(text[line - 1]) if text is not None else ""
            tie = f' data-s="{escape(f"{name}:{line}", quote=True)}"' if line in lines else ' class="cold"'
            count = f"{lines[line]:,}" if line in lines else ""
            bar = _bar(lines.get(line, 0), most, 60)
            yield f'<tr{tie}><td>{line}</td><td>{count}</td><td class="l">{bar}</td><td class="c">{code}</td></tr>\n'
        yield "</table>\n"
    yield "</div>\n"
