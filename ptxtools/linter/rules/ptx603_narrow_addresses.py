"""PTX603 | 32-bit addresses | 11.1.3

What: the module declares .address_size 32.
Why: ptxas refuses it: since CUDA 13 for every target, before that for sm_90 and later.
Example:
    .version 8.0
    .target sm_80
    .address_size 32
    .entry k() { ret; }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k() { ret; }
"""

from __future__ import annotations

from ptxtools.ir.nodes import Header

from ..context import LintContext
from ..registry import modules

CODE = "PTX603"


@modules
def check(context: LintContext) -> None:
    for item in context.module.items:
        if isinstance(item, Header) and item.name == ".address_size" and item.args == ("32",):
            help = ("declare .address_size 64, and pass addresses as .b64",)
            message = "ptxas of CUDA 13 does not accept 32-bit addresses"
            context.warn(CODE, message, item.span, help=help, section="11.1.3")
