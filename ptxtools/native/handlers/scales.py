"""Scale factors of block-scaled products: the lane and byte of each, and their values (9.7.14.5.12)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ptxtools.program.program import LANES
from ptxtools.semantics import tensorcore
from ptxtools.semantics.algebra import Value
from ptxtools.semantics.fragments import scale_lane_a, scale_lane_b

from .operands import Tile

#: Product of the two factors for a tile of rows and a column k of A, and the product of their powers of two.
ScaleOf: TypeAlias = Callable[[int, int], tuple[Value, Value]]


class Scales:
    """Tables of both operands' factors, block after block along K: 16 rows of A, or 8 columns of B."""

    def __init__(self, t: Tile) -> None:
        self.tile = t
        self.rows = self._table(t.first_extra + t.product.sparse, scale_lane_a, 16, 2)
        self.columns = self._table(t.first_extra + t.product.sparse + 3, scale_lane_b, 8, 4)

    def _table(self, first: int, lane_of: Callable[[int, int], int], count: int, threads: int) -> tuple[str, str]:
        """Values and powers. Operand `first` is the register; the selectors of byte and thread follow, the same in all
        lanes: lane 0 has them."""
        t, e, A = self.tile, self.tile.code, self.tile.algebra  # noqa: N806
        room = t.room("i32", LANES)
        e.line(f"store <32 x i32> {t.source(first)}, ptr {room}, align 64")
        byte, thread = (self._selector(first + place, most) for place, most in ((1, 3), (2, threads - 1)))
        order = [lane_of(row, number) for number in range(threads) for row in range(count)]
        lanes = e.constant_table(f"scales.{count}", "i32", order)
        start = e.value(f"mul i32 {thread}, {count}")
        shift = A.broadcast("i32", e.value(f"shl i32 {byte}, 3"))
        values, powers = (t.room("i64", count * t.product.blocks) for _ in range(2))
        for row in range(0, count, 8):
            words = A.shr("u32", self._words(room, lanes, start, row), shift)
            for block in range(t.product.blocks):
                scale = tensorcore.decode_scale(A, t.product.scale, A.shr_by("u32", words, 8 * block))
                power = tensorcore.power(A, scale, tensorcore.LEAST[t.product.scale])
                for table, value in ((values, scale), (powers, power)):
                    e.line(f"store <8 x i64> {value}, ptr {t.at(table, 'i64', block * count + row)}, align 64")
                self._suspect(scale)
        return values, powers

    def _selector(self, place: int, most: int) -> str:
        e = self.tile.code
        one = self.tile.handler.lane(self.tile.operand(place), "0")
        return e.value(f"and i32 {e.value(f'zext i16 {one} to i32')}, {most}")

    def _words(self, room: str, lanes: str, start: str, first: int) -> Value:
        """The registers of the lanes that hold the factors of eight rows."""
        t, e = self.tile, self.tile.code
        vector = "poison"
        for row in range(8):
            at = e.value(f"add i32 {start}, {first + row}")
            lane = e.value(f"load i32, ptr {t.at(lanes, 'i32', at)}")
            one = e.value(f"load i32, ptr {t.at(room, 'i32', lane)}")
            vector = e.value(f"insertelement <8 x i32> {vector}, i32 {one}, i32 {row}")
        return vector

    def _suspect(self, scale: Value) -> None:
        nan = self.tile.algebra.fcompare("nan", "f64", scale, scale)
        bits = self.tile.code.value(f"bitcast <8 x i1> {nan} to i8")
        self.tile.suspects.append(self.tile.code.value(f"icmp ne i8 {bits}, 0"))

    def of_row(self, index: str) -> ScaleOf:
        """For row `index` of a tile."""
        t = self.tile
        blocks, k_size = t.product.blocks, t.product.k

        def scale(upper: int, k: int) -> tuple[Value, Value]:
            block = k * blocks // k_size
            both = []
            for rows, columns in zip(self.rows, self.columns, strict=True):
                place = t.at(t.at(rows, "i64", 16 * block + 8 * upper), "i64", index)
                both.append(self._both(place, t.at(columns, "i64", 8 * block)))
            return both[0], both[1]

        return scale

    def value_at(self, index: str, k: str) -> Value:
        """The product of the two factors for row `index` at a column k that is an i32."""
        t, e = self.tile, self.tile.code
        block = e.value(f"udiv i32 {k}, {t.product.k // t.product.blocks}")
        place = t.at(self.rows[0], "i64", e.value(f"add i32 {e.value(f'shl i32 {block}, 4')}, {index}"))
        return self._both(place, t.at(self.columns[0], "i64", e.value(f"shl i32 {block}, 3")))

    def _both(self, place: str, columns: str) -> Value:
        """A row's entry of one table times eight columns of the other."""
        A, e = self.tile.algebra, self.tile.code  # noqa: N806
        row = A.broadcast("i64", e.value(f"load i64, ptr {place}"))
        return A.fmul("f64", row, e.value(f"load <8 x i64>, ptr {columns}, align 64"))
