"""Which 64 threads walk through a kernel: two warps of a CTA, of a grid, or of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from ptxtools.ir.nodes import Function, Name

from ..facts import FunctionFacts
from ..masks import MASKED, mask_operand
from ..values import THREADS, WARP, Value, plus, shortest

#: Threads of each CTA that are compared with those of another one if no directive says how many there are: kernels for
#: fewer than a warp are written, too.
_FEW = 8
#: Threads of a CTA if no directive says how many there are.
_SIZE = 128


class Threads(NamedTuple):
    """kind: "cta", "grid" or "cluster"; mask: the threads there are, as bits; size: threads of a CTA; whole: whether
    all of its threads are among them; declared: whether directives say so; registers: the special registers; spaces:
    the memory in which they may meet; group: whether they are of one warpgroup."""

    kind: str
    mask: int
    size: int
    whole: bool
    declared: bool
    registers: dict[str, Value]
    spaces: tuple[str, ...] = ("shared", "global")
    group: bool = False

    @property
    def apart(self) -> bool:
        """Whether the two halves are of two CTAs."""
        return self.kind != "cta"


def places_of(facts: FunctionFacts) -> Iterator[Threads]:
    """The threads that are worth a walk of a kernel."""
    size = declared_size(facts.function)
    if size is None and "setmaxnreg" in facts.families:
        size = 4 * WARP  # it is for warpgroups
    globally = _written_globally(facts) or "griddepcontrol" in facts.families
    spaces = ("shared", "global") if globally else ("shared",)
    if size is None and not _is_flat(facts):
        pass  # how many threads a row has is not known: a warp may be several rows
    elif _of_warps(facts):
        yield from _of_ctas(facts, size, spaces)
    elif globally or (size is not None and "bra" in facts.families):
        yield _of_cta(facts, size)._replace(spaces=("global",))
    if any(".cluster" in line.item.opcode for line in facts.of("mapa", "barrier", "cp", "st", "red", "atom")):
        yield _apart("cluster", size)._replace(spaces=spaces)
    if globally and _of_a_grid(facts):
        yield _apart("grid", size)._replace(spaces=("global",))


def _is_flat(facts: FunctionFacts) -> bool:
    """Whether a kernel asks for one dimension of its CTA only."""
    return "%tid.y" not in facts.targets and "%tid.z" not in facts.targets


def _of_warps(facts: FunctionFacts) -> bool:
    """Whether threads of a CTA may meet in shared memory, or miss a barrier."""
    if facts.families & {"cp", "wgmma", "tcgen05", "mbarrier", "stmatrix", "setmaxnreg"}:
        return True
    accesses = facts.of("st", "atom", "red", "ld")
    shared = [line.plan.family for line in accesses if ".shared" in line.item.opcode]
    if any(family != "ld" for family in shared):
        return True
    if not MASKED.isdisjoint(facts.families) and _may_part(facts):
        return True
    barriers = "bar" in facts.families or "barrier" in facts.families
    return barriers and any(line.item.guard is not None for line in facts.of("exit", "ret"))


def _may_part(facts: FunctionFacts) -> bool:
    """Whether lanes of a warp may part, and meet at an instruction with a member mask."""
    parts = any(line.item.guard is not None for line in facts.lines)
    for line in facts.of(*MASKED):
        place = mask_operand(line)
        if place is not None and (parts or isinstance(line.item.operands[place], Name)):
            return True
    return False


def _of_a_grid(facts: FunctionFacts) -> bool:
    """Whether a kernel computes with the numbers of its CTA: others may run as one CTA."""
    for line in facts.targets.get("%ctaid.x", ()):
        into = line.item.operands[0] if line.plan.family == "mov" else None
        key = line.registers[into.name] if isinstance(into, Name) else None
        if key is None or key in facts.reads:
            return True
    return False


def _written_globally(facts: FunctionFacts) -> bool:
    """Whether CTAs may meet at a parameter's memory: they access it at different addresses, or all at one."""
    roots: dict[str, list[tuple[bool, Value]]] = {}
    for step in facts.accesses:
        access = step.access
        if access is None or access.space not in ("global", "") or len(access.address.terms) > 3:
            continue
        for term, count in access.address.terms:
            if count == 1 and term[0] not in "#%&":
                roots.setdefault(term, []).append((step.writes, access.address))
    for each in roots.values():
        if any(writes for writes, _ in each):
            (_, first), *others = each
            alone = all(term[0] not in "#%" for term, _ in first.terms) and not isinstance(first.each, range)
            if alone or any(not _own(address, first) for _, address in others):
                return True
    return False


