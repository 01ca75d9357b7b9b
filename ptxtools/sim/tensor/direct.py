"""Products of tcgen05.mma that an engine may compute from shared memory to tensor memory, without arrays in between.

These are dense products without scale factors, masks or disabled lanes, with f32 sums, whose D has a row in each lane.
All others, and those that the engine declines, go the way of `mma`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxtools.machine.products import Chunks, Products, TensorProduct
from ptxtools.machine.residents import Cta
from ptxtools.semantics.accumulation import Rule

from . import arranged, shared
from .layout import COLUMNS, LANES
from .memory import check_columns, of, split
from .numbers import BITS

if TYPE_CHECKING:
    from .mma import Call


def multiply(call: Call, rule: Rule) -> bool:
    """Compute D in all CTAs; false, with nothing changed, where that is not possible. Raises `Trap`."""
    products, shape = call.view.launch.products, call.shape
    if not _suits(call, products):
        return False
    share, column = shape.n // len(call.ctas), split(call.d)[1]
    b = tuple(_in_shared(call, cta, "b", call.b, share, shape.btype, shape.b_mn_major) for cta in call.ctas)
    a = tuple(_factor_a(call, cta) for cta in call.ctas)
    for cta in call.ctas:
        check_columns(call.view, cta, column, shape.n, "tcgen05.mma: D", call.lane)
    d = tuple(of(cta).cells for cta in call.ctas)
    return products.tensor_product(
        TensorProduct(a, b, d, column, call.path.rows, shape.n, shape.k, call.accumulate), rule
    )


def _suits(call: Call, products: Products) -> bool:
    shape, path, variant = call.shape, call.path, call.variant
    return (
        path.parts == 1 and not path.half and not variant.sparse and not shape.scale_type and shape.dtype == "f32"
        and shape.atype in products.direct and shape.btype in products.direct and not call.columns
        and not call.scale_d and not any(call.disabled) and not call.shifted and not call.b.absolute
        and not (shape.negate_a or shape.negate_b)
    )  # fmt: skip


def _in_shared(call: Call, cta: Cta, which: str, d: shared.Descriptor, mn: int, t: str, mn_major: bool) -> Chunks:
    found = arranged.chunk_offsets(d, mn, call.shape.k, BITS[t], mn_major=mn_major)
    if found.base + found.end > len(cta.shared):
        problem = shared.outside(found.base + found.end, len(cta.shared))
        raise call.view.trap(f"{which}-desc: {problem}", call.lane)
    return Chunks(t, "mn" if mn_major else "k", np.frombuffer(cta.shared, np.uint8), found.base, found.offsets)


def _factor_a(call: Call, cta: Cta) -> Chunks:
    """A CTA's rows, in shared memory or in tensor memory."""
    shape = call.shape
    if not isinstance(call.a, int):
        return _in_shared(call, cta, "a", call.a, call.path.rows, shape.atype, shape.a_mn_major)
    _, column = split(call.a)
    words = call.stored * BITS[shape.atype] // 32
    cells = check_columns(call.view, cta, column, words, "tcgen05.mma: A", call.lane)
    return Chunks(shape.atype, "k", cells, 4 * column, _lanes)


#: Offsets of the two chunks of 32 bytes in each lane of tensor memory.
_lanes = np.ascontiguousarray(
    (4 * COLUMNS * np.arange(LANES)[:, None] + shared.CHUNK * np.arange(2)[None, :]), np.int32
)
