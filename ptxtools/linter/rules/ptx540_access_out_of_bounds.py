"""PTX540 | access outside of a variable | 6.4.1

What: a load or store at a constant offset outside of the variable it names; or of a column of tensor memory that
tcgen05.alloc has not given, or of lanes of tensor memory that the warp does not reach.
Why: it reads or overwrites other data, or faults.
Example:
    .shared .align 4 .b32 table[4];
    ld.shared.b32 %r1, [table+16];
Better:
    .shared .align 4 .b32 table[4];
    ld.shared.b32 %r1, [table+12];
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..accesses import Access, variable_bytes
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import bodies_with, variable_accesses
from ..walk import tell

CODE = "PTX540"


@variable_accesses
def check(context: LintContext, line: Line, access: Access) -> None:
    op, symbol, first, size = access.op, access.symbol, access.offset, access.size
    if not size or access.misaligned:
        return
    total = variable_bytes(symbol)
    if total is not None and not 0 <= first <= total - size:
        message = (
            f"'{op.text}' accesses bytes {first} to {first + size - 1} of '{symbol.name}', which has {total} bytes"
        )
        context.warn(CODE, message, part_span(line.item, access.operand), section="6.4.1")


@bodies_with("tcgen05")
def check_columns(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "tensor columns", "9.7.16.1.1")
    tell(context, facts, CODE, "tensor lanes", "9.7.16.2.3")
