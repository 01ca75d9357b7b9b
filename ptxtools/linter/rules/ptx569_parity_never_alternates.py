"""PTX569 | parity that never alternates | 9.7.13.15.16

What: a loop arrives at an mbarrier once in each round and waits for a phase with the same parity each time; neither the
address nor the parity changes in the loop.
Why: phases have the parities 0 and 1 in turn. From the second round on the wait is for the phase before, which is over,
so that it waits for nothing; or in each second round for one that comes later.
Example:
    .shared .align 8 .b64 bar;
    mbarrier.init.shared.b64 [bar], 1;
    mov.b32 %r4, 0;
    L:
    mbarrier.arrive.shared.b64 _, [bar];
    W:
    mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
    @!%p1 bra W;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p2, %r4, %r2;
    @%p2 bra L;
Better:
    .shared .align 8 .b64 bar;
    mbarrier.init.shared.b64 [bar], 1;
    mov.b32 %r4, 0;
    L:
    mbarrier.arrive.shared.b64 _, [bar];
    and.b32 %r5, %r4, 1;
    W:
    mbarrier.try_wait.parity.shared.b64 %p1, [bar], %r5;
    @!%p1 bra W;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p2, %r4, %r2;
    @%p2 bra L;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Address, Immediate, Name, Operand
from ptxtools.ir.positions import part_span

from ..constants import constant
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..lanes import only_write
from ..loops import Loop
from ..registry import bodies_with

CODE = "PTX569"

#: Instructions at one mbarrier in a loop that are looked at.
_USERS = 64

#: A variable's name or a register, and the bytes behind it.
Place = tuple[object, int]


@bodies_with("mbarrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    if not any(_is_wait(line) for line in facts.of("mbarrier")):
        return
    told: set[int] = set()
    for loop in facts.loops:
        uses = _uses(facts, loop)
        for line in [line for users in uses.values() for line in users if _is_wait(line)]:
            address = line.item.operands[1]
            place = _place(facts, loop, line, address)
            users = uses.get(place, []) if place is not None else []
            parity = line.item.operands[2]
            if (
                id(line.item) in told
                or len(users) > _USERS
                or line not in users
                or not _same(facts, loop, line, parity)
            ):
                continue
            others = [user for user in users if user is not line]
            again = any(_is_wait(user) and user.item.operands[2] != parity for user in others)
            arrivals = sum(".arrive" in user.item.opcode or user.plan.family == "tcgen05" for user in others)
            ends = any(user.item.opcode.startswith(("mbarrier.init", "mbarrier.inval")) for user in others)
            if arrivals == 1 and not again and not ends:
                told.add(id(line.item))
                message = "this waits for the same parity in each round of the loop, but phases alternate"
                context.warn(CODE, message, part_span(line.item, 2), section="9.7.13.15.16")


def _is_wait(line: Line) -> bool:
    return ".parity" in line.item.opcode and len(line.item.operands) > 2


def _uses(facts: FunctionFacts, loop: Loop) -> dict[Place, list[Line]]:
    """The instructions of the loop with an operand that is an address in brackets, by that address, if it stays."""
    found: dict[Place, list[Line]] = {}
    for line in loop.lines:
        if line.plan.family in ("mbarrier", "cp", "tcgen05"):
            for operand in line.item.operands:
                place = _place(facts, loop, line, operand)
                if place is not None:
                    found.setdefault(place, []).append(line)
    return found


def _place(facts: FunctionFacts, loop: Loop, line: Line, operand: Operand) -> Place | None:
    """Where an address is, if the loop does not change it."""
    if not isinstance(operand, Address) or operand.extra or not isinstance(operand.base, Name):
        return None
    key = line.registers[operand.base.name]
    if key is None:
        return operand.base.name, operand.offset
    made = only_write(facts, line, operand.base.name)
    source = made.item.operands[1] if made is not None and made.plan.family == "mov" else None
    if isinstance(source, Name) and made is not None and made.registers[source.name] is None:
        return source.name, operand.offset  # a variable
    return (key, operand.offset) if key not in loop.written else None


def _same(facts: FunctionFacts, loop: Loop, line: Line, parity: Operand) -> bool:
    if isinstance(parity, Immediate) or constant(facts, line, parity) is not None:
        return True
    return isinstance(parity, Name) and loop.invariant(line, parity.name)
