"""Clusters: addresses in another CTA's shared memory, the cluster barrier, cancelled launches (9.7.9, 9.7.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir import Instruction, Name, Vector
from ptxtools.isa import Opcode
from ptxtools.program.details import Action, Multicast
from ptxtools.program.program import RANK_SHIFT, SHARED_WINDOW, Op, Ref, Terminator

from .arithmetic import elements
from .memory import Located, locate
from .registry import Unsupported, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering

_RANK_BITS = 8


@lowers("mapa")
def mapa(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """The same address in the shared memory of the CTA with a given rank: its rank bits are replaced."""
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
    """Rank of the CTA whose shared memory contains an address."""
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
    """isspacep.shared::cta is about this CTA alone where addresses tell; 32-bit addresses are extended by zeros."""
    target, address = instruction.operands[:2]
    value = f.source(address, "u64")
    if f.clustered and op.space in ("shared", "shared::cta"):
        answer = _own_shared(f, value)
    else:
        answer = f.compute(op.text, ("u64",), (value,), "pred")
    destination = f.destination(target)
    if destination is not None:
        f.copy(destination, answer)


def _own_shared(f: FunctionLowering, value: Ref) -> Ref:
    """isspacep.shared::cta where CTAs have addresses of their own: the bits above the offset are those of this CTA."""
    window = f.compute("add.u64", ("u64", "u64"), (f.cta_window(), f.constant(SHARED_WINDOW, "b64")), "u64")
    differing = f.compute("xor.b64", ("b64", "b64"), (value, window), "b64")
    high = f.compute("shr.u64", ("u64", "u32"), (differing, f.constant(RANK_SHIFT, "b32")), "u64")
    return f.compute("setp.eq.u64", ("u64", "u64"), (high, f.constant(0, "b64")), "pred")


@lowers("barrier.cluster")
def cluster_barrier(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """barrier.cluster.arrive and .wait: all living threads of the cluster (9.7.13.3)."""
    action = "arrive" if op.has("arrive") else "wait" if op.has("wait") else ""
    if not action:
        raise Unsupported("this barrier operation is not supported yet")
    after = f.guarded_region()
    following = f.new_label()
    f.end(Terminator("barrier", op=Op("cluster_barrier", op, detail=Action(action), where=f.where), other=following))
    f.begin(following)
    f.end_region(after)


@lowers("clusterlaunchcontrol.try_cancel")
def try_cancel(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """src = addresses of the response and of the mbarrier."""
    after = f.guarded_region()
    places = [locate(f, operand, op.space) for operand in instruction.operands[:2]]
    sources = tuple(_whole(f, place) for place in places)
    f.event(Op(
        "clusterlaunchcontrol.try_cancel", op, src=sources, src_types=("u64", "u64"), space=places[0].space,
        detail=Multicast(op.has("multicast::cluster::all")),
    ))  # fmt: skip
    f.end_region(after)


def _whole(f: FunctionLowering, place: Located) -> Ref:
    """The address as one 64-bit value."""
    if place.base is None:
        return f.constant(place.offset, "b64")
    offset = f.constant(place.offset, place.base.type)
    kind = "u32" if place.base.type == "b32" else "u64"
    base = f.compute(f"add.{kind}", (kind, kind), (place.base, offset), kind)
    return f.compute("cvt.u64.u32", ("u32",), (base,), "u64") if kind == "u32" else base


@lowers("clusterlaunchcontrol.query_cancel")
def query_cancel(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """The response is four words: x, y and z of the cancelled cluster's first CTA, and whether there is one."""
    response = f.source(instruction.operands[-1], "b128")
    halves = f.new("b64"), f.new("b64")
    types = ("b64", "b64")
    f.emit(Op("unpack", op, halves, (response,), types, ("b128",)))
    words = []
    for half in halves:
        high = f.compute("shr.u64", ("u64", "u32"), (half, f.constant(32, "b32")), "u64")
        words += [f.compute("cvt.u32.u64", ("u64",), (value,), "u32") for value in (half, high)]
    if op.has("is_canceled"):
        results = [f.compute("setp.ne.u32", ("u32", "u32"), (words[3], f.constant(0, "b32")), "pred")]
    else:
        axis = next((i for i, name in enumerate("xyz") if op.has(f"get_first_ctaid::{name}")), None)
        results = words if axis is None else [words[axis]]
    target = instruction.operands[0]
    items = elements(f, target) if isinstance(target, Vector) else [target]
    for item, result in zip(items, results, strict=False):
        destination = f.destination(item)
        if destination is not None:
            f.copy(destination, result)
