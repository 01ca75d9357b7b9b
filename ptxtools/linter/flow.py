"""PTX510 to PTX520: code that nothing reaches, bodies without an end, registers that nothing writes."""

from __future__ import annotations

from ptxtools.ir.nodes import BranchTargets, CallPrototype, CallTargets, Label, Loc, Name, Pair, Pragma, Variable

from . import codes
from .context import LintContext
from .facts import ENDING, FunctionFacts, Line

#: Statements that do not run.
_SILENT = (Loc, Variable, Pragma, BranchTargets, CallPrototype, CallTargets)
#: What compilers put behind a call that does not return, or at the end of a body.
_FILLER = frozenset({"trap", "ret", "exit", "brkpt", "bra", "brx"})


def check_unreachable(context: LintContext, facts: FunctionFacts) -> None:
    """PTX510: instructions behind an unconditional jump that no label leads to; once for each stretch."""
    dead = False
    for item in facts.items:
        if isinstance(item, Label):
            dead = False
        elif isinstance(item, Line):
            if dead and item.plan.family not in _FILLER:
                message = "nothing reaches this instruction: an unconditional jump stands before it, and no label"
                context.warn(codes.UNREACHABLE, message, context.parts(item.item).opcode, section="9.7.12")
                dead = False
            elif item.plan.family in ENDING and item.item.guard is None:
                dead = True


def check_end(context: LintContext, facts: FunctionFacts) -> None:
    """PTX511: control may run past the last instruction of a body."""
    last = next((item for item in reversed(facts.items) if not _silent(item, facts)), None)
    if isinstance(last, Line) and last.plan.family in ENDING and last.item.guard is None:
        return
    if isinstance(last, Line) and _never_returns(last):
        return
    function = facts.function
    message = f"control can run past the end of '{function.name}'"
    end = "exit or ret" if function.kind == "entry" else "ret"
    context.warn(
        codes.FALLS_OFF_END, message, function.name_span, help=(f"end the body with {end}",), section="9.7.12.6"
    )


def _silent(item: object, facts: FunctionFacts) -> bool:
    """A statement that does not run; labels that nothing jumps to mark the end for debuggers."""
    return isinstance(item, _SILENT) or (isinstance(item, Label) and item.name not in facts.targets)


def _never_returns(line: Line) -> bool:
    """A call of a `.noreturn` function may stand last."""
    from ptxtools.ir.nodes import Directive, Function

    if line.plan.family != "call":
        return False
    callee = next((o for o in line.item.operands if isinstance(o, Name)), None)
    symbol = line.names.lookup(callee.name) if callee is not None else None
    if not isinstance(symbol, Function):
        return False
    return any(isinstance(d, Directive) and d.name == ".noreturn" for d in symbol.directives)


def check_discarded(context: LintContext, line: Line) -> None:
    """PTX512: a comparison whose every result goes to `_`."""
    first = line.item.operands[0] if line.item.operands else None
    halves = (first.first, first.second) if isinstance(first, Pair) else (first,)
    if all(isinstance(half, Name) and half.name == "_" for half in halves):
        message = f"'{line.item.opcode}' discards its result: it has no effect"
        context.warn(codes.RESULT_DISCARDED, message, context.operand(line.item, 0), section="9.7.6.2")


def check_never_written(context: LintContext, facts: FunctionFacts) -> None:
    """PTX520: a register is read, and nothing in the function writes it."""
    # Compilers pack and move undefined bytes about: only an instruction that computes with them is a hazard.
    parameters = {id(v) for v in (*facts.function.params, *facts.function.returns)}
    for key, item in facts.reads.items():
        declaration, name = key
        copies = item.opcode.startswith(("mov.", "prmt."))
        if key not in facts.writes and declaration not in parameters and not copies:
            message = f"register '{name}' is read here, but nothing ever writes it"
            context.warn(codes.NEVER_WRITTEN, message, context.word(item.span, name), section="5.1.1")
