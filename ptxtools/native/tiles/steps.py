"""LLVM IR that computes a product in steps, without Python in between: `RUN` calls one function after another.

A step is a row of `WORDS` words: the address of a function of this file, and its operands as 64-bit words. It gets the
greatest exponent that a factor has had so far and answers with the new one; `factors.NOT_FINITE` or more ends the run,
before D has changed, for all steps that change it come last.
"""

from __future__ import annotations

from ptxtools.native.code.emitter import Emitter

from . import blocks, converted, factors, sparse

#: Words of a step.
WORDS = 32
RUN, TAKE, SCATTER, NEGATE, CONVERT, BLOCK, FUSED = (
    "tile_run",
    "tile_step_take",
    "tile_step_scatter",
    "tile_step_negate",
    "tile_step_convert",
    "tile_step_block",
    "tile_step_fused",
)
NAMES = (RUN, TAKE, SCATTER, NEGATE, CONVERT, BLOCK, FUSED)
_STEP = "ptr %operands, i32 %highest"


def functions(code: Emitter) -> list[str]:
    """IR of all of them. take: where the greatest exponent goes (i32), a function of `factors`, its operands. scatter:
    operands of `sparse`. negate: values (f32) and how many vectors of 16. convert: where the base goes (i32), a
    conversion of `fused`, where the greatest exponent is, values, exponents, f64 and bytes, groups of 16, K, and how
    often all of it is to be done, for so many rows further on. block: a function of `blocks` for "rows" and its
    operands, but for `force`. fused: the same behind the function of `fused`, where the bases of A and B are, and
    what they were converted to. run (steps, how many): 1 if all of them were done, else 0."""
    return [_run(code), _take(code), _scatter(code), _negate(code), _convert(code), _block(code), _fused(code)]


def _run(b: Emitter) -> str:
    b.expand(f"""
  br label %each
each:
  %i = phi i64 [0, %0], [%i.next, %next]
  %highest = phi i32 [{factors.NO_EXPONENT}, %0], [%found, %next]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %work, label %end
work:
  %at = mul i64 %i, {8 * WORDS}
  %step = getelementptr i8, ptr %steps, i64 %at
  %function = load ptr, ptr %step
  %operands = getelementptr i64, ptr %step, i64 1
  %found = call i32 %function(ptr %operands, i32 %highest)
  %finite = icmp slt i32 %found, {factors.NOT_FINITE}
  br i1 %finite, label %next, label %end
next:
  %i.next = add i64 %i, 1
  br label %each
end:
  %answer = phi i32 [1, %each], [0, %work]
""")
    return b.function(RUN, "ptr %steps, i64 %count", "%answer")


def operands(b: Emitter, types: list[str]) -> list[str]:
    """Operands of a step, "ptr %v7" and so on, from its words."""
    found = []
    for i, kind in enumerate(types):
        value = b.value(f"load {'i32' if kind == 'i1' else kind}, ptr {b.element('i64', '%operands', str(i))}")
        found.append(f"{kind} {value}")
    return found


def types_of(parameters: str) -> list[str]:
    """The types in a list of parameters."""
    return [parameter.split()[0] for parameter in parameters.split(",") if parameter.strip()]


#: The types of the operands of a function of `blocks`, but for `force`.
_PLAIN = types_of(blocks.PARAMETERS["rows"])[:-1]


def higher(b: Emitter, exponent: str) -> str:
    """The greater of an exponent and the highest so far."""
    return b.apply("smax", "i32", exponent, "%highest")


def _take(b: Emitter) -> str:
    most, function, *rest = operands(b, ["ptr", "ptr", *types_of(factors.PARAMETERS)])
    found = b.value(f"call i32 {function.split()[1]}({', '.join(rest)})")
    b.line(f"store i32 {found}, {most}")
    return b.function(TAKE, _STEP, higher(b, found))


def _scatter(b: Emitter) -> str:
    given = operands(b, types_of(sparse.PARAMETERS))
    b.line(f"call void @{sparse.SCATTER}({', '.join(given)})")
    return b.function(SCATTER, _STEP, "%highest")


def _negate(b: Emitter) -> str:
    values, count = (operand.split()[1] for operand in operands(b, ["ptr", "i64"]))

    def turn(at: str) -> None:
        place = b.element("<16 x i32>", values, at)
        turned = b.value(
            f"xor <16 x i32> {b.value(f'load <16 x i32>, ptr {place}, align 64')}, splat (i32 {-(1 << 31)})"
        )
        b.line(f"store <16 x i32> {turned}, ptr {place}, align 64")

    b.repeat(count, 1, turn)
    return b.function(NEGATE, _STEP, "%highest")


