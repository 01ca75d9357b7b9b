"""PTX544 | address of another state space | 5.1, 9.7.9.20

What: the address is that of a variable in one space, the instruction accesses another one; or it is a generic address
where one inside of .shared, .local or .const belongs, or the reverse; or an access of .shared or .local is at a
kernel's parameter of 64 bits, which is a pointer in all likelihood; or a parameter with .ptr says another space.
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

from collections.abc import Mapping

from ptxtools.ir.nodes import Address, Name, Operand, Variable
from ptxtools.ir.positions import part_span

from ..accesses import in_register
from ..constants import last_write
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..lanes import only_write
from ..memory import Reach, Step
from ..registry import bodies_with, instructions

CODE = "PTX544"


_WINDOWS = ("shared", "local", "const")


@bodies_with("ld", "st", "atom", "red")
def check(context: LintContext, facts: FunctionFacts) -> None:
    parameters = {f"{parameter.name}+0": parameter for parameter in facts.function.params}
    for step in facts.accesses:
        access = step.access
        if access is None or not access.address.terms:
            continue
        reason = _mismatch(step, access) or _pointer(facts, parameters, access)
        if reason:
            context.warn(CODE, reason, part_span(step.line.item, access.operand), section="5.1")


def _pointer(facts: FunctionFacts, parameters: Mapping[str, Variable], access: Reach) -> str:
    """Why a kernel's parameter of 64 bits is no address in a window, if it is used as one as it is; or why one that
    says to which space it points is none in another. parameters: by the names that values have for them."""
    terms = access.address.terms
    used = [parameters[term] for term, count in terms if count == 1 and term in parameters]
    if not used:
        return ""
    converted = any(term.startswith("cvta.") for term, _ in terms)
    for parameter in used if access.space in (*_WINDOWS, "global") and not converted else ():
        if parameter.ptr is not None and parameter.ptr[0] not in ("", access.space):
            return f"'{parameter.name}' points to .{parameter.ptr[0]}, and this accesses .{access.space}"
    if access.space not in ("shared", "local") or len(terms) != 1 or facts.function.kind != "entry":
        return ""
    (parameter,) = used
    wide = parameter.type in ("u64", "b64", "s64") and not parameter.dims
    if wide and (parameter.ptr is None or parameter.ptr[0] in ("", "global")):
        name = parameter.name
        return f"'{name}' is a kernel's pointer, and no address in .{access.space}: launches cannot know those"
    return ""


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
    operand = step.line.item.operands[access.operand]
    if isinstance(operand, Address) and not in_register(step.line, operand):
        return ""  # named in the access itself: where that does not reach it, that is an error
    if space == "":
        return "" if symbol.space == "global" else f"{where}, and this is no generic address: cvta is missing"
    return "" if space == symbol.space or space not in (*_WINDOWS, "global") else f"{where}, and this accesses .{space}"


@instructions("cvta")
def check_conversion(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    """cvta.to of a generic address that a cvta of another space has made."""
    op, operands = line.plan.op, line.item.operands
    if op is not None and len(operands) == 2 and ".to." not in line.item.opcode:
        _look_at_variable(context, facts, line, operands[1])
        return
    source = operands[1] if len(operands) == 2 else None
    if op is None or not isinstance(source, Name):
        return
    made = only_write(facts, line, source.name) or last_write(facts, line, source.name)
    if made is None or made.plan.family != "cvta" or made.plan.op is None or ".to." in made.item.opcode:
        return
    space, other = (op.space or "").partition("::")[0], (made.plan.op.space or "").partition("::")[0]
    if space != other and made.item.guard is None:
        message = f"the generic address of .{other} that '{source.name}' holds is no address in .{space}"
        context.warn(CODE, message, part_span(line.item, 1), section="5.1")


def _look_at_variable(context: LintContext, facts: FunctionFacts, line: Line, source: Operand) -> None:
    """cvta of the address of a variable that is in another space."""
    made = only_write(facts, line, source.name) if isinstance(source, Name) else None
    if made is not None and made.plan.family == "mov" and made.item.guard is None and len(made.item.operands) == 2:
        source = made.item.operands[1]
    symbol = line.names.lookup(source.name) if isinstance(source, Name) else None
    space = (line.plan.op.space or "").partition("::")[0] if line.plan.op is not None else ""
    if isinstance(symbol, Variable) and symbol.space in (*_WINDOWS, "global") and space not in ("", symbol.space):
        message = f"'{symbol.name}' is in .{symbol.space}, and this converts an address in .{space}"
        context.warn(CODE, message, part_span(line.item, 1), section="5.1")
