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
from ..facts import FunctionFacts
from ..memory import Reach, Step
from ..registry import bodies_with
from ..values import Terms
from ..walk import tell

CODE = "PTX547"

#: Bytes behind one unknown address that are looked at.
_MOST = 4096
#: Writes behind one unknown address of a run that a load is compared with one by one.
_PAIRS = 64


def _bytes(access: Reach) -> set[int]:
    """The bytes that the threads of two warps reach, behind what is unknown of the address."""
    return {start + byte for start in set(access.address.numbers) for byte in range(access.size)}


def _copied(facts: FunctionFacts, step: Step) -> Iterator[Reach]:
    """What a bulk copy writes of global memory, as far as it is known."""
    line = step.line
    if not line.item.opcode.startswith("cp.async.bulk.global.") or len(line.item.operands) < 3:
        return
    size = constant(facts, line, line.item.operands[2]) or 0
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
    copies = [step for steps in facts.steps for step in steps if step.family == "cp"] if loads else []
    for step in copies:
        for copied in _copied(facts, step):
            written.setdefault(copied.address.terms, set()).update(_bytes(copied))
    for step in loads:
        access = step.access
        if access is None or any(name.startswith("#?") for name, _ in access.address.terms):
            continue
        if not written.get(access.address.terms, set()).isdisjoint(_bytes(access)):
            told.add(id(step.line.item))
            message = "the kernel writes what this .nc load reads"
            context.warn(CODE, message, parts_of(step.line.item).opcode, section="9.7.9.9")
    for steps in facts.steps if loads else ():
        for step in _met(steps, told):
            message = "the kernel writes what this .nc load reads"
            context.warn(CODE, message, parts_of(step.line.item).opcode, section="9.7.9.9")
    tell(context, facts, CODE, "constant written", "9.7.9.9")


def _met(steps: list[Step], told: set[int]) -> Iterator[Step]:
    """Loads of a run of instructions that read what others of the run write, through rewritten registers, too."""
    loads = [step for step in steps if step.family == "ld" and step.has("nc") and id(step.line.item) not in told]
    #: What the first thread writes where all threads are as far from the next; and some writes, with that distance.
    even: dict[tuple[Terms, int], set[int]] = {}
    odd: dict[Terms, list[tuple[int | None, Reach]]] = {}
    for step in steps if loads else ():
        access = step.access if step.writes else None
        if access is not None and access.space in ("global", ""):
            stride, terms, numbers = _stride(access), access.address.terms, access.address.numbers
            if stride is not None:
                even.setdefault((terms, stride), set()).update(range(numbers[0], numbers[0] + access.size))
            if len(others := odd.setdefault(terms, [])) < _PAIRS:
                others.append((stride, access))
    for step in loads:
        access = step.access
        if access is not None:
            stride, terms, start = _stride(access), access.address.terms, access.address.numbers[0]
            alike = even.get((terms, stride)) if stride is not None else None
            meets = alike is not None and not alike.isdisjoint(range(start, start + access.size))
            others = odd.get(terms, [])
            if meets or any(access.meets(other) for by, other in others if by is None or by != stride):
                yield step


def _stride(access: Reach) -> int | None:
    """How far the addresses of neighbouring threads are apart, where that is the same for all."""
    each = access.address.each
    return 0 if isinstance(each, int) else each.step if isinstance(each, range) else None
