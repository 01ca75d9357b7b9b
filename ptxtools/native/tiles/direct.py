"""Products of tcgen05.mma in one call, from shared memory to tensor memory; factors must be finite."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from ptxtools.machine.products import GROUP, Array, Block, Factor, TensorProduct
from ptxtools.semantics.accumulation import Rule

from . import addends, blocks, converted, decode, factors, fused, scales, sparse, steps
from . import interface as tiles
from .factors import TOGETHER
from .stored import form_of

_EVERYTHING = 0xFFFF_FFFF
#: Enough for all factors of a product: values, exponents and scale factors of 256 columns of B, of 128 rows of A in
#: each of two CTAs, and of these as they are stored, with K = 128.
_ROOM = 1 << 20


class _Room(threading.local):
    """Memory of a thread for arranged factors, aligned to cache lines. Every product begins at its start."""

    def __init__(self) -> None:
        self.memory = np.zeros(_ROOM + 64, np.uint8)
        self.start = self.next = -(-tiles.address_of(self.memory) // 64) * 64

    def take(self, size: int) -> int:
        """The address of some bytes."""
        found = self.next
        self.next += -(-size // 64) * 64
        if self.next > self.start + _ROOM:
            raise MemoryError("a product is larger than any of tcgen05")
        return found


_room = _Room()


class _Arranged:
    """A factor's places: of values and exponents, and of scale factors and their exponents."""

    def __init__(self, rows: int, k: int) -> None:
        self.rows = -(-rows // GROUP) * GROUP
        fours = -(-rows // (GROUP * TOGETHER)) * GROUP * TOGETHER
        self.values, self.exponents = _room.take(4 * k * self.rows), _room.take(2 * k * fours)
        self.scales = self.powers = 0
        #: The greatest exponent; the base, and where f64 and bytes are (`fused`).
        self.most, self.base = _room.take(4), _room.take(4)
        self.wide = (0, 0, 0)

    def converted(self, k: int) -> None:
        """It is to be converted, too."""
        self.wide = _room.take(8 * k * self.rows), _room.take(k * self.rows), _room.take(k * self.rows)

    def scaled(self, count: int) -> None:
        """There are so many scale factors along K."""
        self.scales, self.powers = _room.take(4 * count * self.rows), _room.take(4 * count * self.rows)


def prepare(product: TensorProduct, rule: Rule) -> Callable[[], bool] | None:
    """What computes D in all CTAs; false, with nothing changed, where a factor is not finite or out of range."""
    return Prepared(product, rule)


class Prepared:
    """A product as steps with all addresses; what lies there stays as long as this."""

    def __init__(self, product: TensorProduct, rule: Rule) -> None:
        _room.next = _room.start
        self._product, self._rule = product, rule
        self._kept: list[object] = [product, _room.memory]
        self._rows: list[tuple[int, ...]] = []
        self._addresses = tiles.addresses()
        self._sums = "plain" if product.dtype == "s32" or not rule.fraction else ""
        self._grouped = bool(product.scale) and rule.group > 1
        if product.scale and not rule.fraction:
            self._sums = (rule.wide == "f64" and "wide") or "plain"
        a, b = ([self._factor(one) for one in some] for some in (product.a, product.b))
        if product.negated:
            for one in a:
                self._step(steps.NEGATE, one.values, one.rows // GROUP * product.k)
        self._fuses = (
            not (self._sums or product.scale) and product.dtype == "f32" and tiles.fuses()
            and all(block.rows % 2 == 0 for block in product.d)
        )  # fmt: skip
        if self._fuses:
            for one in a:
                self._convert(one, converted.COMMON, one.rows // GROUP, 1)
            for one in b:
                self._convert(one, converted.own_of("rows"), TOGETHER, one.rows // blocks.BLOCK)
        lanes = [self._lanes(block) for block in product.d if block.kept]
        for place in lanes:
            self._step(addends.COPY, *place, 0)
        if product.divisor:
            for stores in (False, True):
                for block in product.d:
                    self._divide(block, stores=stores)
        for block in product.d:
            (self._group_block if self._grouped else self._block)(block, a[block.a], b[block.b])
        for place in lanes:
            self._step(addends.COPY, *place, 1)
        table = np.zeros((len(self._rows), steps.WORDS), np.uint64)
        for words, row in zip(table, self._rows, strict=True):
            words[: len(row)] = row
        self._table = table
        #: Address of the steps, and how many there are.
        self.steps = tiles.address_of(table), len(table)
        self._run = tiles.functions()[steps.RUN]

    def __call__(self) -> bool:
        return bool(self._run(*self.steps))

    def _step(self, name: str, *operands: int) -> None:
        self._rows.append((self._addresses[name], *operands))

    def _array(self, array: Array) -> int:
        """The address of an array that stays."""
        self._kept.append(array)
        return tiles.address_of(array)

    # --- factors ------------------------------------------------------------------------------------------------------

    def _factor(self, factor: Factor) -> _Arranged:
        k, chunks = self._product.k, factor.chunks
        found = _Arranged(factor.rows, k)
        groups = found.rows // GROUP
        take = self._addresses[factors.name_of(chunks.type, chunks.major)]
        where = tiles.address_of(chunks.memory) + chunks.start, self._array(chunks.offsets)
        if factor.metadata is None:
            self._step(steps.TAKE, found.most, take, *where, groups, k, found.values, found.exponents)
        else:
            metadata, memory = factor.metadata
            stored = _Arranged(factor.rows, k // 2)
            self._step(steps.TAKE, found.most, take, *where, groups, k // 2, stored.values, stored.exponents)
            powers = 0 if chunks.type in decode.WHOLE else stored.exponents
            self._step(
                steps.SCATTER, stored.values, powers, groups, k // 2, self._array(memory),
                self._array(np.ascontiguousarray(metadata.words)), self._array(sparse.fields(metadata)), found.values,
                found.exponents,
            )  # fmt: skip
        if factor.scales:
            self._scale(factor, found)
        return found

    def _scale(self, factor: Factor, found: _Arranged) -> None:
        """Read the scale factors, and multiply if they are no part of sums of groups."""
        product, count = self._product, self._product.factors
        found.scaled(count)
        table = np.empty((len(factor.scales), count, found.rows), np.int64)
        for copy, (memory, offsets) in zip(table, factor.scales, strict=True):
            self._kept.append(memory)
            copy[:, : factor.rows] = tiles.address_of(memory) + offsets
            copy[:, factor.rows :] = copy[:, factor.rows - 1 : factor.rows]
        vectors = found.rows // GROUP
        self._step(
            scales.READ, self._array(table), len(table), count * found.rows, vectors, count,
            scales.KINDS[product.scale], found.scales, found.powers,
        )  # fmt: skip
        if not self._grouped:
            self._step(
                scales.SCALE, found.values, found.exponents, vectors, product.k, found.scales, found.powers, count
            )  # fmt: skip

    def _convert(self, one: _Arranged, name: str, groups: int, times: int) -> None:
        k = self._product.k
        one.converted(k)
        self._step(
            steps.CONVERT, one.base, self._addresses[name], one.most, one.values, one.exponents, *one.wide, groups, k,
            times,
        )  # fmt: skip

    # --- D ------------------------------------------------------------------------------------------------------------

    def _place(self, block: Block) -> tuple[int, int]:
        """The address of a block's first cell, and the cells between two rows."""
        stride = block.cells.strides[0] // 4
        return tiles.address_of(block.cells) + 4 * (block.lane * stride + block.column), stride

    def _lanes(self, block: Block) -> tuple[int, ...]:
        """Rows that stay as they are: their addresses, how many, words, and room for them."""
        first, stride = self._place(block)
        rows = np.array([first + 4 * stride * row for row in block.kept], np.int64)
        return self._array(rows), len(rows), block.width, self._array(np.zeros((len(rows), block.width), np.uint32))

    def _divide(self, block: Block, *, stores: bool) -> None:
        """Divide D, or see whether that is exact."""
        first, stride = self._place(block)
        divisor = np.float32(2.0**self._product.divisor)
        inverse, own = (int(x.view(np.uint32)) for x in (np.float32(1) / divisor, divisor))
        form = form_of(self._product.dtype)
        self._step(addends.DIVIDE, first, block.rows, block.width, stride, form, inverse, own, stores)

    def _rounding(self) -> tuple[int, ...]:
        product = self._product
        rounding = tiles.NO_ROUNDING if product.dtype == "s32" else tiles.rounding_of(self._rule)
        return (
            rounding.fraction, rounding.mask, rounding.odd, rounding.least,
            _EVERYTHING if product.accumulate else 0, form_of(product.dtype, saturates=product.saturate),
        )  # fmt: skip

    def _block(self, block: Block, a: _Arranged, b: _Arranged) -> None:
        """A block begins at a multiple of 16 rows of A."""
        k = self._product.k
        group, four = block.first // GROUP, block.first // (GROUP * TOGETHER)
        values = a.values + 4 * GROUP * k * group
        exponents = a.exponents + 2 * GROUP * (TOGETHER * k * four + group % TOGETHER)
        d, stride = self._place(block)
        sums = "rest" if self._fuses and block.width % blocks.BLOCK == 0 else self._sums
        row = (
            self._addresses[blocks.name_of("rows", sums)], values, exponents, b.values, b.exponents, d, d,
            block.rows, block.width, k, stride, stride, *self._rounding(),
        )  # fmt: skip
        if not self._fuses:
            self._step(steps.BLOCK, *row)
            return
        first = k * block.first
        common = a.wide[0] + 8 * first, a.wide[1] + first, a.wide[2] + first
        function = self._addresses[fused.name_of("rows")]
        self._step(steps.FUSED, function, a.base, b.base, *common, *b.wide, *row)

    def _group_block(self, block: Block, a: _Arranged, b: _Arranged) -> None:
        d, stride = self._place(block)
        self._step(
            scales.STEP_GROUPED, a.values, a.scales, a.powers, b.values, b.scales, b.powers, d, d, block.rows,
            block.first, block.width, self._product.k, stride, stride, a.rows, b.rows, self._product.factors,
            *self._rounding(),
        )  # fmt: skip
