"""PTX533 | shuffle from a lane outside of the mask | 9.7.9.6

What: shfl.sync reads a lane that the mask does not name, where both are constants, or registers that hold one, or, of
.idx, follow from the numbers of the threads.
With .down: none reads one that it names, as some lanes of a sum get what they do not use; or all of them store what
they get.
Why: the value of a lane that does not take part is not defined.
Example:
    shfl.sync.idx.b32 %r4, %r1, 9, 31, 0xff;
Better:
    shfl.sync.idx.b32 %r4, %r1, 5, 31, 0xff;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Name
from ptxtools.ir.positions import part_span
from ptxtools.ir.symbols import RegisterKey
from ptxtools.records import NamedTuple

from ..constants import constant
from ..context import LintContext
from ..facts import ENDING, FunctionFacts, Line
from ..lanes import ALL
from ..masks import source_lane
from ..registry import bodies_with, instructions
from ..values import WARP
from ..walk import tell

CODE = "PTX533"


class _Read(NamedTuple):
    """A lane that a mask names, the one that it reads, and whether the mask names that one."""

    own: int
    source: int
    named: bool


def _reads(facts: FunctionFacts, line: Line) -> tuple[int, list[_Read]]:
    """A mask, and what the lanes that it names read; nothing where that is not constant, or it names all lanes."""
    op, operands = line.plan.op, line.item.operands
    if op is None or not op.has("sync") or len(operands) != 5:
        return ALL, []
    mask = constant(facts, line, operands[4])
    members = ALL if mask is None else mask & ALL
    lane, bound = [constant(facts, line, operand) for operand in operands[2:4]] if members != ALL else (None, None)
    if lane is None or bound is None:
        return members, []
    found = [(own, *source_lane(line.item.opcode, own, lane, bound)) for own in range(WARP) if members >> own & 1]
    return members, [_Read(own, source, members >> source & 1 == 1) for own, source, inside in found if inside]


@instructions("shfl")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    members, reads = _reads(facts, line)
    if ".down" in line.item.opcode:  # at the end of a sum lanes get what they do not use
        last = members.bit_length() - 1
        reads = [] if any(read.named for read in reads) else [read for read in reads if read.own == last]
    _tell_first(context, line, members, reads)


def _tell_first(context: LintContext, line: Line, members: int, reads: list[_Read]) -> None:
    read = next((read for read in reads if not read.named), None)
    if read is not None:
        message = f"lane {read.own} reads lane {read.source}, which is not in the mask {members:#x}"
        context.warn(CODE, message, part_span(line.item, 4), section="9.7.9.6")


@bodies_with("shfl")
def check_stored(context: LintContext, facts: FunctionFacts) -> None:
    for run in facts.runs:
        given: dict[RegisterKey, Line] = {}
        for line in run:
            if line.item.guard is not None and line.plan.family in ENDING:
                given.clear()
            for _, key, write in facts.used(line) if given else ():
                if key is not None and key in given and (write or _stores(line, key)):
                    shuffle = given.pop(key)
                    members, reads = _reads(facts, shuffle) if not write else (ALL, [])
                    if any(read.named for read in reads):  # else it is told already
                        _tell_first(context, shuffle, members, reads)
            into = line.item.operands[0] if line.plan.family == "shfl" and line.item.operands else None
            down = ".down" in line.item.opcode and line.item.guard is None
            for key in [line.registers[into.name]] if down and isinstance(into, Name) else ():
                if key is not None:
                    given[key] = line


def _stores(line: Line, key: RegisterKey) -> bool:
    """Whether all threads that come to an instruction store a register as it is, for others."""
    if line.plan.family != "st" or line.item.guard is not None or ".local" in line.item.opcode:
        return False
    return any(isinstance(one, Name) and line.registers[one.name] == key for one in line.item.operands[1:])


@bodies_with("shfl")
def check_walks(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "shuffle from outside", "9.7.9.6")
