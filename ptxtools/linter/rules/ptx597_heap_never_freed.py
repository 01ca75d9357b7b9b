"""PTX597 | malloc without free | 10.1

What: the module calls malloc, and neither calls free nor stores a pointer anywhere; or a way leads past the call
of free (possible).
Why: the memory is lost when the thread ends; the device's heap is small, and lives as long as the context.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .extern .func (.param .b64 r) malloc (.param .b64 n);
    .entry k() {
        .param .b64 n; .param .b64 r;
        st.param.b64 [n], 64;
        call (r), malloc, (n);
        ret;
    }
Better:
    .version 9.0
    .target sm_90
    .address_size 64
    .extern .func (.param .b64 r) malloc (.param .b64 n);
    .extern .func free (.param .b64 p);
    .entry k() {
        .reg .b64 %d; .param .b64 n; .param .b64 r; .param .b64 p;
        st.param.b64 [n], 64;
        call (r), malloc, (n);
        ld.param.b64 %d, [r];
        st.param.b64 [p], %d;
        call free, (p);
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.cfg import control_flow
from ptxtools.ir.positions import parts_of
from ptxtools.ir.symbols import RegisterKey

from ..context import LintContext
from ..facts import FunctionFacts, Line, operand_names
from ..inflight import accessed
from ..presence import first
from ..registry import bodies_with, modules_with

CODE = "PTX597"

_RUNTIME = {"malloc", "free"}
#: How many instructions behind a call its result is loaded.
_NEAR = 4


@modules_with("call")
def check(context: LintContext) -> None:
    if not context.facts.whole or first(context, r"(st|atom)\.(?!param|shared|local)\S*64") is not None:
        return
    calls = {name: line for facts in context.facts.functions for line in facts.lines if line.plan.family == "call"
             for operand in line.item.operands for name, _ in operand_names(operand)}  # fmt: skip
    if "malloc" in calls and "free" not in calls:
        message = "nothing frees what malloc gives"
        context.warn(CODE, message, parts_of(calls["malloc"].item).opcode, section="10.1")


@bodies_with("call")
def check_ways(context: LintContext, facts: FunctionFacts) -> None:
    """Follow what malloc gives: a block that the function alone knows has to be freed on each way to its end."""
    functions = {f.name for f in context.module.functions if f.body is None and f.name in _RUNTIME}
    if functions != _RUNTIME or "brx" in facts.families:
        return
    places = {id(line.item): place for place, line in enumerate(facts.lines)}
    for run in facts.runs:
        for place, line in enumerate(run):
            behind = run[place + 1 : place + 1 + _NEAR]
            if _callee(line) == "malloc" and (pointer := _result(behind, line)) is not None:
                jump = _way_without(facts, places[id(line.item)], pointer)
                if jump is not None:
                    number = context.source.line_of(jump.item.span[0])
                    message = f"behind line {number}, nothing frees what malloc gives here"
                    help = ("possible: if threads go that way",)
                    context.warn(CODE, message, parts_of(line.item).opcode, help=help, section="10.1")


def _callee(line: Line) -> str:
    if line.plan.family != "call":
        return ""
    names = [name for operand in line.item.operands for name, _ in operand_names(operand)]
    return next((name for name in names if name in _RUNTIME), "?")


def _result(run: list[Line], call: Line) -> RegisterKey | None:
    """The register that the result of malloc is loaded into by one of the instructions behind."""
    into = {name for name, _ in operand_names(call.item.operands[0])}
    for line in run:
        if line.item.opcode.startswith("ld.param") and any(name in into for name, write in accessed(line) if not write):
            return next((line.registers[name] for name, write in accessed(line) if write), None)
    return None


def _way_without(facts: FunctionFacts, call: int, pointer: RegisterKey) -> Line | None:
    """A guarded jump from which a way leads to the end past all calls of free that get a pointer; None if there is
    none, or the pointer goes elsewhere, or decides a jump. call: the number of the line that calls malloc."""
    aliases, parameter = {pointer}, ""
    results = {v.name for v in facts.function.returns}
    frees: set[int] = set()
    for place in range(call + 1, len(facts.lines)):
        line = facts.lines[place]
        names = [(line.registers[name], write) for name, write in accessed(line)]
        follows = any(key in aliases for key, write in names if not write)
        if line.item.opcode.startswith("st.param") and follows:
            parameter = next((name for name, _ in operand_names(line.item.operands[0])), "")
            if parameter in results:
                return None
        elif _callee(line) == "free" and parameter:
            if any(parameter == name for part in line.item.operands for name, _ in operand_names(part)):
                frees.add(id(line.item))
        elif (
            line.plan.family == "call"
            or (follows and line.plan.family == "shfl")  # other lanes may free it
            or (follows and line.plan.family in ("bra", "exit", "ret"))
            or (follows and line.plan.family == "st" and line.registers[_stored(line)] in aliases)
        ):
            return None
        elif follows and line.plan.family not in ("ld", "st", "atom", "red"):
            aliases.update(key for key, write in names if write and key is not None)
    given_back = any(name in results for _, name in aliases)
    return None if not frees or given_back or aliases & facts.rewritten else _past(facts, facts.lines[call], frees)


def _past(facts: FunctionFacts, call: Line, frees: set[int]) -> Line | None:
    """The first guarded jump, or guarded end, on a way from a call to the end that meets none of some others."""
    flow = control_flow(facts.function, facts.names)
    lines = {id(line.item): line for line in facts.lines}
    start = next((block.index for block in flow.blocks if any(item is call.item for item in block.instructions)), 0)
    waiting: list[tuple[int, Line | None]] = [(start, None)]
    seen: set[int] = set()
    while waiting:
        place, jump = waiting.pop()
        block = flow.blocks[place]
        if place in seen or any(id(item) in frees for item in block.instructions):
            continue
        seen.add(place)
        if not block.successors:
            return jump
        last = lines[id(block.instructions[-1])] if block.instructions else None
        if last is not None and last.plan.family in ("ret", "exit") and last.item.guard is not None:
            return last
        parts = last is not None and last.plan.family == "bra" and last.item.guard is not None
        waiting += [(to, jump or (last if parts else None)) for to in block.successors]
    return None


def _stored(line: Line) -> str:
    return next((name for name, _ in operand_names(line.item.operands[-1])), "")
