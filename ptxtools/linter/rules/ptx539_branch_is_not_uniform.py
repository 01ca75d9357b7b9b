"""PTX539 | branch or call with .uni that is not uniform | 9.7.12.3, 9.7.12.4, 9.7.12.5

What: bra.uni or call.uni with a guard, brx.idx.uni with an index, or an indirect call.uni with an address, that
certainly differs between the threads of a warp.
Why: .uni promises that the active threads of a warp all go the same way; otherwise the behaviour is undefined.
Example:
    mov.u32 %r9, %laneid;
    setp.lt.u32 %p7, %r9, 16;
    @%p7 bra.uni DONE;
    mov.b32 %r1, 1;
    DONE: ret;
Better:
    mov.u32 %r9, %laneid;
    setp.lt.u32 %p7, %r9, 16;
    @%p7 bra DONE;
    mov.b32 %r1, 1;
    DONE: ret;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Guard, Name
from ptxtools.ir.positions import parts_of

from ..constants import thread_numbers
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..lanes import lanes_of, only_write
from ..registry import bodies_with, instructions
from ..values import WARP
from ..walk import tell

CODE = "PTX539"

_SECTIONS = {"bra": "9.7.12.3", "brx": "9.7.12.4", "call": "9.7.12.5"}


@instructions("bra", "call")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    guard = line.item.guard
    if guard is not None and ".uni" in line.item.opcode and lanes_of(facts, line, guard) is not None:
        message = f"the threads of a warp take this {line.item.opcode} differently"
        where = parts_of(line.item)
        context.warn(CODE, message, where.guard or where.opcode, section=_SECTIONS[line.plan.family])
    elif guard is None and line.plan.family == "call" and ".uni" in line.item.opcode and _of_several(facts, line):
        message = f"the threads of a warp call different functions by this {line.item.opcode}"
        context.warn(CODE, message, parts_of(line.item).opcode, section=_SECTIONS["call"])


def _of_several(facts: FunctionFacts, line: Line) -> bool:
    """Whether a call is by an address that `selp` takes by a predicate which differs in a warp."""
    pointer = next((one for one in line.item.operands if isinstance(one, Name)), None)
    written = None if pointer is None else only_write(facts, line, pointer.name)
    if written is None or written.plan.family != "selp" or written.item.guard is not None:
        return False
    first, second, by = written.item.operands[1:4]
    return first != second and isinstance(by, Name) and lanes_of(facts, written, Guard(by.name, False)) is not None


@instructions("brx")
def check_index(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    index = line.item.operands[0] if line.item.operands and line.item.guard is None else None
    if ".uni" not in line.item.opcode or not isinstance(index, Name):
        return
    numbers = thread_numbers(facts, line, index.name)
    if numbers is not None and any(
        numbers[thread] != numbers[thread - 1] for thread in range(len(numbers)) if thread % WARP
    ):
        message = f"the threads of a warp go to different labels from this {line.item.opcode}"
        context.warn(CODE, message, parts_of(line.item).opcode, section=_SECTIONS[line.plan.family])


@bodies_with("bra")
def check_ways(context: LintContext, facts: FunctionFacts) -> None:
    if any(".uni" in line.item.opcode for line in facts.of("bra")):
        tell(context, facts, CODE, "branch of some", "9.7.12.3")
