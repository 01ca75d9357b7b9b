"""Whether the registers of wgmma can be touched in flight, from the program alone (9.7.15.7).

Whoever executes `wgmma.mma_async` executes what lies behind it on some path of the control-flow graph, as all threads
of the warp do together. So if on each path to a touch of its registers there is a `wgmma.wait_group` that completes it,
and on each path from the last touch of them to it a `wgmma.fence`, there is nothing to report in any run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ptxtools.program.details import NamedOperands, Touch
from ptxtools.program.effects import successors
from ptxtools.program.passes.registers import registers_of

if TYPE_CHECKING:
    from ptxtools.program.program import Op, Program, Slot

#: Groups that are told apart; products that no group has yet.
_MOST, _OPEN = 16, -1


#: Slots that products write and read, by their place.
_Registers: TypeAlias = "dict[int, tuple[frozenset[Slot], frozenset[Slot]]]"


class _State:
    """flying: products that may be outstanding, by their place, with the least number of groups committed behind
    theirs; changed: slots that may have been written without a fence since; fenced: there has been one in any case."""

    __slots__ = ("changed", "fenced", "flying")

    def __init__(self, flying: dict[int, int], changed: frozenset[Slot], *, fenced: bool) -> None:
        self.flying, self.changed, self.fenced = flying, changed, fenced

    def joined(self, other: _State) -> _State:
        flying = dict(self.flying)
        for place, behind in other.flying.items():
            flying[place] = min(behind, flying.get(place, behind))
        return _State(flying, self.changed | other.changed, fenced=self.fenced and other.fenced)

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, _State)
        return (self.flying, self.changed, self.fenced) == (other.flying, other.changed, other.fenced)

    __hash__ = None  # type: ignore[assignment]


def settled(program: Program) -> bool:
    """Whether no run of a program touches registers of products in flight, or lacks a fence before a product. The
    program has the events of the checker ("observe.in_flight")."""
    end = program.functions[1].first if len(program.functions) > 1 else len(program.blocks)
    if any(block.terminator.op is not None and block.terminator.op.kind == "wgmma.mma_async"
           for block in program.blocks[end:]):  # fmt: skip
        return False  # in a called function
    constants = {slot: value for slot, _, value in program.functions[0].constants}
    states: dict[int, _State] = {0: _State({}, frozenset(), fenced=False)}
    registers: _Registers = {}
    left = [0]
    while left:
        number = left.pop()
        block, state = program.blocks[number], states[number]
        for op in block.ops:
            if op.kind == "fence" and op.opcode is not None and op.opcode.name == "wgmma.fence":
                if op.guard is not None:
                    return False
                state = _State(state.flying, frozenset(), fenced=True)
        op_at_end = block.terminator.op
        if op_at_end is not None:
            after = _after(number, op_at_end, state, constants, registers)
            if after is None:
                return False
            state = after
        for following in successors(block.terminator):
            known = states.get(following)
            joined = state if known is None else known.joined(state)
            if known is None or joined != known:
                states[following] = joined
                left.append(following)
    return True


def _after(number: int, op: Op, state: _State, constants: dict[Slot, int], registers: _Registers) -> _State | None:
    """The state behind an event; None if there may be something to report. registers: of products that it has met."""
    flying = state.flying
    if op.kind.startswith("wgmma.") and op.guard is not None:
        return None
    if op.kind == "wgmma.mma_async":
        written, read = registers_of(op)
        if not state.fenced or not state.changed.isdisjoint(written | read):
            return None
        registers[number] = written, read
        return _State({**flying, number: _OPEN}, state.changed, fenced=True)
    if op.kind == "wgmma.commit_group":
        return _State({place: min(behind + 1, _MOST) for place, behind in flying.items()}, state.changed,
                      fenced=state.fenced)  # fmt: skip
    if op.kind == "wgmma.wait_group":
        ref = op.src[op.of(NamedOperands).sources["n"][0]]
        most = None if ref is None else constants.get(ref.slot)
        if most is None:
            return None
        return _State({place: behind for place, behind in flying.items() if behind < most}, state.changed,
                      fenced=state.fenced)  # fmt: skip
    if op.kind != "observe.in_flight":
        return state
    touch = op.of(Touch)
    for place in flying if touch.function == 0 else ():
        written, read = registers[place]
        if not (written.isdisjoint((*touch.reads, *touch.writes)) and read.isdisjoint(touch.writes)):
            return None
    changed = state.changed | {slot for slot in touch.writes if slot >= 0} if touch.function == 0 else state.changed
    return _State(flying, changed, fenced=state.fenced)


__all__ = ["settled"]
