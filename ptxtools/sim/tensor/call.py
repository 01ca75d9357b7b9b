"""What the operands of a tcgen05.mma say (9.7.16.10): decoded and checked when they are first seen.

A kernel issues the same few products again and again, each with its own addresses of stages: an operation remembers
what it has decoded by the values of its operands.
"""

from __future__ import annotations

from typing import Any

from ptxtools.diagnostics import Cause
from ptxtools.isa import descriptors
from ptxtools.isa.chips import K96
from ptxtools.isa.descriptors import DescriptorError, Shape, Variant, decode
from ptxtools.machine.events import View
from ptxtools.machine.residents import Cta
from ptxtools.program.details import NamedOperands
from ptxtools.records import dataclass
from ptxtools.semantics.accumulation import Rule, Sum, rule_of

from . import layout, shared
from .memory import partners, split
from .operands import has, number, vector

#: Bits of elements that lie in bytes of their own.
NARROW = {"e3m2": 6, "e2m3": 6, "e2m1": 4}
#: Decoded operands that an operation remembers.
_KEPT = 256


@dataclass(frozen=True, eq=False)
class Said:
    """Everything that the operands of a product say. One object for the same values: it is compared by identity."""

    variant: Variant
    shape: Shape
    path: layout.Path
    d: int
    a: shared.Descriptor | int
    b: shared.Descriptor
    accumulate: bool
    scale_d: int
    disabled: tuple[int, ...]
    meta: int
    scale_a: int
    scale_b: int
    columns: int
    shifted: bool

    @property
    def stored(self) -> int:
        """Columns of A in memory."""
        return self.shape.k // 2 if self.variant.sparse else self.shape.k


@dataclass(frozen=True)
class Call:
    """One issued product."""

    view: View
    lane: int
    ctas: tuple[Cta, ...]
    said: Said

    @property
    def rule(self) -> Rule:
        """How its products are added."""
        shape = self.said.shape
        total = Sum("tcgen05", shape.atype, shape.dtype, shape.k, scale=shape.scale_type)
        return rule_of(total, self.view.launch.numerics)


def call_of(view: View, lane: int) -> Call:
    """The product that a lane issues. Raises `Trap` for what is illegal."""
    variant = variant_of(view)
    op = view.op.opcode
    assert op is not None
    ctas = partners(view, variant.ctas, op.name, lane)
    read = view.read
    known: dict[Any, Said] = view.op.of(NamedOperands).known.setdefault("said", {})
    key = (variant.wide, *[None if ref is None else read(ref, lane) for ref in view.op.src])
    said = known.get(key)
    if said is None:
        said = _decoded(view, lane, variant, op.name)
        if len(known) >= _KEPT:
            known.clear()
        known[key] = said
    return Call(view, lane, ctas, said)


def variant_of(view: View) -> Variant:
    """What the opcode says, worked out once for devices with K = 96 and once for those without: they may share it."""
    named = view.op.of(NamedOperands)
    chip = getattr(view.launch.device, "chip", None)
    wide = chip is not None and K96 in chip.features
    found: Variant | None = named.known.get(wide)
    if found is None:
        op = view.op.opcode
        assert op is not None
        found = named.known[wide] = descriptors.variant_of(op, wide=wide)
    return found


def _decoded(view: View, lane: int, variant: Variant, what: str) -> Said:
    """Decode and check the operands. Raises `Trap` for what is illegal."""
    op = view.op.opcode
    assert op is not None
    try:
        shape = decode(number(view, "idesc", lane), variant)
        a: shared.Descriptor | int
        if has(view, "a_desc"):
            a = _descriptor(view, "a", lane, shape.atype, variant, mn_major=shape.a_mn_major)
        else:
            a = number(view, "a_tmem", lane)
        b = _descriptor(view, "b", lane, shape.btype, variant, mn_major=shape.b_mn_major)
    except DescriptorError as problem:
        raise view.trap(f"{what}: {problem}", lane, cause=Cause.DESCRIPTOR) from None
    said = Said(
        variant, shape,
        layout.path_of(shape.m, variant.ctas, sparse=variant.sparse, stationary=variant.stationary),
        number(view, "d_tmem", lane), a, b, bool(number(view, "enable_input_d", lane)),
        _optional(view, "scale_input_d", lane),
        tuple(vector(view, "disable_output_lane", lane)) if has(view, "disable_output_lane") else (),
        _optional(view, "sp_meta", lane), _optional(view, "scale_a", lane), _optional(view, "scale_b", lane),
        _optional(view, "zero_column_mask_desc", lane), op.has("ashift"),
    )  # fmt: skip
    _check(view, lane, said, what)
    return said


def _optional(view: View, name: str, lane: int) -> int:
    return number(view, name, lane) if has(view, name) else 0


def _descriptor(view: View, which: str, lane: int, t: str, variant: Variant, *, mn_major: bool) -> shared.Descriptor:
    """A matrix descriptor; the major must go with the type and the swizzle (table 52). Raises DescriptorError."""
    try:
        found = shared.tensor_descriptor(number(view, f"{which}_desc", lane), absolute_allowed=variant.wide)
    except DescriptorError as problem:
        raise DescriptorError(f"{which}-desc: {problem}") from None
    if mn_major:
        wide_atoms = found.swizzle is shared.SWIZZLE_128_32
        if t in NARROW:
            raise DescriptorError(f"{which}-desc: a transposed matrix of {t} is not supported")
        if wide_atoms != (t == "tf32"):
            raise DescriptorError(
                f"{which}-desc: matrix descriptor: swizzling mode (bits 61-63) {found.swizzle.name} is illegal for a "
                f"transposed matrix of {t}"
            )
    return found


def _check(view: View, lane: int, said: Said, what: str) -> None:
    """Places in tensor memory. Raises `Trap`."""
    half = said.path.half
    first, _ = split(said.d)
    if first not in ((0, 16) if half else (0,)):
        allowed = "0 or 16" if half else "0"
        raise view.trap(
            f"{what}: D at lane {first} of tensor memory; layout {said.path.name} requires {allowed}",
            lane,
            cause=Cause.TENSOR_MEMORY,
        )
    others = [("A", said.a if isinstance(said.a, int) else said.d)]
    if said.variant.sparse:
        others.append(("the metadata", said.meta))
    for name, address in others:
        if split(address)[0] != first:
            raise view.trap(
                f"{what}: {name} at lane {split(address)[0]} of tensor memory; D is at {first}",
                lane,
                cause=Cause.TENSOR_MEMORY,
            )
    if said.shifted and said.shape.m < 128:
        raise view.trap(f"{what}: .ashift with M = {said.shape.m}; it must be 128 or 256", lane)
    if said.columns >> 39 & 1 or said.columns >> 56:
        limit = 16 if said.shape.m == 32 else 32
        if said.columns >> 56 & 63 > limit:
            raise view.trap(f"{what}: column shift {said.columns >> 56 & 63}; at most {limit} is allowed", lane)
