"""PTX614 | failed request of a cluster is not considered | 9.7.13.17, 9.7.13.18

What: get_first_ctaid of clusterlaunchcontrol.query_cancel gives a number that is used, in a kernel in which nothing
reads what is_canceled gives; or clusterlaunchcontrol.try_cancel follows an is_canceled, in a loop or below, and no
branch depends on what that gives, nor on what is loaded from memory. Possible: there may be enough clusters.
Why: where a request has failed there is no first CTA, and its number is undefined; a request behind a failed one is
undefined, too.
Example:
    .version 8.6
    .target sm_100a
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<2>; .reg .b32 %r<2>; .reg .b128 %q; .reg .pred %p; .shared .align 16 .b8 answer[16];
        ld.param.b64 %d1, [a]; ld.shared.b128 %q, [answer];
        clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, %q;
        st.global.b32 [%d1], %r1;
        ret;
    }
Better:
    .version 8.6
    .target sm_100a
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<2>; .reg .b32 %r<2>; .reg .b128 %q; .reg .pred %p; .shared .align 16 .b8 answer[16];
        ld.param.b64 %d1, [a]; ld.shared.b128 %q, [answer];
        clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p, %q;
        @!%p ret;
        clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, %q;
        st.global.b32 [%d1], %r1;
        ret;
    }
"""

from __future__ import annotations

from collections.abc import Iterable

from ptxtools.ir.cfg import control_flow
from ptxtools.ir.positions import parts_of
from ptxtools.ir.symbols import RegisterKey

from ..context import LintContext
from ..facts import ENDING, FunctionFacts, Line
from ..registry import bodies_with

CODE = "PTX614"
#: Families whose results depend on their sources alone, or on which lane runs.
_COMPUTED = frozenset({
    "mov", "add", "sub", "mad", "mul", "min", "max", "div", "rem", "neg", "abs", "and", "or", "xor", "not", "lop3",
    "shl", "shr", "shf", "bfe", "bfi", "prmt", "setp", "set", "selp", "slct", "cvt", "cvta", "cnot", "mul24", "elect",
})  # fmt: skip


@bodies_with("clusterlaunchcontrol")
def check(context: LintContext, facts: FunctionFacts) -> None:
    if facts.function.kind != "entry" or "call" in facts.families:
        return  # what decides may be elsewhere
    lines = facts.of("clusterlaunchcontrol")
    tests = [line for line in lines if ".is_canceled" in line.item.opcode]
    if not any(_is_read(facts, line) for line in tests):
        for line in lines:
            if ".get_first_ctaid" in line.item.opcode and _is_read(facts, line):
                message = "nothing looks at whether this answer names a cluster: the number is undefined if it does not"
                context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.13.18")
    requests = [line for line in lines if ".try_cancel" in line.item.opcode]
    if tests and requests and _is_decided_without_answers(facts, requests):
        for line in _behind(facts, tests, requests):
            message = "this request follows an answer, and is made whether or not that says that a request has failed"
            context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.13.17")


def _is_read(facts: FunctionFacts, line: Line) -> bool:
    return any(facts.read_counts[key] for _, key, write in facts.used(line) if write and key is not None)


def _is_decided_without_answers(facts: FunctionFacts, requests: Iterable[Line]) -> bool:
    """Whether which way is taken, and which threads make requests, depends on numbers of threads, constants,
    parameters and waits for mbarriers only."""
    sources: dict[RegisterKey, list[Line]] = {}
    for line in facts.lines:
        for _, key, write in facts.used(line):
            if write and key is not None:
                sources.setdefault(key, []).append(line)
    waiting = [line for line in facts.lines if line.plan.family in ENDING]
    keys = [key for line in waiting for _, key, _ in facts.used(line)]
    keys += [line.registers[line.item.guard.name] for line in requests if line.item.guard is not None]
    seen: set[RegisterKey | None] = {None}
    while keys:
        key = keys.pop()
        if key is None or key in seen:
            continue
        seen.add(key)
        for line in sources.get(key, ()):
            family = line.plan.family
            if family in _COMPUTED:
                keys += [source for _, source, write in facts.used(line) if not write]
            elif family == "mbarrier" and "_wait" in line.item.opcode:
                continue
            elif not line.item.opcode.startswith("ld.param"):
                return False
    return True


def _behind(facts: FunctionFacts, tests: list[Line], requests: list[Line]) -> list[Line]:
    """The requests to which control comes from one of the tests."""
    flow = control_flow(facts.function, facts.names)
    homes: dict[int, tuple[int, int]] = {}  # of a statement: block, and place there
    for block in flow.blocks:
        for place, item in enumerate(block.instructions):
            homes[id(item)] = block.index, place
    first: dict[int, int] = {}  # by block: the place of its first test
    for line in reversed(tests):
        block_index, place = homes[id(line.item)]
        first[block_index] = place
    reached: set[int] = set()
    waiting = [after for index in first for after in flow.successors[index]]
    while waiting:
        at = waiting.pop()
        if at not in reached:
            reached.add(at)
            waiting += flow.successors[at]
    found = []
    for line in requests:
        home, place = homes[id(line.item)]
        if home in reached or first.get(home, place) < place:
            found.append(line)
    return found
