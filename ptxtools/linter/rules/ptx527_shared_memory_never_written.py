"""PTX527 | shared memory is read, and nothing writes any | 5.1.7

What: the module loads from shared memory, or updates it with atomic operations, and has no instruction that stores,
copies or initialises any of it. Certain if a kernel runs no code but the module's.
Or .reqntid says which threads there are, and one of them reads a byte that none of them has written before, or a wgmma
or tcgen05 instruction one that none of them ever writes (certain), or a bulk copy copies such a byte (possible).
Why: shared memory begins undefined.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<3>; .reg .b64 %d<2>; .shared .align 4 .b32 total;
        ld.param.b64 %d1, [x]; mov.u32 %r1, total;
        atom.shared.add.u32 %r2, [%r1], 1;
        st.global.b32 [%d1], %r2;
        ret;
    }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<3>; .reg .b64 %d<2>; .shared .align 4 .b32 total;
        ld.param.b64 %d1, [x]; mov.u32 %r1, total;
        st.shared.b32 [%r1], 0;
        bar.sync 0;
        atom.shared.add.u32 %r2, [%r1], 1;
        st.global.b32 [%d1], %r2;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..accesses import in_register
from ..context import LintContext
from ..facts import FunctionFacts
from ..presence import unmet
from ..registry import bodies_with, modules_with
from ..walk import tell

CODE = "PTX527"

#: What may write shared memory: generic stores, asynchronous copies and whatever code is called are among them.
_WRITES = (
    r"(st(\.\w+)*\.shared|st\.(async|bulk)|st(?!.*\.(global|local|param))|stmatrix|cp\.|red\.async|call|mbarrier|tcgen05"
    r"|atom(?!.*\.(global|shared))|red(?!.*\.(global|shared))|atom.*\.shared.*\.(exch|cas)|multimem|mapa|tensormap|wmma\.store"
    r"|clusterlaunchcontrol)"
)


@modules_with("ld", "atom", "red")
def check(context: LintContext) -> None:
    line = unmet(context, r"(ld|atom|red)\.(\w+\.)*shared(::cta)?\.", _WRITES)
    if line is not None and any(in_register(line, operand) for operand in line.item.operands):  # else it is PTX523
        message = f"'{line.item.opcode}' reads shared memory, and nothing in the module writes any"
        context.warn(CODE, message, parts_of(line.item).opcode, section="5.1.7")


@bodies_with("ld", "atom", "red", "cp", "wgmma", "tcgen05")
def check_bytes(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "unwritten shared", "5.1.7")
