"""PTX607 | stride of a tensor map in other units, by release | 9.7.9.27

What: tensormap.replace of .global_stride in a module that declares a version before 8.5.
Why: releases of ptxas before 12.5 take the stride in units of 16 bytes, later ones in bytes, for the same text. With
.version 8.5 only those that count bytes accept the module.
Example:
    .version 8.3
    .target sm_90a
    .address_size 64
    .entry k(.param .b64 m) {
        .reg .b64 %d<3>;
        ld.param.b64 %d1, [m]; mov.b64 %d2, 8;
        tensormap.replace.tile.global_stride.global.b1024.b64 [%d1], 0, %d2;
        ret;
    }
Better:
    .version 8.5
    .target sm_90a
    .address_size 64
    .entry k(.param .b64 m) {
        .reg .b64 %d<3>;
        ld.param.b64 %d1, [m]; mov.b64 %d2, 128;
        tensormap.replace.tile.global_stride.global.b1024.b64 [%d1], 0, %d2;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import instructions

CODE = "PTX607"

#: The first version that only releases accept which take strides in bytes.
_IN_BYTES = (8, 5)


@instructions("tensormap")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    version = context.declared.version
    if ".global_stride" in line.item.opcode and (0, 0) < version < _IN_BYTES:
        message = "ptxas before 12.5 takes this stride in units of 16 bytes, later ones in bytes"
        help = ("declare .version 8.5, which those before refuse",)
        context.warn(CODE, message, parts_of(line.item).opcode, help=help, section="9.7.9.27")
