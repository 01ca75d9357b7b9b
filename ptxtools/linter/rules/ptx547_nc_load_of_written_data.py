"""PTX547 | non-coherent load of data that the kernel writes | 9.7.9.9

What: ld.global.nc at an address that a thread of the same warps stores to, changes by an atomic operation, or has
written by a bulk copy; also in a function that the kernel calls.
Why: .nc promises that the data does not change while the kernel runs; the load may give old data.
Example:
    st.global.b32 [%rd1+4], %r1;
    ld.global.nc.b32 %r4, [%rd1+4];
Better:
    st.global.b32 [%rd1+4], %r1;
    ld.global.b32 %r4, [%rd1+4];
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.ir.positions import parts_of

from ..constants import constant
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..memory import Reach
from ..registry import bodies_with
from ..values import Terms
from ..walk import tell

CODE = "PTX547"

#: Bytes behind one unknown address that are looked at.
_MOST = 4096


def _bytes(access: Reach) -> set[int]:
    """The bytes that the threads of two warps reach, behind what is unknown of the address."""
    return {start + byte for start in set(access.address.numbers) for byte in range(access.size)}


def _copied(facts: FunctionFacts, line: Line) -> Iterator[Reach]:
    """What a bulk copy writes of global memory, as far as it is known."""
    if not line.item.opcode.startswith("cp.async.bulk.global.") or len(line.item.operands) < 3:
        return
    size = constant(facts, line, line.item.operands[2]) or 0
    for step in (step for steps in facts.steps for step in steps if step.line is line):
        address = step.addresses[0] if step.addresses else None
        if address is not None and 0 < size <= _MOST:
            yield Reach(0, "global", address, size)


@bodies_with("ld", "call")
def check(context: LintContext, facts: FunctionFacts) -> None:
    told: set[int] = set()
    written: dict[Terms, set[int]] = {}
    loads = [step for step in facts.accesses if step.family == "ld" and step.has("nc")]
    for step in facts.accesses if loads else ():
        if step.writes and step.access is not None and step.access.space in ("global", ""):
            known = written.setdefault(step.access.address.terms, set())
            if len(known) < _MOST:
                known.update(_bytes(step.access))
    for line in facts.of("cp") if loads else ():
        for copied in _copied(facts, line):
            written.setdefault(copied.address.terms, set()).update(_bytes(copied))
    for step in loads:
        access = step.access
        if access is None or any(name.startswith("#?") for name, _ in access.address.terms):
            continue
        if not written.get(access.address.terms, set()).isdisjoint(_bytes(access)):
            told.add(id(step.line.item))
            message = "the kernel writes what this .nc load reads"
            context.warn(CODE, message, parts_of(step.line.item).opcode, section="9.7.9.9")
    for steps in facts.steps:
        loads = [step for step in steps if step.family == "ld" and step.has("nc")]
        for load in loads:
            reach = load.access
            for other in steps if reach is not None and id(load.line.item) not in told else ():
                access = other.access if other.writes else None
                if reach is None or access is None or access.space not in ("global", ""):
                    continue
                if reach.meets(access):
                    message = "the kernel writes what this .nc load reads"
                    context.warn(CODE, message, parts_of(load.line.item).opcode, section="9.7.9.9")
                    break
    tell(context, facts, CODE, "constant written", "9.7.9.9")
