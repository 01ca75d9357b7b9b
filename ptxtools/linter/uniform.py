"""Which registers may hold different values in the threads of a warp."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.ir.symbols import RegisterKey

from .coming import alike_in_warps, test_by_number
from .facts import FunctionFacts
from .lanes import only_write
from .memory import WARP, Step
from .values import COMMON, DIFFERS, Value

#: Instructions whose results differ between lanes, or may, whatever their operands are.
_DIFFERING = frozenset({
    "atom", "shfl", "match", "elect", "call", "ldmatrix", "mma", "wmma", "wgmma", "tcgen05", "movmatrix", "redux",
    "activemask", "tex", "tld4", "suld", "ldu", "mbarrier", "clusterlaunchcontrol", "multimem",
})  # fmt: skip
#: Votes give one result to all of the lanes that they name.
_ALIKE = frozenset({"vote"})
#: How often a body is gone through for what follows from what; where more is needed, everything may differ.
_PASSES = 16
#: Longest chain of computations that is followed back.
_DEPTH = 8
#: Comparisons that bounds are checked with.
_BOUNDS = frozenset({"lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"})


def by_most(facts: FunctionFacts, step: Step) -> bool:
    """Whether most lanes of a warp make an access that they come to: all certainly do, or they check bounds for it."""
    guard = step.line.item.guard
    if guard is None or step.active is not None:
        return guard is None or all(step.active[:WARP] if step.active is not None else ())
    test = only_write(facts, step.line, guard.name)
    return test is not None and test.plan.op is not None and not _BOUNDS.isdisjoint(test.plan.op.atoms)


def same_for_all(facts: FunctionFacts, value: Value, depth: int = _DEPTH) -> bool:
    """Whether the unknown part of a value is one for all threads of a warp that differ in %tid.x alone."""
    for term, _ in value.terms:
        if term.startswith(COMMON):
            continue
        sources = facts.unknown_sources.get(term)
        if (
            depth
            and sources is not None
            and all(type(one.each) is int and same_for_all(facts, one, depth - 1) for one in sources)
        ):
            continue
        if term[0] == "#":
            key = facts.unknown_terms.get(term)
            if key is None or key in facts.differing:
                return False
        elif term.startswith(DIFFERS) and not term.startswith("%tid"):
            return False
    return True


def differing_registers(facts: FunctionFacts, of_cta: bool = False) -> frozenset[RegisterKey]:
    """Registers that follow from numbers of threads, from data at addresses that differ, or from the way that a lane
    took. What is not known differs, and so does all that a function is called with. of_cta: that may differ in a CTA,
    not in a warp."""
    found: set[RegisterKey] = set()
    if facts.function.kind != "entry":
        found |= {key for key in facts.reads if key not in facts.writes}
    uses = [facts.used(line) for line in facts.lines]
    alike = set() if of_cta else _alike_in_warps(facts)
    follows = [
        (line, own, [(name, key) for name, key, write in used if not write])
        for line, used in zip(facts.lines, uses, strict=True)
        if (own := {key for _, key, write in used if write and key is not None})
        and id(line.item) not in alike
        and (of_cta or line.plan.family not in _ALIKE)
    ]
    for _ in range(_PASSES):
        before = len(found)
        for line, own, read in follows:
            if found >= own:
                continue
            family = line.plan.family
            if family in _DIFFERING or family in _ALIKE or any(_differs(name, key, found) for name, key in read):
                found |= own
        _follow_ways(facts, uses, found)
        if len(found) == before:
            return frozenset(found)
    return frozenset({*facts.writes, *facts.reads})


def _alike_in_warps(facts: FunctionFacts) -> set[int]:
    """Comparisons of the number of a thread that all lanes of a warp find alike."""
    if {"%tid.y", "%tid.z"} & facts.targets.keys():
        return set()
    return {id(line.item) for line in facts.of("setp") if alike_in_warps(test_by_number(facts, line))}


def _differs(name: str, key: RegisterKey | None, found: set[RegisterKey]) -> bool:
    return name.startswith(DIFFERS) if key is None else key in found


def _follow_ways(
    facts: FunctionFacts, uses: Sequence[tuple[tuple[str, RegisterKey | None, bool], ...]], found: set[RegisterKey]
) -> None:
    """What several instructions write, some of them behind a jump that only some lanes take. uses: the registers of
    each instruction, and whether it writes them."""
    sides: list[tuple[int, int]] = []
    for place, line in enumerate(facts.lines):
        guard = line.item.guard
        end = facts.jumps.get(id(line.item), 0) if guard is not None else 0
        if end > place and guard is not None and _differs(guard.name, line.registers[guard.name], found):
            sides.append((place, end))
    done = 0
    for place, end in sides:  # in the order of their places
        for used in uses[max(place, done) : end]:
            found.update(key for _, key, write in used if write and key is not None and key in facts.rewritten)
        done = max(done, end)
