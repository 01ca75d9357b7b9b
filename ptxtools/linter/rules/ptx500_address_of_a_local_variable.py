"""PTX500 | address of a function's local memory that outlives it | 5.1.5

What: a function gives back the address of a .local variable of its own. Certain.
Why: the variable exists while the function runs: behind the call its memory belongs to others.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .visible .func (.reg .b64 o) f() {
        .local .align 8 .b8 v[32]; .reg .b64 %d<2>;
        st.local.b32 [v], 7;
        mov.b64 %d1, v;
        cvta.local.u64 o, %d1;
        ret;
    }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .visible .func f(.reg .b64 o) {
        .reg .b32 %r<2>;
        mov.b32 %r1, 7;
        st.b32 [o], %r1;
        ret;
    }
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.ir.nodes import Address, Name, Operand, Variable
from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import bodies
from ..values import Reader, known_values

CODE = "PTX500"


@bodies
def check(context: LintContext, facts: FunctionFacts) -> None:
    if facts.function.kind != "func" or not facts.function.returns:
        return
    results = {one.name for one in facts.function.returns}
    for run in facts.runs:
        reader = None
        for line, place, operand in _given(run, results):
            reader = reader or Reader(facts, known_values(facts))
            value = reader.of(operand, line)
            plain = [name for name, _ in value.terms if not name.startswith("cvta.")] if value is not None else []
            symbol = line.names.lookup(plain[0][1:]) if len(plain) == 1 and plain[0][0] == "&" else None
            if isinstance(symbol, Variable) and symbol.space == "local":
                message = f"the function gives back the address of '{symbol.name}', which ends with it"
                context.warn(CODE, message, part_span(line.item, place), section="5.1.5")
                return


def _given(run: list[Line], results: set[str]) -> Iterator[tuple[Line, int, Operand]]:
    """Where a function's results are written, with what."""
    for line in run:
        operands = line.item.operands
        if len(operands) < 2:
            continue
        into, source = operands[0], operands[1]
        if line.plan.family == "st" and isinstance(into, Address) and isinstance(into.base, Name):
            if into.base.name in results:
                yield line, 1, source
        elif line.plan.family in ("mov", "cvta", "add") and isinstance(into, Name) and into.name in results:
            yield line, 1, source
