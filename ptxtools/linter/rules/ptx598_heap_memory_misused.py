"""PTX598 | memory of the heap or the stack is used wrongly | 10.1, 9.7.17

What: memory of malloc or alloca that is accessed or freed after free or stackrestore, freed by an address inside of it,
or accessed outside of the bytes asked for, or read before anything is stored there. Certain: all of it happens in
instructions that run one behind the other; pointers that they store in such memory and load again are followed, and
those that threads give each other in shared memory: one may free what another one accesses or frees. Possible: malloc
may give no memory, so that it does not happen; a pointer that is freed twice may be null, which free ignores; or a word
is read of which only some bytes have been stored, and something is computed of the others.
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
from ..heap import Block, Use, nulls_of, uses_of
from ..registry import bodies_with
from ..unset import POSSIBLE, Source, bits_of, computed_with
from ..walk import tell

CODE = "PTX598"

#: Stands for blocks of the heap and of the stack.
_ANY = "any"
_MAY_BE_NULL = "possible: the pointer may be null, which free ignores"
#: Bytes in which a store may be anywhere that are noted as stored.
_FAR = 1 << 12


@bodies_with("call", "alloca")
def check(context: LintContext, facts: FunctionFacts) -> None:
    functions = {f.name for f in context.module.functions if f.body is None and f.name in ("malloc", "free")}
    if not functions and "alloca" not in facts.families:
        return
    nulls = nulls_of(facts) if functions else {}
    for run in facts.runs:
        written: dict[Block, set[int]] = {}
        parts: dict[int, Source] = {}
        used: set[int] = set()
        others = [(line.item, aside) for line in run if (aside := _may_write(line, functions)) is not None]
        passed, unseen = (
            0,
            {False: False, True: False},
        )  # of the others; whether blocks of heap and stack may be written
        for use in uses_of(facts, run, functions, nulls):
            used.add(id(use.line.item))
            at = use.line.item.span[0]
            while passed < len(others) and others[passed][0].span[0] < at:
                item, stack = others[passed]
                for each in (False, True) if id(item) not in used else ():
                    unseen[each] = unseen[each] or stack in (each, _ANY)
                passed += 1
            stack = use.pointer.block.stack
            message = _wrong(use, context) or ("" if unseen[stack] else _unwritten(use, written, parts))
            if message:
                section = "9.7.17" if stack else "10.1"
                help = (_MAY_BE_NULL,) if use.size is None and not use.pointer.block.whole else ()
                context.warn(CODE, message, part_span(use.line.item, use.operand), help=help, section=section)
        for source in computed_with(facts, run, parts):
            message = "only some bytes that are read here have been stored, and something is computed of the others"
            context.warn(
                CODE, message, part_span(source.item, 1), help=(POSSIBLE,), section="10.1" if functions else "9.7.17"
            )
    if functions:
        tell(context, facts, CODE, "heap", "10.1")


def _may_write(line: Line, functions: set[str]) -> bool | str | None:
    """Which blocks an instruction may write to, though nothing tells that it gets a pointer into one: of the heap
    (False), of the stack (True), of both, or None."""
    family, opcode = line.plan.family, line.item.opcode
    if family == "call":
        known = any(name in functions for operand in line.item.operands for name, _ in operand_names(operand))
        return None if known else _ANY
    if family not in ("st", "atom", "red", "cp", "multimem") or ".shared" in opcode or ".param" in opcode:
        return None
    return True if ".local" in opcode else False if ".global" in opcode else _ANY


def _unwritten(use: Use, written: dict[Block, set[int]], parts: dict[int, Source]) -> str:
    """Whether a load reads an element of a new block of which nothing has stored a byte; notes what is stored, and in
    `parts`, by the identity of a load, an element of which only some bytes are."""
    block, offset, spread = use.pointer
    if not block.whole or use.size is None:
        return ""
    known = written.setdefault(block, set())
    reach = range(offset, offset + use.size + min(spread, _FAR))
    if use.line.plan.family != "ld":
        known.update(reach)
        if spread > _FAR:
            block.whole = False  # it may be written anywhere
        return ""
    if spread:
        return ""
    count = next((n for n in (2, 4, 8) if f".v{n}." in use.line.item.opcode), 1)
    size = use.size // count
    elements = [range(first, first + size) for first in reach[::size]]  # in part: what ends a structure may lack
    for place, element in enumerate(elements):
        unset = bits_of([byte - element[0] for byte in element if byte not in known])
        if unset and not known.isdisjoint(element) and id(use.line.item) not in parts:
            parts[id(use.line.item)] = Source(use.line.item, place, unset)
    missing = next((element[0] for element in elements if known.isdisjoint(element)), None)
    return "" if missing is None else f"byte {missing} of the block is read, and nothing has stored it"


def _wrong(use: Use, context: LintContext) -> str:
    """What is wrong with a use; empty if nothing is."""
    block, offset, spread = use.pointer
    if block.freed is not None and offset >= 0:
        where = context.source.line_of(block.freed.item.span[0])
        return f"the memory was {'given back' if block.stack else 'freed'} in line {where}"
    if not block.whole:
        return ""
    if use.size is None:
        return f"free gets an address {offset} bytes behind the begin of the block" if offset and not spread else ""
    if offset + spread < 0:
        return f"access {-offset} bytes before the block"
    if block.size is not None and offset + use.size > block.size:
        return f"access of bytes {offset} to {offset + use.size - 1} of a block of {block.size}"
    return ""
