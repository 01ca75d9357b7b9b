"""PTX598 | heap memory is used wrongly | 10.1

What: memory of malloc that is accessed or freed after free, freed by an address inside of it, or accessed outside of
the bytes asked for, or read before anything is stored there. Certain: all of it happens in instructions that run one
behind the other.
Why: the heap's own data stand before and behind; what is freed may be another thread's by then; what is new is not
defined.
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
from ..facts import FunctionFacts, Line, operand_names
from ..heap import Block, Use, uses_of
from ..registry import bodies_with

CODE = "PTX598"


@bodies_with("call")
def check(context: LintContext, facts: FunctionFacts) -> None:
    functions = {f.name for f in context.module.functions if f.body is None and f.name in ("malloc", "free")}
    if not functions:
        return
    for run in facts.runs:
        written: dict[Block, set[int]] = {}
        used: set[int] = set()
        others = [line.item for line in run if _may_write(line, functions)]
        passed, unseen = 0, False  # of the others
        for use in uses_of(run, functions):
            used.add(id(use.line.item))
            at = use.line.item.span[0]
            while passed < len(others) and others[passed].span[0] < at:
                unseen = unseen or id(others[passed]) not in used
                passed += 1
            message = _wrong(use, context) or ("" if unseen else _unwritten(use, written))
            if message:
                context.warn(CODE, message, part_span(use.line.item, use.operand), section="10.1")


def _may_write(line: Line, functions: set[str]) -> bool:
    """Whether an instruction may write to a block, though nothing tells that it gets a pointer into it."""
    family, opcode = line.plan.family, line.item.opcode
    if family == "call":
        return not any(name in functions for operand in line.item.operands for name, _ in operand_names(operand))
    aside = any(f".{space}" in opcode for space in ("shared", "local", "param"))
    return family in ("st", "atom", "red", "cp", "multimem") and not aside


def _unwritten(use: Use, written: dict[Block, set[int]]) -> str:
    """Whether a load reads bytes of a new block that nothing has stored; notes what is stored."""
    block, offset = use.pointer
    if not block.whole or use.size is None:
        return ""
    known = written.setdefault(block, set())
    reach = range(offset, offset + use.size)
    if use.line.plan.family != "ld":
        known.update(reach)
        return ""
    count = next((n for n in (2, 4, 8) if f".v{n}." in use.line.item.opcode), 1)
    size = use.size // count
    elements = [range(first, first + size) for first in reach[::size]]  # in part: what ends a structure may lack
    missing = next((element[0] for element in elements if known.isdisjoint(element)), None)
    return "" if missing is None else f"byte {missing} of the block is read, and nothing has stored it since malloc"


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
