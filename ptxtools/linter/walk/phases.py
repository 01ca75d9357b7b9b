"""What is wrong with the phases of an mbarrier in a walk: bytes, arrivals, and waits that never end."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, cast

from ptxtools.ir.nodes import Immediate, Variable

from ..accesses import variable_bytes
from ..values import WARP, Value
from .barriers import first_of
from .bars import Bar
from .computing import Op, reason_of
from .shadow import ends

if TYPE_CHECKING:
    from .memory import Memory
    from .program import Program
    from .shadow import Place, Touch
    from .walker import Group, Walker

_HALVES = (0xFFFFFFFF, 0xFFFFFFFF << WARP)
#: Bytes of an mbarrier.
_BYTES = 8
#: Instructions behind a wait among which a branch leads back to it.
_BACK = 3
_WAITS = (".try_wait", ".test_wait")
#: What may arrive at an mbarrier from elsewhere.
_ELSEWHERE = ("mapa", ".multicast", "call")


def look_at_bytes(memory: Memory, bar: Bar) -> None:
    """Whether the copies of a phase bring what is expected, where the same threads do both."""
    op, expected, brought = bar.expects, bar.expected, bar.brought
    if op is None or expected is None or (memory.threads.apart and not brought):
        return
    threads = memory.threads
    all_there = memory.clusters.is_pair if threads.apart else threads.whole and threads.declared
    all_known = all_there and not memory.walker.assumed
    if len(bar.who) != 1 and not all_known:
        return
    if not memory.threads.apart and memory.walker.program.reached_from_elsewhere(
        (*_ELSEWHERE, "st.async.", "red.async.")
    ):
        return
    if len(bar.tensors) == 1 and bar.copied == 1 and brought is None:
        _look_at_box(memory, bar.tensors[0], expected)
    if brought is None or expected == brought:
        return
    halves = 2 if memory.threads.apart and all(mask & half for mask in bar.who for half in _HALVES) else 1
    expected, brought = expected // halves, brought // halves
    message = f"{expected} bytes are expected, and the copies in this phase bring {brought}"
    memory.walker.report("bytes differ", op.line, len(op.line.item.operands) - 1, message)


def _look_at_box(memory: Memory, copy: tuple[Op, Value], expected: int) -> None:
    """Whether a tensor copy of as many bytes as are expected fits into the variable that it writes."""
    op, address = copy
    symbol = op.line.names.lookup(address.variable or "")
    total = variable_bytes(symbol) if isinstance(symbol, Variable) else None
    if total is not None and isinstance(address.each, int) and address.each + expected > total:
        message = (
            f"the mbarrier expects {expected} bytes of this copy to byte {address.each} of '{address.variable}', which "
            f"has {total} bytes"
        )
        memory.walker.report("beyond a variable", op.line, 0, message)


def look_at_arrivals(memory: Memory, bar: Bar, value: Value, op: Op, mask: int) -> None:
    """Whether a warp arrives in a phase, of which it cannot know whether another warp has completed it alone."""
    walker, count = memory.walker, bar.count
    if count is None or bar.vague or walker.assumed or memory.blind or not isinstance(value.each, int):
        return
    if memory.threads.apart or not memory.threads.declared or not value.terms or value.terms[0][0][0] != "&":
        return
    late = 0
    if mask & _HALVES[0] and mask & _HALVES[1]:  # both arrive here
        late = mask & _HALVES[1] if not bar.arrivals and mask.bit_count() > count else 0
    else:
        half = int(not mask & _HALVES[0])
        other = bar.released[1 - half]
        first = bar.arrivals >= count and bar.released[half] <= bar.past[half]
        if first and other > bar.past[1 - half] and other >= memory.shadow.known[1 - half][half]:
            late = mask
    if late:
        message = (
            f"{memory.threads.name(first_of(late))} arrives here, too, and the phase is over with {count} arrival"
            f"{'s' * (count > 1)}: those of another warp may have been enough"
        )
        walker.report("phase of fewer", op.line, None, message)


def look_at_everybody(memory: Memory, bar: Bar, value: Value, op: Op) -> None:
    """Whether more threads of the CTA than a phase takes come to the first arrivals, those that do not walk included,
    and none of them can know of the others."""
    walker, count, threads = memory.walker, bar.count, memory.threads
    if count is None or bar.vague or bar.phase or walker.assumed or memory.blind or threads.apart or threads.whole:
        return
    if not threads.declared or not isinstance(value.each, int) or value.variable is None:
        return
    since = (*memory.shadow.known[0], *memory.shadow.known[1])
    if bar.since != since:
        if bar.arrivals:
            return
        bar.since, bar.everybody = since, {}
    if id(op.line.item) in bar.everybody:
        return
    bar.everybody[id(op.line.item)] = walker.program.first_rounds(threads.size).at(op.line, op.addresses[0][0])
    come = sum(bar.everybody.values())
    if come > count and come % count and walker.program.reached_from_elsewhere(_WAITS):
        message = (
            f"{come} arrivals come here, none behind another one, and the phase is over with {count}: those of others "
            "may have been enough"
        )
        walker.report("phase of fewer", op.line, None, message)


def look_at_lanes(memory: Memory, bar: Bar, op: Op, size: int, mask: int) -> None:
    """Whether more threads than a phase takes arrive together, and the bytes that they expect keep it from ending."""
    walker, count = memory.walker, bar.count
    if count is None or bar.vague or not size or walker.assumed or memory.blind:
        return
    if memory.threads.declared and not memory.threads.apart and mask.bit_count() > count:
        message = (
            f"{mask.bit_count()} threads arrive here together, each expects {size} bytes, and a phase takes {count} "
            f"arrival{'s' * (count > 1)}"
        )
        walker.report("phase of fewer", op.line, None, message)


def look_at_last(memory: Memory, bar: Bar, op: Op, times: int, mask: int) -> None:
    """Whether arrivals that must not complete a phase, of each thread so many, are as many as it takes still."""
    if bar.count is None or bar.vague or memory.walker.assumed or memory.blind or memory.threads.apart:
        return
    left, come = bar.count - bar.arrivals % bar.count, mask.bit_count() * times
    if come >= left:
        message = (
            f"{come} arrival{'s' * (come > 1)} come here, and this phase takes {left} still: .noComplete must not "
            "complete it"
        )
        memory.walker.report("phase of fewer", op.line, None, message)


def look_at_waiting(memory: Memory, op: Op, place: Place, mask: int) -> None:
    """Whether threads invalidate an mbarrier of which they cannot know that another warp has done with waiting."""
    if memory.threads.apart or memory.blind or memory.walker.assumed or place.space != "shared":
        return
    known = memory.shadow.known
    for touch in memory.shadow.at("mbarrier", place.address.terms):
        if touch.address != place.address or "_wait" not in touch.line.item.opcode or touch.doubtful:
            continue
        for half in (0, 1):
            late = touch.mask & _HALVES[1 - half]
            if mask & _HALVES[half] and late and touch.moment >= known[1 - half][half]:
                message = f"{memory.threads.name(first_of(late))} may still wait for this mbarrier in line {{line}}"
                memory.walker.report("mbarrier in use", op.line, None, message, touch.line)
                return


def look_at_store(memory: Memory, touch: Touch, alive: list[int]) -> None:
    """Whether a store or copy reaches into an mbarrier. alive: the initialised ones, by their offsets in order."""
    if memory.threads.kind == "cluster" or memory.threads.apart or memory.walker.assumed or touch.doubtful:
        return
    least, most = ends(touch.address.each)
    for bar in alive[bisect_right(alive, least - _BYTES) : bisect_left(alive, most + touch.size)]:
        for thread, number in enumerate(touch.address.numbers):
            if touch.mask >> thread & 1 and bar - touch.size < number < bar + _BYTES:
                verb = "copies" if touch.line.plan.family == "cp" else "stores"
                message = f"{memory.threads.name(thread)} {verb} into an mbarrier"
                memory.walker.report("mbarrier stored", touch.line, touch.operand, message)
                return


def parity_of(walker: Walker, group: Group, op: Op, mask: int = 0) -> int | None:
    """The parity of the phase that all threads wait for, or those of a mask; None if that is not known."""
    value = _waited_for(walker, group, op) if ".parity" in op.opcode else None
    if value is None or value.terms or not (mask or isinstance(value.each, int)):
        return None
    found = {number & 1 for thread, number in enumerate(value.numbers) if not mask or mask >> thread & 1}
    return found.pop() if len(found) == 1 else None


def phase_of(walker: Walker, group: Group, op: Op, where: Value) -> int | None:
    """The parity of the phase of an mbarrier of which threads hold the state, and for which they wait; None if that is
    not known."""
    value = _waited_for(walker, group, op) if ".parity" not in op.opcode else None
    why = reason_of(value) if value is not None else ()
    return cast("int", why[2]) & 1 if why[:2] == ("phase", where) else None


def _waited_for(walker: Walker, group: Group, op: Op) -> Value | None:
    """What a wait says of the phase that it is for."""
    operand = op.line.item.operands[2] if len(op.line.item.operands) > 2 else None
    if isinstance(operand, Immediate):
        return Value((), operand.value)
    key = next((key for key in op.reads if key[1] == getattr(operand, "name", None)), None)
    return walker.value(group, key) if key is not None else None


def spins(program: Program, pc: int) -> bool:
    """Whether a wait is repeated until it succeeds."""
    back = [program.target(at) for at in range(pc + 1, min(pc + 1 + _BACK, len(program.lines)))]
    return any(to is not None and to <= pc for to in back)


def look_at_stuck(walker: Walker, bars: dict[Value, Bar], bar: Bar, groups: list[Group]) -> None:
    """Whether nobody can complete the phase that threads wait for."""
    memory, threads, program = walker.memory, walker.threads, walker.program
    if walker.assumed or memory.blind or threads.apart or not (threads.whole and threads.declared):
        return
    if any(one.count is None or one.vague for one in bars.values()) or program.reached_from_elsewhere(_ELSEWHERE):
        return
    for group in groups:
        op = program.at(group.pc)
        if spins(program, group.pc):
            message = (
                f"{threads.name(first_of(group.mask))} waits here for ever: {bar.arrivals} of {bar.count} arrivals come"
            )
            walker.report("wait without end", op.line, None, message)
            walker.stop()
