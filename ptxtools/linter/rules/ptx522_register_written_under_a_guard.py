"""PTX522 | register that is written in some threads only | 9.3

What: all writes of a register have one guard, and an instruction behind them reads it without that guard (but where a
function's argument decides it), or a selp takes it in lanes in which the guard does not hold (possible); or a thread
reads a register that only others have written, which took another way. Of the latter, certain. Or a value is stored
that nothing has written on one of the ways to there (or it is a sum of such a one), as a jump leads past all writes
(possible), or a wgmma certainly adds to such registers.
Why: where the guard does not hold, the register has no value. Possible: the value may not matter there.
Example:
    @%p1 mov.b32 %r9, 4;
    add.u32 %r10, %r9, %r1;
Better:
    mov.b32 %r9, 0;
    @%p1 mov.b32 %r9, 4;
    add.u32 %r10, %r9, %r1;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Guard, Name
from ptxtools.ir.positions import name_span
from ptxtools.ir.symbols import RegisterKey

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..inflight import accessed
from ..lanes import lanes_of, only_write
from ..paths import unwritten_on_a_way
from ..registry import bodies
from ..walk import tell

CODE = "PTX522"
#: By these threads leave.
_LEAVES = ("bra", "exit", "ret", "trap")

#: What reaches memory of others. Elsewhere compilers keep values that do not matter, as of elements beyond an array.
_ACCESSING, _OWN = ("st", "red", "atom", "ld"), ("shared", "local", "param")
#: Longest chain of computations that is followed back.
_DEPTH = 8


@bodies
def check(context: LintContext, facts: FunctionFacts) -> None:
    _guarded(context, facts)
    _on_a_way(context, facts)
    tell(context, facts, CODE, "unwritten register", "5.1.1")


def _by_argument(facts: FunctionFacts, line: Line, depth: int = _DEPTH) -> bool:
    """Whether a guard follows from what a function is called with: each caller may see to it that it holds."""
    names = [line.item.guard.name] if line.item.guard is not None else []
    while names and depth:
        depth -= 1
        found = []
        for name in names:
            made = only_write(facts, line, name)
            if line.registers[name] is not None and line.registers[name] not in facts.writes:
                return True
            if made is not None and made.item.opcode.startswith("ld.param"):
                return True
            found += [other for other, write in accessed(made) if not write] if made is not None else []
        names = found
    return False


def _guarded(context: LintContext, facts: FunctionFacts) -> None:
    alone = {key: line for key, line in facts.writes.items() if line.item.guard is not None and line.plan.positional}
    for again in facts.rewritten & alone.keys():
        del alone[again]
    if facts.function.kind != "entry":
        alone = {key: line for key, line in alone.items() if not _by_argument(facts, line)}
    if not alone:
        return
    names = {name for _, name in alone}
    written: dict[RegisterKey, Line] = {}
    for run in facts.runs:
        written = {}
        for line in run:
            if line.item.guard is not None and line.plan.family in _LEAVES:
                written = {key: write for key, write in written.items() if not _stays(write, line)}
            for name, write in accessed(line) if names else ():
                if name not in names:
                    continue
                key = line.registers[name]
                if key is None or key not in alone:
                    continue
                if write:
                    written[key] = line
                elif key in written and line.item.guard is None and not _selected(line, name):
                    message = f"'{name}' has a value only where '{alone[key].item.opcode}' above was executed"
                    context.warn(CODE, message, name_span(line.item, name), section="9.3")
                    names.discard(name)
                    alone.pop(key)
                elif key in written and (lanes := _chosen_unwritten(facts, line, name, alone[key])):
                    lane = (lanes & -lanes).bit_length() - 1
                    message = (
                        f"'{name}' is selected in lane {lane}, where '{alone[key].item.opcode}' above is not executed"
                    )
                    help = (f"possible: if lane {lane} comes here, and the value matters",)
                    context.warn(CODE, message, name_span(line.item, name), help=help, section="9.3")
                    names.discard(name)
                    alone.pop(key)


def _on_a_way(context: LintContext, facts: FunctionFacts) -> None:
    """Registers that an access of global memory reads where a jump leads past all writes."""
    parameters = {id(v) for v in (*facts.function.params, *facts.function.returns)}

    def matters(key: RegisterKey, line: Line) -> bool:
        if line.plan.family not in _ACCESSING or line.item.guard is not None or key[0] in parameters:
            return False
        return not any(f".{space}" in line.item.opcode for space in _OWN)

    for key, line, jump in unwritten_on_a_way(facts, matters):
        number = context.source.line_of(jump.item.span[0])
        message = f"'{key[1]}' is read here, and the jump in line {number} leads past all that writes it"
        help = ("possible: if threads go that way, and the value matters then",)
        context.warn(CODE, message, name_span(line.item, key[1]), help=help, section="5.1.1")


def _selected(line: Line, name: str) -> bool:
    """Whether a register is only one of two values that an instruction selects from."""
    return line.plan.family in ("selp", "slct") and line.item.operands[-1] != Name(name)


def _chosen_unwritten(facts: FunctionFacts, line: Line, name: str, write: Line) -> int:
    """The lanes in which a selp takes a register that a guarded instruction has not written there; 0 if not known."""
    operands = line.item.operands
    if line.plan.family != "selp" or line.item.guard is not None or write.item.guard is None:
        return 0
    places = [place for place, operand in enumerate(operands) if operand == Name(name)]
    decides = operands[-1]
    if places not in ([1], [2]) or not isinstance(decides, Name):
        return 0
    chosen = lanes_of(facts, line, Guard(decides.name, places == [2]))
    there = lanes_of(facts, write, write.item.guard)
    return chosen & ~there if chosen and there else 0


def _stays(write: Line, branch: Line) -> bool:
    """Whether only threads that have written go on behind a branch: it has the same predicate the other way round."""
    here, there = write.item.guard, branch.item.guard
    return here is not None and there is not None and here.name == there.name and here.negated != there.negated
