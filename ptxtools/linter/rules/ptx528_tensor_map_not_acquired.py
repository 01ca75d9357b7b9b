"""PTX528 | tensor map that is used without a fence behind its change | 9.7.13.4, 9.7.9.25.4

What: tensormap.replace or tensormap.cp_fenceproxy writes a tensor map, and a tensor copy uses it with no fence of the
tensormap proxy for it in between. Certain if no label stands between
the two, else possible.
Why: tensor copies read maps through a proxy of their own, which may still have the old map.
Example:
    .version 8.6
    .target sm_90a
    .address_size 64
    .entry k(.param .b64 m) {
        .reg .b64 %d<3>; .reg .b32 %r<3>; .shared .align 128 .b8 s[256];
        ld.param.b64 %d1, [m]; mov.b64 %d2, 0; mov.b32 %r1, s; mov.b32 %r2, 0;
        fence.proxy.tensormap::generic.acquire.gpu [%d1], 128;
        tensormap.replace.tile.global_address.global.b1024.b64 [%d1], %d2;
        cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d1, {%r2, %r2}], [%r1];
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        ret;
    }
Better:
    .version 8.6
    .target sm_90a
    .address_size 64
    .entry k(.param .b64 m) {
        .reg .b64 %d<3>; .reg .b32 %r<3>; .shared .align 128 .b8 s[256];
        ld.param.b64 %d1, [m]; mov.b64 %d2, 0; mov.b32 %r1, s; mov.b32 %r2, 0;
        tensormap.replace.tile.global_address.global.b1024.b64 [%d1], %d2;
        fence.proxy.tensormap::generic.release.gpu;
        fence.proxy.tensormap::generic.acquire.gpu [%d1], 128;
        cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d1, {%r2, %r2}], [%r1];
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        ret;
    }
"""

from __future__ import annotations

from collections.abc import Iterable

from ptxtools.ir.cfg import control_flow
from ptxtools.ir.nodes import Address, Name
from ptxtools.ir.positions import parts_of
from ptxtools.ir.symbols import RegisterKey

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..memory import MAP_BYTES, Reach, Step, changed_map
from ..registry import bodies_with
from ..values import plus

CODE = "PTX528"

#: Stores that are remembered.
_MOST = 16


@bodies_with("cp")
def check_stores(context: LintContext, facts: FunctionFacts) -> None:
    """Maps that plain stores make."""
    if not any(".tensor" in line.item.opcode for line in facts.of("cp")):
        return
    for steps in facts.steps:
        stored: list[Step] = []
        for step in steps:
            if step.family == "call" or (step.family == "fence" and ".tensormap" in step.line.item.opcode):
                stored = []
            elif step.family == "st" and step.access is not None and step.access.space in ("", "global"):
                stored = [*stored[-_MOST:], step]
            elif step.map is not None:
                before = next((one for one in stored if one.access and one.access.meets(step.map)), None)
                if before is not None:
                    _report(context, before.line, step.line)
                    return


@bodies_with("tensormap")
def check_fences(context: LintContext, facts: FunctionFacts) -> None:
    """Maps that are changed, where the fence behind it is for another one."""
    for steps in facts.steps:
        changed: list[tuple[Step, Reach]] = []
        fenced: list[tuple[Step, Reach]] = []  # of these a fence leaves out
        for step in steps:
            if step.family == "call":
                changed, fenced = [], []
            elif step.family == "tensormap":
                one = changed_map(step)
                changed = [*changed[-_MOST:], (step, one)] if one is not None else changed
            elif step.family == "fence" and step.has("acquire") and step.addresses and step.addresses[0] is not None:
                fence = Reach(0, "global", step.addresses[0], MAP_BYTES)
                fenced, changed = [each for each in [*fenced, *changed] if _apart(fence, each[1])], []
            elif step.map is not None:
                before = next((one for one, change in fenced if change.meets(step.map)), None)
                if before is not None:
                    _report(context, before.line, step.line)
                    return


def _apart(one: Reach, other: Reach) -> bool:
    """Whether two maps are certainly different ones: at different distances from one place."""
    difference = plus(one.address, other.address, -1)
    return not difference.terms and isinstance(difference.each, int) and not one.meets(other)


@bodies_with("tensormap")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for run in facts.runs:
        _, used = _changed(run, {})
        if used is not None:
            _report(context, *used)
            return
    _look_at_paths(context, facts)


def _changed(
    run: Iterable[Line], before: dict[RegisterKey, Line]
) -> tuple[dict[RegisterKey, Line], tuple[Line, Line] | None]:
    """The maps that are changed behind a run of instructions, by the registers that point to them, and the first change
    and use with no fence in between; some are changed before."""
    changed, used = dict(before), None
    for line in run:
        opcode = line.item.opcode
        if line.plan.family == "tensormap":
            for key in _bases(line)[:1]:
                changed[key] = line
        elif opcode.startswith("fence.proxy.tensormap::generic.acquire") or line.plan.family == "call":
            changed.clear()
        elif opcode.startswith("cp.") and ".tensor" in opcode and changed and used is None:
            used = next(((changed[key], line) for key in _bases(line) if key in changed), None)
    return changed, used


def _look_at_paths(context: LintContext, facts: FunctionFacts) -> None:
    """Maps that are changed on some path to a copy, with no fence in between. Possible: no thread need go that way."""
    flow = control_flow(facts.function, facts.names)
    blocks, start = [], 0
    for block in flow.blocks:
        blocks.append(facts.lines[start : start + len(block.instructions)])
        start += len(block.instructions)
    before: list[dict[RegisterKey, Line]] = [{} for _ in blocks]
    waiting = [at for at, lines in enumerate(blocks) if any(line.plan.family == "tensormap" for line in lines)]
    while waiting:
        at = waiting.pop()
        changed, used = _changed(blocks[at], before[at])
        if used is not None:
            _report(context, *used, help=("possible: if threads go this way",))
            return
        for following in flow.blocks[at].successors:
            if changed.keys() - before[following].keys():
                before[following] = {**changed, **before[following]}
                waiting.append(following)


def _report(context: LintContext, before: Line, line: Line, help: tuple[str, ...] = ()) -> None:
    number = context.source.line_of(before.item.span[0])
    message = f"the tensor map was changed in line {number}, and no fence of its proxy is in between"
    context.warn(CODE, message, parts_of(line.item).opcode, help=help, section="9.7.13.4")


def _bases(line: Line) -> list[RegisterKey]:
    """The registers that addresses begin with."""
    names = [o.base.name for o in line.item.operands if isinstance(o, Address) and isinstance(o.base, Name)]
    return [key for key in (line.registers[name] for name in names) if key is not None]
