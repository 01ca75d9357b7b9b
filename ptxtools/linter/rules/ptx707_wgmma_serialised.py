"""PTX707 | wgmma that ptxas runs one by one | 9.7.15.7

What: a function with wgmma has a call that ptxas cannot replace by the function's body, as the one that it calls is in
another module or calls itself; a function with wgmma is called; two wgmma have some accumulator registers in common,
but in other places; or a jump that lanes of a warp may take differently stands between a wgmma and its wgmma.fence, or
the wait for it (possible).
Why: ptxas waits after each wgmma then (C7509, C7510, C7511, C7518, C7520), so that none runs beside another one or
beside other work. A pipeline cannot cross a call, accumulators have fixed, neighbouring registers, and a fence or a
wait that ptxas adds has to be executed by all lanes. Registers that are used too early are PTX579 and PTX588: there
ptxas adds a wait (C7517) or a fence (C7519), or gives up, too (C7514, C7515).
Example:
    .version 9.0
    .target sm_90a
    .address_size 64
    .extern .func log();
    .entry k() {
        .reg .f32 %f<5>; .reg .b64 %d<3>;
        call log;
        mov.b64 %d1, 0; mov.b64 %d2, 0;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, 0, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 0;
        ret;
    }
Better:
    .version 9.0
    .target sm_90a
    .address_size 64
    .entry k() {
        .reg .f32 %f<5>; .reg .b64 %d<3>;
        mov.b64 %d1, 0; mov.b64 %d2, 0;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, 0, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 0;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span, parts_of
from ptxtools.ir.symbols import RegisterKey

from ..calls import callee_of, calls_of, why_it_stays
from ..coming import parts_warps
from ..context import LintContext
from ..facts import FunctionFacts, Line, operand_names
from ..registry import modules_with

CODE = "PTX707"


@modules_with("wgmma")
def check(context: LintContext) -> None:
    pipelines = {id(facts.function) for facts in context.facts.functions if "wgmma" in facts.families}
    calls = calls_of(context.facts.functions)
    for facts in context.facts.functions:
        for line in facts.of("call"):
            callee = callee_of(line)
            if id(facts.function) in pipelines and (why := why_it_stays(line, calls)):
                _warn(context, line, why)
                break
            if callee is not None and id(callee) in pipelines:
                _warn(context, line, f"'{callee.name}' is called")
                break
        if id(facts.function) in pipelines:
            _accumulators(context, facts)
            _jumps(context, facts)


def _warn(context: LintContext, line: Line, why: str) -> None:
    message = f"ptxas runs each wgmma of the function alone, because {why}"
    context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.15.7")


def _jumps(context: LintContext, facts: FunctionFacts) -> None:
    """A jump that some lanes take, past part of a pipeline."""
    for place, line in enumerate(facts.lines):
        to = facts.jumps.get(id(line.item)) if line.item.guard is not None else None
        if to is None:
            continue
        inside = facts.lines[min(place, to) : max(place, to)]
        words = [one.item.opcode.split(".")[1] for one in inside if one.plan.family == "wgmma"]
        if "mma_async" not in words or not parts_warps(facts, line):
            continue
        behind = words[len(words) - words[::-1].index("mma_async") :]
        if "fence" not in words[: words.index("mma_async")] or "wait_group" not in behind:
            message = "ptxas may run each wgmma of the function alone, because lanes part here inside of a pipeline"
            help = ("possible: if the values that decide it differ in a warp",)
            context.warn(CODE, message, parts_of(line.item).opcode, help=help, section="9.7.15.7")
            return


def _accumulators(context: LintContext, facts: FunctionFacts) -> None:
    homes: dict[RegisterKey, tuple[int, tuple[RegisterKey | None, ...]]] = {}
    seen: set[tuple[int, int]] = set()
    for line in facts.of("wgmma"):
        if not line.item.opcode.startswith("wgmma.mma_async") or not line.item.operands:
            continue
        known = id(line.item.operands[0]), id(line.registers)
        if known in seen:
            continue
        seen.add(known)
        keys = tuple(line.registers[name] for name, _ in operand_names(line.item.operands[0]))
        for place, key in enumerate(keys):
            if key is None:
                continue
            home = homes.setdefault(key, (place, keys))
            if home[1] is not keys and (home[0] != place or home[1] != keys):
                message = (
                    f"ptxas runs each wgmma of the function alone, because '{key[1]}' is in another place of an "
                    "earlier accumulator"
                )
                context.warn(CODE, message, part_span(line.item, 0), section="9.7.15.7")
                return
