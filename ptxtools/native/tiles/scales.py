"""LLVM IR for the scale factors of block-scaled products (9.7.16.10.7): read from tensor memory, they scale a factor
that `factors` has arranged, or stand beside it for sums of groups of fp4 (docs/numerics.md).
"""

from __future__ import annotations

from ptxtools.native.code.emitter import ZERO, Emitter, splat
from ptxtools.semantics.accumulation import SCALED_GROUP
from ptxtools.semantics.tensorcore import LEAST

from . import blocks
from .decode import SHORT, SINGLE, WORD, decode, everywhere
from .factors import NO_EXPONENT, NOT_FINITE, exponent_place
from .steps import operands, types_of
from .stored import Stored
from .sums import VectorSums

READ, SCALE, GROUPED, STEP_GROUPED = "tile_step_scales", "tile_step_scale", "tile_grouped", "tile_step_grouped"
NAMES = (READ, SCALE, GROUPED, STEP_GROUPED)
#: Types, as operands.
KINDS = {"ue8m0": 0, "ue4m3": 1}
#: Exponents that a scaled factor may have: its values are far from the ends of f32.
_LOWEST, _HIGHEST = -100, 100
_STEP = "ptr %operands, i32 %highest"
_DOUBLES = "<16 x double>"


def functions(code: Emitter) -> list[str]:
    """IR of all of them. Scale factors are f32, [factor][row of 16 in all groups], and their exponents i32 likewise.

    scales (addresses of bytes, i64 [factor][row], copies, distance of two copies of the table in addresses, rows in
    vectors of 16, factors, kind, values, exponents): a NaN, copies that differ, and one below the normal numbers of f32
    end the run. scale (values and exponents of a factor, groups of rows, K, its scale factors, exponents of these,
    how many along K): multiplies; factors out of range end the run. grouped: like a block of "rows".
    """
    return [_read(code), _scale(code), _grouped(code), _step_grouped(code)]


def _read(b: Emitter) -> str:
    places, copies, apart, vectors, count, kind, values, exponents = (
        operand.split()[1] for operand in operands(b, ["ptr", "i64", "i64", "i64", "i64", "i64", "ptr", "ptr"])
    )
    wrong = b.room("i32")
    b.line(f"store i32 0, ptr {wrong}")
    bytes_ = b.room("<16 x i8>")
    scale8 = b.value(f"icmp eq i64 {kind}, {KINDS['ue8m0']}")

    def note(flags: str) -> None:
        bits = b.value(f"zext i16 {b.value(f'bitcast <16 x i1> {flags} to i16')} to i32")
        known = b.value(f"load i32, ptr {wrong}")
        b.line(f"store i32 {b.value(f'or i32 {known}, {bits}')}, ptr {wrong}")

    def byte(at: str, row: str, copy: str) -> str:
        index = b.value(f"add i64 {b.value(f'shl i64 {at}, 4')}, {row}")
        place = b.element("i64", places, index, b.value(f"mul i64 {copy}, {apart}"))
        address = b.value(f"inttoptr i64 {b.value(f'load i64, ptr {place}')} to ptr")
        return b.value(f"load i8, ptr {address}")

    def row_of(at: str, row: str) -> None:
        first = byte(at, row, "0")
        b.line(f"store i8 {first}, ptr {b.element('i8', bytes_, row)}")

        def same(copy: str) -> None:
            other = b.value(f"icmp ne i8 {byte(at, row, copy)}, {first}")
            known = b.value(f"load i32, ptr {wrong}")
            differs = b.value(f"or i32 {known}, {b.value(f'zext i1 {other} to i32')}")
            b.line(f"store i32 {differs}, ptr {wrong}")

        b.repeat(copies, 1, same)

    def vector(at: str) -> None:
        b.repeat("16", 1, lambda row: row_of(at, row))
        codes = b.value(f"load <16 x i8>, ptr {bytes_}, align 64")
        number = b.value(f"zext <16 x i8> {codes} to {WORD}")
        eight, four, end = b.label(), b.label(), b.label()
        b.branch(scale8, eight, four)
        b.begin(eight)
        note(b.value(f"icmp eq {WORD} {number}, {ZERO}"))
        note(b.value(f"icmp eq {WORD} {number}, {everywhere(255)}"))
        own = b.value(f"sub {WORD} {number}, {everywhere(127)}")
        power = b.value(f"bitcast {WORD} {b.value(f'shl {WORD} {number}, {everywhere(23)}')} to {SINGLE}")
        b.jump(end)
        b.begin(four)
        positive = b.value(f"and <16 x i8> {codes}, splat (i8 127)")
        note(b.value(f"icmp eq <16 x i8> {positive}, splat (i8 127)"))
        value = decode(b, "e4m3", positive)
        size = b.value(f"bitcast {SINGLE} {value} to {WORD}")
        exponent = b.value(f"sub {WORD} {b.value(f'lshr {WORD} {size}, {everywhere(23)}')}, {everywhere(127)}")
        exponent = b.apply("smax", WORD, exponent, everywhere(LEAST["ue4m3"]))
        zero = b.value(f"icmp eq {WORD} {size}, {ZERO}")
        exponent = b.value(f"select <16 x i1> {zero}, {WORD} {everywhere(NO_EXPONENT)}, {WORD} {exponent}")
        b.jump(end)
        b.begin(end)
        found = b.value(f"phi {SINGLE} [{power}, %{eight}], [{value}, %{four}]")
        powers = b.value(f"phi {WORD} [{own}, %{eight}], [{exponent}, %{four}]")
        b.line(f"store {SINGLE} {found}, ptr {b.element(SINGLE, values, at)}, align 64")
        b.line(f"store {WORD} {powers}, ptr {b.element(WORD, exponents, at)}, align 64")

    b.repeat(b.value(f"mul i64 {vectors}, {count}"), 1, vector)
    none = b.value(f"icmp eq i32 {b.value(f'load i32, ptr {wrong}')}, 0")
    return b.function(READ, _STEP, b.value(f"select i1 {none}, i32 %highest, i32 {NOT_FINITE}"))


