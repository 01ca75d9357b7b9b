"""All tcgen05 instructions of a kernel have one value of `.cta_group` (9.7.16.7.1)."""

from __future__ import annotations

import re

from ptxtools.ir.nodes import Function, Instruction
from ptxtools.ir.references import statements
from ptxtools.isa.errors import BAD_COMBINATION

from .context import Context

_GROUP = re.compile(r"tcgen05\..*\.cta_group::([12])\b")


def check_groups(context: Context, function: Function) -> None:
    """Report a function whose tcgen05 instructions disagree; either may be wrong."""
    assert function.body is not None
    first: tuple[str, Instruction] | None = None
    for item in statements(function.body):
        if not isinstance(item, Instruction) or (found := _GROUP.match(item.opcode)) is None:
            continue
        if first is None:
            first = found[1], item
        elif first[0] != found[1]:
            places = [f"line {context.source.line_of(at.span[0])}: '{at.opcode}'" for at in (first[1], item)]
            message = f"the tcgen05 instructions of '{function.name}' have both .cta_group::1 and .cta_group::2"
            context.report(BAD_COMBINATION, message, function.name_span, help=tuple(places), section="9.7.16.7.1")
            return
