"""What a debugger shows of a stopped run, as lines of text: places, registers, memory, warps, barriers, waits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.diagnostics import shown as demangled
from ptxtools.machine.deadlock import Waiting
from ptxtools.machine.registers import named
from ptxtools.observe.tracelines import lanes_text
from ptxtools.program import mbarrier
from ptxtools.program.program import LANES
from ptxtools.records import replace

from .expressions import SIZES, ExpressionError, Lane, Memory, Number, decode, fetch, register

if TYPE_CHECKING:
    from ptxtools.machine.launch import Dim3

    from .debugger import Debugger

#: Formats of `print` and `x`: hexadecimal, decimal, unsigned, binary, octal, float, character.
FORMATS = "xdutofc"
#: Bytes in a line of memory.
_LINE = 16


def lanes_of(mask: int) -> str:
    """Such as "lanes 0-7,9"."""
    return lanes_text(np.array([lane for lane in range(LANES) if mask >> lane & 1], np.int64))


def cta_text(cta: Dim3) -> str:
    return "CTA ({},{},{})".format(*cta)


def value_text(value: Number, form: str = "", bits: int = 64) -> str:
    """A number in a format of `FORMATS`; "": as it is. bits: of its type."""
    if form in ("", "f") or isinstance(value, bool):
        return str(int(value)) if isinstance(value, bool) else str(float(value) if form == "f" else value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        value = int(value)
    unsigned = value & (1 << bits) - 1
    if form == "d":
        return str(unsigned - (1 << bits) if unsigned >> bits - 1 else unsigned)
    if form == "c":
        return f"{unsigned} {chr(unsigned & 0xFF)!r}"
    return str(unsigned) if form == "u" else f"{unsigned:#{'b' if form == 't' else form}}"


# --- places -----------------------------------------------------------------------------------------------------------


def where_lines(debugger: Debugger) -> list[str]:
    """Where the warp that stopped is: who, its line with the text, the source line."""
    at, code = debugger.at, debugger.code
    if at is None or code is None:
        return ["no grid runs"]
    focus = debugger.focus
    if focus is not None and (focus.cta, focus.warp) != (at.cta.place, at.warp):
        view = debugger.view(focus.cta, focus.warp, focus.lane)
        at = at if view is None else view
    place = code.place(at.op.where)
    who = f"{cta_text(at.cta.place)} warp {at.warp} {lanes_of(at.mask)}"
    found = [f"{who}, in {demangled(place.function)} at {place}"]
    source = debugger.source_line(at.op.where)
    if source:
        found[0] += f" ({source})"
    found.append(f"{place.line or ''}\t{place.text}")
    return found


def stack_lines(debugger: Debugger) -> list[str]:
    """The calls that the lane in focus is in, innermost first."""
    at, code, focus = debugger.lane(), debugger.code, debugger.focus
    if at is None or code is None or focus is None:
        return ["no lane is in focus"]
    place = code.place(at.view.op.where)
    found, inner = [], (place, debugger.source_line(at.view.op.where))
    for _, called_at in reversed(debugger.stack(focus.cta, focus.warp, focus.lane)):
        found.append(inner)
        inner = (code.place(called_at), debugger.source_line(called_at))
    found.append(inner)
    return [
        f"#{n}  {demangled(place.function)} at {place}" + (f" ({source})" if source else "")
        for n, (place, source) in enumerate(found)
    ]


def list_lines(debugger: Debugger, line: int | None, count: int = 10) -> list[str]:
    """The PTX around a line; None: around where the warp has stopped."""
    at, code = debugger.lane(), debugger.code
    if code is None:
        return ["no grid runs"]
    here = None if at is None else code.place(at.view.op.where).line
    middle = line or here
    if middle is None:
        return ["the lines of this module are not known"]
    rows = code.text_around(middle, count)
    wide = len(str(rows[-1][0])) if rows else 1
    return [f"{'=>' if n == here else '  '} {n:>{wide}}  {text.rstrip()}" for n, text in rows]


# --- registers and memory ---------------------------------------------------------------------------------------------


def register_lines(debugger: Debugger, names: list[str], lanes: list[int], form: str) -> list[str]:
    """Registers of some lanes of the warp in focus, one row for each lane, or, of one lane, one for each register. No
    names: all that are known."""
    at = debugger.lane()
    if at is None:
        return ["no lane is in focus"]
    known = named(at.view)
    names = names or sorted(known, key=natural)
    if not names:
        return ["no register is known here yet"]
    bits = {name: {"pred": 1}.get(known[name][1], 8 * SIZES.get(known[name][1], 8)) for name in names if name in known}
    views = {lane: debugger.view(at.view.cta.place, at.view.warp, lane) for lane in lanes}
    table = [
        [_cell(Lane(view, lane), name, form, bits.get(name, 64), at.lane) for name in names]
        for lane, view in views.items()
        if view is not None
    ]
    here = [lane for lane, view in views.items() if view is not None]
    if len(here) == 1:
        wide = max(map(len, names))
        return [f"{name:<{wide}}  {text}" for name, text in zip(names, table[0], strict=True)]
    return table_lines(["lane", *names], [[str(lane), *row] for lane, row in zip(here, table, strict=True)])


def _cell(at: Lane, name: str, form: str, bits: int, focus: int) -> str:
    """A register of a lane, "-" where another lane than that in focus does not have it: it is in another function."""
    try:
        return value_text(register(at, name), form, bits)
    except ExpressionError:
        if at.lane == focus:
            raise
        return "-"


def natural(name: str) -> tuple[str, int, str]:
    """Names in the order of their numbers."""
    head = name.rstrip("0123456789")
    number = name[len(head) :]
    return head, int(number) if number and len(number) < 10 else -1, name


def table_lines(head: list[str], rows: list[list[str]]) -> list[str]:
    """A table, its columns aligned to the right."""
    wide = [max(len(row[n]) for row in [head, *rows]) for n in range(len(head))]
    return ["  ".join(f"{text:>{size}}" for text, size in zip(row, wide, strict=True)) for row in [head, *rows]]


def memory_lines(at: Lane, start: Memory, count: int, form: str) -> list[str]:
    """`count` values from a place in memory on, a line for 16 bytes. Raises `ExpressionError`."""
    size = SIZES[start.type]
    data = fetch(at, start.address, size * count, start.space)
    texts = [value_text(decode(data[n : n + size], start.type), form, 8 * size) for n in range(0, size * count, size)]
    each = max(1, _LINE // size)
    wide = max(map(len, texts), default=0)
    return [
        f"{start.space} {start.address + n * size:#x}:  " + "  ".join(f"{text:>{wide}}" for text in texts[n : n + each])
        for n in range(0, count, each)
    ]


# --- warps and waits --------------------------------------------------------------------------------------------------


def waiting(debugger: Debugger) -> tuple[list[str], list[Waiting]]:
    """Lines about CTAs, and where all lanes are; those that have stopped here are about to run their instruction."""
    inspector = None if debugger.launch is None else debugger.launch.inspector
    if inspector is None or debugger.launch is None:
        return [], []
    lines, found = inspector.state()
    at = debugger.at
    if at is not None:
        mine = (at.cta.place, at.warp)
        found = [replace(one, lanes=one.lanes & ~at.mask) if (one.cta, one.warp) == mine else one for one in found]
        found.append(Waiting(*mine, at.mask, "", at.op.where, at.thread(at.leader), runs=True))
    gx, gy, _ = debugger.launch.grid
    found = [one for one in found if one.lanes]
    found.sort(key=lambda one: (one.cta[0] + gx * (one.cta[1] + gy * one.cta[2]), one.warp, one.lanes & -one.lanes))
    return [(cta_text(cta) + ": " if cta is not None else "") + text for cta, text in lines], found


def _line(debugger: Debugger, one: Waiting) -> str:
    assert debugger.code is not None
    place = debugger.code.place(one.where)
    does = f"waits {one.what}" if not one.runs else f"runs, {one.what}" if one.what else "runs"
    return f"{cta_text(one.cta)} warp {one.warp} {lanes_of(one.lanes)} {does}, at {place}: {place.text}"


def warp_lines(debugger: Debugger, cta: Dim3 | None = None) -> list[str]:
    """Where the lanes of all resident warps are; the lane in focus has a star."""
    focus = debugger.focus
    found = []
    for one in waiting(debugger)[1]:
        if cta in (None, one.cta):
            mine = focus is not None and (focus.cta, focus.warp) == (one.cta, one.warp) and one.lanes >> focus.lane & 1
            found.append(f"{'*' if mine else ' '} {_line(debugger, one)}")
    return found or ["no warp is resident"]


def barrier_lines(debugger: Debugger) -> list[str]:
    """Barriers at which somebody has arrived, and pending work."""
    lines, found = waiting(debugger)
    waits = [one for one in found if not one.runs and "barrier" in one.what]
    return [*lines, *(_line(debugger, one) for one in waits)] or ["nobody has come to a barrier"]


def mbarrier_lines(debugger: Debugger) -> list[str]:
    """The mbarriers that the resident CTAs have made, and their states."""
    launch, found = debugger.launch, []
    for cta, made in sorted(debugger.mbarriers.items()):
        view = None
        for warp, lane in ((w, n) for w in range(warps(debugger)) for n in range(LANES)):
            view = debugger.view(cta, warp, lane)
            if view is not None:
                break
        if view is None or launch is None:
            continue
        for address in sorted(made):
            word = int.from_bytes(view.cta.shared[address : address + 8], "little")
            name = next((f" ({name})" for name, at, size in launch.program.shared if at <= address < at + size), "")
            found.append(f"{cta_text(cta)}: shared {address:#x}{name}: {mbarrier.describe(word)}")
    return found or ["no mbarrier has been made"]


def warps(debugger: Debugger) -> int:
    """Warps of a CTA."""
    assert debugger.launch is not None
    return -(-math.prod(debugger.launch.block) // LANES)


def work_lines(debugger: Debugger) -> list[str]:
    """Asynchronous work that is pending."""
    lines, _ = waiting(debugger)
    return [line for line in lines if "pending" in line] or ["no asynchronous work is pending"]


def why_lines(debugger: Debugger) -> list[str]:
    """What the lane in focus waits for, who has not come, and where those are."""
    focus = debugger.focus
    if focus is None:
        return ["no lane is in focus"]
    _, found = waiting(debugger)
    mine = [one for one in found if (one.cta, one.warp) == (focus.cta, focus.warp) and one.lanes >> focus.lane & 1]
    if not mine:
        return [f"{focus} has exited"]
    told = [_line(debugger, mine[0])]
    if mine[0].runs and not mine[0].what:
        if debugger.session.trapped:  # the last moment of a run that cannot go on
            return [*told, *debugger.session.ending.splitlines()]
        return [*told, "it does not wait"]
    others = [one for one in found if one.cta == focus.cta and one.what != mine[0].what]
    told += (
        ["not there:", *(f"  {_line(debugger, one)}" for one in others)] if others else ["all others are there, too"]
    )
    return told


def point_lines(debugger: Debugger) -> list[str]:
    """The breakpoints and watchpoints."""
    rows = [
        [str(one.number), one.kind, "yes" if one.enabled else "no", str(one.hits), str(one)]
        for one in debugger.session.breakpoints.values()
    ]
    return [line.rstrip() for line in _left(["number", "kind", "on", "hits", "what"], rows)] if rows else ["none"]


def _left(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    wide = [max(len(row[n]) for row in [head, *rows]) for n in range(len(head))]
    for row in [head, *rows]:
        yield "  ".join(f"{text:<{size}}" for text, size in zip(row, wide, strict=True))


def numbers(text: str, most: int) -> list[int]:
    """Numbers such as "0-3,8", up to `most`. Raises `ExpressionError`."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last) <= most):
            raise ExpressionError(f"'{text}' is no list of numbers up to {most}, such as 0-3,8")
        found += range(int(first), int(last) + 1)
    return found


def indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]
