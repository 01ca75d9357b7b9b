"""PTX598 | heap memory is used wrongly | 10.1

What: memory of malloc that is accessed or freed after free, freed by an address inside of it, or accessed outside of
the bytes asked for. Certain: all of it happens in instructions that run one behind the other.
Why: the heap's own data stand before and behind; what is freed may be another thread's by then.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .extern .func free (.param .b64 p);
    .entry k(.param .b64 a) {
        .reg .b64 %d; .reg .b32 %r; .param .b64 p;
        ld.param.b64 %d, [a];
        st.param.b64 [p], %d;
        call free, (p);
        ld.b32 %r, [%d];
        ret;
    }
Better:
    .version 9.0
    .target sm_90
    .address_size 64
    .extern .func free (.param .b64 p);
    .entry k(.param .b64 a) {
        .reg .b64 %d; .reg .b32 %r; .param .b64 p;
        ld.param.b64 %d, [a];
        ld.b32 %r, [%d];
        st.param.b64 [p], %d;
        call free, (p);
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..heap import Use, uses_of
from ..registry import bodies_with

CODE = "PTX598"


@bodies_with("call")
def check(context: LintContext, facts: FunctionFacts) -> None:
    functions = {f.name for f in context.module.functions if f.body is None and f.name in ("malloc", "free")}
    if not functions:
        return
    for use in (use for run in facts.runs for use in uses_of(run, functions)):
        message = _wrong(use, context)
        if message:
            context.warn(CODE, message, part_span(use.line.item, use.operand), section="10.1")


def _wrong(use: Use, context: LintContext) -> str:
    """What is wrong with a use; empty if nothing is."""
    block, offset = use.pointer
    if block.freed is not None and offset >= 0:
        where = context.source.line_of(block.freed.item.span[0])
        return f"the memory was freed in line {where}"
    if not block.whole:
        return ""
    if use.size is None:
        return f"free gets an address {offset} bytes behind the begin of the block" if offset else ""
    if offset < 0:
        return f"access {-offset} bytes before the block that malloc gave"
    if block.size is not None and offset + use.size > block.size:
        return f"access of bytes {offset} to {offset + use.size - 1} of a block of {block.size}"
    return ""
