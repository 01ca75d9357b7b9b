"""LLVM IR of the functions that `tiles` calls: products of matrices of numbers and their powers, in rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ptxtools.native.code.emitter import ZERO, Emitter, module_of
from ptxtools.semantics.accumulation import SCALED_GROUP
from ptxtools.semantics.tensorcore import LEAST

from . import addends, blocks, factors, fused, scales, sparse, steps, tensor, wgmma
from .decode import EXPONENT, SHORT, SINGLE, SIZE, WORD, decode, everywhere
from .sums import PARAMETERS, ROWS, WIDTH, VectorSums, chain_elements, elements

#: Groups of columns that block-scaled fp4 has at most (K = 128).
_MOST_GROUPS = 8


def _rows_function(code: Emitter, name: str, wide: bool, chain: bool, exact: bool) -> str:
    """D in rows. Four rows are computed together."""
    b = code
    k = VectorSums(b, WIDTH, wide, exact)
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
            return b.value(f"load {k.vector}, ptr {place}, align 4")

        def place_of(base: str, stride: str, number: int) -> str:
            index = b.value(f"add i64 {b.value(f'mul i64 {places[number]}, {stride}')}, {column}")
            return b.value(f"getelementptr float, ptr {base}, i64 {index}")

        addends = [k.addend(place_of("%c", "%stride.c", i)) for i in range(ROWS)]
        for i, result in enumerate(step(k, ROWS, addends, load_a, load_b)):
            target = place_of("%out", "%stride.out", i)
            b.line(f"store <{WIDTH} x float> {result}, ptr {target}, align 4")

    b.repeat("%columns", WIDTH, lambda column: b.repeat("%rows", ROWS, lambda row: block(row, column)))
    return b.function(name, PARAMETERS)


def _grouped_function(code: Emitter, name: str) -> str:
    """D in rows, for block-scaled fp4: 16 columns are summed exactly, scaled, and then aligned with other sums.

    %ap holds value and power of A's scale factors, [row][group][2]; %bp those of B, [group][2][column]; all f64.
    """
    b = code
    k = VectorSums(b, WIDTH, wide=True)
    k.constants()
    vector = f"<{WIDTH} x float>"
    groups = b.value(f"lshr i64 %k, {SCALED_GROUP.bit_length() - 1}")
    sums = b.room(f"[{_MOST_GROUPS * ROWS} x {k.doubles}]")
    most = [b.room(k.doubles) for _ in range(ROWS)]

    def one(group: str, row: str, column: str) -> None:
        at = b.value(f"mul i64 {group}, {2}")
        line = b.value(f"mul i64 {at}, %columns")
        scale_b, power_b = (
            b.value(f"load {k.doubles}, ptr {b.element('double', '%bp', line, column, extra)}, align 8")
            for extra in ("0", "%columns")
        )
        for i in range(ROWS):
            place = b.value(f"add i64 {row}, {i}")
            total = "zeroinitializer"
            for j in range(SCALED_GROUP):
                index = b.value(f"add i64 {b.value(f'mul i64 {group}, {SCALED_GROUP}')}, {j}")
                left = b.value(f"load float, ptr {b.element('float', '%a', b.value(f'mul i64 {place}, %k'), index)}")
                spread = b.spread("float", left, WIDTH)
                address = b.element("float", "%b", b.value(f"mul i64 {index}, %columns"), column)
                right = b.value(f"load {vector}, ptr {address}, align 4")
                term = b.value(f"fmul contract {vector} {spread}, {right}")
                total = b.value(f"fadd contract {vector} {total}, {term}")
            wide = b.value(f"fpext {vector} {total} to {k.doubles}")
            pair = b.value(f"mul i64 {b.value(f'mul i64 {place}, {groups}')}, 2")
            scale_a, power_a = (
                k.spread("double", b.value(f"load double, ptr {b.element('double', '%ap', pair, at, extra)}"))
                for extra in ("0", "1")
            )
            scaled = k.multiply(wide, k.multiply(scale_a, scale_b))
            slot = b.value(f"add i64 {b.value(f'mul i64 {group}, {ROWS}')}, {i}")
            b.line(f"store {k.doubles} {scaled}, ptr {b.element(k.doubles, sums, slot)}, align 64")
            own = k.multiply(power_a, power_b)
            known = b.value(f"load {k.doubles}, ptr {most[i]}, align 64")
            b.line(f"store {k.doubles} {k.greater(own, known)}, ptr {most[i]}, align 64")

    def block(row: str, column: str) -> None:
        places = [b.value(f"add i64 {row}, {i}") for i in range(ROWS)]
        addends = []
        for i, place in enumerate(places):
            address = b.element("float", "%c", b.value(f"mul i64 {place}, %stride.c"), column)
            addends.append(k.addend(address))
            b.line(f"store {k.doubles} {k.power_of(addends[i])}, ptr {most[i]}, align 64")
        b.repeat(groups, 1, lambda group: one(group, row, column))
        largest = [b.value(f"load {k.doubles}, ptr {p}, align 64") for p in most]
        units = [k.unit_of(p) for p in largest]
        totals = [b.room(k.doubles) for _ in range(ROWS)]
        for total, unit, addend in zip(totals, units, addends, strict=True):
            wide = b.value(f"fpext {vector} {addend} to {k.doubles}")
            b.line(f"store {k.doubles} {k.whole(k.multiply(wide, unit))}, ptr {total}, align 64")

        def add(group: str) -> None:
            for i, (total, unit) in enumerate(zip(totals, units, strict=True)):
                slot = b.value(f"add i64 {b.value(f'mul i64 {group}, {ROWS}')}, {i}")
                part = b.value(f"load {k.doubles}, ptr {b.element(k.doubles, sums, slot)}, align 64")
                known = b.value(f"load {k.doubles}, ptr {total}, align 64")
                summed = b.value(f"fadd {k.doubles} {known}, {k.whole(k.multiply(part, unit))}")
                b.line(f"store {k.doubles} {summed}, ptr {total}, align 64")

        b.repeat(groups, 1, add)
        for i, place in enumerate(places):
            total = b.value(f"load {k.doubles}, ptr {totals[i]}, align 64")
            result = k.finish(total, largest[i], largest[i], addends[i])
            address = b.element("float", "%out", b.value(f"mul i64 {place}, %stride.out"), column)
            b.line(f"store {vector} {result}, ptr {address}, align 4")

    b.repeat("%columns", WIDTH, lambda column: b.repeat("%rows", ROWS, lambda row: block(row, column)))
    return b.function(name, PARAMETERS)


def _halves_function(code: Emitter, name: str) -> str:
    """f16 at %a (%k of them, a multiple of 16) as f32 at %out, and the powers of the numbers at %ap."""

    def block(at: str) -> None:
        codes = code.value(f"load {SHORT}, ptr {code.element('i16', '%a', at)}, align 2")
        value = code.value(f"bitcast {SINGLE} {decode(code, 'f16', codes)} to {WORD}")
        power = code.value(f"and {WORD} {value}, {everywhere(EXPONENT)}")
        power = code.apply("umax", WORD, power, everywhere(LEAST["f16"] + 127 << 23))
        size = code.value(f"and {WORD} {value}, {everywhere(SIZE)}")
        zero = code.value(f"icmp eq {WORD} {size}, {ZERO}")
        power = code.value(f"select <{WIDTH} x i1> {zero}, {WORD} {ZERO}, {WORD} {power}")
        code.line(f"store {WORD} {value}, ptr {code.element('float', '%out', at)}, align 4")
        code.line(f"store {WORD} {power}, ptr {code.element('float', '%ap', at)}, align 4")

    code.repeat("%k", WIDTH, block)
    return code.function(name, "ptr %a, ptr %out, ptr %ap, i64 %k")


#: By name: numbers are f64, they are added in a chain, their products are exact in f32.
_FORMS = {
    "narrow": (False, False, True), "wide": (True, False, True), "chain": (False, True, False),
    "chain_wide": (True, True, True), "whole": (False, True, True),
}  # fmt: skip
HALVES = "tile_halves"
ROWS_NAMES = (*(f"tile_rows_{form}" for form in _FORMS), "tile_rows_grouped")
#: What is compiled together: a function by itself, unless others call it.
GROUPS = (
    *((name,) for name in (*ROWS_NAMES, HALVES, *factors.NAMES, *blocks.NAMES)), *fused.GROUPS,
    (sparse.SCATTER, steps.SCATTER), (scales.READ, scales.SCALE), (scales.GROUPED, scales.STEP_GROUPED),
    (steps.CONVERT, steps.FUSED), addends.NAMES,
    (steps.RUN, steps.TAKE, steps.NEGATE, steps.BLOCK, *tensor.NAMES), wgmma.NAMES,
)  # fmt: skip
NAMES = tuple(name for group in GROUPS for name in group)
#: What makes the IR of some functions, by their names.
_MAKERS: tuple[tuple[tuple[str, ...], Callable[[Emitter], list[str]]], ...] = (
    *(((f"tile_rows_{form}",), lambda code, form=form, how=how: [_rows_function(code, f"tile_rows_{form}", *how)])
      for form, how in _FORMS.items()),
    (("tile_rows_grouped",), lambda code: [_grouped_function(code, "tile_rows_grouped")]),
    ((HALVES,), lambda code: [_halves_function(code, HALVES)]),
    *(((name,), lambda code, name=name: [factors.function(code, name)]) for name in factors.NAMES),
    *(((name,), lambda code, name=name: [blocks.function(code, name)]) for name in blocks.NAMES),
    *(((name,), lambda code, name=name: fused.functions(code, (name,))) for name in fused.NAMES),
    ((sparse.SCATTER,), lambda code: [sparse.function(code)]),
    (scales.NAMES, scales.functions),
    (steps.NAMES, steps.functions),
    (addends.NAMES, addends.functions),
    (tensor.NAMES, lambda code: tensor.functions()),
    ((*wgmma.NAMES, *wgmma.CALLED), lambda code: wgmma.functions()),
)  # fmt: skip


def module(names: Sequence[str], attributes: str, features: Iterable[str] = (), *, brief: bool = False) -> str:
    """Some of `GROUPS` as LLVM IR, for CPUs with these features. brief: as of `Emitter`."""
    code = Emitter(features, brief=brief)
    wanted = {*names, *(wgmma.CALLED if "wgmma_product" in names else ())}
    texts = [text for made, make in _MAKERS if wanted.intersection(made) for text in make(code)]
    functions = [text for text in texts if text[text.index("@") + 1 : text.index("(")] in wanted]
    return module_of(functions, code.declarations, attributes, "nounwind")