def _convert(b: Emitter) -> str:
    kinds = ["ptr"] * 8 + ["i64"] * 3
    result, function, most, *places, groups, k, times = (o.split()[1] for o in operands(b, kinds))
    b.line(f"store i32 0, ptr {result}")
    most = b.value(f"load i32, ptr {most}")
    bytes_ = b.value(f"mul i64 {b.value(f'shl i64 {groups}, 4')}, {k}")

    def strip(number: str) -> None:
        first = b.value(f"mul i64 {number}, {bytes_}")
        kinds = ("float", "i16", "double", "i8", "i8")
        at = [b.element(kind, place, first) for kind, place in zip(kinds, places, strict=True)]
        base = b.value(f"call i32 {function}(ptr {at[0]}, ptr {at[1]}, i64 {groups}, i64 {k}, i32 {most}, i32 0, "
                       f"ptr {at[2]}, ptr {at[3]}, ptr {at[4]})")  # fmt: skip
        known = b.value(f"load i32, ptr {result}")
        none = b.value(f"icmp eq i32 {known}, {converted.NO_BASE}")
        b.line(f"store i32 {b.value(f'select i1 {none}, i32 {known}, i32 {base}')}, ptr {result}")

    b.repeat(times, 1, strip)
    return b.function(CONVERT, _STEP, "%highest")


def _block(b: Emitter) -> str:
    function, *rest = operands(b, ["ptr", *_PLAIN])
    force = b.value(f"icmp sgt i32 %highest, {blocks.HIGHEST}")
    b.line(f"call void {function.split()[1]}({', '.join(rest)}, i1 {force})")
    return b.function(BLOCK, _STEP, "%highest")


def _fused(b: Emitter) -> str:
    kinds = ["ptr"] * 9
    found = operands(b, [*kinds, "ptr", *_PLAIN])
    function, base_a, base_b, *places = (operand.split()[1] for operand in found[:9])
    common, own = places[:3], places[3:]
    plain, *rest = (operand.split()[1] for operand in found[9:])
    a, powers_a, b_values, powers_b, c, out, rows, columns, k, stride, _, *rule = rest
    force = b.value(f"icmp sgt i32 %highest, {blocks.HIGHEST}")
    bases = [b.value(f"load i32, ptr {base}") for base in (base_a, base_b)]
    no = [b.value(f"icmp eq i32 {base}, {converted.NO_BASE}") for base in bases]
    unfit = b.value(f"or i1 {force}, {b.value(f'or i1 {no[0]}, {no[1]}')}")
    whole = b.value(f"select i1 {unfit}, i64 0, i64 {b.value(f'and i64 {columns}, -{blocks.BLOCK}')}")
    base = b.value(f"add i32 {bases[0]}, {bases[1]}")
    numbers = ", ".join(f"{kind} {x}" for kind, x in zip(_PLAIN[-len(rule) :], rule, strict=True))

    def of_columns(first: str) -> list[str]:
        index = b.value(f"mul i64 {first}, {k}")
        return [b.element("float", b_values, index), b.element("i16", powers_b, index)]

    def strip(first: str) -> None:
        index = b.value(f"mul i64 {first}, {k}")
        mine = [b.element(kind, place, index) for kind, place in zip(("double", "i8", "i8"), own, strict=True)]
        operands = [f"ptr {x}" for x in [*mine, *common, b.element("float", out, first)]]
        operands += [f"i64 {rows}", f"i64 {k}", f"i32 {base}", f"i64 {stride}", f"ptr {plain}", f"ptr {a}"]
        operands += [f"ptr {x}" for x in [powers_a, *of_columns(first)]]
        b.line(f"call void {function}({', '.join(operands)}, {numbers})")

    b.repeat(whole, blocks.BLOCK, strip)
    left = b.value(f"sub i64 {columns}, {whole}")
    ends = [b.element("float", place, whole) for place in (c, out)]
    others = [f"ptr {x}" for x in [a, powers_a, *of_columns(whole), *ends]]
    sizes = [f"i64 {x}" for x in (rows, left, k, stride, stride)]
    b.line(f"call void {plain}({', '.join([*others, *sizes])}, {numbers}, i1 {force})")
    return b.function(FUSED, _STEP, "%highest")
