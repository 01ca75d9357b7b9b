"""PTX602 | .address_size is missing | 11.1.3

What: the module does not specify whether addresses have 32 or 64 bits.
Why: the manual's default is 32 bits; today's tools assume 64.
Example:
    .version 8.0
    .target sm_80
Better:
    .version 8.0
    .target sm_80
    .address_size 64
"""

from __future__ import annotations

from ptxtools.check.availability import is_gone
from ptxtools.check.context import NO_NARROW
from ptxtools.check.edits import behind
from ptxtools.ir.nodes import Header

from ..context import LintContext
from ..registry import modules

CODE = "PTX602"


@modules
def check(context: LintContext) -> None:
    headers = [item for item in context.module.items if isinstance(item, Header)]
    target = next((h for h in headers if h.name == ".target"), None)
    if target is None or any(h.name == ".address_size" for h in headers) or context.declared.version < (2, 3):
        return
    message = ".address_size is missing: the manual's default is 32 bits, newer tools assume 64"
    fix = None
    if is_gone(NO_NARROW, *context.declared[:2]):  # ptxas of this version takes addresses for 64 bits
        fix = behind(context.source.text, target.span, ".address_size 64", "add .address_size 64")
    context.warn(CODE, message, target.span, help=("add .address_size 64",), section="11.1.3", fix=fix)