def _scale(b: Emitter) -> str:
    values, exponents, groups, k, factors, powers, count = (
        operand.split()[1] for operand in operands(b, ["ptr", "ptr", "i64", "i64", "ptr", "ptr", "i64"])
    )
    wide = b.value(f"udiv i64 {k}, {count}")
    most, least = b.room(WORD), b.room(WORD)
    b.line(f"store {WORD} {everywhere(NO_EXPONENT)}, ptr {most}, align 64")
    b.line(f"store {WORD} {everywhere(0)}, ptr {least}, align 64")

    def column(group: str, at: str) -> None:
        block = b.value(f"udiv i64 {at}, {wide}")
        line = b.value(f"add i64 {b.value(f'mul i64 {block}, {groups}')}, {group}")
        scale = b.value(f"load {SINGLE}, ptr {b.element(SINGLE, factors, line)}, align 64")
        place = b.element(SINGLE, values, b.value(f"mul i64 {group}, {k}"), at)
        scaled = b.value(f"fmul {SINGLE} {b.value(f'load {SINGLE}, ptr {place}, align 64')}, {scale}")
        b.line(f"store {SINGLE} {scaled}, ptr {place}, align 64")
        power = b.value(f"load {WORD}, ptr {b.element(WORD, powers, line)}, align 64")
        place = exponent_place(b, exponents, k, group, at)
        old = b.value(f"sext {SHORT} {b.value(f'load {SHORT}, ptr {place}, align 32')} to {WORD}")
        none = b.value(f"icmp eq {WORD} {old}, {everywhere(NO_EXPONENT)}")
        moved = b.value(f"add {WORD} {old}, {power}")
        new = b.value(f"select <16 x i1> {none}, {WORD} {old}, {WORD} {moved}")
        low = b.value(f"select <16 x i1> {none}, {WORD} {ZERO}, {WORD} {moved}")
        b.line(f"store {SHORT} {b.value(f'trunc {WORD} {new} to {SHORT}')}, ptr {place}, align 32")
        for room, operation, number in ((most, "smax", new), (least, "smin", low)):
            known = b.value(f"load {WORD}, ptr {room}, align 64")
            b.line(f"store {WORD} {b.apply(operation, WORD, known, number)}, ptr {room}, align 64")

    b.repeat(groups, 1, lambda group: b.repeat(k, 1, lambda at: column(group, at)))
    high, low = (
        b.call(f"llvm.vector.reduce.{operation}.v16i32", "i32", [(WORD, b.value(f"load {WORD}, ptr {room}, align 64"))])
        for operation, room in (("smax", most), ("smin", least))
    )
    fits = b.value(f"and i1 {b.value(f'icmp sge i32 {low}, {_LOWEST}')}, {b.value(f'icmp sle i32 {high}, {_HIGHEST}')}")
    found = b.apply("smax", "i32", high, "%highest")
    return b.function(SCALE, _STEP, b.value(f"select i1 {fits}, i32 {found}, i32 {NOT_FINITE}"))


# --- sums of groups ---------------------------------------------------------------------------------------------------

_GROUPED = (
    "ptr noalias readonly %a, ptr noalias readonly %as, ptr noalias readonly %ap, ptr noalias readonly %b, "
    "ptr noalias readonly %bs, ptr noalias readonly %bp, ptr %c, ptr %out, i64 %rows, i64 %first, i64 %columns, "
    "i64 %k, i64 %stride.c, i64 %stride.out, "
    "i64 %a.rows, i64 %b.rows, i64 %factors, i32 %fraction, i64 %mask, i64 %odd, "
    "i32 %least, i32 %keep, i32 %form"
)


