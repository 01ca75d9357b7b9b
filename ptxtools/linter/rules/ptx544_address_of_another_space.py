"""PTX544 | address of another state space | 5.1, 9.7.9.20

What: the address is that of a variable in one space, the instruction accesses another one; or it is a generic address
where one inside of .shared, .local or .const belongs, or the reverse.
Why: the numbers mean other memory there, or none.
Example:
    .shared .align 4 .b32 s[4];
    mov.b64 %rd3, s;
    st.global.b32 [%rd3], %r1;
Better:
    .shared .align 4 .b32 s[4];
    mov.b64 %rd3, s;
    st.shared.b32 [%rd3], %r1;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Address, Variable
from ptxtools.ir.positions import part_span

from ..accesses import in_register
from ..context import LintContext
from ..memory import Reach, Step
from ..registry import modules_with

CODE = "PTX544"


_WINDOWS = ("shared", "local", "const")


@modules_with("ld", "st", "atom", "red")
def check(context: LintContext) -> None:
    for facts in context.facts.functions:
        for step in facts.accesses:
            access = step.access
            if access is None or not access.address.terms:
                continue
            reason = _mismatch(step, access)
            if reason:
                context.warn(CODE, reason, part_span(step.line.item, access.operand), section="5.1")


def _mismatch(step: Step, access: Reach) -> str:
    if not any(name[0] == "&" for name, _ in access.address.terms):
        return ""
    space, marks = access.space, [name for name, _ in access.address.terms if name.startswith("cvta.")]
    plain = [(name, count) for name, count in access.address.terms if not name.startswith("cvta.")]
    if len(plain) != 1 or plain[0][0][0] != "&" or plain[0][1] != 1 or len(marks) > 1:
        return ""
    symbol = step.line.names.lookup(plain[0][0][1:])
    if not isinstance(symbol, Variable) or symbol.space not in (*_WINDOWS, "global"):
        return ""
    where = f"'{symbol.name}' is in .{symbol.space}"
    if marks:
        if space and space != "global" and dict(access.address.terms)[marks[0]] > 0:
            return f"{where}, and this is its generic address, not the one in .{space}"
        return f"{where}: a .global access does not reach it" if space == "global" else ""
    if space == "":
        direct = isinstance(step.line.item.operands[access.operand], Address) and not in_register(
            step.line, step.line.item.operands[access.operand]
        )
        return "" if direct or symbol.space == "global" else f"{where}, and this is no generic address: cvta is missing"
    return "" if space == symbol.space or space not in (*_WINDOWS, "global") else f"{where}, and this accesses .{space}"
