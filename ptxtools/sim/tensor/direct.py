"""Products of tcgen05.mma that an engine may compute from shared memory to tensor memory, without arrays in between.

All are but those with K = 96 and with a mask of columns. These, and those that the engine declines, go the way of
`mma`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from ptxtools.machine.products import GROUP, Block, Chunks, Factor, Metadata, TensorProduct
from ptxtools.machine.residents import Cta

from . import arranged, layout, shared, sparse
from .call import NARROW, Call, Said
from .layout import COLUMNS
from .memory import cells_of, of, split
from .numbers import BITS, Array

_KEY = "tcgen05.mma products"
#: Products that a CTA remembers.
_KEPT = 1024
_WARP, _CELL = 32, 4
#: Bytes of a row of tensor memory.
_LANE = _CELL * COLUMNS
#: A K that is no multiple of 32 bytes of fp4.
_DEEP = 96


def multiply(call: Call) -> bool:
    """Compute D in all CTAs; false, with nothing changed, where that is not possible. Raises `Trap`.

    What a product needs is worked out for the first of its kind and CTAs; allocations may have changed since.
    """
    known: dict[Said, Callable[[], bool] | None] = call.ctas[0].state.setdefault(_KEY, {})
    if call.said in known:
        compute = known[call.said]
        if compute is not None:
            check_cells(call)
    else:
        compute = _prepared(call)
        if len(known) >= _KEPT:
            of(call.ctas[0]).changed()  # before native code repeats one of them
            known.clear()
        known[call.said] = compute
    return compute is not None and compute()


def take_over(call: Call) -> None:
    """The product has been computed: the engine may do so by itself the next time, unless somebody listens."""
    view, compute = call.view, call.ctas[0].state.get(_KEY, {}).get(call.said)
    if compute is None or view.launch.observers is not None or view.schedule.delays:
        return
    stamps = [of(cta).stamp for cta in call.ctas]
    view.launch.products.take_over_tensor_product(view, call.lane, compute, stamps)


def _prepared(call: Call) -> Callable[[], bool] | None:
    products, said = call.view.launch.products, call.said
    shape = said.shape
    if not products.direct or said.columns or said.b.absolute or shape.k == _DEEP:
        return None
    check_cells(call)
    built = _Built(call)
    return products.tensor_product(
        TensorProduct(
            tuple(built.a), tuple(built.b), tuple(built.d), shape.k, shape.dtype, said.accumulate, shape.saturate,
            shape.negate_a != shape.negate_b, shape.scale_type, shape.factors, said.scale_d if said.accumulate else 0,
        ),
        call.rule,
    )  # fmt: skip


def check_cells(call: Call, check: Callable[..., Array] = cells_of) -> None:
    """Whether all that is in tensor memory lies where it is allocated; check: `cells_of` or, as the product is issued,
    `check_columns`. Raises `Trap`."""
    said = call.said
    for cta in call.ctas:
        for column, width, what in _widths(said):
            check(call.view, cta, column, width, f"tcgen05.mma: {what}", call.lane)


@lru_cache(1024)
def _widths(said: Said) -> list[tuple[int, int, str]]:
    """First column, columns and name of what is in tensor memory."""
    shape, found = said.shape, []
    if isinstance(said.a, int):
        found.append((split(said.a)[1], said.stored * BITS[shape.atype] // 32, "A"))
    if said.variant.sparse:
        columns = layout.metadata_places(shape.atype, said.path.rows, _chunks(said))[1]
        found.append((split(said.meta)[1] + shape.selector, int(columns.max()) + 1, "metadata"))
    if shape.scale_type:
        for address, count, first in (
            (said.scale_a, said.path.rows, shape.scale_a),
            (said.scale_b, shape.n, shape.scale_b),
        ):
            columns = layout.scale_places(count, shape.factors, first)[0]
            found.append((split(address)[1], int(columns.max()) + 1, "scale factors"))
    return [*found, (split(said.d)[1], shape.n // said.path.parts, "D")]


def _chunks(said: Said) -> int:
    """Chunks of K that a sparse A has."""
    return said.shape.k // sparse.grain_of(said.shape.atype).chunk


class _Built:
    """A product as factors and blocks. D is in stretches of columns, each with the columns of B of one CTA and lanes of
    its own in every CTA."""

    def __init__(self, call: Call) -> None:
        self.call, self.said, self.path = call, call.said, call.said.path
        self.a: list[Factor] = []
        self.b: list[Factor] = []
        self.d: list[Block] = []
        said, parts, ctas = self.said, self.path.parts, len(call.ctas)
        self.count = max(parts, ctas)
        self.width = said.shape.n // self.count
        for number in range(self.count):
            self.b.append(self._factor_b(number))
        in_lanes = isinstance(said.a, int) or said.variant.sparse or bool(said.shape.scale_type)
        for index, cta in enumerate(call.ctas):
            first = len(self.a)
            self.a += [self._factor_a(cta, part) for part in range(parts if in_lanes else 1)]
            for number in range(self.count):
                part = number * parts // self.count
                self.d += self._blocks(cta, number, part, first + (part if in_lanes else 0), self._disabled(index))

    def _lanes(self, part: int) -> Array:
        """The lane of each row of D."""
        return self.path.lane + self.path.step * part + split(self.said.d)[0]

    # --- B ------------------------------------------------------------------------------------------------------------

    def _factor_b(self, number: int) -> Factor:
        """Columns of B for a stretch of D, with copies of their scale factors for all rows of D."""
        said, shape, ctas = self.said, self.said.shape, self.call.ctas
        share = shape.n // len(ctas)
        cta, skipped = divmod(number * self.width, share)
        whole = _in_shared(self.call, ctas[cta], "b", said.b, share, shape.btype, shape.k, shape.b_mn_major)
        group = skipped // GROUP
        chunks = whole._replace(offsets=np.ascontiguousarray(whole.offsets[group : group - (-self.width // GROUP)]))
        if not shape.scale_type:
            return Factor(chunks, self.width)
        first = number * self.width
        groups = np.unique(np.concatenate([self._lanes(part) // _WARP for part in range(self.path.parts)]))
        some = slice(first, first + self.width)
        tables = [self._scales(said.scale_b, shape.n, shape.scale_b, np.full(shape.n, group)) for group in groups]
        copies = tuple((of(owner).cells, table[:, some]) for owner in ctas for table in tables)
        return Factor(chunks, self.width, scales=copies)

    def _scales(self, address: int, count: int, first: int, groups: Array) -> Array:
        """Byte offsets of scale factors, [factor][row], in given groups of 32 lanes."""
        columns, places = layout.scale_places(count, self.said.shape.factors, first)
        lanes = (np.arange(count) % _WARP + _WARP * groups)[:, None]
        offsets: Array = _LANE * lanes + _CELL * (columns + split(address)[1]) + places
        return np.ascontiguousarray(offsets.T)

    # --- A ------------------------------------------------------------------------------------------------------------

    def _factor_a(self, cta: Cta, part: int) -> Factor:
        """A CTA's rows, in shared memory or in tensor memory, where each stretch of D's columns has a copy."""
        said, shape, rows = self.said, self.said.shape, self.path.rows
        cells, lanes = of(cta).cells, self._lanes(part)
        if isinstance(said.a, int):
            chunks = self._in_tensor(cells, said.a, lanes)
        else:
            chunks = _in_shared(self.call, cta, "a", said.a, rows, shape.atype, said.stored, shape.a_mn_major)
        factor = Factor(chunks, rows)
        if said.variant.sparse:
            factor = factor._replace(metadata=(self._metadata(part), cells))
        if shape.scale_type:
            offsets = self._scales(said.scale_a, rows, shape.scale_a, lanes // _WARP)
            factor = factor._replace(scales=((cells, offsets),))
        return factor

    def _in_tensor(self, cells: Array, address: int, lanes: Array) -> Chunks:
        """A in tensor memory: two chunks in each lane."""
        if self.said.shifted:  # each row from the lane below, but for the last of 32
            lanes = np.where(lanes % _WARP == _WARP - 1, lanes, lanes + 1)
        start = _CELL * split(address)[1]
        offsets = _LANE * lanes[:, None] + shared.CHUNK * np.arange(2)[None, :]
        return Chunks(self.said.shape.atype, "k", cells, start, np.ascontiguousarray(offsets, np.int32))

    def _metadata(self, part: int) -> Metadata:
        said, t = self.said, self.said.shape.atype
        rows, grain = self.path.rows, sparse.grain_of(t)
        lanes, columns, bits = layout.metadata_places(t, rows, _chunks(said))
        if self.path.half:
            lanes = _WARP * (lanes // 16) + lanes % 16
        origin, first = split(said.meta)
        words = _LANE * (lanes + self.path.step * part + origin) + _CELL * (columns + first + said.shape.selector)
        inside = np.arange(said.stored) % grain.stored
        chunk = np.arange(said.stored) // grain.stored
        second = 2 * (inside // grain.together)
        base = np.broadcast_to(grain.chunk * chunk + inside % grain.together, (rows, said.stored))
        found = [m.reshape(rows // GROUP, GROUP, said.stored).transpose(0, 2, 1)
                 for m in (words[:, chunk], bits[:, chunk] + second, base)]  # fmt: skip
        return Metadata(found[0].astype(np.int32), found[1], found[2], grain.together, grain.stored == 1)

    # --- D ------------------------------------------------------------------------------------------------------------

    def _disabled(self, index: int) -> set[int]:
        """The lanes of a CTA that keep what they have."""
        words = np.array(self.said.disabled[4 * index : 4 * index + 4], "<u4")
        return set(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist())

    def _blocks(self, cta: Cta, number: int, part: int, a: int, disabled: set[int]) -> Iterator[Block]:
        """Rows in neighbouring lanes, in multiples of 16."""
        lanes, first = self._lanes(part), split(self.said.d)[1]
        column = first + number * self.width % (self.said.shape.n // self.path.parts)
        starts = [0, *(row for row in range(GROUP, len(lanes), GROUP) if lanes[row] != lanes[row - 1] + 1)]
        for start, end in zip(starts, [*starts[1:], len(lanes)], strict=True):
            kept = tuple(row for row in range(end - start) if int(lanes[start + row]) in disabled)
            yield Block(of(cta).cells, int(lanes[start]), end - start, start, column, self.width, a, number, kept)


def _in_shared(
    call: Call, cta: Cta, which: str, d: shared.Descriptor, mn: int, t: str, k: int, mn_major: bool
) -> Chunks:
    found = arranged.chunk_offsets(d, mn, k, BITS[t], mn_major=mn_major)
    if found.base + found.end > len(cta.shared):
        problem = shared.outside(found.base + found.end, len(cta.shared))
        raise call.view.trap(f"{which}-desc: {problem}", call.lane)
    name = f"{t}.packed" if t in NARROW else t
    return Chunks(name, "mn" if mn_major else "k", np.frombuffer(cta.shared, np.uint8), found.base, found.offsets)
