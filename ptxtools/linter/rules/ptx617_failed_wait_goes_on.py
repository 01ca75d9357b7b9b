"""PTX617 | failed wait for an mbarrier goes on | 9.7.13.15.16

What: mbarrier.test_wait or try_wait is followed by a branch on its result, and a thread for which it has failed comes
to where one goes for which it has succeeded, with no other wait in between; or the branch repeats the wait as long as
it succeeds. Nothing else looks at the result. Possible: what follows may do without what the phase brings.
Why: try_wait may fail at any time, test_wait whenever the phase is not complete; what comes behind it then is not
ordered behind the phase, and reads what has not arrived.
Example:
    .version 8.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<2>; .reg .b32 %r<2>; .reg .pred %p<2>; .shared .align 8 .b64 full; .shared .b32 tile[32];
        ld.param.b64 %d1, [a];
        mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0;
        @%p1 bra Done;
        nanosleep.u32 100;
    Done:
        ld.shared.b32 %r1, [tile]; st.global.b32 [%d1], %r1;
        ret;
    }
Better:
    .version 8.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<2>; .reg .b32 %r<2>; .reg .pred %p<2>; .shared .align 8 .b64 full; .shared .b32 tile[32];
        ld.param.b64 %d1, [a];
    Wait:
        mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0;
        @%p1 bra Done;
        nanosleep.u32 100;
        bra Wait;
    Done:
        ld.shared.b32 %r1, [tile]; st.global.b32 [%d1], %r1;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.nodes import Name
from ptxtools.ir.positions import parts_of
from ptxtools.ir.symbols import RegisterKey

from ..context import LintContext
from ..facts import ENDING, FunctionFacts, Line
from ..registry import bodies_with

CODE = "PTX617"
#: Instructions behind a wait among which a branch asks for its result, and that are looked at behind a failure.
_NEAR, _MOST = 8, 64
#: Where others may have waited, or threads meet.
_TELLING = ("call", "bar", "barrier")
_POSSIBLE = "possible: what follows may do without what the phase brings"


@bodies_with("mbarrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    waits = [at for at, line in enumerate(facts.lines) if _is_wait(line)]
    if not waits:
        return
    ways = _Ways(facts)
    for at in waits:
        asked = ways.asked(at)
        if asked is None:
            continue
        success, failure = asked
        if success == at:
            message = "this wait is repeated as long as it succeeds, and a failure goes on"
        elif not ways.waits_later(at, success) and ways.leads(failure, success):
            message = "where this wait fails, threads go on as where it succeeds"
        else:
            continue
        context.warn(CODE, message, parts_of(facts.lines[at].item).opcode, help=(_POSSIBLE,), section="9.7.13.15.16")


def _is_wait(line: Line) -> bool:
    return line.plan.family == "mbarrier" and "_wait" in line.item.opcode


class _Ways:
    """Where control goes in a function."""

    def __init__(self, facts: FunctionFacts) -> None:
        self._facts, self._lines = facts, facts.lines
        #: Registers that something else than a branch reads.
        self._kept: set[RegisterKey | None] = {
            key
            for line in facts.lines
            for _, key, write in facts.used(line)
            if not write and (line.plan.family != "bra" or line.item.guard is None)
        }

    def asked(self, at: int) -> tuple[int, int] | None:
        """Where the success of a wait leads, and where its failure does, if a branch decides that and nothing else."""
        line = self._lines[at]
        into = line.item.operands[0] if line.item.operands else None
        key = line.registers[into.name] if isinstance(into, Name) else None
        if key is None or key in self._kept or line.item.guard is not None:
            return None
        for place in range(at + 1, min(at + _NEAR, len(self._lines))):
            other = self._lines[place]
            guard = other.item.guard
            if other.plan.family == "bra" and guard is not None and other.registers[guard.name] == key:
                to = self._facts.jumps.get(id(other.item))
                if to is None:
                    return None
                taken, next_ = self._settled(to), self._settled(place + 1)
                return (next_, taken) if guard.negated else (taken, next_)
            if other.plan.family in ENDING or any(write and of == key for _, of, write in self._facts.used(other)):
                return None
        return None

    def _settled(self, at: int) -> int:
        """Where control goes on, behind branches that all threads take."""
        for _ in range(_NEAR):
            line = self._lines[at] if at < len(self._lines) else None
            if line is None or line.plan.family != "bra" or line.item.guard is not None:
                break
            at = self._facts.jumps.get(id(line.item), len(self._lines))
        return at

    def _after(self, at: int) -> list[int]:
        line = self._lines[at]
        family, guarded = line.plan.family, line.item.guard is not None
        found = [at + 1] if guarded or family not in ENDING else []
        if family == "bra":
            found += [to for to in [self._facts.jumps.get(id(line.item))] if to is not None]
        elif family == "brx":
            found += self._facts.tables.get(id(line.item), [])
        return found

    def leads(self, start: int, end: int) -> bool:
        """Whether control comes from one place to another one within some instructions, and nobody waits or meets on
        the way."""
        seen: set[int] = set()
        ahead = [start]
        while ahead:
            at = ahead.pop()
            if at == end:
                return True
            if at in seen or at >= len(self._lines):
                continue
            seen.add(at)
            line = self._lines[at]
            if len(seen) > _MOST or line.plan.family in _TELLING:
                return False
            if not (_is_wait(line) and self.asked(at) is not None):
                ahead += self._after(at)
        return False

    def waits_later(self, at: int, start: int) -> bool:
        """Whether another instruction waits for the same phase soon behind a place."""
        wanted = self._text(at)
        for place in range(start, min(start + _MOST, len(self._lines))):
            if place != at and _is_wait(self._lines[place]) and self._text(place) == wanted:
                return self.asked(place) is not None
        return False

    def _text(self, at: int) -> tuple[str, ...]:
        return tuple(str(operand) for operand in self._lines[at].item.operands[1:3])
