"""PTX546 | accesses of which one must be misaligned | 6.4.1

What: two accesses through one register, with offsets of which only one can be a multiple of what both need; or an
address that is an aligned variable's plus an offset that is not.
Why: misaligned accesses fault at run time.
Example:
    ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd1];
    ld.global.v4.b32 {%r8, %r9, %r10, %r11}, [%rd1+8];
Better:
    ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd1];
    ld.global.v2.b32 {%r8, %r9}, [%rd1+8];
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..accesses import element_bytes
from ..context import LintContext
from ..facts import FunctionFacts
from ..memory import variable_of
from ..registry import bodies_with
from ..values import Terms

CODE = "PTX546"


@bodies_with("ld", "st", "atom", "red")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for steps in facts.steps:
        seen: dict[Terms, dict[int, int]] = {}  # the first offset of an access of each size
        for step in steps:
            access = step.access
            if access is None or not isinstance(access.address.each, int) or access.size & (access.size - 1):
                continue
            bound = 1 << 4
            size, offset = min(access.size, bound), access.address.each
            symbol = variable_of(step.line, access.address)
            if symbol is not None:
                aligned = min(size, symbol.align or element_bytes(symbol))
                wrong = step.indirect and offset % aligned != 0
            else:
                others = seen.setdefault(access.address.terms, {})
                wrong = any((offset - other) % min(size, least) != 0 for least, other in others.items())
                others.setdefault(size, offset)
            if wrong:
                message = f"the address cannot be a multiple of {size} here, too"
                context.warn(CODE, message, part_span(step.line.item, access.operand), section="6.4.1")
                break
