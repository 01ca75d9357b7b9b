"""Products of tcgen05.mma in three calls, from shared memory to tensor memory; factors must be finite."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

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
        self.memory = np.zeros(sum(map(sum, sizes)) + 64, np.uint8)
        at = -(-tiles.address_of(self.memory) // 64) * 64
        found = []
        for values, exponents in sizes:
            found.append((at, at + values))
            at += values + exponents
        self.b, *self.a = found


_room = _Room()


def prepare(product: TensorProduct, rule: Rule) -> Callable[[], bool] | None:
    """What computes D in all CTAs, false where a factor is not finite; None where B cannot be put together."""
    share = product.n // len(product.b)
    if share % (GROUP if len(product.b) == 1 else GROUP * TOGETHER):
        return None
    return _Prepared(product, rule, share)


class _Prepared:
    """A product with all addresses; what lies there stays as long as this."""

    def __init__(self, product: TensorProduct, rule: Rule, share: int) -> None:
        room, k = _room, product.k
        self._kept = product, room.memory
        self._takes = [
            *[_take(part, share, k, room.b, share * k * i) for i, part in enumerate(product.b)],
            *[_take(part, product.rows, k, here, 0) for part, here in zip(product.a, room.a, strict=False)],
        ]
        self._blocks = [_block(product, cells, rule, here) for cells, here in zip(product.d, room.a, strict=False)]
        self._multiply = tiles.functions()[blocks.name_of("rows", "" if rule.fraction else "plain")]

    def __call__(self) -> bool:
        highest = max([take(*operands) for take, operands in self._takes])
        if highest >= NOT_FINITE:
            return False
        for operands in self._blocks:
            self._multiply(*operands, highest > blocks.HIGHEST)
        return True


def _take(part: Chunks, rows: int, k: int, room: tuple[int, int], skipped: int) -> tuple[Any, tuple[int, ...]]:
    """What arranges rows of A, or columns of B, behind so many elements, and answers with the greatest exponent; and
    its operands."""
    base = tiles.address_of(part.memory) + part.start
    values, exponents = room[0] + 4 * skipped, room[1] + 2 * skipped
    take = tiles.functions()[factors.name_of(part.type, part.major)]
    return take, (base, tiles.address_of(part.offsets), rows // GROUP, k, values, exponents)


def _block(product: TensorProduct, cells: Array, rule: Rule, room: tuple[int, int]) -> tuple[int, ...]:
    """Operands of D in the cells of one CTA, but for the last."""
    rounding = tiles.rounding_of(rule)
    d, stride = tiles.address_of(cells) + 4 * product.column, cells.strides[0] // 4
    return (
        *room, *_room.b, d, d, product.rows, product.n, product.k, stride, stride,
        rounding.fraction, rounding.mask, rounding.odd, rounding.least,
        _EVERYTHING if product.accumulate else 0, 0,
    )  # fmt: skip
