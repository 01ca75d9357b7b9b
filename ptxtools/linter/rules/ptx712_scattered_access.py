"""PTX712 | each lane accesses a sector of its own | 5.1.4

What: a load, store or cp.async of global memory at which the addresses of neighbouring threads are 64 bytes or more
apart; they follow from %tid.x. A thread that goes on to use most of the bytes up to its neighbour's is not reported.
Why: each lane moves a whole sector of 32 bytes: a warp takes up to 32 times the traffic.
Example:
    mov.u32 %r4, %tid.x;
    mad.wide.u32 %rd3, %r4, 256, %rd2;
    ld.global.b32 %r5, [%rd3];
Better:
    mov.u32 %r4, %tid.x;
    mad.wide.u32 %rd3, %r4, 4, %rd2;
    ld.global.b32 %r5, [%rd3];
"""

from __future__ import annotations

from itertools import pairwise

from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..inflight import copied
from ..memory import WARP, Reach, Step
from ..registry import bodies_with
from ..uniform import by_most, same_for_all

CODE = "PTX712"


_APART, _SECTOR = 64, 32


@bodies_with("ld", "st", "cp")
def check(context: LintContext, facts: FunctionFacts) -> None:
    found: list[tuple[Step, Reach, int]] = []
    used: dict[object, set[int]] = {}  # the bytes that one thread uses, those of all others being as far away
    for step in (step for steps in facts.steps for step in steps):
        access = _global(step)
        if access is None or step.atomic or isinstance(access.address.each, int):
            continue
        if not by_most(facts, step):
            continue
        apart = _apart(access)
        if apart >= _APART and access.size * 2 <= apart and same_for_all(facts, access.address):
            found.append((step, access, apart))
            first = access.address.numbers[0]
            used.setdefault(_place(access), set()).update(byte % apart for byte in range(first, first + access.size))
    for step, access, apart in found:
        # Sectors that the thread itself uses up come from the L1 cache after the first access.
        if len(used[_place(access)]) * 2 <= apart:
            message = f"neighbouring threads are {apart} bytes apart, and each accesses {access.size}"
            context.warn(CODE, message, part_span(step.line.item, access.operand), section="5.1.4")


def _global(step: Step) -> Reach | None:
    """The access to global memory; of an asynchronous copy, its source."""
    if step.family == "cp" and ".bulk" not in step.line.item.opcode:
        return next((one for one in copied(step) if one.space == "global"), None)
    return step.access if step.access is not None and step.access.space == "global" else None


def _apart(access: Reach) -> int:
    """Bytes between the addresses of two neighbouring threads of the first warp, at least; 0 if two threads have their
    words in one sector."""
    numbers = access.address.numbers[:WARP]
    if len({number // _SECTOR for number in numbers}) < WARP:
        return 0
    return min(abs(b - a) for a, b in pairwise(numbers))


def _place(access: Reach) -> object:
    """What is the same for accesses whose addresses differ by the same in all threads."""
    numbers = access.address.numbers[:WARP]
    return access.address.terms, tuple(number - numbers[0] for number in numbers)
