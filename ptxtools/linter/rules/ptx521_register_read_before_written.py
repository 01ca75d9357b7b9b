"""PTX521 | register is read before it is written | 5.1.1

What: an instruction computes with a register that only later instructions write, or only this one: on no path to it has
anything written the register; or it stands before the first branch, and only behind it is the register written. Copies
(mov, prmt) are not reported, as compilers leave such ones where the value does not matter. Or addc, subc or madc takes
a carry that no instruction with .cc has given before: in the whole function, from its begin on, or since a call.
Why: the value is undefined.
Example:
    .reg .b32 %late;
    add.s32 %r2, %r1, %late;
    mov.b32 %late, 1;
    st.global.b32 [%rd1], %late;
Better:
    .reg .b32 %late;
    mov.b32 %late, 1;
    add.s32 %r2, %r1, %late;
    st.global.b32 [%rd1], %late;
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ptxtools.ir.positions import name_span, parts_of
from ptxtools.ir.symbols import RegisterKey

from ..context import LintContext
from ..facts import ENDING, FunctionFacts, Line
from ..paths import read_early
from ..registry import bodies, bodies_with

CODE = "PTX521"

#: Instructions that take a carry (9.7.2).
_CARRYING = ("addc", "subc", "madc")
_NEVER, _EARLY, _CALLED = "in this function", "before", "since the call above, which does not keep it"


@bodies_with("addc", "subc", "madc")
def check_carries(context: LintContext, facts: FunctionFacts) -> None:
    given = any(_gives_carry(line) for run in facts.runs for line in run)
    for run in facts.runs:
        lacks = _EARLY if run[0] is facts.lines[0] and 0 not in facts.jumps.values() else ""
        for line in run:
            missing = (lacks if given else _NEVER) if line.plan.family in _CARRYING else ""
            if missing:
                message = f"nothing has given the carry that '{line.item.opcode}' takes {missing}"
                context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.2")
                if not given:
                    return
            if line.plan.family == "call":
                lacks = _CALLED
            elif missing or _gives_carry(line):
                lacks = ""


def _gives_carry(line: Line) -> bool:
    return line.plan.op is not None and line.plan.op.has("cc")


@bodies
def check(context: LintContext, facts: FunctionFacts) -> None:
    parameters = {id(v) for v in (*facts.function.params, *facts.function.returns)}
    found = dict(read_early(facts))
    for (declaration, name), line in found.items():
        if declaration not in parameters and not line.item.opcode.startswith(("mov.", "prmt.")):
            message = f"register '{name}' is read here, and only later written"
            context.warn(CODE, message, name_span(line.item, name), section="5.1.1")
    for key, line in _first_reads(facts, found):
        if key[0] not in parameters and not line.item.opcode.startswith(("mov.", "prmt.")):
            message = f"register '{key[1]}' is read here, before anything has written it"
            context.warn(CODE, message, name_span(line.item, key[1]), section="5.1.1")
    for key, line in facts.writes.items():
        # Only this instruction writes the register, and it is the first that reads it.
        own = key not in facts.rewritten and facts.reads.get(key) is line.item and key[0] not in parameters
        if own and line.plan.op is not None and not line.item.opcode.startswith(("mov.", "prmt.")):
            message = f"register '{key[1]}' is read here, and nothing but this instruction writes it"
            context.warn(CODE, message, name_span(line.item, key[1]), section="5.1.1")


def _first_reads(facts: FunctionFacts, known: Collection[RegisterKey]) -> Iterator[tuple[RegisterKey, Line]]:
    """Registers that the instructions up to the first branch read, and only later ones write, without those known."""
    early = set(facts.early)
    for line in facts.lines if early else ():
        if line.plan.family in ENDING:
            return
        for _, key, write in sorted(facts.used(line), key=lambda each: each[2]):  # what it reads comes first
            if key in early and key is not None:
                early.discard(key)
                if not write and key not in known:
                    yield key, line
