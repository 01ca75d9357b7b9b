"""LLVM IR of the functions that `tiles` calls: products of matrices of numbers and their powers, in rows."""

from __future__ import annotations

from ptxtools.semantics.accumulation import SCALED_GROUP
from ptxtools.semantics.tensorcore import LEAST

from . import blocks as tileblocks
from . import factors as tilefactors
from . import warpgroups
from .parts import ROWS, WIDTH, Body, Kernel, chain_elements, element_of, elements, repeat, splat

#: Groups of columns that block-scaled fp4 has at most (K = 128).
_MOST_GROUPS = 8


def _rows_function(name: str, wide: bool, chain: bool, exact: bool) -> str:
    """D in rows. Four rows are computed together."""
    b = Body()
    k = Kernel(b, WIDTH, wide, exact)
    k.constants()
    step = chain_elements if chain else elements

    def block(row: str, column: str) -> None:
        places = [b.value(f"add i64 {row}, {i}") for i in range(ROWS)]
        lines = [b.value(f"mul i64 {place}, %k") for place in places]

        def load_a(kind: str, number: int, at: str) -> str:
            index = b.value(f"add i64 {lines[number]}, {at}")
            place = b.value(f"getelementptr {k.kind}, ptr {'%a' if kind == 'value' else '%ap'}, i64 {index}")
            return k.spread(k.kind, b.value(f"load {k.kind}, ptr {place}"))

        def load_b(kind: str, at: str) -> str:
            index = b.value(f"add i64 {b.value(f'mul i64 {at}, %columns')}, {column}")
            place = b.value(f"getelementptr {k.kind}, ptr {'%b' if kind == 'value' else '%bp'}, i64 {index}")
            return b.value(f"load {k.v}, ptr {place}, align 4")

        def place_of(base: str, stride: str, number: int) -> str:
            index = b.value(f"add i64 {b.value(f'mul i64 {places[number]}, {stride}')}, {column}")
            return b.value(f"getelementptr float, ptr {base}, i64 {index}")

        addends = [k.addend(place_of("%c", "%stride.c", i)) for i in range(ROWS)]
        for i, result in enumerate(step(k, ROWS, addends, load_a, load_b)):
            target = place_of("%out", "%stride.out", i)
            b.line(f"store <{WIDTH} x float> {result}, ptr {target}, align 4")

    repeat(b, "%columns", WIDTH, lambda column: repeat(b, "%rows", ROWS, lambda row: block(row, column)))
    return b.function(name)


def _grouped_function(name: str) -> str:
    """D in rows, for block-scaled fp4: 16 columns are summed exactly, scaled, and then aligned with other sums.

    %ap holds value and power of A's scale factors, [row][group][2]; %bp those of B, [group][2][column]; all f64.
    """
    b = Body()
    k = Kernel(b, WIDTH, wide=True)
    k.constants()
    vector = f"<{WIDTH} x float>"
    groups = b.value(f"lshr i64 %k, {SCALED_GROUP.bit_length() - 1}")
    sums = b.room(f"[{_MOST_GROUPS * ROWS} x {k.d}]")
    most = [b.room(k.d) for _ in range(ROWS)]

    def one(group: str, row: str, column: str) -> None:
        at = b.value(f"mul i64 {group}, {2}")
        line = b.value(f"mul i64 {at}, %columns")
        scale_b, power_b = (
            b.value(f"load {k.d}, ptr {element_of(b, 'double', '%bp', line, column, extra)}, align 8")
            for extra in ("0", "%columns")
        )
        for i in range(ROWS):
            place = b.value(f"add i64 {row}, {i}")
            total = "zeroinitializer"
            for j in range(SCALED_GROUP):
                index = b.value(f"add i64 {b.value(f'mul i64 {group}, {SCALED_GROUP}')}, {j}")
                left = b.value(
                    f"load float, ptr {element_of(b, 'float', '%a', b.value(f'mul i64 {place}, %k'), index)}"
                )
                one_left = b.value(f"insertelement {vector} poison, float {left}, i64 0")
                spread = b.value(f"shufflevector {vector} {one_left}, {vector} poison, <{WIDTH} x i32> zeroinitializer")
                address = element_of(b, "float", "%b", b.value(f"mul i64 {index}, %columns"), column)
                right = b.value(f"load {vector}, ptr {address}, align 4")
                term = b.value(f"fmul contract {vector} {spread}, {right}")
                total = b.value(f"fadd contract {vector} {total}, {term}")
            wide = b.value(f"fpext {vector} {total} to {k.d}")
            pair = b.value(f"mul i64 {b.value(f'mul i64 {place}, {groups}')}, 2")
            scale_a, power_a = (
                k.spread("double", b.value(f"load double, ptr {element_of(b, 'double', '%ap', pair, at, extra)}"))
                for extra in ("0", "1")
            )
            scaled = k.multiply(wide, k.multiply(scale_a, scale_b))
            slot = b.value(f"add i64 {b.value(f'mul i64 {group}, {ROWS}')}, {i}")
            b.line(f"store {k.d} {scaled}, ptr {b.value(f'getelementptr {k.d}, ptr {sums}, i64 {slot}')}, align 64")
            own = k.multiply(power_a, power_b)
            known = b.value(f"load {k.d}, ptr {most[i]}, align 64")
            b.line(f"store {k.d} {k.greater(own, known)}, ptr {most[i]}, align 64")

    def block(row: str, column: str) -> None:
        places = [b.value(f"add i64 {row}, {i}") for i in range(ROWS)]
        addends = []
        for i, place in enumerate(places):
            address = element_of(b, "float", "%c", b.value(f"mul i64 {place}, %stride.c"), column)
            addends.append(k.addend(address))
            b.line(f"store {k.d} {k.power_of(addends[i])}, ptr {most[i]}, align 64")
        repeat(b, groups, 1, lambda group: one(group, row, column))
        largest = [b.value(f"load {k.d}, ptr {p}, align 64") for p in most]
        units = [k.unit_of(p) for p in largest]
        totals = [b.room(k.d) for _ in range(ROWS)]
        for total, unit, addend in zip(totals, units, addends, strict=True):
            wide = b.value(f"fpext {vector} {addend} to {k.d}")
            b.line(f"store {k.d} {k.whole(k.multiply(wide, unit))}, ptr {total}, align 64")

        def add(group: str) -> None:
            for i, (total, unit) in enumerate(zip(totals, units, strict=True)):
                slot = b.value(f"add i64 {b.value(f'mul i64 {group}, {ROWS}')}, {i}")
                part = b.value(f"load {k.d}, ptr {b.value(f'getelementptr {k.d}, ptr {sums}, i64 {slot}')}, align 64")
                known = b.value(f"load {k.d}, ptr {total}, align 64")
                summed = b.value(f"fadd {k.d} {known}, {k.whole(k.multiply(part, unit))}")
                b.line(f"store {k.d} {summed}, ptr {total}, align 64")

        repeat(b, groups, 1, add)
        for i, place in enumerate(places):
            total = b.value(f"load {k.d}, ptr {totals[i]}, align 64")
            result = k.finish(total, largest[i], largest[i], addends[i])
            address = element_of(b, "float", "%out", b.value(f"mul i64 {place}, %stride.out"), column)
            b.line(f"store {vector} {result}, ptr {address}, align 4")

    repeat(b, "%columns", WIDTH, lambda column: repeat(b, "%rows", ROWS, lambda row: block(row, column)))
    return b.function(name)


