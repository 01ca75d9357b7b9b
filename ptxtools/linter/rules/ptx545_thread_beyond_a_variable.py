"""PTX545 | some threads access beyond a variable | 6.4.1

What: the address is in a register, and is that of a variable plus a multiple of the thread's number; for some thread
that runs the instruction, if its CTA has it, the bytes are not the variable's; or they are not in the last round of a
loop that counts to a constant. Or a tensor copy has to bring more bytes, by what its mbarrier expects, than there are
from where it writes on; or a CTA of a cluster accesses what is behind a variable of another one. Or an index that
follows from the thread's number is negative, of a pointer that the kernel is given (possible: the pointer may be into
an array).
Why: it reads or overwrites other data, or faults.
Example:
    .shared .align 4 .b32 t[16];
    mov.u32 %r4, %laneid; shl.b32 %r5, %r4, 2; mov.u32 %r6, t; add.u32 %r6, %r6, %r5;
    st.shared.b32 [%r6], %r1;
Better:
    .shared .align 4 .b32 t[32];
    mov.u32 %r4, %laneid; shl.b32 %r5, %r4, 2; mov.u32 %r6, t; add.u32 %r6, %r6, %r5;
    st.shared.b32 [%r6], %r1;
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..accesses import variable_bytes
from ..arguments import is_pointer
from ..context import LintContext
from ..facts import FunctionFacts
from ..memory import access_bytes, variable_of
from ..registry import bodies_with
from ..rounds import last_accesses
from ..walk import tell

CODE = "PTX545"
_BEFORE = "possible: the pointer may be into an array"


@bodies_with("ld", "st", "atom", "red")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for step in facts.accesses:
        access = step.access
        symbol = variable_of(step.line, access.address) if access is not None else None
        total = variable_bytes(symbol) if symbol is not None else None
        if access is None or symbol is None or total is None or not step.indirect:
            continue
        numbers = access.address.numbers
        if isinstance(access.address.each, int):  # each thread that comes here
            active: tuple[bool, ...] = (True,) * len(numbers)
        elif step.active is None:
            continue
        else:
            active = step.active
        for thread, number in enumerate(numbers):
            if active[thread] and not 0 <= number <= total - access.size:
                what = f"byte {number} of '{symbol.name}', which has {total} bytes"
                who = "this accesses" if isinstance(access.address.each, int) else f"thread {thread} accesses"
                context.warn(CODE, f"{who} {what}", part_span(step.line.item, access.operand), section="6.4.1")
                break
    _look_before(context, facts)
    _look_at_last_rounds(context, facts)
    tell(context, facts, CODE, "beyond a variable", "6.4.1")


def _look_at_last_rounds(context: LintContext, facts: FunctionFacts) -> None:
    """Loops that go on behind the end of an array."""
    for line, operand, address, rounds in last_accesses(facts):
        symbol, size = variable_of(line, address), access_bytes(line)
        total = variable_bytes(symbol) if symbol is not None else None
        if symbol is None or total is None or not size or len(address.terms) > 1:
            continue
        number = address.numbers[0]
        if not 0 <= number <= total - size:
            message = f"round {rounds} accesses byte {number} of '{symbol.name}', which has {total} bytes"
            help = (f"certain: the loop has {rounds} rounds",)
            context.warn(CODE, message, part_span(line.item, operand), help=help, section="6.4.1")


def _look_before(context: LintContext, facts: FunctionFacts) -> None:
    """Whether threads access what is before a parameter's memory, whatever CTA they are of."""
    for step in facts.accesses:
        access = step.access
        if access is None or step.active is None or not is_pointer(facts.function, access.address, access.size):
            continue
        if len(access.address.terms) > 1 or isinstance(access.address.each, int) or access.space not in ("", "global"):
            continue
        numbers = zip(access.address.numbers, step.active, strict=True)
        thread = next((thread for thread, (number, runs) in enumerate(numbers) if runs and number < 0), None)
        if thread is not None:
            name = access.address.terms[0][0].rpartition("+")[0]
            message = f"thread {thread} accesses what is {-access.address.numbers[thread]} bytes before '{name}'"
            context.warn(CODE, message, part_span(step.line.item, access.operand), help=(_BEFORE,), section="6.4.1")
