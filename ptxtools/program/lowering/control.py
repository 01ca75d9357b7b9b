"""Branches, returns, barriers and traps (9.7.12, 9.7.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir import Instruction, Name, Operand
from ptxtools.isa import Opcode
from ptxtools.program.details import Action
from ptxtools.program.program import Op, Ref, Terminator

from .memory import locate
from .params import epilogue
from .registry import Unsupported, lowers
from .stack import leave as release_stack

if TYPE_CHECKING:
    from .function import FunctionLowering


def _label(f: FunctionLowering, name: str) -> int:
    target = f.flow.target(name, f.names)
    if target is None:
        raise Unsupported(f"there is no label '{name}'")
    return target


@lowers("bra")
def bra(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    operand = instruction.operands[0]
    if not isinstance(operand, Name):
        raise Unsupported("the target is not a label")
    target = _label(f, operand.name)
    if f.guard is None:
        f.end(Terminator("jump", target=target))
        return
    following = f.new_label()
    f.end(Terminator("branch", f.guard, f.negated, target, following, uniform=op.has("uni")))
    f.begin(following)


@lowers("brx.idx")
def brx(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    index, table = instruction.operands[:2]
    found = f.flow.table(table.name, f.names) if isinstance(table, Name) else None
    if found is None:
        raise Unsupported("there is no .branchtargets list of that name")
    targets = tuple(_label(f, name) for name in found.targets)
    uniform = op.has("uni")
    after = f.guarded_region(uniform=uniform)
    f.end(Terminator("switch", index=f.source(index, "u32"), targets=targets, uniform=uniform))
    if after is not None:
        f.begin(after)


@lowers("ret", "exit")
def leave(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """`ret` in a kernel is `exit`. Results in memory are fetched whether or not the guard holds."""
    kind = "exit" if op.family == "exit" or f.entry else "ret"
    guard, negated = f.guard, f.negated
    if kind == "ret":
        epilogue(f)
        if f.saved_stack is not None:
            _return_stack(f)
            return
    _stop(f, Terminator(kind, guard, negated))


def _return_stack(f: FunctionLowering) -> None:
    after = f.guarded_region()
    release_stack(f)
    f.end(Terminator("ret"))
    if after is not None:
        f.begin(after)


@lowers("trap", "brkpt")
def trap(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    if op.family == "brkpt":
        after = f.guarded_region()
        following = f.new_label()
        f.end(Terminator("brkpt", other=following))
        f.begin(following)
        f.end_region(after)
    else:
        _stop(f, Terminator("trap", f.guard, f.negated))


def _stop(f: FunctionLowering, terminator: Terminator) -> None:
    """End the block with lanes leaving; those whose guard is off continue after it."""
    if terminator.guard is None:
        f.end(terminator)
        return
    following = f.new_label()
    terminator.other = following
    f.end(terminator)
    f.begin(following)


@lowers("bar", "barrier")
def barrier(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """bar/barrier .sync, .arrive and .red with a number and, if written, a thread count."""
    operands = list(instruction.operands)
    action = "sync" if op.has("sync") else "arrive" if op.has("arrive") else _reduction(op)
    after = f.guarded_region()
    dst: tuple[Ref | None, ...] = ()
    dst_types: tuple[str, ...] = ()
    predicate: Ref | None = None
    if action not in ("sync", "arrive"):
        dst = (f.destination(operands.pop(0)),)
        dst_types = ("u32" if action == "popc" else "pred",)
        predicate = f.source(operands.pop(), "pred")
    number = f.source(operands[0], "u32")
    count = f.source(operands[1], "u32") if len(operands) > 1 else None
    bar = Op("bar", op, dst, (number, count, predicate), dst_types, ("u32", "u32", "pred"), detail=Action(action))
    bar.where = f.where
    following = f.new_label()
    f.end(Terminator("barrier", op=bar, other=following))
    f.begin(following)
    f.end_region(after)


def _reduction(op: Opcode) -> str:
    for action in ("popc", "and", "or"):
        if op.has(action):
            return action
    raise Unsupported("this barrier operation is not supported yet")


@lowers("bar.warp.sync")
def warp_barrier(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    after = f.guarded_region()
    f.synchronised.clear()
    f.synchronise(_mask(f, instruction.operands[0]))
    f.end_region(after)


def _mask(f: FunctionLowering, operand: Operand) -> Ref:
    return f.source(operand, "b32")


@lowers("membar", "fence")
def fence(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """Orders this thread's accesses (9.7.13.4): an operation of its own for engines with several threads. One for a
    tensor map has its address."""
    if not instruction.operands:
        f.emit(Op("fence", op))
        return
    place = locate(f, instruction.operands[0], None)
    f.emit(Op("fence", op, (), (place.base,), (), (place.type,), imm=place.offset, space=place.space))


@lowers("nanosleep")
def nanosleep(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """Gives other lanes, warps and CTAs a turn."""
    after = f.guarded_region()
    duration = f.source(instruction.operands[0], "u32")
    f.event(Op("nanosleep", op, (), (duration,), (), ("u32",)))
    f.end_region(after)
