"""Products of tcgen05.mma in three calls, from shared memory to tensor memory; factors must be finite."""

from __future__ import annotations

import threading

import numpy as np

from ptxtools.machine.products import GROUP, Array, Chunks, TensorProduct
from ptxtools.semantics.accumulation import Rule

from . import blocks, factors
from . import interface as tiles
from .factors import NOT_FINITE, TOGETHER

#: Largest K, rows in a CTA, and N.
_K, _M, _N = 32, 128, 256
_EVERYTHING = 0xFFFF_FFFF


class _Room(threading.local):
    """Host addresses for arranged factors of a thread, aligned to cache lines: values and exponents of B, and of A in
    each CTA of a pair."""

    def __init__(self) -> None:
        sizes = [(4 * _K * _N, 2 * _K * _N), *[(4 * _K * _M, 2 * _K * _M)] * 2]
        self._memory = np.zeros(sum(map(sum, sizes)) + 64, np.uint8)
        at = -(-tiles.address_of(self._memory) // 64) * 64
        found = []
        for values, exponents in sizes:
            found.append((at, at + values))
            at += values + exponents
        self.b, *self.a = found


_room = _Room()


def multiply(product: TensorProduct, rule: Rule) -> bool:
    """D in all CTAs; false where B cannot be put together, or a factor is not finite."""
    share = product.n // len(product.b)
    if share % (GROUP if len(product.b) == 1 else GROUP * TOGETHER):
        return False
    values, exponents = _room.b
    most = []
    for part in product.b:
        most.append(_take(part, share, product.k, values, exponents))
        values, exponents = values + 4 * share * product.k, exponents + 2 * share * product.k
    for part, room in zip(product.a, _room.a, strict=False):
        most.append(_take(part, product.rows, product.k, *room))
    highest = max(most)
    if highest >= NOT_FINITE:
        return False
    for cells, room in zip(product.d, _room.a, strict=False):
        _block(product, cells, rule, room, force=highest > blocks.HIGHEST)
    return True


def _take(part: Chunks, rows: int, k: int, values: int, exponents: int) -> int:
    """Arrange rows of A, or columns of B; the greatest exponent."""
    take = tiles.functions()[factors.name_of(part.type, part.major)]
    base = tiles.address_of(part.memory) + part.start
    found: int = take(base, tiles.address_of(part.offsets), rows // GROUP, k, values, exponents)
    return found


def _block(product: TensorProduct, cells: Array, rule: Rule, room: tuple[int, int], *, force: bool) -> None:
    """D in the cells of one CTA."""
    rounding = tiles.rounding_of(rule)
    d, stride = tiles.address_of(cells) + 4 * product.column, cells.strides[0] // 4
    tiles.functions()[blocks.name_of("rows", plain=not rule.fraction)](
        *room, *_room.b, d, d, product.rows, product.n, product.k, stride, stride,
        rounding.fraction, rounding.mask, rounding.odd, rounding.least,
        _EVERYTHING if product.accumulate else 0, force,
    )  # fmt: skip
