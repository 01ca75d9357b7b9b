"""Operations from slots to slots: arithmetic through the semantics, copies; and fences and waiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxtools import semantics
from ptxtools.isa import Opcode
from ptxtools.native.code.handler import Handler
from ptxtools.program.details import Action, Constant, Detail, Suffixes, Truncated
from ptxtools.semantics.algebra import Value


def alu(h: Handler) -> None:
    """Outputs = semantics of the opcode over the inputs."""
    assert h.op.opcode is not None
    h.results(compute(h, h.op.opcode, h.op.detail, h.sources()))


def compute(h: Handler, opcode: Opcode, detail: Detail | None, inputs: list[Value]) -> Sequence[Value]:
    """Outputs of an "alu" operation with this `detail`."""
    function = semantics.find(opcode)
    if function is None:
        raise LookupError(f"no semantics for {opcode.text}")
    options: dict[str, Any] = {}
    if isinstance(detail, Constant):  # the code is specialised for it
        inputs[detail.place] = detail.value
    elif isinstance(detail, Truncated):
        options["truncated"] = True
    elif isinstance(detail, Suffixes):
        options["selectors"] = detail.selectors()
    return function(h.algebra, opcode, *inputs, **options)


def copy(h: Handler) -> None:
    """A slot into another of the same storage class."""
    destination, source = h.op.dst[0], h.op.src[0]
    assert destination is not None and source is not None
    types = {"pred": "pred", "b16": "b16", "b32": "b32", "b64": "b64", "b128": "b128"}
    h.op.dst_types = (types[destination.type],)
    h.results([h.content(source)])


def pack(h: Handler) -> None:
    """mov of a vector into a wider scalar (9.7.9.4)."""
    h.results([h.algebra.pack(h.op.src_types[0], h.sources())])


def unpack(h: Handler) -> None:
    """mov of a scalar into a vector of narrower elements (9.7.9.4)."""
    h.results(h.algebra.unpack(h.op.dst_types[0], len(h.op.dst), h.source(0)))


def barrier_result(h: Handler) -> None:
    """The result of a barrier's reduction for this warp; the `Action` is the reduction, src[0] the barrier's number."""
    number = h.op.src[0]
    assert number is not None
    identity = h.lane(number, h.leader())
    where = h.code.name()
    h.code.expand(f"{where} = item warp.result, {identity}")
    value = h.code.spread("i32", h.code.value(f"load i32, ptr {where}"))
    action = h.op.of(Action).name
    if action != "popc":
        value = h.algebra.is_zero("u32", value) if action == "and" else h.algebra.is_nonzero("u32", value)
    h.results([value])


def fence(h: Handler) -> None:
    """membar and fence order the accesses of this worker against those of the others."""
    h.code.line("fence seq_cst")
    h.go_on()


def spend(h: Handler, records: int) -> None:
    """Charge the warp for an operation that it may repeat while it waits for others."""
    old = h.code.field("ctx.slice")
    new = h.code.value(f"sub i32 {old}, {records}")
    h.code.expand(f"set ctx.slice, {new}")
