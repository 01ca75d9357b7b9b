"""PTX613 | form that releases of ptxas cannot compile | 9.7

What: a form of an instruction that the manual has, and that ptxas 12.9, 13.0, 13.2 or 13.5 refuses, or ends at without
a message, so far as they know the version that the module declares. The finding names those that do.
Why: the driver contains the same compiler: the module does not load. Without a message it is hard to find why.
Example:
    .version 8.1
    .target sm_90
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<2>; .reg .f32 %f<3>; .reg .v2 .f32 %pair;
        ld.param.b64 %d1, [a]; mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f3F800000;
        atom.global.add.v2.f32 %pair, [%d1], {%f1, %f2};
        st.global.f32 [%d1+8], %pair.x;
        ret;
    }
Better:
    .version 8.1
    .target sm_90
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<2>; .reg .f32 %f<5>;
        ld.param.b64 %d1, [a]; mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f3F800000;
        atom.global.add.v2.f32 {%f3, %f4}, [%d1], {%f1, %f2};
        st.global.f32 [%d1+8], %f3;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..failing import failing
from ..registry import instructions

CODE = "PTX613"


@instructions("atom", "red", "multimem", "cp", "tcgen05", "wgmma", "wmma", "mma", "tex", "tld4", "st")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    found = failing(line, context.declared.version)
    if found is not None and line.plan.op is not None:
        form, releases = found
        names = " and ".join(filter(None, (", ".join(releases[:-1]), releases[-1])))
        message = f"{form.what}: ptxas {names} cannot compile this, and ends {form.how}"
        context.warn(CODE, message, parts_of(line.item).opcode, help=(form.instead,), section=line.plan.op.section)
