"""PTX583 | nothing waits for tcgen05.ld | 9.7.16.8.5

What: the module has tcgen05.ld, and no tcgen05.wait::ld; or an instruction reads what a tcgen05.ld loads, and
neither between the two nor behind them is a wait; or threads tell others, behind tcgen05.fence::before_thread_sync, of
a load that nothing has waited for. (Chips wait for registers by themselves, so compilers read them before a wait.)
Why: the loaded registers hold nothing until the load is known to be complete.
Example:
    .version 9.0
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>; .shared .align 8 .b64 bar; .shared .b32 at;
        tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];
        ret;
    }
Better:
    .version 9.0
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>; .shared .align 8 .b64 bar; .shared .b32 at;
        tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];
        tcgen05.wait::ld.sync.aligned;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import name_span, parts_of
from ptxtools.ir.symbols import RegisterKey

from ..context import LintContext
from ..facts import FunctionFacts
from ..inflight import accessed
from ..presence import unmet
from ..registry import bodies_with, modules_with
from ..walk import tell, told

CODE = "PTX583"


@modules_with("tcgen05")
def check(context: LintContext) -> None:
    line = unmet(context, r"tcgen05\.ld\.", r"tcgen05\.wait::ld")
    if line is not None:
        message = f"nothing in the module waits for '{line.item.opcode}'"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.16.8.5")


@bodies_with("tcgen05")
def check_registers(context: LintContext, facts: FunctionFacts) -> None:
    waits = [line.item.span[0] for line in facts.of("tcgen05") if line.item.opcode.startswith("tcgen05.wait::ld")]
    if not waits or "call" in facts.families:
        return
    looped = {line.item.span[0] for loop in facts.loops for line in loop.lines}
    for run in facts.runs:
        loading: dict[RegisterKey | None, int] = {}
        for line in run:
            if line.item.opcode.startswith("tcgen05.wait::ld"):
                loading.clear()
            for name, write in accessed(line):
                key = line.registers[name]
                if write and line.item.opcode.startswith("tcgen05.ld."):
                    loading[key] = line.item.span[0]
                elif write:
                    loading.pop(key, None)
                elif key in loading and waits[-1] < line.item.span[0] and not looped.intersection(waits):
                    number = context.source.line_of(loading[key])
                    message = f"'{name}' is loaded by the tcgen05.ld in line {number}, and no wait for that follows"
                    context.warn(CODE, message, name_span(line.item, name), section="9.7.16.8.5")
                    return


@bodies_with("tcgen05")
def check_walks(context: LintContext, facts: FunctionFacts) -> None:
    if not told(context, facts, CODE):
        tell(context, facts, CODE, "tensor ld", "9.7.16.8.5")
