"""PTX541 | misaligned access | 6.4.1

What: a load or store at a constant offset that is not a multiple of its size.
Why: misaligned accesses fault at run time.
Example:
    .shared .align 8 .b8 table[32];
    ld.shared.b64 %rd1, [table+4];
Better:
    .shared .align 8 .b8 table[32];
    ld.shared.b64 %rd1, [table+8];
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..accesses import Access
from ..context import LintContext
from ..facts import Line
from ..registry import variable_accesses

CODE = "PTX541"


@variable_accesses
def check(context: LintContext, line: Line, access: Access) -> None:
    if access.misaligned:
        where = f"'{access.symbol.name}{access.offset:+d}'"
        message = f"{where} is not aligned to the {access.size} bytes that '{access.op.text}' accesses"
        context.warn(CODE, message, part_span(line.item, access.operand), section="6.4.1")
