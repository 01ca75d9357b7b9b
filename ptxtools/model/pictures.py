"""An execution as a picture: a column of events for each thread, relations as coloured arrows. DOT for Graphviz, SVG
drawn here."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from .executions import Execution
from .reports import place_of
from .structures import Node

#: Relation -> colour; the order in which they are drawn.
COLOURS = {
    "po": "#888888", "rf": "#c00000", "co": "#0055bb", "fr": "#d07000", "sc": "#7020a0", "synchronizes": "#008040",
    "issued": "#a0a0a0", "completed": "#509090",
}  # fmt: skip
#: How far the middle of an arrow is bent down, so that those between the same events are apart.
_BENDS = {"po": 0, "rf": -16, "co": 12, "fr": 4, "sc": -4, "synchronizes": 16, "issued": 8, "completed": 8}
_ROW, _LEFT, _TOP, _GAP, _CHARACTER = 64, 24, 66, 130, 7.3


def _edges(execution: Execution) -> Iterator[tuple[str, int, int]]:
    """The arrows: of transitive relations only those between neighbours, and none of fence order twice."""
    for name in COLOURS:
        rows = execution.relations.get(name, [])
        transitive = name in ("po", "co", "sc")
        for a, row in enumerate(rows):
            for b in range(len(rows)):
                if not row >> b & 1:
                    continue
                if transitive and any(row >> c & 1 and rows[c] >> b & 1 for c in range(len(rows))):
                    continue
                if name == "issued" and _is_led_through(execution, a, b):
                    continue
                if name == "co" and execution.nodes[a].thread < 0:
                    continue  # the initial write precedes all others
                if name == "synchronizes" and execution.relations["sc"][a] >> b & 1:
                    continue
                yield name, a, b


def _is_led_through(execution: Execution, a: int, b: int) -> bool:
    """Whether a later event of the thread, or of the copy, is before b, too."""
    program, issued = execution.relations["po"], execution.relations["issued"]
    return any((program[a] | issued[a]) >> c & 1 and issued[c] >> b & 1 for c in range(len(issued)))


def _label(execution: Execution, a: int) -> str:
    """The instruction, and the value that it read or wrote."""
    node = execution.nodes[a]
    read, written = execution.values[a]
    text = place_of(execution, a).split(": ", 1)[-1]
    if node.thread < 0:
        return f"{node.memory} = {written}"
    values = [f"reads {read}"] if read is not None else []
    values += [f"writes {written}"] if written is not None and node.event.kind == "U" else []
    return text + (f"   ({', '.join(values)})" if values else "")


def _drawn(execution: Execution) -> list[int]:
    """The events that are drawn: an initial write only if something reads it, one of the two of a barrier."""
    found = []
    for a, node in enumerate(execution.nodes):
        if (node.thread < 0 and not execution.relations["rf"][a]) or _merged(node):
            continue
        found.append(a)
    return found


def _merged(node: Node) -> bool:
    return node.event.kind == "B" and getattr(node.instruction, "mode", "") == "sync"


def _stand_in(execution: Execution, a: int) -> int:
    """The event that is drawn for this one: a barrier's wait is drawn with its arrival."""
    return a - 1 if _merged(execution.nodes[a]) else a


def _shown_edges(execution: Execution) -> list[tuple[str, int, int]]:
    drawn = set(_drawn(execution))
    found: dict[tuple[str, int, int], None] = {}
    for name, a, b in _edges(execution):
        x, y = _stand_in(execution, a), _stand_in(execution, b)
        if x in drawn and y in drawn and x != y:
            found[name, x, y] = None
    return list(found)


def as_dot(execution: Execution, title: str) -> str:
    """For Graphviz: one cluster for each thread."""
    lines = ["digraph execution {", f"  label={_quoted(title)}; labelloc=t; node [shape=box, fontname=monospace];"]
    drawn = _drawn(execution)
    for thread, name in [(-1, "initial"), *enumerate(execution.threads)]:
        mine = [a for a in drawn if execution.nodes[a].thread == thread]
        if mine:
            lines.append(f"  subgraph cluster_{thread + 1} {{ label={_quoted(name)};")
            lines += [f"    e{a} [label={_quoted(_label(execution, a))}];" for a in mine]
            lines.append("  }")
    for name, a, b in _shown_edges(execution):
        free = "" if name == "po" else ", constraint=false"
        shown = "sw" if name == "synchronizes" else name
        lines.append(f'  e{a} -> e{b} [label="{shown}", color="{COLOURS[name]}", fontcolor="{COLOURS[name]}"{free}];')
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


