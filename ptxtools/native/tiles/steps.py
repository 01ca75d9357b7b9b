"""LLVM IR that computes a product in steps, without Python in between: `RUN` calls one function after another.

A step is a row of `WORDS` words: the address of a function of this file, and its operands as 64-bit words. It gets the
greatest exponent that a factor has had so far and answers with the new one; `factors.NOT_FINITE` or more ends the run,
before D has changed, for all steps that change it come last.
"""

from __future__ import annotations

from ptxtools.native.code.emitter import Emitter

from . import blocks, factors, sparse

#: Words of a step.
WORDS = 24
RUN, TAKE, SCATTER, NEGATE, BLOCK = (
    "tile_run",
    "tile_step_take",
    "tile_step_scatter",
    "tile_step_negate",
    "tile_step_block",
)
NAMES = (RUN, TAKE, SCATTER, NEGATE, BLOCK)
_STEP = "ptr %operands, i32 %highest"


def functions(code: Emitter) -> list[str]:
    """IR of all of them. take: a function of `factors` and its operands. scatter: operands of `sparse`. negate: values
    (f32) and how many vectors of 16. block: a function of `blocks` for "rows" and its operands, but for `force`. run
    (steps, how many): 1 if all of them were done, else 0."""
    return [_run(code), _take(code), _scatter(code), _negate(code), _block(code)]


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


def higher(b: Emitter, exponent: str) -> str:
    """The greater of an exponent and the highest so far."""
    return b.apply("smax", "i32", exponent, "%highest")


def _take(b: Emitter) -> str:
    function, *rest = operands(b, ["ptr", *types_of(factors.PARAMETERS)])
    found = b.value(f"call i32 {function.split()[1]}({', '.join(rest)})")
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


def _block(b: Emitter) -> str:
    function, *rest = operands(b, ["ptr", *types_of(blocks.PARAMETERS["rows"])[:-1]])
    force = b.value(f"icmp sgt i32 %highest, {blocks.HIGHEST}")
    b.line(f"call void {function.split()[1]}({', '.join(rest)}, i1 {force})")
    return b.function(BLOCK, _STEP, "%highest")
