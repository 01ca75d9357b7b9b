"""Clusters of more than two CTAs whose CTAs all do the same, each with those that have a certain distance from it.

If the rank matters for nothing but whose memory `mapa` names, and all of these are at a distance in a ring, or differ
by an exclusive or, then CTAs 0 and 1 may stand for those with even and with odd ranks: what the two do to each other,
the others do likewise, and what orders the two, or does not, orders the others as well.
"""

from __future__ import annotations

from typing import Literal

from ptxtools.ir.nodes import Immediate, Name, Operand
from ptxtools.ir.symbols import RegisterKey

from ..facts import FunctionFacts, Line
from ..inflight import accessed
from ..limits import cluster_sizes

#: What tells CTAs of a cluster apart.
_RANKS = ("%cluster_ctarank", "%cluster_ctaid", "%ctaid")
_RANK, _COUNT = "%cluster_ctarank", "%cluster_nctarank"
#: Families whose results alone depend on their sources.
_ARITHMETIC = frozenset({"mov", "cvt", "add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "rem"})
#: How far ranks may be followed through loops.
_PASSES = 3

#: What has been done to a rank: a sum that may exceed the last one, one within the ring, or an exclusive or.
_Kind = Literal["rank", "sum", "ring", "xor"]


def turning(facts: FunctionFacts) -> int:
    """How many CTAs a kernel's cluster has, if two of them may stand for all and there are more; else 0."""
    declared = [total for item, total in cluster_sizes(facts.function) if item.name == ".reqnctapercluster"]
    total = declared[0] if declared else 0
    if total < 4 or total & total - 1 or not facts.families & {"mapa"} or facts.families & {"call", "brx"}:
        return 0
    told: set[RegisterKey] = set()
    for _ in range(_PASSES):
        before = len(told)
        told.update(key for line in facts.lines if _reads(line, told) for key in _written(line))
        if len(told) == before:
            return total if _regular(facts, told, total) else 0
    return 0


def _operand(line: Line, at: int) -> Operand | None:
    return line.item.operands[at] if at < len(line.item.operands) else None


def _written(line: Line) -> list[RegisterKey]:
    """What an instruction writes that depends on its sources; not a place in the memory of a CTA."""
    if line.plan.family == "mapa":
        return []
    return [key for name, write in accessed(line) if write and (key := line.registers[name]) is not None]


def _reads(line: Line, told: set[RegisterKey]) -> bool:
    return any(
        not write and (name.startswith(_RANKS) or line.registers[name] in told) for name, write in accessed(line)
    )


def _regular(facts: FunctionFacts, told: set[RegisterKey], total: int) -> bool:
    """Whether ranks, and what is computed of them, are only stored, part of global addresses, or named by mapa."""
    writes: dict[RegisterKey, list[int]] = {}
    for at, line in enumerate(facts.lines):
        for name, write in accessed(line):
            if write and (key := line.registers[name]) is not None:
                writes.setdefault(key, []).append(at)
    targets = set(facts.jumps.values())
    kinds: dict[RegisterKey, _Kind | None] = {}
    counts: set[RegisterKey] = set()
    named: set[_Kind | None] = set()
    for line in facts.lines:
        family, item = line.plan.family, line.item
        into = _operand(line, 0)
        key = line.registers[into.name] if isinstance(into, Name) else None
        if family == "mapa":
            named.add(_kind(line, 2, kinds))
            continue
        named_count = family == "mov" and getattr(_operand(line, 1), "name", "") == _COUNT
        if key is not None and named_count and len(writes.get(key, ())) == 1:
            counts.add(key)
        if not _reads(line, told):
            continue
        if family in ("st", "ld", "red"):
            if ".global" not in item.opcode and not _only_stored(line, told):
                return False
            continue
        if family not in _ARITHMETIC or item.guard is not None or key not in writes:
            return False
        first, *others = writes[key]
        one = others == list(range(first + 1, first + 1 + len(others))) and targets.isdisjoint(others)
        kinds[key] = _result(line, kinds, counts, total) if one else None
    return bool(named) and (named <= {"rank", "ring"} or named <= {"rank", "xor"})


def _only_stored(line: Line, told: set[RegisterKey]) -> bool:
    """Whether a store's value alone depends on the rank."""
    base = getattr(getattr(_operand(line, 0), "base", None), "name", "")
    return line.plan.family == "st" and line.registers[base] not in told and not base.startswith(_RANKS)


def _kind(line: Line, operand: int, kinds: dict[RegisterKey, _Kind | None]) -> _Kind | None:
    """What an operand is of the rank."""
    name = getattr(_operand(line, operand), "name", "")
    if name == _RANK:
        return "rank"
    key = line.registers[name]
    return kinds.get(key) if key is not None else None


def _result(line: Line, kinds: dict[RegisterKey, _Kind | None], counts: set[RegisterKey], total: int) -> _Kind | None:
    """What an instruction makes of the rank."""
    family, other = line.plan.family, _operand(line, 2)
    known = _kind(line, 1, kinds)
    if known is None or len(line.item.operands) > 3:
        return None
    if family in ("mov", "cvt"):
        return known
    number = other.value if isinstance(other, Immediate) else None
    if family in ("add", "sub") and number is not None and known in ("rank", "ring", "sum"):
        return "sum"
    if family == "xor" and number is not None and 0 <= number < total and known in ("rank", "xor"):
        return "xor"
    all_of_them = number == total or (isinstance(other, Name) and line.registers[other.name] in counts)
    ring = all_of_them if family == "rem" else number == total - 1
    if family in ("rem", "and") and ring and known in ("rank", "sum", "ring"):
        return "ring"
    return None
