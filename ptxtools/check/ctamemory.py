"""The registers of memory for each CTA need a kernel that asks for such memory (10.34, 10.35)."""

from __future__ import annotations

from ptxtools.ir.nodes import Directive, Function, Instruction
from ptxtools.ir.references import operand_names, statements

from . import codes
from .context import Context

_DIRECTIVE = ".minperctamemory"


def check_cta_memory(context: Context, function: Function) -> None:
    """Report the first of these registers in a kernel without the directive, or with 0 bytes. Functions may be called
    by a kernel that has it."""
    assert function.body is not None
    found = [item for item in function.directives if isinstance(item, Directive) and item.name == _DIRECTIVE]
    if any(item.args not in ((), (0,)) for item in found):
        return
    for item in statements(function.body):
        if not isinstance(item, Instruction) or "%perctamemory" not in str(item.operands):
            continue
        for name in (name for operand in item.operands for name in operand_names(operand)):
            if name.startswith("%perctamemory"):
                message = f"{name} in a kernel without {_DIRECTIVE}"
                help = (f"{_DIRECTIVE} says how many bytes each CTA needs; 0 is as good as none",)
                span = context.word(item.span, name)
                context.report(codes.DIRECTIVE_LACKS, message, span, help=help, section="11.4.10")
                return
