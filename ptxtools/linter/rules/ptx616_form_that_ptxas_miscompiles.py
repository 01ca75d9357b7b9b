"""PTX616 | form that releases of ptxas miscompile | 9.7.1

What: an instruction that ends one of these forms, for which ptxas 11.8 to 13.5 or some of them make code that computes
something else, so far as they know the version that the module declares: bfi and bfe of constant fields that leave the
word; the difference of a number of 64 bits shifted to the left and to the right, taken for a rotation; a saturating sum
of a sum that may wrap; max and min of three numbers with a negation, on sm_90 to sm_110; neg and abs of 16 bits, used
as a signed number; the sign of a byte that prmt spreads; a mask of no or all bits, compared with 0. The finding names
the releases, and for which numbers the result is wrong.
Why: the driver contains the same compiler, and says nothing. The code of ptxas without optimisation is right.
Measured: the machine code that sixteen releases make of 165 statements for sm_90, and of some for sm_75, sm_80, sm_100
and sm_120, was evaluated over 64 sets of numbers near all boundaries and compared with the manual's results
(`python tools/miscompiled.py`; `testdata/conformance/miscompiled.tsv` has the verdicts). Forms whose result depends on
what an undocumented instruction leaves in the upper half of a register, as cvt.sat.s16, are not among them.
Example:
    .version 8.6
    .target sm_100
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<2>; .reg .b32 %r<7>;
        ld.param.b64 %d1, [a]; ld.global.b32 %r1, [%d1]; ld.global.b32 %r2, [%d1+4];
        neg.s32 %r3, %r1;
        max.s32 %r4, %r1, %r3;
        max.s32 %r5, %r4, %r2;
        st.global.b32 [%d1+8], %r5;
        ret;
    }
Better:
    .version 8.6
    .target sm_100
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<2>; .reg .b32 %r<7>;
        ld.param.b64 %d1, [a]; ld.global.b32 %r1, [%d1]; ld.global.b32 %r2, [%d1+4];
        abs.s32 %r4, %r1;
        max.s32 %r5, %r4, %r2;
        st.global.b32 [%d1+8], %r5;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..miscompiled import miscompiled
from ..registry import instructions

CODE = "PTX616"


@instructions("add", "and", "bfe", "bfi", "cvt", "max", "min", "mul", "setp", "shr", "sub")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    declared = context.declared
    found = miscompiled(facts, line, declared.target, declared.version) if declared.target else None
    if found is None or line.plan.op is None:
        return
    first, last = found.releases[0], found.releases[-1]
    names = first if first == last else f"{first} to {last}"
    help = (f"possible: {found.when}" if found.when else "certain: whatever the numbers are", found.instead)
    message = f"ptxas {names} miscompiles this: {found.what}"
    context.warn(CODE, message, parts_of(line.item).opcode, help=help, section=line.plan.op.section)
