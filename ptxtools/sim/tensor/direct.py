"""Products of tcgen05.mma that an engine may compute from shared memory to tensor memory, without arrays in between.

These are dense products without scale factors, masks or disabled lanes, with f32 sums, whose D has a row in each lane.
All others, and those that the engine declines, go the way of `mma`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptxtools.machine.products import Chunks, Products, TensorProduct
from ptxtools.machine.residents import Cta

from . import arranged, shared
from .call import Call, Said
from .layout import COLUMNS, LANES
from .memory import check_columns, of, split
from .numbers import BITS

_KEY = "tcgen05.mma products"
#: Products that a CTA remembers.
_KEPT = 1024


def multiply(call: Call) -> bool:
    """Compute D in all CTAs; false, with nothing changed, where that is not possible. Raises `Trap`.

    What a product needs is worked out for the first of its kind and CTAs; allocations may have changed since.
    """
    known: dict[Said, Callable[[], bool] | None] = call.ctas[0].state.setdefault(_KEY, {})
    if call.said in known:
        compute = known[call.said]
        if compute is not None:
            _check_cells(call)
    else:
        compute = _prepared(call)
        if len(known) >= _KEPT:
            known.clear()
        known[call.said] = compute
    return compute is not None and compute()


def _prepared(call: Call) -> Callable[[], bool] | None:
    products, said = call.view.launch.products, call.said
    if not _suits(said, products):
        return None
    shape = said.shape
    share, column = shape.n // len(call.ctas), split(said.d)[1]
    b = tuple(_in_shared(call, cta, "b", said.b, share, shape.btype, shape.b_mn_major) for cta in call.ctas)
    a = tuple(_factor_a(call, cta) for cta in call.ctas)
    _check_cells(call)
    d = tuple(of(cta).cells for cta in call.ctas)
    return products.tensor_product(
        TensorProduct(a, b, d, column, said.path.rows, shape.n, shape.k, said.accumulate), call.rule
    )


def _check_cells(call: Call) -> None:
    """Whether A, if it is there, and D lie in tensor memory that is allocated. Raises `Trap`."""
    said = call.said
    for cta in call.ctas:
        if isinstance(said.a, int):
            words = said.stored * BITS[said.shape.atype] // 32
            check_columns(call.view, cta, split(said.a)[1], words, "tcgen05.mma: A", call.lane)
    for cta in call.ctas:
        check_columns(call.view, cta, split(said.d)[1], said.shape.n, "tcgen05.mma: D", call.lane)


def _suits(said: Said, products: Products) -> bool:
    shape, path, variant = said.shape, said.path, said.variant
    return (
        path.parts == 1 and not path.half and not variant.sparse and not shape.scale_type and shape.dtype == "f32"
        and shape.atype in products.direct and shape.btype in products.direct and not said.columns
        and not said.scale_d and not any(said.disabled) and not said.shifted and not said.b.absolute
        and not (shape.negate_a or shape.negate_b)
    )  # fmt: skip


def _in_shared(call: Call, cta: Cta, which: str, d: shared.Descriptor, mn: int, t: str, mn_major: bool) -> Chunks:
    found = arranged.chunk_offsets(d, mn, call.said.shape.k, BITS[t], mn_major=mn_major)
    if found.base + found.end > len(cta.shared):
        problem = shared.outside(found.base + found.end, len(cta.shared))
        raise call.view.trap(f"{which}-desc: {problem}", call.lane)
    return Chunks(t, "mn" if mn_major else "k", np.frombuffer(cta.shared, np.uint8), found.base, found.offsets)


def _factor_a(call: Call, cta: Cta) -> Chunks:
    """A CTA's rows, in shared memory or in tensor memory."""
    said, shape = call.said, call.said.shape
    if not isinstance(said.a, int):
        return _in_shared(call, cta, "a", said.a, said.path.rows, shape.atype, shape.a_mn_major)
    return Chunks(shape.atype, "k", of(cta).cells, 4 * split(said.a)[1], _lanes)


#: Offsets of the two chunks of 32 bytes in each lane of tensor memory.
_lanes = np.ascontiguousarray(
    (4 * COLUMNS * np.arange(LANES)[:, None] + shared.CHUNK * np.arange(2)[None, :]), np.int32
)