def _halves_function(name: str) -> str:
    """f16 at %a (%k of them, a multiple of 16) as f32 at %out, and the powers of the numbers at %ap."""
    b = Body()
    w = WIDTH
    short, word, single = f"<{w} x i16>", f"<{w} x i32>", f"<{w} x float>"

    def constant(number: int) -> str:
        return splat(str(number), "i32", w)

    def block(at: str) -> None:
        code = b.value(f"load {short}, ptr {element_of(b, 'i16', '%a', at)}, align 2")
        bits = b.value(f"zext {short} {code} to {word}")
        sign = b.value(f"shl {word} {b.value(f'and {word} {bits}, {constant(0x8000)}')}, {constant(16)}")
        size = b.value(f"shl {word} {b.value(f'and {word} {bits}, {constant(0x7FFF)}')}, {constant(13)}")
        # The exponent's bias differs by 112; subnormal numbers become normal ones.
        scaled = b.value(f"fmul {single} {b.value(f'bitcast {word} {size} to {single}')}, {splat(_2_112, 'float', w)}")
        finite = b.value(f"icmp ult {word} {size}, {constant(0x7C00 << 13)}")
        special = b.value(f"or {word} {size}, {constant(0x7F80_0000)}")
        plain = b.value(f"bitcast {single} {scaled} to {word}")
        whole = b.value(f"select <{w} x i1> {finite}, {word} {plain}, {word} {special}")
        value = b.value(f"or {word} {whole}, {sign}")
        own = b.value(f"and {word} {whole}, {constant(0x7F80_0000)}")
        least = constant(LEAST["f16"] + 127 << 23)
        low = b.value(f"icmp ult {word} {own}, {least}")
        own = b.value(f"select <{w} x i1> {low}, {word} {least}, {word} {own}")
        zero = b.value(f"icmp eq {word} {size}, zeroinitializer")
        own = b.value(f"select <{w} x i1> {zero}, {word} zeroinitializer, {word} {own}")
        b.line(f"store {word} {value}, ptr {element_of(b, 'float', '%out', at)}, align 4")
        b.line(f"store {word} {own}, ptr {element_of(b, 'float', '%ap', at)}, align 4")

    repeat(b, "%k", w, block)
    return b.function(name, "ptr %a, ptr %out, ptr %ap, i64 %k")


#: 2**112 as f32, in the notation of LLVM.
_2_112 = "0x46F0000000000000"


def _declarations() -> str:
    lines = []
    kind = f"<{WIDTH} x double>"
    lines += [f"declare {kind} @llvm.{f}.v{WIDTH}f64({kind})" for f in ("fabs", "trunc")]
    single = f"<{WIDTH} x float>"
    lines.append(f"declare {single} @llvm.fma.v{WIDTH}f32({single}, {single}, {single})")
    return "\n".join(lines) + "\n"


#: By name: numbers are f64, they are added in a chain, their products are exact in f32.
_FORMS = {
    "narrow": (False, False, True), "wide": (True, False, True), "chain": (False, True, False),
    "chain_wide": (True, True, True), "whole": (False, True, True),
}  # fmt: skip
HALVES = "tile_halves"
ROWS_NAMES = (*(f"tile_rows_{form}" for form in _FORMS), "tile_rows_grouped")
NAMES = (*ROWS_NAMES, HALVES, *tilefactors.NAMES, *tileblocks.NAMES, *warpgroups.NAMES)


def module(attributes: str) -> str:
    """All functions as LLVM IR."""
    functions = [_grouped_function("tile_rows_grouped"), _halves_function(HALVES)]
    functions += [_rows_function(f"tile_rows_{form}", *how) for form, how in _FORMS.items()]
    functions += [*tilefactors.functions(), *tileblocks.functions(), *warpgroups.functions()]
    declarations = _declarations() + tileblocks.declarations()
    return (
        declarations + "\n".join(functions) + f"\nattributes #0 = {{ {attributes} }}\nattributes #1 = {{ nounwind }}\n"
    )
