"""What wgmma reads of shared memory, for observers that look before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ptxtools.machine.events import View
from ptxtools.program.details import NamedOperands

from .operands import place
from .wgmma import places, plan_of, reads

if TYPE_CHECKING:
    from ptxtools.machine.claims import Span
    from ptxtools.program.program import Op, Program, Ref


class WarpgroupReads:
    """What the instructions wgmma.mma_async of a program read of shared memory, for those who are told of them
    (`Observer.together`) before they run."""

    def __init__(self, program: Program) -> None:
        self._ops: dict[int, list[Op]] = {}
        self._refs: dict[int, list[Ref]] = {}  # of descriptors, by event
        for op in program.operations():
            if op.kind == "wgmma.mma_async":
                self._ops.setdefault(op.where, []).append(op)

    def key(self, at: View) -> tuple[int, ...]:
        """The instruction, and its descriptors."""
        refs, lane = self._refs.get(id(at.op)), at.leader
        if refs is None:
            view = self._view(at)
            sources = view.op.of(NamedOperands).sources
            places = [view.op.src[sources[name][0]] for name in ("a_desc", "b_desc") if name in sources]
            refs = self._refs[id(at.op)] = [ref for ref in places if ref is not None]
        return (at.op.where, *(at.read(ref, lane) for ref in refs))

    def spans(self, at: View) -> list[Span]:
        """What it reads."""
        return reads(self._view(at))

    def teach(self, at: View) -> None:
        """Let the engine look at it from now on, where it can."""
        view = self._view(at)
        sources, refs = view.op.of(NamedOperands).sources, at.op.src
        plan = plan_of(view)
        a = place(view, "a_desc") if plan.in_memory else None
        b = place(view, "b_desc")
        if not plan.sparse and refs[0] is None and b is not None and (a is not None or "a_desc" not in sources):
            at.launch.products.take_over_reads(at, a, b, lambda which, code: places(plan, which, code))

    def _view(self, at: View) -> View:
        known = self._ops[at.op.where]
        op = next(op for op in known if op.src == at.op.src[1:]) if len(known) > 1 else known[0]
        return cast(View, _Before(at, op))


def multiplies(op: Op) -> bool:
    """Whether an operation, or the event before it, is a product of a warpgroup."""
    return op.opcode is not None and op.opcode.name.startswith("wgmma.mma_async")


class _Before:
    """The view of an operation, at the event before it."""

    def __init__(self, at: View, op: Op) -> None:
        self._at, self.op = at, op

    def __getattr__(self, name: str) -> Any:
        return getattr(self._at, name)
