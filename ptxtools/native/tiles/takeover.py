"""What lets native code do wgmma without its services (`wgmma`): cells of events, filled after the first time.

Native code takes dense products of f16, bf16, tf32 and 8-bit floats with f32 sums, whose factors are finite; all else
stays with the services. Nothing is left to it where work completes late.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptxtools.machine.events import View
from ptxtools.machine.products import GROUP, Array, WarpgroupProduct
from ptxtools.native.loop.cells import Cell, Tables
from ptxtools.native.loop.events import NativeView
from ptxtools.program.program import Ref
from ptxtools.semantics.accumulation import Rule

from . import blocks, factors, wgmma
from . import interface as tiles

#: Rows of a core matrix, and of a warp's part of A; bytes of a chunk.
_EIGHT, _ROWS, _CHUNK = 8, 16, 16


def _cell(view: View) -> Cell | None:
    """The event's cell, where it may be used."""
    return view.cell if isinstance(view, NativeView) and not view.launch.late else None


def commit(view: View) -> None:
    """From now on commit_group is native."""
    cell = _cell(view)
    if cell is not None:
        cell.serve(tiles.addresses()["wgmma_commit"])


def wait(view: View, n: Ref | None) -> None:
    """From now on wait_group is native, as long as nobody has to wait long."""
    cell = _cell(view)
    if cell is not None and n is not None:
        cell.set("n_slot", n.slot)
        cell.serve(tiles.addresses()["wgmma_wait"])


def product(view: View, make: Callable[[], WarpgroupProduct], rule: Rule) -> None:
    """From now on products with the present descriptors, moved by any multiple of 1024 bytes, are native."""
    cell = _cell(view)
    if cell is None:
        return
    product = make()
    if product.atype not in factors.TYPES or product.btype not in factors.TYPES or not tiles.suits(rule, product.k):
        return
    assert isinstance(view, NativeView)
    view.lend(wgmma.SCRATCH_BYTES)
    with cell.lock:
        if not cell.kept:
            _fill(cell, product, rule)
        for which, operand in (("a", product.a), ("b", product.b)):
            if isinstance(operand, Ref):
                _learn(cell.kept[which], which, view.read(operand, view.leader), product)
        cell.serve(tiles.addresses()["wgmma_product"])


def _fill(cell: Cell, product: WarpgroupProduct, rule: Rule) -> None:
    known = tiles.addresses()
    major_a, major_b = ("mn" if leads else "k" for leads in product.mn_major)
    cell.set("factor_a", known[factors.name_of(product.atype, major_a)])
    cell.set("factor_b", known[factors.name_of(product.btype, "mn_pairs" if major_b == "mn" else "k")])
    cell.set("product", known[blocks.name_of("warp", plain=not rule.fraction)])
    cell.set("expand", known[blocks.EXPAND])
    if isinstance(product.a, Ref):
        _point_to_tables(cell, "a", product.a)
        cell.set("a_bytes", 4 * (2 * _ROWS if major_a == "k" else 2 * product.k))
    else:
        cell.point("registers", _registers(product.a))
    _point_to_tables(cell, "b", product.b)
    cell.point("offsets", product.d)
    cell.set("scale_slot", product.scale.slot)
    cell.set("flag", product.scale.type == "pred")
    cell.set("columns", product.n)
    cell.set("groups", -(-product.n // GROUP))
    cell.set("k", product.k)
    cell.set("sign", product.negated << 31)
    rounding = tiles.rounding_of(rule)
    for name in ("fraction", "mask", "odd", "least"):
        cell.set(name, getattr(rounding, name))
    cell.set("key", product.layout)


def _point_to_tables(cell: Cell, which: str, descriptor: Ref) -> None:
    cell.set(f"{which}_slot", descriptor.slot)
    tables = cell.kept[which] = Tables()
    cell.point(f"tables_{which}", tables.rows)


def _registers(a: Array) -> Array:
    """Offsets of A's chunks in the frame: a register is eight rows of 16 bytes (9.7.15.5.1.1)."""
    row, part = np.arange(_ROWS)[:, None], np.arange(2)[None, :]
    offsets: Array = a[2 * part + row // _EIGHT] + _CHUNK * (row % _EIGHT)
    return np.ascontiguousarray(offsets, np.int32)


def _learn(tables: Tables, which: str, descriptor: int, product: WarpgroupProduct) -> None:
    if not tables.knows(descriptor):
        tables.add(descriptor, *product.places(which, descriptor))
