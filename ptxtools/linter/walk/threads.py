"""Which 64 threads walk through a kernel: two warps of a CTA, of a grid, or of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxtools.ir.nodes import Name
from ptxtools.records import NamedTuple

from ..constants import thread_numbers
from ..facts import FunctionFacts
from ..lanes import ALL
from ..masks import MASKED, mask_operand
from ..values import THREADS, WARP, Value, plus, shortest
from .calls import followed
from .computing import divides
from .shapes import (
    Shape,
    ctas_told_apart,
    declared_shape,
    guessed_shape,
    most_threads,
    threads_expected,
    warps_told_apart,
)
from .turns import turning

#: Threads of each CTA that are compared with those of another one if no directive says how many there are: kernels for
#: fewer than a warp are written, too.
_FEW = 8
#: Threads of a CTA if no directive says how many there are.
_SIZE = 128
#: Other warps that the first one is walked with.
_OTHERS = 4
#: What masks of lanes are, by the number of the lane.
_LANEMASKS: dict[str, Callable[[int], int]] = {
    "lt": lambda lane: (1 << lane) - 1, "le": lambda lane: (2 << lane) - 1, "eq": lambda lane: 1 << lane,
    "ge": lambda lane: ALL ^ (1 << lane) - 1, "gt": lambda lane: ALL ^ (2 << lane) - 1,
}  # fmt: skip
_NUMBERS = ("%tid.x", "%tid.y", "%tid.z")


class Threads(NamedTuple):
    """kind: "cta", "grid" or "cluster"; mask: the threads there are, as bits; size: threads of a CTA; whole: whether
    all of its threads are among them; declared: whether directives say so; registers: the special registers; spaces:
    the memory in which they may meet; group: whether they are of one warpgroup; guessed: whether it
    follows from addresses alone that they are in one CTA; there: whether nearly every launch has all of them; turned:
    whether the two CTAs stand for all of a larger cluster, those with even and those with odd ranks."""

    kind: str
    mask: int
    size: int
    whole: bool
    declared: bool
    registers: dict[str, Value]
    spaces: tuple[str, ...] = ("shared", "global")
    group: bool = False
    guessed: bool = False
    there: bool = True
    turned: bool = False

    @property
    def apart(self) -> bool:
        """Whether the two halves are of two CTAs."""
        return self.kind != "cta"

    def name(self, thread: int) -> str:
        """What a thread is called in messages: by its number, or by its place where a CTA has several dimensions."""
        places = [self.registers[name].numbers[thread] for name in _NUMBERS]
        sizes = [self.registers[name].constant for name in ("%ntid.y", "%ntid.z")]
        last = max((at for at, size in enumerate(sizes, 1) if size != 1), default=0)
        return f"thread ({', '.join(map(str, places[: last + 1]))})" if last else f"thread {places[0]}"


def places_of(facts: FunctionFacts) -> Iterator[Threads]:
    """The threads that are worth a walk of a kernel."""
    shape = declared_shape(facts.function)
    flat = _is_flat(facts)
    if shape is None and "setmaxnreg" in facts.families:
        shape = Shape(4 * WARP)  # it is for warpgroups
    if shape is None and not flat:
        shape = guessed_shape(facts)
    globally = _written_globally(facts) or bool(facts.families & {"griddepcontrol", "tensormap", "discard"})
    globally = globally or any(".nc" in line.item.opcode for one in followed(facts) for line in one.of("ld"))
    spaces = ("shared", "global") if globally else ("shared",)
    later: list[Threads] = []
    others: list[Threads] = []
    if shape is None and not flat:
        pass  # how many threads a row has is not known: a warp may be several rows
    elif _of_warps(facts) or any(_of_warps(one) for one in followed(facts)):
        first, *later = [threads._replace(spaces=spaces) for threads in _of_ctas(facts, shape)]
        yield first
        for cta in ctas_told_apart(facts) if shape is not None and shape.declared else ():  # else its number is open
            for threads in (first, *later):
                special = threads.registers | {"%ctaid.x": Value((), cta)}
                others.append(threads._replace(registers=special, guessed=True))
    elif globally or (shape is not None and "bra" in facts.families) or followed(facts) or _divides_by_numbers(facts):
        yield _of_cta(facts, shape)._replace(spaces=("global",))
    if any(".cluster" in line.item.opcode for line in facts.of("mapa", "barrier", "cp", "st", "red", "atom")):
        total = turning(facts)
        yield _apart("cluster", shape, total=total)._replace(spaces=spaces)
        last = _last_warp(facts, shape)
        if last:
            yield _apart("cluster", shape, last, total)._replace(spaces=spaces)
    if globally and (_of_a_grid(facts) or _counts_in_one_thread(facts)):
        grid = _apart("grid", shape)._replace(spaces=("global",))
        yield grid if _of_a_grid(facts) else grid._replace(guessed=True)
    yield from later
    yield from others


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
    barriers = facts.of("bar", "barrier")
    if any(line.item.operands and type(line.item.operands[0]) is Name for line in barriers):
        return True
    generic = [line for line in facts.of("st") if not {"shared", "global"} & set(line.item.opcode.split("."))]
    if generic and any(line.item.opcode.startswith("cvta.shared") for line in facts.of("cvta")):
        return True
    ends = "brx" in facts.families or any(line.item.guard is not None for line in facts.of("exit", "ret"))
    return bool(barriers) and (ends or any(line.item.guard is not None for line in barriers))


def _divides_by_numbers(facts: FunctionFacts) -> bool:
    """Whether something is divided by a number that follows from that of the thread, and may be zero."""
    for line in facts.of("div", "rem"):
        divisor = line.item.operands[2] if divides(line) else None
        if isinstance(divisor, Name) and 0 in (thread_numbers(facts, line, divisor.name) or ()):
            return True
    return False


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


def _counts_in_one_thread(facts: FunctionFacts) -> bool:
    """Whether a kernel updates global memory where not all threads come: what for, if there is one CTA?"""
    return any(line.item.guard is not None and ".global" in line.item.opcode for line in facts.of("atom", "red"))


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


def _of_cta(facts: FunctionFacts, shape: Shape | None, other: int = 1) -> Threads:
    """The first warp of a CTA and another one."""
    count = shape.size if shape is not None else None
    fills = False  # whether that there are two warps follows from the places that they have in shared memory
    if count is None:
        several = any(
            not line.item.opcode.startswith(("bar.warp", "barrier.warp", "barrier.cluster"))
            for line in facts.of("bar", "barrier")
        )
        allowed = most_threads(facts.function) or 0
        most = allowed or THREADS
        if not several and other == 1 and allowed >= THREADS and (threads_expected(facts) or 0) >= THREADS:
            several = fills = True
        count = (other + 1) * WARP if other > 1 else min(most, THREADS if several else WARP)
    here = min(count, THREADS) if other == 1 else WARP + min(WARP, count - other * WARP)
    special = _special(shape, [t if t < WARP else t + (other - 1) * WARP for t in range(THREADS)])
    special["%ctaid.x"] = Value((), 0) if shape is not None and shape.declared else Value((("%ctaid.x", 1),), 0)
    special["%warpid"] = Value((), shortest(iter([t // WARP * other for t in range(THREADS)])))
    known, declared = shape is not None, shape is not None and shape.declared
    return Threads(
        "cta", (1 << here) - 1, count, known and count <= THREADS, known, special,
        group=known and count >= THREADS and other < 4, guessed=not declared and (known or other > 1 or fills),
        there=known or other == 1,
    )  # fmt: skip


def _last_warp(facts: FunctionFacts, shape: Shape | None) -> int:
    """The last warp of a CTA, as far as it is known; else 0."""
    count = shape.size if shape is not None else threads_expected(facts)
    return count // WARP - 1 if count is not None and count >= WARP else 0


def _of_ctas(facts: FunctionFacts, shape: Shape | None) -> Iterator[Threads]:
    """The first two warps of a CTA; the first one with others that have their own work, and with the last one."""
    yield _of_cta(facts, shape)
    last = _last_warp(facts, shape)
    wide = shape is None or (shape.y == shape.z == 1 and last > 0)
    others = {each for each in warps_told_apart(facts) if not last or each <= last} if wide else set()
    if last > 1:
        others |= {min(2, last), (last + 1) // 2, last}
    if shape is None and not last and others:
        others.add(1)  # with barriers or without, there are several
    for other in sorted(others - {0} - ({1} if shape is not None else set()))[:_OTHERS]:
        yield _of_cta(facts, shape, other)


def _apart(kind: str, shape: Shape | None, other: int = 0, total: int = 0) -> Threads:
    """The first warp of one CTA, and the first one, or another one, of its neighbour. total: how many CTAs of a cluster
    they stand for, if it is larger."""
    size = shape.size if shape is not None else None
    lanes = min(size or (WARP if other else _FEW), WARP)
    half = (1 << lanes) - 1
    special = _special(shape or Shape(_SIZE), [t % WARP + t // WARP * other * WARP for t in range(THREADS)])
    which = Value((), shortest(iter([t // WARP for t in range(THREADS)])))
    special["%ctaid.x"] = which
    special["%nctaid.x"] = Value((), 2)
    special["%warpid"] = Value((), shortest(iter([t // WARP * other for t in range(THREADS)])))
    if kind == "cluster":
        for name in ("%cluster_ctarank", "%cluster_ctaid.x"):
            special[name] = which
        for name in ("%cluster_nctarank", "%cluster_nctaid.x"):
            special[name] = Value((), total or 2)
    mask = half | half << WARP
    return Threads(
        kind, mask, size or _SIZE, size is not None and size <= WARP, size is not None, special,
        guessed=shape is not None and not shape.declared, turned=total > 0,
    )  # fmt: skip


def _special(shape: Shape | None, threads: list[int]) -> dict[str, Value]:
    """The special registers of 64 threads, which have these numbers in their CTA."""
    zero = Value((), 0)
    found = dict.fromkeys((*_NUMBERS[1:], "%ctaid.y", "%ctaid.z"), zero)
    found |= dict.fromkeys(("%ntid.y", "%ntid.z"), Value((), 1))
    found |= dict.fromkeys(("%cluster_ctarank", "%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z"), zero)
    found["%laneid"] = Value((), shortest(iter([t % WARP for t in range(THREADS)])))
    for name, mask in _LANEMASKS.items():
        found[f"%lanemask_{name}"] = Value((), tuple([mask(t % WARP) for t in range(THREADS)]))
    found["%tid.x"] = Value((), shortest(iter(threads)))
    if shape is not None:
        x, y = shape.x, shape.y
        rows = ([t % x for t in threads], [t // x % y for t in threads], [t // (x * y) for t in threads])
        for name, numbers in zip(_NUMBERS, rows, strict=True):
            found[name] = Value((), shortest(iter(numbers)))
        for name, count in zip(("%ntid.x", "%ntid.y", "%ntid.z"), shape, strict=False):
            found[name] = Value((), count)
    return found
