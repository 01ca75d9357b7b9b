"""Lets native code execute wgmma without the services in `sim`: fills the cells of events after their first execution.

Native code takes dense products of f16, bf16, tf32 and 8-bit floats with f32 sums and finite factors; everything else
stays with the services, and so does all late work.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptxtools.machine.events import View
from ptxtools.machine.filters import EPOCHS
from ptxtools.machine.products import GROUP, Array, Places, WarpgroupProduct
from ptxtools.native.code.structures import (
    CTA,
    ISSUED,
    NO_SLOT,
    Address,
    IssuedProduct,
    Long,
    MatrixFilter,
    WgmmaProduct,
    WgmmaWait,
)
from ptxtools.native.loop import filter_matrices
from ptxtools.native.loop.cells import Cell, Tables
from ptxtools.native.loop.events import NativeView
from ptxtools.native.loop.filters import service_of
from ptxtools.program.program import Ref, Slot
from ptxtools.semantics.accumulation import Rule

from . import blocks, converted, factors, fused, sparse, stored, tensor, wgmma
from . import interface as tiles
from .direct import Prepared

#: Rows of a core matrix; bytes of a chunk.
_EIGHT, _CHUNK = 8, 16
#: Single bits in an element of b1.
_BITS = 32
#: Bytes of shared memory for each word that says who has touched it.
_WORD = 4


def _cell(view: View) -> Cell | None:
    """The event's cell, if it may be used."""
    return view.cell if isinstance(view, NativeView) and not view.launch.late else None


def commit(view: View) -> None:
    """From now on commit_group is native."""
    cell = _cell(view)
    if cell is not None:
        cell.serve(tiles.addresses()["wgmma_commit"])


def wait(view: View, n: Ref | None) -> None:
    """From now on wait_group is native, unless a warp has to wait long."""
    cell = _cell(view)
    if cell is not None and n is not None:
        cell.write(WgmmaWait(n.slot))
        cell.serve(tiles.addresses()["wgmma_wait"])


def product(view: View, make: Callable[[], WarpgroupProduct], rule: Rule) -> None:
    """From now on products with the current descriptors, moved by any multiple of 1024 bytes, are native."""
    cell = _cell(view)
    if cell is None:
        return
    product = make()
    if product.dtype != "s32" and not tiles.suits(rule, product.k):
        return
    if np.unique(product.d).size < product.d.size:
        return  # a register of D twice: all are to be read before the first is written
    assert isinstance(view, NativeView)
    view.lend(wgmma.SCRATCH_BYTES)
    with cell.lock:
        tables = cell.tables
        if tables is None:
            tables = cell.tables = Tables(), Tables()
            cell.write(_payload(cell, tables, product, rule))
        for known, which, operand in zip(tables, "ab", (product.a, product.b), strict=True):
            if isinstance(operand, Ref):
                _learn(known, which, view.read(operand, view.leader), product.places)
        cell.serve(tiles.addresses()["wgmma_product"])


def tensor_product(view: View, lane: int, compute: Callable[[], bool], stamps: list[Array]) -> None:
    """From now on this CTA's products with the current operands are native, as long as the stamps stay as they are."""
    cell = _cell(view)
    refs = [ref for ref in view.op.src if ref is not None]
    if cell is None or len(refs) > tensor.OPERANDS or not isinstance(compute, Prepared):
        return
    assert isinstance(view, NativeView)
    with cell.lock:
        if cell.payload is None:
            slots = cell.keep(np.array([ref.slot for ref in refs], np.int32))
            kinds = cell.keep(np.array([tensor.KINDS[ref.type] for ref in refs], np.int32))
            cell.write(IssuedProduct(slots, kinds, len(refs)))
        cell.serve(tiles.addresses()[tensor.PRODUCT])
    table = np.frombuffer(view.lend(tensor.TABLE_BYTES), np.uint64).reshape(tensor.ROWS, -1)
    values = [view.read(ref, lane) for ref in refs]
    first = tensor.row_of(cell.address, values)
    rows = [table[(first + i) % tensor.ROWS] for i in range(tensor.LOOKS)]
    cta = view.worker.field(view.cta.handle, CTA, "id")
    known = [cell.address, cta]
    same = (row for row in rows if list(row[:2]) == known and list(row[8 : 8 + len(values)]) == values)
    row = next(same, None)
    if row is None:
        row = min(rows, key=lambda row: int(row[1]) if row[0] else -1)  # an empty one, or that of the oldest CTA
    own, peer = stamps[0], stamps[-1]
    steps, count = compute.steps
    row[:7] = (
        *known, tiles.address_of(own), tiles.address_of(peer),
        int(own[0]) | int(peer[0]) << 32, steps, count,
    )  # fmt: skip
    row[8 : 8 + len(values)] = values