def _grouped(b: Emitter) -> str:
    """grouped (A, its scale factors and their exponents, B likewise, C, D, rows of D, the first of them in A, columns,
    K, words between rows of C and of D, rows that A's scale factors are for, B's, factors along K, …)."""
    k = VectorSums(b, 16, wide=True)
    k.constants()
    groups = b.value(f"lshr i64 %k, {SCALED_GROUP.bit_length() - 1}")

    def factor_of(group: str) -> str:
        return b.value(f"udiv i64 {b.value(f'mul i64 {group}, %factors')}, {groups}")

    def block(row: str, column: str) -> None:
        inside = b.value(f"add i64 {row}, %first")
        group_a, place_a = b.value(f"lshr i64 {inside}, 4"), b.value(f"and i64 {inside}, 15")
        group_b = b.value(f"lshr i64 {column}, 4")
        left = b.value(f"sub i64 %columns, {column}")
        words = b.value(f"trunc i64 {left} to i32")
        some = b.value(f"icmp slt {WORD} {blocks.COUNTING}, {k.spread('i32', words)}")
        places = [
            b.element("float", base, b.value(f"mul i64 {row}, {stride}"), column)
            for base, stride in (("%out", "%stride.out"), ("%c", "%stride.c"))
        ]
        stored = Stored(k, [places[0]], [places[1]], "", some)
        (addend,), (field,) = stored.addends()
        start = b.apply("smax", WORD, b.value(f"sub {WORD} {field}, {everywhere(127)}"), everywhere(-126))

        def scale_a(base: str, kind: str, factor: str) -> str:
            index = b.value(f"add i64 {b.value(f'mul i64 {factor}, %a.rows')}, {inside}")
            return k.spread(kind, b.value(f"load {kind}, ptr {b.element(kind, base, index)}"))

        def scale_b(base: str, kind: str, factor: str) -> str:
            index = b.value(f"add i64 {b.value(f'mul i64 {factor}, %b.rows')}, {column}")
            return b.value(f"load <16 x {kind}>, ptr {b.element(kind, base, index)}, align 64")

        most = b.room(WORD)
        b.line(f"store {WORD} {start}, ptr {most}, align 64")

        def exponent(factor: str) -> None:
            own = b.value(f"add {WORD} {scale_a('%ap', 'i32', factor)}, {scale_b('%bp', 'i32', factor)}")
            known = b.value(f"load {WORD}, ptr {most}, align 64")
            b.line(f"store {WORD} {b.apply('smax', WORD, own, known)}, ptr {most}, align 64")

        b.repeat("%factors", 1, exponent)
        largest = b.value(f"load {WORD}, ptr {most}, align 64")
        field = b.value(f"add <16 x i64> {b.value(f'sext {WORD} {largest} to <16 x i64>')}, {splat('i64', 1023)}")
        bits = b.value(f"shl <16 x i64> {field}, {splat('i64', 52)}")
        power = b.value(f"bitcast <16 x i64> {bits} to {_DOUBLES}")
        unit = k.unit_of(power)
        wide = b.value(f"fpext {SINGLE} {addend} to {_DOUBLES}")
        total = b.room(_DOUBLES)
        b.line(f"store {_DOUBLES} {k.whole(k.multiply(wide, unit))}, ptr {total}, align 64")

        def group(number: str) -> None:
            dot = "zeroinitializer"
            first = b.value(f"shl i64 {number}, 4")
            for j in range(SCALED_GROUP):
                at = b.value(f"add i64 {first}, {j}")
                line = b.value(f"add i64 {b.value(f'mul i64 {group_a}, %k')}, {at}")
                place = b.element("float", "%a", b.value(f"shl i64 {line}, 4"), place_a)
                own = k.spread("float", b.value(f"load float, ptr {place}"))
                line = b.value(f"add i64 {b.value(f'mul i64 {group_b}, %k')}, {at}")
                other = b.value(f"load {SINGLE}, ptr {b.element(SINGLE, '%b', line)}, align 64")
                term = b.value(f"fmul contract {SINGLE} {own}, {other}")
                dot = b.value(f"fadd contract {SINGLE} {dot}, {term}")
            factor = factor_of(number)
            both = [b.value(f"fpext {SINGLE} {scale} to {_DOUBLES}")
                    for scale in (scale_a("%as", "float", factor), scale_b("%bs", "float", factor), dot)]  # fmt: skip
            scaled = k.multiply(both[2], k.multiply(both[0], both[1]))
            known = b.value(f"load {_DOUBLES}, ptr {total}, align 64")
            summed = b.value(f"fadd {_DOUBLES} {known}, {k.whole(k.multiply(scaled, unit))}")
            b.line(f"store {_DOUBLES} {summed}, ptr {total}, align 64")

        b.repeat(groups, 1, group)
        sum_ = b.value(f"load {_DOUBLES}, ptr {total}, align 64")
        stored.store([k.finish(sum_, power, power, addend)])

    b.repeat("%columns", 16, lambda column: b.repeat("%rows", 1, lambda row: block(row, column)))
    return b.function(GROUPED, _GROUPED)


def _step_grouped(b: Emitter) -> str:
    given = operands(b, types_of(_GROUPED))
    b.line(f"call void @{GROUPED}({', '.join(given)})")
    return b.function(STEP_GROUPED, _STEP, "%highest")
