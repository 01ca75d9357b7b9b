"""PTX577 | descriptor with an illegal field | 9.7.16.4.2, 9.7.16.4.1, 9.7.15.5.1.2.2

What: the instruction descriptor of a tcgen05.mma is a constant, and one of its fields does not suit the instruction; or
constants set bits of a matrix descriptor that have to be 0, or are a whole one that has other wrong bits. Certain.
Why: the behaviour is undefined: the product hangs, traps or is wrong.
Example:
    .version 8.6
    .target sm_100a
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<3>; .reg .b32 %r<3>; .reg .pred %p<2>;
        ld.param.b64 %d1, [a]; mov.b32 %r1, 0; setp.eq.u32 %p1, %r1, 0;
        mov.b32 %r2, 0x8200020;
        tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d1, %r2, %p1;
        tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d1];
        ret;
    }
Better:
    .version 8.6
    .target sm_100a
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<3>; .reg .b32 %r<3>; .reg .pred %p<2>;
        ld.param.b64 %d1, [a]; mov.b32 %r1, 0; setp.eq.u32 %p1, %r1, 0;
        mov.b32 %r2, 0x8200010;
        tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d1, %r2, %p1;
        tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d1];
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.nodes import Name, Operand
from ptxtools.ir.positions import part_span
from ptxtools.isa import Opcode
from ptxtools.isa.chips import K96
from ptxtools.isa.descriptors import (
    KINDS,
    TENSOR_MARK,
    TENSOR_SWIZZLES,
    TENSOR_ZEROS,
    WARPGROUP_ZEROS,
    DescriptorError,
    decode,
    variant_of,
)
from ptxtools.isa.targets import chip_of

from ..constants import constant
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..lanes import only_write
from ..registry import instructions

CODE = "PTX577"

#: Operations that a descriptor is looked for in.
_DEPTH = 6


@instructions("tcgen05", "wgmma")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op = line.plan.op
    if op is None or not op.name.startswith(("tcgen05.mma", "wgmma.mma_async")):
        return
    for place, (spec, operand) in enumerate(zip(line.plan.specs, line.item.operands, strict=False)):
        if spec.name == "idesc":
            problem = _instruction_problem(context, op, constant(facts, line, operand))
        elif spec.name.endswith("_desc"):
            problem = _matrix_problem(op.family, _ones(facts, line, operand), constant(facts, line, operand))
        else:
            continue
        if problem:
            section = "9.7.15.5.1.2.2" if op.family == "wgmma" else "9.7.16.4"
            context.warn(CODE, problem, part_span(line.item, place), section=section)


def _instruction_problem(context: LintContext, op: Opcode, value: int | None) -> str | None:
    kind = op.mods.get("kind", "").removeprefix("kind::")
    if value is None or kind not in KINDS or not context.declared.target:
        return None
    wide = K96 in chip_of(context.declared.target).features
    try:
        decode(value & 0xFFFFFFFF, variant_of(op, wide=wide))
    except DescriptorError as error:
        return str(error)
    return None


def _ones(facts: FunctionFacts, line: Line, operand: Operand, depth: int = _DEPTH) -> int:
    """Bits of an operand that are certainly set: by constants, and by `or` with them."""
    known = constant(facts, line, operand)
    if known is not None:
        return known & (1 << 64) - 1
    made = only_write(facts, line, operand.name) if depth and isinstance(operand, Name) else None
    if made is None or made.item.opcode != "or.b64" or made.item.guard is not None or len(made.item.operands) != 3:
        return 0
    _, a, b = made.item.operands
    return _ones(facts, made, a, depth - 1) | _ones(facts, made, b, depth - 1)


def _matrix_problem(family: str, ones: int, whole: int | None) -> str | None:
    for low, high in WARPGROUP_ZEROS if family == "wgmma" else TENSOR_ZEROS:
        if ones >> low & ((1 << high - low + 1) - 1):
            return f"matrix descriptor: a constant sets some of bits {low}-{high}, which have to be 0"
    if family == "wgmma":
        return None
    if ones >> TENSOR_MARK[0] + 1 & 3:
        return "matrix descriptor: a constant sets bit 47 or 48; bits 46-48 have to be 0b001"
    if whole is not None and not whole >> TENSOR_MARK[0] & 1:
        return "matrix descriptor: bits 46-48 of this constant have to be 0b001"
    swizzle = ones >> 61
    if not any(code & swizzle == swizzle for code in TENSOR_SWIZZLES):
        return f"matrix descriptor: constants set bits of the swizzling mode (bits 61-63) that none has: {swizzle:#05b}"
    return None
