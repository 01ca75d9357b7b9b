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
from ptxtools.ir.symbols import RegisterKey

from ..context import LintContext
from ..facts import FunctionFacts, Line
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
    written: dict[tuple[Terms, int], dict[int, Step]] = {}  # the first to write each number of bytes there
    longest = 0
    for step in facts.accesses:
        access = step.access
        single = access is not None and type(access.address.each) is int and access.space in ("", "global", "shared")
        if access is None or not single or not step.strong or step.has("volatile", "mmio"):
            continue
        if not access.address.terms or any(term[0] in "#%" for term, _ in access.address.terms):
            continue
        start, terms = access.address.numbers[0], access.address.terms
        if step.family not in ("st", "red"):
            known.setdefault(terms, []).append((start, step))
        if step.writes:
            written.setdefault((terms, start), {}).setdefault(access.size, step)
            longest = max(longest, access.size)
    for terms, found in known.items():
        seen: set[tuple[int, int]] = set()
        for at, step in found:
            size = step.access.size if step.access is not None else 0
            if (at, size) in seen:
                continue
            seen.add((at, size))
            for start in range(at - longest + 1, at + size):
                for whole, other in written.get((terms, start), {}).items():
                    if (at, size) != (start, whole) and at < start + whole:
                        line = context.source.line_of(other.line.item.span[0])
                        where = f"where line {line} writes {whole}: they do not synchronise"
                        message = f"this accesses {size} bytes {where}"
                        help = ("possible: if they are of different threads",)
                        context.warn(CODE, message, parts_of(step.line.item).opcode, help=help, section="8.10.1")
                        return


@bodies_with("atom")
def check_atoms(context: LintContext, facts: FunctionFacts) -> None:
    """An atomic operation publishes an address and gives that of another thread, and only the latter is ordered."""
    stored, atoms = False, []
    for place, line in enumerate(facts.lines):
        family, opcode = line.plan.family, line.item.opcode
        if family in ("fence", "membar", "bar", "barrier", "call") or ".release" in opcode or ".acq_rel" in opcode:
            break
        stored |= family == "st" and not any(f".{word}" in opcode for word in _ASIDE)
        if family == "atom" and stored and ".shared" not in opcode:
            atoms.append(place)
    followed = _followed(facts, atoms)
    if followed is not None:
        message = "nothing orders what was stored before this, and what it gives is followed behind a fence"
        help = ("possible: if other threads follow what it publishes; use a fence before, or .acq_rel",)
        context.warn(CODE, message, parts_of(followed.item).opcode, help=help, section="8.8, 8.10.6 (Causality)")


def _followed(facts: FunctionFacts, atoms: list[int]) -> Line | None:
    """Of some instructions, all before the first fence, the first one from whose result the address of a plain load
    behind a fence comes."""
    lines = facts.lines
    fences = [at for at, line in enumerate(lines) if line.plan.family in ("fence", "membar")] if atoms else []
    fenced = next((at for at in fences if ".proxy" not in lines[at].item.opcode), len(lines))
    leads: set[RegisterKey] = set()  # the registers from which such an address comes, at an instruction
    found = None
    for at in range(len(lines) - 1, atoms[0] - 1 if fenced < len(lines) else len(lines) - 1, -1):
        line, family = lines[at], lines[at].plan.family
        used = facts.used(line)
        if atoms and at == atoms[-1]:
            atoms.pop()
            found = line if any(write and key in leads for _, key, write in used) else found
        aside = any(f".{word}" in line.item.opcode for word in (*_ASIDE, *_STRONG))
        follows = family not in ("setp", "atom", "st") and any(write and key in leads for _, key, write in used)
        if follows or (family == "ld" and not aside and at > fenced):
            leads.update(key for _, key, write in used if key is not None and not write)
    return found


def _releases(step: Step) -> bool:
    return step.has("release") or step.has("acq_rel")