def as_svg(execution: Execution, title: str) -> str:
    """A picture without other tools: events of a thread below each other, initial writes above."""
    drawn = _drawn(execution)
    columns: dict[int, list[int]] = {}
    for a in drawn:
        columns.setdefault(execution.nodes[a].thread, []).append(a)
    places: dict[int, tuple[float, float, float]] = {}
    x, top = float(_LEFT), _TOP + (_ROW if -1 in columns else 0)
    heads: list[tuple[float, str]] = []
    for thread in sorted(t for t in columns if t >= 0):
        width = max(len(_label(execution, a)) for a in columns[thread]) * _CHARACTER + 20
        heads.append((x + width / 2, execution.threads[thread]))
        for row, a in enumerate(columns[thread]):
            places[a] = (x + width / 2, top + row * _ROW, width)
        x += width + _GAP
    right = max(x - _GAP, 200.0)
    for index, a in enumerate(columns.get(-1, [])):
        width = len(_label(execution, a)) * _CHARACTER + 20
        step = right / len(columns[-1])
        places[a] = (step * (index + 0.5), _TOP - 14, width)
    bottom = max((y for _, y, _ in places.values()), default=top) + 34
    names = {name for name, _, _ in _shown_edges(execution)}
    body = [f'<text x="{_LEFT}" y="22" font-weight="bold">{escape(title)}</text>']
    body += [f'<text x="{at:.0f}" y="{top - 24}" text-anchor="middle" font-weight="bold">{escape(name)}</text>'
             for at, name in heads]  # fmt: skip
    body += [_arrow(name, places[a], places[b]) for name, a, b in _shown_edges(execution)]
    for a in drawn:  # over the arrows, so that texts stay legible
        at, y, width = places[a]
        body.append(f'<rect x="{at - width / 2:.0f}" y="{y - 14:.0f}" width="{width:.0f}" height="26" rx="4" '
                    'fill="#ffffff" stroke="#555555"/>')  # fmt: skip
        body.append(f'<text x="{at:.0f}" y="{y + 4:.0f}" text-anchor="middle">{escape(_label(execution, a))}</text>')
    markers = "".join(
        f'<marker id="to-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{COLOURS[name]}"/></marker>'
        for name in COLOURS if name in names
    )  # fmt: skip
    across = right + _LEFT + 45  # arrows within the last column go around its right side
    size = f'width="{across:.0f}" height="{bottom:.0f}" viewBox="0 0 {across:.0f} {bottom:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="monospace" font-size="12">\n'
        f"<defs>{markers}</defs>\n"
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def _arrow(name: str, start: tuple[float, float, float], end: tuple[float, float, float]) -> str:
    """A curve from box to box, with its name in the middle."""
    (x1, y1, w1), (x2, y2, w2) = start, end
    colour = COLOURS[name]
    if abs(x1 - x2) < 1:  # one column: along it if next to each other, else around its right side
        down = 1 if y2 > y1 else -1
        if name == "po":
            return (f'<path d="M{x1:.0f} {y1 + 12 * down:.0f} L{x2:.0f} {y2 - 14 * down:.0f}" stroke="{colour}" '
                    f'fill="none" marker-end="url(#to-{name})"/>')  # fmt: skip
        side, out = x1 + w1 / 2, 40 + _BENDS[name]
        path = f"M{side:.0f} {y1:.0f} C{side + out:.0f} {y1:.0f} {side + out:.0f} {y2:.0f} {side:.0f} {y2:.0f}"
        middle = (side + out * 0.8, (y1 + y2) / 2)
    else:
        right = 1 if x2 > x1 else -1
        a, b, bend = x1 + right * w1 / 2, x2 - right * w2 / 2, float(_BENDS[name])
        if abs(y1 - y2) < 1 and abs(b - a) > 400:
            bend -= 40
        if right * (b - a) < 10:  # the boxes are above each other
            a, b = x1, x2
            y1, y2 = (y1 + 12, y2 - 14) if y2 > y1 else (y1 - 14, y2 + 12)
        half = (a + b) / 2
        path = f"M{a:.0f} {y1:.0f} C{half:.0f} {y1 + bend:.0f} {half:.0f} {y2 + bend:.0f} {b:.0f} {y2:.0f}"
        middle = (half, (y1 + y2) / 2 + bend * 0.75 - 3)
    shown = "sw" if name == "synchronizes" else name
    return (
        f'<path d="{path}" stroke="{colour}" fill="none" stroke-width="1.4" marker-end="url(#to-{name})"/>'
        f'<text x="{middle[0]:.0f}" y="{middle[1]:.0f}" fill="{colour}" text-anchor="middle" stroke="#ffffff" '
        f'stroke-width="3" paint-order="stroke">{shown}</text>'
    )
