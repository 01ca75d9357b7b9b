"""LLVM IR of steps (`steps`) around a product: D is divided by a power of two; rows get back what they had."""

from __future__ import annotations

from ptxtools.native.code.emitter import ZERO, Emitter

from . import blocks, factors
from .decode import SINGLE, SIZE, WORD, everywhere
from .stored import Stored
from .sums import VectorSums

COPY, DIVIDE = "tile_step_copy", "tile_step_divide"
NAMES = (COPY, DIVIDE)
_STEP = "ptr %operands, i32 %highest"
#: Words that are copied at once: the columns of a block are a multiple of them.
_TOGETHER = 4
_INFINITE = 255 << 23


def functions(code: Emitter) -> list[str]:
    """IR of both. copy: addresses of rows (i64), how many, words of a row, where they are kept, and 1 to put them back.
    divide: D, rows, columns, cells between rows, form, 1 / divisor and divisor (f32), and 1 to store the quotients;
    without, it ends the run where one is not exact."""
    return [_copy(code), _divide(code)]


def _operands(b: Emitter, *kinds: str) -> list[str]:
    return [b.value(f"load {kind}, ptr {b.element('i64', '%operands', str(i))}") for i, kind in enumerate(kinds)]


def _copy(b: Emitter) -> str:
    rows, count, words, kept, back = _operands(b, "ptr", "i64", "i64", "ptr", "i32")
    kind, returns = f"<{_TOGETHER} x i32>", b.value(f"icmp ne i32 {back}, 0")

    def row(number: str) -> None:
        cells = b.value(f"load ptr, ptr {b.element('i64', rows, number)}")
        own = b.element("i32", kept, b.value(f"mul i64 {number}, {words}"))
        source, target = (b.value(f"select i1 {returns}, ptr {x}, ptr {y}") for x, y in ((own, cells), (cells, own)))

        def some(at: str) -> None:
            value = b.value(f"load {kind}, ptr {b.element('i32', source, at)}, align 4")
            b.line(f"store {kind} {value}, ptr {b.element('i32', target, at)}, align 4")

        b.repeat(words, _TOGETHER, some)

    b.repeat(count, 1, row)
    return b.function(COPY, _STEP, "%highest")


def _divide(b: Emitter) -> str:
    place, rows, columns, stride, form, inverse, divisor, stores = _operands(
        b, "ptr", "i64", "i64", "i64", "i32", "float", "float", "i32"
    )
    k = VectorSums(b, 16, wide=False)
    b.line(f"%form = add i32 {form}, 0")
    b.line("%keep = add i32 0, -1")
    by, times = (k.spread("float", x) for x in (inverse, divisor))
    wrong, storing = b.room(WORD), b.value(f"icmp ne i32 {stores}, 0")
    b.line(f"store {WORD} {ZERO}, ptr {wrong}, align 64")

    def some(row: str, column: str) -> None:
        left = k.spread("i32", b.value(f"trunc i64 {b.value(f'sub i64 {columns}, {column}')} to i32"))
        there = b.value(f"icmp slt {WORD} {blocks.COUNTING}, {left}")
        cells = [b.element("i32", place, b.value(f"mul i64 {row}, {stride}"), column)]
        stored = Stored(k, cells, cells, some=there)
        (value,), _ = stored.addends()
        quotient = b.value(f"fmul {SINGLE} {value}, {by}")
        kept = stored.rounded(quotient)
        same = b.value(f"fcmp oeq {SINGLE} {b.value(f'fmul {SINGLE} {kept}, {times}')}, {value}")
        size = b.value(f"and {WORD} {b.value(f'bitcast {SINGLE} {value} to {WORD}')}, {everywhere(SIZE)}")
        special = b.value(f"icmp uge {WORD} {size}, {everywhere(_INFINITE)}")
        fits = b.value(f"or <16 x i1> {same}, {special}")
        known = b.value(f"load {WORD}, ptr {wrong}, align 64")
        lost = b.value(f"select <16 x i1> {fits}, {WORD} {known}, {WORD} {everywhere(1)}")
        b.line(f"store {WORD} {lost}, ptr {wrong}, align 64")
        store, done = b.label(), b.label()
        b.branch(storing, store, done)
        b.begin(store)
        stored.store([quotient])
        b.jump(done)
        b.begin(done)

    b.repeat(rows, 1, lambda row: b.repeat(columns, 16, lambda column: some(row, column)))
    flags = b.value(f"icmp ne {WORD} {b.value(f'load {WORD}, ptr {wrong}, align 64')}, {ZERO}")
    any_ = b.value(f"icmp ne i16 {b.value(f'bitcast <16 x i1> {flags} to i16')}, 0")
    return b.function(DIVIDE, _STEP, b.value(f"select i1 {any_}, i32 {factors.NOT_FINITE}, i32 %highest"))
