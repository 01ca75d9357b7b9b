"""What lets native code do wgmma without coming here (`native.tiles.warpgroups`): cells filled after the first time.

Native code takes dense products of f16, bf16, tf32 and 8-bit floats with f32 sums, whose factors are finite; all else
stays with the services. Nothing is left to it where work completes late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxtools.machine.events import View
from ptxtools.machine.warpgroup import WARPS
from ptxtools.native.loop.cells import Cell, Tables
from ptxtools.native.tiles import blocks as tileblocks
from ptxtools.native.tiles import factors as tilefactors
from ptxtools.native.tiles import interface as tiles
from ptxtools.native.tiles import warpgroups
from ptxtools.semantics.tensorcore import Rule

from . import arranged, shared
from .numbers import BITS, Array
from .operands import has, number, place, slots

if TYPE_CHECKING:
    from .wgmma import Plan

#: Rows of a core matrix, and of a warp's part of A.
_EIGHT, _ROWS = 8, 16


def _cell(view: View) -> tuple[Cell, dict[str, int]] | None:
    """The event's cell and the native functions, where they may be used."""
    cell = view.cell
    known = tiles.addresses() if cell is not None and not view.launch.late else None
    return None if cell is None or known is None else (cell, known)


def commit(view: View) -> None:
    """From now on commit_group is native."""
    found = _cell(view)
    if found is not None:
        cell, known = found
        cell.serve(known["wgmma_commit"])


def wait(view: View) -> None:
    """From now on wait_group is native, as long as nobody has to wait long."""
    found = _cell(view)
    n = place(view, "n")
    if found is not None and n is not None:
        cell, known = found
        cell.set("n_slot", n.slot)
        cell.serve(known["wgmma_wait"])


def product(view: View, plan: Plan, rule: Rule) -> None:
    """From now on products with the present descriptors, moved by any multiple of 1024 bytes, are native."""
    found = _cell(view)
    if found is None or plan.sparse or plan.dtype != "f32":
        return
    cell, known = found
    if plan.atype not in tilefactors.TYPES or plan.btype not in tilefactors.TYPES:
        return
    view.lend(warpgroups.SCRATCH_BYTES)
    with cell.lock:
        if not cell.kept:
            _fill(view, cell, known, plan, rule)
        for which, t, mn in (("a", plan.atype, WARPS * _ROWS), ("b", plan.btype, plan.n)):
            if has(view, f"{which}_desc"):
                _learn(cell.kept[which], number(view, f"{which}_desc", view.leader), mn, plan, BITS[t], which)
        cell.serve(known["wgmma_product"])


def _fill(view: View, cell: Cell, known: dict[str, int], plan: Plan, rule: Rule) -> None:
    major_a, major_b = ("mn" if which in plan.transposed else "k" for which in "ab")
    cell.set("factor_a", known[tilefactors.name_of(plan.atype, major_a)])
    cell.set("factor_b", known[tilefactors.name_of(plan.btype, "mn_pairs" if major_b == "mn" else "k")])
    cell.set("product", known[tileblocks.name_of("warp", plain=not rule.fraction)])
    cell.set("expand", known[tileblocks.EXPAND])
    if plan.in_memory:
        _point_to_tables(cell, view, "a")
        cell.set("a_bytes", 4 * (2 * _ROWS if major_a == "k" else 2 * plan.k))
    else:
        cell.point("registers", _registers(slots(view, "a")))
    _point_to_tables(cell, view, "b")
    cell.point("offsets", slots(view, "d"))
    scale = place(view, "scale_d")
    assert scale is not None
    cell.set("scale_slot", scale.slot)
    cell.set("flag", scale.type == "pred")
    cell.set("columns", plan.n)
    cell.set("groups", -(-plan.n // tilefactors.GROUP))
    cell.set("k", plan.k)
    cell.set("sign", plan.negated << 31)
    rounding = tiles.Rounding(rule.fraction, *tiles.MASKS[rule.result])
    for name in ("fraction", "mask", "odd"):
        cell.set(name, getattr(rounding, name))
    cell.set("least", 1 << 23)
    cell.set("key", shared.layout_bit("b" in plan.transposed))


def _point_to_tables(cell: Cell, view: View, which: str) -> None:
    descriptor = place(view, f"{which}_desc")
    assert descriptor is not None
    cell.set(f"{which}_slot", descriptor.slot)
    tables = cell.kept[which] = Tables()
    cell.point(f"tables_{which}", tables.rows)


def _registers(a: Array) -> Array:
    """Offsets of A's chunks in the frame: a register is eight rows of 16 bytes (9.7.15.5.1.1)."""
    row, part = np.arange(_ROWS)[:, None], np.arange(2)[None, :]
    offsets: Array = a[2 * part + row // _EIGHT] + shared.CHUNK * (row % _EIGHT)
    return np.ascontiguousarray(offsets, np.int32)


def _learn(tables: Tables, code: int, mn: int, plan: Plan, bits: int, which: str) -> None:
    if tables.knows(code):
        return
    found = arranged.places(
        shared.warpgroup_descriptor(code), mn, plan.k, bits, mn_major=which in plan.transposed,
        order=tilefactors.PAIRS if which == "b" else None,
    )  # fmt: skip
    tables.add(code, found.offsets, found.end)
