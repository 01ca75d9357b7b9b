"""Clusters: addresses in another CTA's shared memory, the cluster barrier, cancelled launches (9.7.9, 9.7.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir import Instruction, Name
from ptxtools.isa import Opcode

from ..program import SHARED_WINDOW, Op, Terminator
from ..residents import RANK_SHIFT
from .registry import LOWERERS, Unsupported, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering

_RANK_BITS = 8


@lowers("mapa")
def mapa(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """The address at the same place in the shared memory of the CTA with a given rank: its rank bits replaced."""
    target, address, rank = instruction.operands[:3]
    bits = "b64" if op.type == "u64" else "b32"
    base, number = f.source(address, op.type), f.source(rank, "u32")
    if op.type == "u64" and not op.has("shared::cluster") and isinstance(address, Name) and _is_variable(f, address):
        base = f.compute("add.u64", ("u64", "u64"), (base, f.constant(SHARED_WINDOW, "b64")), "u64")
    if bits == "b64":
        number = f.compute("cvt.u64.u32", ("u32",), (number,), "u64")
    place, length = f.constant(RANK_SHIFT, "b32"), f.constant(_RANK_BITS, "b32")
    moved = f.compute(f"bfi.{bits}", (bits, bits, "u32", "u32"), (number, base, place, length), bits)
    destination = f.destination(target)
    if destination is not None:
        f.copy(destination, moved)


def _is_variable(f: FunctionLowering, operand: Name) -> bool:
    return f.register(operand.name) is None


@lowers("getctarank")
def getctarank(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """Rank of the CTA whose shared memory an address lies in."""
    target, address = instruction.operands[:2]
    kind = op.type or "u64"
    base = f.source(address, kind)
    place, length = f.constant(RANK_SHIFT, "b32"), f.constant(_RANK_BITS, "b32")
    rank = f.compute(f"bfe.{kind}", (kind, "u32", "u32"), (base, place, length), kind)
    if kind == "u64":
        rank = f.compute("cvt.u32.u64", ("u64",), (rank,), "u32")
    destination = f.destination(target)
    if destination is not None:
        f.copy(destination, rank)


@lowers("isspacep")
def isspacep(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """isspacep.shared::cta is about this CTA alone where addresses tell."""
    if f.clustered and op.space in ("shared", "shared::cta"):
        _own_shared(f, instruction)
    else:
        LOWERERS["*"](f, instruction, op)


def _own_shared(f: FunctionLowering, instruction: Instruction) -> None:
    """isspacep.shared::cta where CTAs have addresses of their own: the bits above the offset are those of this CTA."""
    target, address = instruction.operands[:2]
    value = f.source(address, "u64")
    window = f.compute("add.u64", ("u64", "u64"), (f.cta_window(), f.constant(SHARED_WINDOW, "b64")), "u64")
    differing = f.compute("xor.b64", ("b64", "b64"), (value, window), "b64")
    high = f.compute("shr.u64", ("u64", "u32"), (differing, f.constant(RANK_SHIFT, "b32")), "u64")
    answer = f.compute("setp.eq.u64", ("u64", "u64"), (high, f.constant(0, "b64")), "pred")
    destination = f.destination(target)
    if destination is not None:
        f.copy(destination, answer)


@lowers("barrier.cluster")
def cluster_barrier(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """barrier.cluster.arrive and .wait: all living threads of the cluster (9.7.13.3)."""
    action = "arrive" if op.has("arrive") else "wait" if op.has("wait") else ""
    if not action:
        raise Unsupported("this barrier operation is not supported yet")
    after = f.guarded_region()
    following = f.new_label()
    f.end(Terminator("barrier", op=Op("cluster_barrier", op, detail=action, where=f.where), other=following))
    f.begin(following)
    f.end_region(after)
