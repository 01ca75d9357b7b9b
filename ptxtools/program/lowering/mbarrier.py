"""mbarrier operations (9.7.13.15).

Each is an operation "mbarrier", which does what it can with the word in the CTA's own shared memory and names in its
last destination the lanes it could not serve: those whose barrier is in another CTA, at which somebody must be woken,
or that would wait. They go through an event "mbarrier.slow" with the same operands, and meet the others behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ptxtools.ir import Address, Instruction, Operand, Pair
from ptxtools.isa import Opcode
from ptxtools.program.details import Action
from ptxtools.program.mbarrier import COUNT_MASK, PENDING_SHIFT
from ptxtools.program.program import Op, Ref, Terminator

from .memory import Located, locate
from .registry import Unsupported, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering

#: How often a try_wait looks while other warps run.
_ROUNDS = 8


def shared_place(f: FunctionLowering, operand: Operand, op: Opcode) -> Located:
    """An address in shared memory, of any CTA of the cluster, or a generic one."""
    space = op.space
    return locate(f, operand, "shared" if space is not None and space.startswith("shared") else None)


def _emit(
    f: FunctionLowering, action: str, op: Opcode, address: Operand, sources: tuple[Ref, ...], types: tuple[str, ...],
    result: Ref | None = None, result_type: str | None = None,
) -> None:  # fmt: skip
    """The operation, and the event for lanes that it could not serve."""
    place = shared_place(f, address, op)
    dst = (result,) if result_type else ()
    dst_types = (result_type,) if result_type else ()
    slow = f.new("pred")
    src, src_types = (place.base, *sources), (place.type, *types)

    def attempt() -> None:
        f.emit(Op("mbarrier", op, (*dst, slow), src, (*dst_types, "pred"), src_types,
                  imm=place.offset, space=place.space, detail=Action(action)))  # fmt: skip

    attempt()
    stop, after = f.new_label(), f.new_label()
    f.end(Terminator("branch", slow, False, stop, after))
    f.begin(stop)
    if action.startswith("try_wait"):
        _patience(f, attempt, slow, after)
    f.event(Op("mbarrier.slow", op, dst, src, dst_types, src_types,
               imm=place.offset, space=place.space, detail=Action(action)))  # fmt: skip
    f.end(Terminator("jump", target=after))
    f.begin(after)


def _patience(f: FunctionLowering, attempt: Callable[[], None], slow: Ref, after: int) -> None:
    """Yield and poll again a few times before waiting, which is much cheaper."""
    rounds = f.new("b32")
    again, still, enough = f.new_label(), f.new_label(), f.new_label()
    f.copy(rounds, f.constant(_ROUNDS, "b32"))
    f.end(Terminator("jump", target=again))
    f.begin(again)
    f.emit(Op("mbarrier.yield"))
    look = f.new_label()
    f.end(Terminator("jump", target=look))
    f.begin(look)
    attempt()
    f.end(Terminator("branch", slow, False, still, after))
    f.begin(still)
    less = f.compute("sub.s32", ("s32", "s32"), (rounds, f.constant(1, "b32")), "s32")
    f.copy(rounds, less)
    left = f.compute("setp.ne.u32", ("u32", "u32"), (rounds, f.constant(0, "b32")), "pred")
    f.end(Terminator("branch", left, False, again, enough))
    f.begin(enough)


@lowers("mbarrier.init", "mbarrier.inval", "mbarrier.expect_tx", "mbarrier.complete_tx")
def change(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    after = f.guarded_region()
    operands = instruction.operands
    sources = tuple(f.source(operand, "u32") for operand in operands[1:])
    _emit(f, op.name.partition(".")[2], op, operands[0], sources, ("u32",) * len(sources))
    f.end_region(after)


@lowers("mbarrier.arrive", "mbarrier.arrive_drop")
def arrive(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """src[1]: number of arrivals, or bytes to expect."""
    after = f.guarded_region()
    operands = instruction.operands
    target = f.destination(operands[0])
    amount = f.source(operands[2], "u32") if len(operands) > 2 else f.constant(1, "b32")
    action = op.name.partition(".")[2] + next((f".{kind}" for kind in ("expect_tx", "noComplete") if op.has(kind)), "")
    _emit(f, action, op, operands[1], (amount,), ("u32",), target, "b64")
    f.end_region(after)


@lowers("cp.async.mbarrier.arrive")
def arrive_of_copies(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """The thread's cp.async copies are complete already (9.7.13.15.15): with .noinc they arrive now; without it they
    would count themselves first, which leaves the barrier as it is, and only needs one that is initialised."""
    after = f.guarded_region()
    if f.linker.variant.late:
        place = shared_place(f, instruction.operands[0], op)
        f.event(Op("async.copy.arrive", op, (), (place.base,), (), (place.type,), imm=place.offset, space=place.space))
        f.end_region(after)
        return
    action, amount = ("arrive", 1) if op.has("noinc") else ("expect_tx", 0)
    _emit(f, action, op, instruction.operands[0], (f.constant(amount, "b32"),), ("u32",))
    f.end_region(after)


@lowers("mbarrier.test_wait", "mbarrier.try_wait")
def wait(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """src[1]: state of the phase to wait for, or its parity; of try_wait src[2]: nanoseconds, if written."""
    after = f.guarded_region()
    at = next(at for at, operand in enumerate(instruction.operands) if isinstance(operand, Address))
    operands = instruction.operands[at:]
    target, reports = _results(f, instruction.operands[:at])
    kind = "parity" if op.has("parity") else "state"
    types = ("u32" if kind == "parity" else "b64", "u32")[: len(operands) - 1]
    sources = tuple(f.source(operand, t) for operand, t in zip(operands[1:], types, strict=True))
    _emit(f, f"{op.name.partition('.')[2]}.{kind}", op, operands[0], sources, types, target, "pred")
    for report in reports:
        f.copy(report, f.constant(0, report.type))
    f.end_region(after)


def _results(f: FunctionLowering, results: Sequence[Operand]) -> tuple[Ref | None, list[Ref]]:
    """The predicate of a wait, and its reports: zero, as for every mbarrier of .layout::v0."""
    pair, *reports = results
    first = pair
    if isinstance(pair, Pair):
        first, reports = pair.first, [pair.second, *reports]
    return f.destination(first), [ref for report in reports if (ref := f.destination(report)) is not None]


@lowers("mbarrier.check_layout")
def check_layout(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """Whether the barrier has that layout: each has .layout::v0 here, as no other can be made."""
    after = f.guarded_region()
    destination = f.destination(instruction.operands[0])
    if destination is not None:
        f.copy(destination, f.constant(int(op.has("layout::v0")), "pred"))
    f.end_region(after)


@lowers("mbarrier.pending_count")
def pending_count(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """The arrivals that were pending when the state was taken: arithmetic on its bits."""
    target, state = instruction.operands[:2]
    destination = f.destination(target)
    if destination is None:
        return
    if destination.type != "b32":
        raise Unsupported("the count is not a 32-bit register")
    value = f.source(state, "b64")
    shifted = f.compute("shr.u64", ("u64", "u32"), (value, f.constant(PENDING_SHIFT, "b32")), "u64")
    narrow = f.compute("cvt.u32.u64", ("u64",), (shifted,), "u32")
    minus = f.compute("neg.s32", ("s32",), (narrow,), "s32")
    count = f.compute("and.b32", ("b32", "b32"), (minus, f.constant(COUNT_MASK, "b32")), "b32")
    f.copy(destination, count)
