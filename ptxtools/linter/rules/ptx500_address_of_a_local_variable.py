"""PTX500 | address of a function's local memory that outlives it | 5.1.5

What: a function gives back the address of a .local variable of its own; or another one accesses memory at the address
that it has from there. Certain.
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

from ptxtools.ir.nodes import Address, Function, Name, Operand, Variable
from ptxtools.ir.positions import part_span

from ..constants import last_write
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import bodies, bodies_with
from ..values import Reader, known_values

CODE = "PTX500"


@bodies
def check(context: LintContext, facts: FunctionFacts) -> None:
    if facts.function.kind != "func" or not facts.function.returns:
        return
    found = _dead(facts)
    if found is not None:
        line, place, name = found
        message = f"the function gives back the address of '{name}', which ends with it"
        context.warn(CODE, message, part_span(line.item, place), section="5.1.5")


@bodies_with("call")
def check_callers(context: LintContext, facts: FunctionFacts) -> None:
    if not any(one.kind == "func" and one.returns and one.body is not None for one in context.module.functions):
        return
    for line in facts.of("ld", "st", "atom", "red"):
        for place, operand in enumerate(line.item.operands):
            base = operand.base if isinstance(operand, Address) else None
            call = last_write(facts, line, base.name) if isinstance(base, Name) else None
            if call is None or call.plan.family != "call" or call.item.guard is not None:
                continue
            names = [part.name for part in call.item.operands if isinstance(part, Name)]
            callee = context.facts.names.lookup(names[0]) if names else None
            dead = None
            if isinstance(callee, Function) and callee.body is not None and len(callee.returns) == 1:
                dead = _dead(context.facts.of(callee))
            if dead is not None:
                message = f"this is memory of '{dead[2]}', which has ended with '{names[0]}'"
                context.warn(CODE, message, part_span(line.item, place), section="5.1.5")
                return


def _dead(facts: FunctionFacts) -> tuple[Line, int, str] | None:
    """Where a function gives back the address of a variable of its own: instruction, operand, name."""
    results = {one.name for one in facts.function.returns}
    for run in facts.runs:
        reader = None
        for line, place, operand in _given(run, results):
            reader = reader or Reader(facts, known_values(facts))
            value = reader.of(operand, line)
            plain = [name for name, _ in value.terms if not name.startswith("cvta.")] if value is not None else []
            symbol = line.names.lookup(plain[0][1:]) if len(plain) == 1 and plain[0][0] == "&" else None
            if isinstance(symbol, Variable) and symbol.space == "local":
                return line, place, symbol.name
    return None


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