assert [ISSUED.offset(f) for f in ("cell", "cta", "stamp", "peer", "seen", "met", "steps", "count", "values")] == [
    0, 8, 16, 24, 32, 36, 40, 48, 64,
]  # fmt: skip


def _payload(cell: Cell, tables: tuple[Tables, Tables], product: WarpgroupProduct, rule: Rule) -> WgmmaProduct:
    functions = tiles.addresses()
    major_a, major_b = ("mn" if leads else "k" for leads in product.mn_major)
    whole = product.dtype == "s32"
    rounding = tiles.NO_ROUNDING if whole else tiles.rounding_of(rule)
    fuses = bool(rounding.fraction) and not rounding.odd and tiles.fuses()
    sums = "bits" if product.atype == "b1" else "rest" if fuses else "" if rounding.fraction else "plain"
    payload = WgmmaProduct(
        factor_a=Address(functions[factors.name_of(product.atype, major_a)]),
        factor_b=Address(functions[factors.name_of(product.btype, "mn_pairs" if major_b == "mn" else "k")]),
        product=Address(functions[blocks.name_of("warp", sums)]),
        expand=Address(functions[blocks.EXPAND]),
        offsets=cell.keep(product.d),
        tables_b=cell.keep(tables[1].rows),
        b_slot=product.b.slot,
        scale_slot=product.scale.slot,
        flag=product.scale.type == "pred",
        columns=product.n,
        groups=-(-product.n // GROUP),
        k=product.k // (_BITS if product.atype == "b1" else 1),
        sign=product.negated << 31,
        fraction=rounding.fraction,
        least=rounding.least,
        key=Long(product.layout),
        mask=Long(rounding.mask),
        odd=Long(rounding.odd),
        form=stored.form_of(product.dtype, saturates=product.saturate),
    )
    if fuses:
        payload = payload._replace(
            fused=Address(functions[fused.name_of("warp")]),
            own=Address(functions[converted.own_of("warp")]),
            common=Address(functions[converted.COMMON]),
        )
    if product.metadata is not None:
        places, slot = product.metadata
        payload = payload._replace(
            scatter=Address(functions[sparse.SCATTER]),
            words=cell.keep(np.ascontiguousarray(places.words)),
            fields=cell.keep(sparse.fields(places)),
            words_slot=Slot(slot),
        )
    if not isinstance(product.a, Ref):
        return payload._replace(registers=cell.keep(_registers(product.a)))
    return payload._replace(
        tables_a=cell.keep(tables[0].rows),
        a_slot=product.a.slot,
        a_bytes=4 * (2 * GROUP if major_a == "k" else 2 * product.k // (2 if product.metadata else 1)),
    )


def _registers(a: Array) -> Array:
    """Offsets of A's chunks in the frame: a register is eight rows of 16 bytes (9.7.15.5.1.1)."""
    row, part = np.arange(GROUP)[:, None], np.arange(2)[None, :]
    offsets: Array = a[2 * part + row // _EIGHT] + _CHUNK * (row % _EIGHT)
    return np.ascontiguousarray(offsets, np.int32)


def _learn(tables: Tables, which: str, descriptor: int, places: Places) -> None:
    if not tables.knows(descriptor):
        tables.add(descriptor, *places(which, descriptor))


def reads(view: View, a: Ref | None, b: Ref, places: Places) -> None:
    """From now on what products read with the current descriptors, moved as above, is looked at natively, where
    observers keep words of four bytes, or none, of who has touched memory."""
    cell, listeners = _cell(view), view.launch.observers
    if cell is None or cell.refused or listeners is None or listeners.owners not in (0, _WORD, EPOCHS):
        return
    cta = view.cta
    flags = 0 if cta.flags is None else _address(cta.flags) - _address(np.frombuffer(cta.shared, np.uint8))
    with cell.lock:
        tables = cell.tables
        if tables is None:
            tables = cell.tables = Tables(), Tables()
            cell.write(
                MatrixFilter(
                    tables_a=cell.keep(tables[0].rows),
                    tables_b=cell.keep(tables[1].rows),
                    a_slot=NO_SLOT if a is None else a.slot,
                    b_slot=b.slot,
                    chunks_a=_count(view, "a", a, places),
                    chunks_b=_count(view, "b", b, places),
                    owned=listeners.owners == _WORD,
                    flags=Long(flags),
                )
            )
        for known, which, operand in zip(tables, "ab", (a, b), strict=True):
            if operand is not None:
                _learn(known, which, view.read(operand, view.leader), places)
        cell.serve(service_of(filter_matrices.NAME))


def _address(array: Array) -> int:
    first: int = array.__array_interface__["data"][0]
    return first


def _count(view: View, which: str, descriptor: Ref | None, places: Places) -> int:
    """Chunks of a matrix."""
    return 0 if descriptor is None else places(which, view.read(descriptor, view.leader))[0].size
