"""PTX508 | CTAs exchange data without order | 8.5, 8.7, 8.10.6 (Causality)

What: two CTAs of a grid certainly access one word of global memory, one of them writes it, and nothing orders the two:
no release by one and acquire by the other. A barrier orders the threads of one CTA only. Certain if the grid has two
CTAs and the way of the threads is known; the finding says so. Or one thread arrives with a release where others wait,
and no barrier stands between that and what all threads have stored, which is read behind the wait (possible).
Why: CTAs run in any order, or at the same time: a race.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 a) .reqntid 32 {
        .reg .b32 %r<6>; .reg .b64 %d<4>;
        ld.param.b64 %d1, [a]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
        mad.lo.u32 %r3, %r2, 32, %r1; mad.wide.u32 %d2, %r3, 4, %d1; xor.b32 %r4, %r3, 32;
        mad.wide.u32 %d3, %r4, 4, %d1;
        st.global.b32 [%d2], %r1;
        bar.sync 0;
        ld.global.b32 %r5, [%d3];
        st.global.b32 [%d2+1024], %r5;
        ret;
    }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 a) .reqntid 32 {
        .reg .b32 %r<6>; .reg .b64 %d<4>;
        ld.param.b64 %d1, [a]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
        mad.lo.u32 %r3, %r2, 32, %r1; mad.wide.u32 %d2, %r3, 4, %d1; xor.b32 %r4, %r3, 31;
        mad.wide.u32 %d3, %r4, 4, %d1;
        st.global.b32 [%d2], %r1;
        bar.sync 0;
        ld.global.b32 %r5, [%d3];
        st.global.b32 [%d2+1024], %r5;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..memory import Reach, Step
from ..registry import bodies_with
from ..values import Value
from ..walk import tell

CODE = "PTX508"

_ORDERING = ("bar", "barrier", "call")
#: Instructions behind a load among which a branch leads back to it.
_BACK = 3
#: Words waited for that are looked at.
_MOST = 8
_POSSIBLE = "possible: others may not read what these threads have stored"


@bodies_with("st", "atom", "red")
def check(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "race of CTAs", "8.5, 8.10.6 (Causality)")


@bodies_with("ld")
def check_arrivals(context: LintContext, facts: FunctionFacts) -> None:
    read = _read_behind_waits(facts) if facts.function.kind == "entry" else {}
    for steps in facts.steps if read else ():
        stored: dict[str, tuple[Step, Reach]] = {}  # the first one behind each pointer
        for step in steps:
            access = step.access
            if step.family in _ORDERING:
                stored.clear()
            elif access is None or access.space not in ("", "global") or not step.writes:
                continue
            elif step.strong:
                alone = step.active is not None and step.active.count(True) == 1
                roots = read.get(access.address, set()) if alone and step.has("release", "acq_rel") else set()
                late = next((stored[root] for root in sorted(roots) if root in stored), None)
                if late is not None:
                    number = context.source.line_of(step.line.item.span[0])
                    message = f"one thread tells others of this in line {number}: no barrier orders what others store"
                    span = part_span(late[0].line.item, late[1].operand)
                    context.warn(CODE, message, span, help=(_POSSIBLE,), section="8.5, 8.10.6 (Causality)")
                    return
            elif not isinstance(access.address.each, int) and (step.active is None or step.active.count(True) > 1):
                for root in _roots(access):
                    stored.setdefault(root, (step, access))


def _read_behind_waits(facts: FunctionFacts) -> dict[Value, set[str]]:
    """Of which memory plain loads stand behind loops that wait for a word, by its address."""
    places = {id(line.item): at for at, line in enumerate(facts.lines)}
    found: dict[Value, set[str]] = {}
    for step in facts.accesses if any(".acquire" in line.item.opcode for line in facts.of("ld")) else ():
        access, at = step.access, places[id(step.line.item)]
        if access is None or step.family != "ld":
            continue
        if step.has("acquire") and len(found) < _MOST:
            near = facts.lines[at + 1 : at + 1 + _BACK]
            if any(facts.jumps.get(id(line.item), len(places)) <= at for line in near):
                found.setdefault(access.address, set())
        elif not step.strong:
            for roots in found.values():
                roots.update(_roots(access))
    return found


def _roots(access: Reach) -> list[str]:
    """The parameters that point to what is accessed."""
    return [name for name, count in access.address.terms if count == 1 and name[0] not in "#%&="]
