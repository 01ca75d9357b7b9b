"""PTX558 | fence that synchronises nothing, or too few threads | 8.8, 8.9.4, 8.10.6 (Causality)

What: a fence that is not .sc, in a kernel without strong access, barrier or call; a fence whose scope is narrower
than that of the relaxed store behind it, or of the relaxed load before it; or a fence under a guard between stores of
all threads and a barrier, where the thread that passes the guard then tells others with a relaxed atomic operation.
Possible: the scope of the access may be wider than it needs to be, and what the other threads store may not matter.
Why: such a fence works only together with a strong write behind it, or a strong read before it (8.8); between weak
accesses it orders nothing for other threads. And a pattern synchronises with threads that the scopes of both its
operations include (8.9.4), so that the narrower one decides: the axiom Causality (8.10.6) then forbids no stale value.
A fence orders what its own thread has done and has learnt of before it, not what others store before a later barrier.
Example:
    st.global.b32 [%rd2], %r1;
    fence.acq_rel.cta;
    st.relaxed.gpu.global.b32 [%rd2+4], %r1;
Better:
    st.global.b32 [%rd2], %r1;
    fence.acq_rel.gpu;
    st.relaxed.gpu.global.b32 [%rd2+4], %r1;
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator
from itertools import islice

from ptxtools.check.edits import rewritten
from ptxtools.ir.nodes import Guard
from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import bodies_with

CODE = "PTX558"

#: The scopes of 8.5, from the smallest.
_SCOPES = ("cta", "cluster", "gpu", "sys")
_STRONG = ("relaxed", "acquire", "release", "acq_rel", "volatile", "mmio")
#: Whatever besides loads and stores may synchronise threads, or be ordered by a fence.
_OTHERS = frozenset({
    "atom", "red", "bar", "barrier", "mbarrier", "call", "cp", "griddepcontrol", "multimem", "tcgen05", "wgmma",
    "tensormap", "clusterlaunchcontrol",
})  # fmt: skip
_WRITES, _READS = ("st", "atom", "red"), ("ld", "atom")


@bodies_with("fence", "membar")
def check(context: LintContext, facts: FunctionFacts) -> None:
    if facts.function.kind == "entry" and not facts.families & _OTHERS and not any(map(_is_strong, facts.lines)):
        _report_without_purpose(context, facts)
        return
    for run in facts.runs:
        waits = [at for at, line in enumerate(run) if line.plan.family in ("bar", "barrier", "call")]
        stores = [at for at, line in enumerate(run) if _stores_for_all(line)] if waits else []
        told: dict[tuple[int, str, bool], bool] = {}
        for at, line in enumerate(run):
            guarded = line.item.guard is not None and line.plan.family in ("fence", "membar")
            if guarded and stores and _for_itself(run, at, waits, stores, told):
                message = "this fence orders nothing that other threads store before the barrier"
                help_ = ("let all threads fence, or fence behind the barrier",)
                context.warn(CODE, message, parts_of(line.item).opcode, help=help_, section="8.8, 8.10.6 (Causality)")
                continue
            scope = _fence_scope(line)
            if scope is not None:
                released = ".acquire" not in line.item.opcode and _wider(islice(run, at + 1, None), _WRITES, scope)
                acquired = ".release" not in line.item.opcode and _wider(_above(run, at), _READS, scope)
                if beside := released or acquired:
                    _report_scope(context, line, scope, *beside)


def _words(line: Line) -> list[str]:
    return line.item.opcode.split(".")


def _is_strong(line: Line) -> bool:
    return line.plan.family in ("ld", "st") and any(word in _STRONG for word in _words(line))


def _fence_scope(line: Line) -> str | None:
    """The scope of a memory fence; None for anything else."""
    words = _words(line)
    if words[0] != "fence" or "proxy" in words or "mbarrier_init" in words:
        return None
    return next((scope for scope in _SCOPES if scope in words), None)


def _wider(lines: Iterable[Line], families: tuple[str, ...], scope: str) -> tuple[Line, str] | None:
    """The nearest strong access of these kinds, if it is relaxed and its scope wider; none behind another fence."""
    for line in lines:
        words = _words(line)
        if words[0] in ("fence", "membar", "bar", "barrier", "call"):
            return None
        named = next((name for name in _SCOPES if name in words[1:]), None)
        if line.plan.family in families and any(word in _STRONG for word in words):
            # An access that releases or acquires needs no fence; one without a scope by name may mean to be narrow.
            decides = "relaxed" in words and named is not None and _SCOPES.index(named) > _SCOPES.index(scope)
            return (line, named or "") if decides else None
    return None


def _for_itself(
    run: list[Line], at: int, waits: list[int], stores: list[int], told: dict[tuple[int, str, bool], bool]
) -> bool:
    """Whether some threads fence although all have stored, and then tell others what is behind the next barrier. waits:
    where all threads wait in a run; stores: where all store; told: whether threads tell, by barrier and guard."""
    guard, behind, last = run[at].item.guard, bisect(waits, at), bisect(stores, at) - 1
    if "proxy" in run[at].item.opcode or behind == len(waits):
        return False
    if last < 0 or (behind and stores[last] < waits[behind - 1]):
        return False
    known = waits[behind], guard.name if guard else "", guard is not None and guard.negated
    if known not in told:
        told[known] = _tell(islice(run, waits[behind] + 1, None), guard)
    return told[known]


def _tell(lines: Iterable[Line], guard: Guard | None) -> bool:
    """Whether the threads of a guard tell others something before the next fence."""
    for line in lines:
        if line.plan.family in ("fence", "membar", "call"):
            return False
        if line.plan.family in ("atom", "red") and line.item.guard == guard:
            words = _words(line)
            return not ("acq_rel" in words or "release" in words or "shared" in line.item.opcode)
    return False


def _above(run: list[Line], at: int) -> Iterator[Line]:
    """The instructions above one, the nearest first."""
    return map(run.__getitem__, range(at - 1, -1, -1))


def _stores_for_all(line: Line) -> bool:
    """Whether all threads store to global memory."""
    return line.plan.family == "st" and line.item.guard is None and "global" in _words(line)


def _report_scope(context: LintContext, line: Line, scope: str, beside: Line, wider: str) -> None:
    where = context.source.line_of(beside.item.span[0])
    message = f"the scope .{scope} of this fence is narrower than .{wider} of the access in line {where}, and decides"
    fix = rewritten(context.source.text, line.item, line.item.opcode.replace(f".{scope}", f".{wider}"))
    section = "8.9.4, 8.10.6 (Causality)"
    context.warn(CODE, message, parts_of(line.item).opcode, help=(f"use .{wider}",), section=section, fix=fix)


def _report_without_purpose(context: LintContext, facts: FunctionFacts) -> None:
    for line in facts.lines:
        if _fence_scope(line) is not None and ".sc" not in line.item.opcode:
            message = "this fence orders nothing for other threads: the kernel has no strong access"
            help_ = ("make the access that tells them .relaxed, with a scope",)
            context.warn(CODE, message, parts_of(line.item).opcode, help=help_, section="8.8, 8.10.6 (Causality)")
