"""asynccheck on registers: those of wgmma (accumulator, and A where it is in registers) and of tcgen05.ld belong to the
tensor cores until the warp has waited (9.7.15.7, 9.7.16.8.5); and wgmma needs a wgmma.fence behind what threads have
written to its registers (9.7.15.7.1).

The chips wait for registers of tcgen05.ld by themselves, and compilers rely on it: they use them before they wait. So
such a use is reported only if no wait comes at all.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from ptxtools.program.details import Touch
from ptxtools.program.passes.registers import IN_FLIGHT, registers_of
from ptxtools.records import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ptxtools.machine.claims import Claim
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array
    from ptxtools.program.program import Op, Program, Slot

    from .session import Session

_NAME = "asynccheck"
_KEY = "registers in flight"


@dataclass(slots=True)
class _Warp:
    """out: outstanding instructions, with the function that they are in, and slots that they write and read; changed:
    slots that were written since the last wgmma.fence, and where; fenced: there was one; used: where and by whom
    registers of a tcgen05.ld were first touched before it was waited for."""

    out: dict[Claim, tuple[int, frozenset[Slot], frozenset[Slot]]] = field(default_factory=dict)
    changed: dict[tuple[int, Slot], int] = field(default_factory=dict)
    fenced: bool = False
    used: dict[Claim, tuple[int, tuple[int, int, int]]] = field(default_factory=dict)


class InFlight:
    """What is outstanding hangs on the CTA."""

    def __init__(self, session: Session) -> None:
        self._session: Session = weakref.proxy(session)
        self._functions: dict[int, int] = {}

    def issued(self, claim: Claim) -> None:
        """An instruction begins."""
        view = claim.view
        op = view.op
        if op.kind not in IN_FLIGHT:
            return
        warp, function = _warp(view), self._function(view.launch.program, op)
        written, read = registers_of(op)
        if op.kind == "wgmma.mma_async":
            changes = [
                warp.changed[function, slot] for slot in sorted(written | read) if (function, slot) in warp.changed
            ]
            if changes or not warp.fenced:
                self._no_fence(claim, changes)
        warp.out[claim] = function, written, read

    def completed(self, claim: Claim) -> None:
        """It is over."""
        if claim.view.op.kind in IN_FLIGHT:
            _warp(claim.view).out.pop(claim, None)

    def abandoned(self, claim: Claim) -> None:
        """The CTA ends without having waited for a load."""
        view = claim.view
        if view.op.kind not in IN_FLIGHT or claim not in _warp(view).used:
            return
        where, thread = _warp(view).used[claim]
        program = view.launch.program
        self._session.report_at(
            program, where, view.cta.place, thread, _NAME,
            f"the thread uses a register that {claim.text} writes, and the warp never waits for that",
            (where, "register"), kind="register-in-flight",
            others=(self._session.site(program, view.op.where, view.cta.place),), help="tcgen05.wait::ld before this",
        )  # fmt: skip

    def fence(self, at: View) -> None:
        """A fence of any sort."""
        if at.op.opcode is not None and at.op.opcode.name == "wgmma.fence":
            warp = _warp(at)
            warp.changed.clear()
            warp.fenced = True

    def touched(self, at: View, lanes: Array) -> None:
        """Another instruction reads or writes such registers."""
        touch, warp = at.op.of(Touch), _warp(at)
        for claim, (function, written, read) in warp.out.items():
            if function != touch.function:
                continue
            if claim.view.op.kind == "tcgen05.ld":
                if not written.isdisjoint((*touch.reads, *touch.writes)):
                    warp.used.setdefault(claim, (at.op.where, at.thread(int(lanes[0]))))
                continue
            if not written.isdisjoint(touch.reads):
                self._report(at, lanes, claim, "reads a register that", "writes")
            elif not written.isdisjoint(touch.writes):
                self._report(at, lanes, claim, "changes a register that", "writes")
            elif not read.isdisjoint(touch.writes):
                self._report(at, lanes, claim, "changes a register that", "reads")
        warp.changed.update(((touch.function, slot), at.op.where) for slot in touch.writes if slot >= 0)

    def _report(self, at: View, lanes: Array, claim: Claim, what: str, how: str) -> None:
        program, there = at.launch.program, claim.view.op.where
        message = f"the thread {what} {claim.text} still {how}: nobody waited for it"
        self._session.report(
            at, int(lanes[0]), _NAME, message, (at.op.where, there, "register"), kind="register-in-flight",
            others=(self._session.site(program, there, at.cta.place),),
            help="wgmma.wait_group before this",
        )  # fmt: skip

    def _no_fence(self, claim: Claim, changes: Iterable[int]) -> None:
        view = claim.view
        program = view.launch.program
        where = next(iter(changes), None)
        message = (
            "there is no wgmma.fence before this first wgmma.mma_async"
            if where is None
            else "its registers were written without a wgmma.fence behind it"
        )
        others = () if where is None else (self._session.site(program, where, view.cta.place),)
        self._session.report(
            view, claim.lane, _NAME, message, (view.op.where, "wgmma.fence"), kind="no-wgmma-fence", others=others,
            help="wgmma.fence.sync.aligned between the two",
        )  # fmt: skip

    def _function(self, program: Program, op: Op) -> int:
        """Number of the function that an operation is in."""
        if op.where not in self._functions:
            for number, function in enumerate(program.functions):
                later = program.functions[number + 1 :]
                for block in program.blocks[function.first : later[0].first if later else None]:
                    if block.terminator.op is not None:
                        self._functions.setdefault(block.terminator.op.where, number)
        return self._functions[op.where]


def _warp(view: View) -> _Warp:
    warps: dict[int, _Warp] = view.cta.state.setdefault(_KEY, {})
    return warps.setdefault(view.warp, _Warp())
