"""PTX588 | register of a wgmma in flight | 9.7.15.7

What: an instruction accesses the accumulator of a wgmma, or writes its A registers, before a wait for it. Certain: no
label stands between the two, or a loop comes to it in its next round. Possible: on one of the ways to it stands no
wait.
Why: until wgmma.wait_group the product may still read A and change the accumulator. ptxas 13.0 adds a wait in some of
these cases (C7517), and in others runs each wgmma alone (C7514, C7515, C7518).
Example:
    .version 9.0
    .target sm_90a
    .address_size 64
    .entry k() {
        .reg .f32 %f<6>; .reg .b64 %d<3>;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, 1, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;
        add.f32 %f5, %f1, %f2;
        wgmma.wait_group.sync.aligned 0;
        ret;
    }
Better:
    .version 9.0
    .target sm_90a
    .address_size 64
    .entry k() {
        .reg .f32 %f<6>; .reg .b64 %d<3>;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, 1, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 0;
        add.f32 %f5, %f1, %f2;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.cfg import control_flow
from ptxtools.ir.nodes import Immediate, Vector
from ptxtools.ir.positions import name_span

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..inflight import accessed
from ..registry import bodies_with
from ..runs import rounds_of

CODE = "PTX588"

#: What is in flight at the beginning of a block, and how many such states are followed.
_Groups = tuple[tuple[tuple[str, bool], ...], ...]
_MOST = 1000
#: Groups that are told apart: a wait leaves seven at most.
_OPEN = 16


@bodies_with("wgmma")
def check(context: LintContext, facts: FunctionFacts) -> None:
    seen: set[int] = set()
    for run in rounds_of(facts):
        _check(context, run, seen)
    if "bra" in facts.families:
        _ways(context, facts, seen)


def _ways(context: LintContext, facts: FunctionFacts, seen: set[int]) -> None:
    """Follow the ways through a function, with what is in flight on each of them."""
    flow = control_flow(facts.function, facts.names)
    lines = {id(line.item): line for line in facts.lines}
    known: set[tuple[int, _Groups]] = set()
    waiting: list[tuple[int, _Groups]] = [(0, ((),))]
    while waiting and len(known) < _MOST:
        way = waiting.pop()
        if way in known:
            continue
        known.add(way)
        place, before = way
        groups = [dict(group) for group in before]
        groups = _follow(context, [lines[id(item)] for item in flow.blocks[place].instructions], groups, seen, False)
        after = tuple([tuple(sorted(group.items())) for group in groups])
        waiting += [(to, after) for to in flow.blocks[place].successors]


def _check(context: LintContext, run: list[Line], seen: set[int]) -> None:
    """Report the first access of what is in flight along some instructions. seen: those that are reported."""
    _follow(context, run, [{}], seen, True)


def _follow(
    context: LintContext, run: list[Line], groups: list[dict[str, bool]], seen: set[int], sure: bool
) -> list[dict[str, bool]]:
    """What is in flight behind some instructions, by groups: for each register whether reading it is wrong, too. The
    last group is open."""
    for line in run:
        item = line.item
        if line.plan.family != "wgmma":
            if len(groups) > 1 or groups[0]:
                _touches(context, line, groups, seen, sure)
        elif item.opcode.startswith("wgmma.mma_async"):
            for operand, sums in zip(item.operands[:2], (True, False), strict=False):
                if isinstance(operand, Vector):
                    groups[-1].update(dict.fromkeys([name for name, _, _ in line.registers.uses(operand, sums)], sums))
        elif item.opcode.startswith("wgmma.commit_group"):
            groups.append({})
            if len(groups) > _OPEN:
                for name, sums in groups.pop(1).items():
                    groups[0][name] = sums or groups[0].get(name, False)
        elif item.opcode.startswith("wgmma.wait_group"):
            count = item.operands[0] if item.operands else None
            left = max(0, count.value) if isinstance(count, Immediate) else 0
            groups = groups[max(0, len(groups) - 1 - left) :]
    return groups


def _touches(context: LintContext, line: Line, groups: list[dict[str, bool]], seen: set[int], sure: bool) -> None:
    for name, write in accessed(line):
        wrong = [group.pop(name) for group in groups if name in group and (write or group[name])]
        if wrong and id(line.item) not in seen:
            seen.add(id(line.item))
            what = "the accumulator" if wrong[0] else "A"
            message = f"'{name}' is {what} of a wgmma that nothing has waited for"
            help = () if sure else ("possible: on one of the ways to it no wait stands",)
            context.warn(CODE, message, name_span(line.item, name), help=help, section="9.7.15.7")
            return