def _own(a: Value, b: Value) -> bool:
    """Whether two addresses are in one element that belongs to a thread, whose number is a factor of an unknown."""
    if a == b:
        return True
    widest = max([count for name, count in a.terms if name[0] in "#%"], default=0)
    difference = plus(a, b, -1)
    return not difference.terms and isinstance(difference.each, int) and abs(difference.each) < widest


def declared_size(function: Function) -> int | None:
    """Threads of a CTA, if .reqntid says so and there is one dimension of them."""
    for item in function.directives:
        if getattr(item, "name", "") == ".reqntid":
            sizes = [arg for arg in getattr(item, "args", ()) if isinstance(arg, int)]
            return sizes[0] if sizes and prod(sizes) == sizes[0] else None
    return None


def _most(function: Function) -> int:
    for item in function.directives:
        if getattr(item, "name", "") in (".maxntid", ".reqntid"):
            sizes = [arg for arg in getattr(item, "args", ()) if isinstance(arg, int)]
            return sizes[0] if sizes else THREADS
    return THREADS


def _of_cta(facts: FunctionFacts, size: int | None) -> Threads:
    count = size
    if count is None:
        several = any(
            not line.item.opcode.startswith(("bar.warp", "barrier.warp")) for line in facts.of("bar", "barrier")
        )
        count = min(_most(facts.function), THREADS if several else WARP)
    here = min(count, THREADS)
    special = _special(size)
    special["%tid.x"] = Value((), range(THREADS))
    special["%ctaid.x"] = Value((), 0) if size else Value((("%ctaid.x", 1),), 0)
    special["%warpid"] = Value((), shortest(iter([t // WARP for t in range(THREADS)])))
    return Threads(
        "cta", (1 << here) - 1, size or count, size is not None and size <= THREADS, size is not None, special
    )


def _of_ctas(facts: FunctionFacts, size: int | None, spaces: tuple[str, ...]) -> Iterator[Threads]:
    """The first two warps of a CTA; if its size is declared, also the first one with others."""
    yield _of_cta(facts, size)._replace(spaces=spaces, group=(size or 0) >= THREADS)
    last = (size or 0) // WARP - 1
    for other in sorted({min(2, last), last}) if last > 1 else ():
        threads = _of_cta(facts, size)
        numbers = tuple([t if t < WARP else t + (other - 1) * WARP for t in range(THREADS)])
        threads.registers["%tid.x"] = Value((), numbers)
        threads.registers["%warpid"] = Value((), tuple([t // WARP * other for t in range(THREADS)]))
        yield threads._replace(spaces=spaces, group=other < 4)


def _apart(kind: str, size: int | None) -> Threads:
    lanes = min(size or _FEW, WARP)
    half = (1 << lanes) - 1
    special = _special(size or _SIZE)
    special["%tid.x"] = Value((), shortest(iter([t % WARP for t in range(THREADS)])))
    which = Value((), shortest(iter([t // WARP for t in range(THREADS)])))
    special["%ctaid.x"] = which
    special["%nctaid.x"] = Value((), 2)
    special["%warpid"] = Value((), 0)
    if kind == "cluster":
        for name in ("%cluster_ctarank", "%cluster_ctaid.x"):
            special[name] = which
        for name in ("%cluster_nctarank", "%cluster_nctaid.x"):
            special[name] = Value((), 2)
    mask = half | half << WARP
    return Threads(kind, mask, size or _SIZE, size is not None and size <= WARP, size is not None, special)


def _special(size: int | None) -> dict[str, Value]:
    zero, one = Value((), 0), Value((), 1)
    found = dict.fromkeys(("%tid.y", "%tid.z", "%ctaid.y", "%ctaid.z"), zero)
    found |= dict.fromkeys(("%ntid.y", "%ntid.z"), one)
    found |= dict.fromkeys(("%cluster_ctarank", "%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z"), zero)
    found["%laneid"] = Value((), shortest(iter([t % WARP for t in range(THREADS)])))
    if size is not None:
        found["%ntid.x"] = Value((), size)
    return found
