"""A walk of two warps through a kernel: hazards that need more than a run of instructions to be seen.

What the threads compute from their numbers is known, and so is the way they take; everything else is a named unknown.
The threads are of one CTA, of two CTAs of a grid, or of two CTAs of a cluster. A walk is bounded, and a kernel's walks
take time in proportion to its length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir.positions import name_span, part_span, parts_of

from ..facts import FunctionFacts
from .threads import places_of

if TYPE_CHECKING:
    from ..context import LintContext
    from .computing import Op
    from .walker import Found

#: Findings of one kind in a function that are shown.
_TOLD = 3


#: How sure a finding is.
_CERTAIN = "certain: threads with these numbers come to it whenever a CTA has them"
_POSSIBLE = "possible: it depends on values that are not known here which way the threads take"


def tell(context: LintContext, facts: FunctionFacts, code: str, kind: str, section: str) -> None:
    """Warn of what the walks of a function find of one kind, but for places that the rule has warned of."""
    told: set[int] = set()
    for one in facts.walked.get(kind, ()):
        if len(told) == _TOLD or (one.other is not None and id(one.other.item) in told):
            continue  # one mistake has many consequences
        parts = parts_of(one.line.item)
        span = parts.opcode if one.operand is None else part_span(one.line.item, one.operand)
        if one.name:
            span = name_span(one.line.item, one.name)
        start, end = one.line.item.span
        here = facts.function.span[0] <= start < facts.function.span[1]  # else in a function that it calls
        if here and any(known.code == code and start <= known.span[0] < end for known in context.diagnostics):
            continue
        line = context.source.line_of(one.other.item.span[0]) if one.other is not None else 0
        told.add(id((one.other or one.line).item))
        how = _CERTAIN if one.certain else _POSSIBLE
        context.warn(code, one.message.format(line=line), span, help=(how,), section=section)


def told(context: LintContext, facts: FunctionFacts, code: str) -> bool:
    """Whether a rule has warned of something in a function, so that what walks find there is the same."""
    start, end = facts.function.span
    return any(known.code == code and start <= known.span[0] < end for known in context.diagnostics)


def walk_of(facts: FunctionFacts) -> list[Found]:
    """What walks through a kernel find, each place once; certain findings first."""
    if facts.function.kind != "entry" or not facts.lines:
        return []
    places = list(places_of(facts))
    if not places:
        return []
    # Many kernels need no walk, and are linted before all of this would be loaded.
    from .collectives import MEETING
    from .program import Program
    from .walker import Found, Walker

    found: dict[tuple[str, int], Found] = {}
    program = Program(facts)
    left = program.budget
    narrow: dict[int, Op] | None = {}
    for threads in places:
        if left <= 0:
            break
        seen: set[tuple[int, bool]] = set()
        parts, steps = False, -1
        for _ in range(program.walks):
            walker = Walker(program, threads, seen, left)
            for one in walker.run():
                known = found.get((one.kind, id(one.line.item)))
                if known is None or (one.certain and not known.certain):
                    found[one.kind, id(one.line.item)] = one
            if not threads.apart and narrow is not None:
                wide = walker.memory.narrow.found()
                narrow = {id(op.line.item): op for op in [*narrow.values(), *wide]} if wide else None
            if steps < 0:
                parts, steps = walker.parts, left - walker.left
            left = walker.left
            if left <= 0 or not program.new_way(seen):
                break
        if threads.apart or not program.ends or left <= 0:
            continue
        if not parts:
            left -= steps  # it would be the first walk again
        else:
            walker = Walker(program, threads, set(), left, parting=True)
            for one in walker.run():
                if one.kind in MEETING:
                    found.setdefault((one.kind, id(one.line.item)), one)
            left = walker.left
    for factor, byte in program.whole.missing():
        message = f"this reads byte {byte} of '{factor.terms[0][0][1:]}', which no thread of the CTA has written"
        found["unwritten shared", id(factor.line.item)] = Found(
            "unwritten shared", factor.line, factor.operand, message, certain=True
        )
    for op in narrow.values() if narrow and left > 0 else ():
        message = "no warp accesses what another one has written: a barrier of the warp orders as much"
        found["narrow barrier", id(op.line.item)] = Found("narrow barrier", op.line, None, message, certain=False)
    return list(found.values())


__all__ = ["tell", "told", "walk_of"]
