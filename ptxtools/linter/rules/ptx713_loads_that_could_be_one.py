"""PTX713 | loads or stores that could be one vector access | 9.7.9.8, 5.4.2

What: loads of neighbouring elements of global memory with no store or barrier between them, or such stores with no
other access between them, that fill a vector of 16 bytes, or of four bytes or halves, whose address is certainly a
multiple of its size: it follows from the alignment of a variable or of a parameter's .ptr.
Why: each access takes an issue slot and a place in the queue of the load unit; a vector moves up to 16 bytes a lane.
ptxas 13.0 combines accesses to shared memory, but not to global memory.
Example:
    .global .align 16 .b32 table[64];
    ld.global.b32 %r4, [table];
    ld.global.b32 %r5, [table+4];
    ld.global.b32 %r6, [table+8];
    ld.global.b32 %r7, [table+12];
Better:
    .global .align 16 .b32 table[64];
    ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [table];
"""

from __future__ import annotations

from math import gcd

from ptxtools.ir.nodes import Variable
from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..memory import Reach, Step
from ..registry import bodies_with
from ..values import Value, plus

CODE = "PTX713"

#: Bytes of a vector at most, elements at most, and bytes of each.
_VECTOR, _MOST, _ELEMENTS = 16, 4, (1, 2, 4, 8)


@bodies_with("ld", "st")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for steps in facts.steps:
        group: list[tuple[Step, Reach]] = []
        for step in steps:
            access = step.access
            loading = not group or group[0][0].family == "ld"
            if access is not None and step.family == "ld" and access.space != "global" and loading:
                continue
            if access is not None and _plain(step, access):
                if group and group[0][0].family != step.family:
                    _report(context, facts, group)
                    group = []
                group.append((step, access))
            else:
                _report(context, facts, group)
                group = []
        _report(context, facts, group)


def _plain(step: Step, access: Reach) -> bool:
    return (
        step.family in ("ld", "st") and access.space == "global" and access.size in _ELEMENTS and not step.strong
        and step.line.item.guard is None and not step.has("v2", "v4", "v8")
    )  # fmt: skip


def _report(context: LintContext, facts: FunctionFacts, group: list[tuple[Step, Reach]]) -> None:
    """Look for whole vectors among accesses that nothing orders."""
    alike: dict[object, dict[int, tuple[Step, Reach]]] = {}
    for step, access in group if len(group) > 1 else ():
        number = access.address.numbers[0]
        shape = plus(access.address, Value((), number), -1)
        alike.setdefault((step.line.item.opcode, shape), {}).setdefault(number, (step, access))
    for words in alike.values():
        for number, (step, access) in sorted(words.items()):
            count = min(_MOST, _VECTOR // access.size)
            whole = count * access.size
            if number % whole or not all(number + n * access.size in words for n in range(count)):
                continue
            if alignment(facts, step, access.address) % whole == 0:
                first = min((words[number + n * access.size][0].line.item for n in range(count)), key=lambda i: i.span)
                kind = "loads" if step.family == "ld" else "stores"
                message = f"{count} {kind} of neighbouring elements, from an address that is a multiple of {whole}"
                name = step.line.item.opcode.rpartition(".")
                help = (f"use {name[0]}.v{count}.{name[2]}",)
                context.warn(CODE, message, parts_of(first).opcode, help=help, section="9.7.9.8")


def alignment(facts: FunctionFacts, step: Step, address: Value) -> int:
    """A number that the address is certainly a multiple of."""
    found = gcd(*address.numbers)
    for term, count in address.terms:
        found = gcd(found, count * _term_alignment(facts, step, term))
    return found or _VECTOR


def _term_alignment(facts: FunctionFacts, step: Step, term: str) -> int:
    if term[0] == "&":
        symbol = step.line.names.lookup(term[1:])
        return (symbol.align or 1) if isinstance(symbol, Variable) else 1
    name, _, offset = term.rpartition("+")
    for parameter in facts.function.params:
        if parameter.name == name and offset == "0" and parameter.ptr is not None:
            return parameter.ptr[1] or 1
    return 1
