"""PTX519 | flag that is read with acquire, and written without release | 8.8, 8.10.6 (Causality)

What: a load with .acquire, whose address the kernel also stores to, but only with relaxed or volatile stores, before
which no fence and no release stands. Or a strong access of part of a word that others are of as a whole; or an atomic
operation without such a fence before it, where what it gives is followed behind one (both possible).
Why: an acquire orders something only if it reads what a release wrote: what was stored before the flag may be seen
after it. Accesses of different sizes do not synchronise.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<2>; .reg .b32 %r<3>; .reg .pred %p<3>;
        ld.param.b64 %d1, [a]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0;
        @%p1 bra W;
        st.global.b32 [%d1+4], 7;
        st.relaxed.gpu.global.b32 [%d1], 1;
        ret;
        W: ld.acquire.gpu.global.b32 %r2, [%d1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra W;
        ret;
    }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<2>; .reg .b32 %r<3>; .reg .pred %p<3>;
        ld.param.b64 %d1, [a]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0;
        @%p1 bra W;
        st.global.b32 [%d1+4], 7;
        st.release.gpu.global.b32 [%d1], 1;
        ret;
        W: ld.acquire.gpu.global.b32 %r2, [%d1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra W;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..inflight import accessed
from ..memory import Step
from ..registry import bodies_with
from ..values import Terms, Value

CODE = "PTX519"

#: Spaces that other CTAs do not reach, and what makes an access strong.
_ASIDE = ("shared", "local", "param", "const")
_STRONG = ("volatile", "relaxed", "acquire", "mmio")


@bodies_with("st")
def check(context: LintContext, facts: FunctionFacts) -> None:
    if not any(".acquire" in line.item.opcode for line in facts.of("ld")):
        return
    acquired = {step.access.address for step in facts.accesses if step.access is not None and step.has("acquire")}
    if not acquired:
        return
    unordered: dict[Value, Step] = {}
    for steps in facts.steps:
        ordered, stored = False, False
        for step in steps:
            ordered |= step.family in ("fence", "membar", "bar", "barrier", "call") or _releases(step)
            access = step.access
            if access is None or not step.writes:
                continue
            if access.address in acquired and (ordered or step.family != "st" or not step.strong):
                acquired.discard(access.address)
            elif access.address in acquired and stored:
                unordered.setdefault(access.address, step)
            stored = True
    for address, step in unordered.items():
        if address in acquired:
            message = "nothing orders what was stored before this flag; it is read with .acquire, and has no release"
            context.warn(
                CODE,
                message,
                parts_of(step.line.item).opcode,
                help=("use .release",),
                section="8.8, 8.10.6 (Causality)",
            )


@bodies_with("ld", "atom")
def check_sizes(context: LintContext, facts: FunctionFacts) -> None:
    """Strong accesses of one word, of which one reaches only part of it."""
    known: dict[Terms, list[tuple[int, Step]]] = {}
    for step in facts.accesses:
        access = step.access
        single = access is not None and type(access.address.each) is int and access.space in ("", "global", "shared")
        if access is None or not single or not step.strong or step.has("volatile", "mmio"):
            continue
        if not access.address.terms or any(term[0] in "#%" for term, _ in access.address.terms):
            continue
        known.setdefault(access.address.terms, []).append((access.address.numbers[0], step))
    for found in known.values():
        for at, step in found if len(found) > 1 else ():
            for start, other in found:
                if not other.writes or step.access is None or other.access is None or step.family in ("st", "red"):
                    continue
                size, whole = step.access.size, other.access.size
                if (at, size) != (start, whole) and at < start + whole and start < at + size:
                    line = context.source.line_of(other.line.item.span[0])
                    message = f"this accesses {size} bytes where line {line} writes {whole}: they do not synchronise"
                    help = ("possible: if they are of different threads",)
                    context.warn(CODE, message, parts_of(step.line.item).opcode, help=help, section="8.10.1")
                    return


@bodies_with("atom")
def check_atoms(context: LintContext, facts: FunctionFacts) -> None:
    """An atomic operation publishes an address and gives that of another thread, and only the latter is ordered."""
    stored = False
    for place, line in enumerate(facts.lines):
        family, opcode = line.plan.family, line.item.opcode
        if family in ("fence", "membar", "bar", "barrier", "call") or ".release" in opcode or ".acq_rel" in opcode:
            return
        stored |= family == "st" and not any(f".{word}" in opcode for word in _ASIDE)
        if family == "atom" and stored and ".shared" not in opcode and _followed(facts.lines[place:]):
            message = "nothing orders what was stored before this, and what it gives is followed behind a fence"
            help = ("possible: if other threads follow what it publishes; use a fence before, or .acq_rel",)
            context.warn(CODE, message, parts_of(line.item).opcode, help=help, section="8.8, 8.10.6 (Causality)")
            return


def _followed(lines: list[Line]) -> bool:
    """Whether a plain load behind a fence is at an address that comes from what the first instruction gives."""
    results = {lines[0].registers[name] for name, write in accessed(lines[0]) if write}
    fenced = False
    for line in lines[1:]:
        fenced |= line.plan.family in ("fence", "membar") and ".proxy" not in line.item.opcode
        names = [(line.registers[name], write) for name, write in accessed(line)]
        follows = any(key in results for key, write in names if not write and key is not None)
        plain = line.plan.family == "ld" and not any(f".{word}" in line.item.opcode for word in (*_ASIDE, *_STRONG))
        if follows and fenced and plain:
            return True
        if follows and line.plan.family not in ("setp", "atom", "st"):
            results.update(key for key, write in names if write)
    return False


def _releases(step: Step) -> bool:
    return step.has("release") or step.has("acq_rel")
