"""What the manual has, and every ptxas of the module's version refuses: errors that say so (PTX309)."""

from __future__ import annotations

import re

from ptxtools.diagnostics import Span
from ptxtools.ir.nodes import Variable
from ptxtools.isa import Opcode

from . import codes
from .context import Context

#: Sizes behind a declared name, and what in one of them is no plain number.
_SIZES = re.compile(r"\s*\[([^\[\]\"]*)\]")
_COMPUTED = re.compile(r"(?!\s*-\s*\w+\s*$).*[^\w\s]", re.DOTALL)
_COMMENT = ("//", "/*")
#: A store with release semantics in any scope: the manual's default, .sys, is one that ptxas wants written.
_SCOPED = frozenset({"cta", "cluster", "gpu", "sys"})


def refuse(context: Context, message: str, span: Span, section: str, *help: str) -> None:
    """Report what the manual allows."""
    message = f"{message}: the manual has it, every ptxas of this version refuses it"
    context.report(codes.NEVER_ACCEPTED, message, span, help=help, section=section)


def _is_special(name: str) -> bool:
    from ptxtools.isa.registers import SPECIAL  # for names with % only

    return name in SPECIAL


def check_function_name(context: Context, name: str, span: Span) -> None:
    """A function with the name of a special register (4.4)."""
    if _is_special(name):
        refuse(context, f"the function '{name}' has the name of a special register", span, "4.4")


def check_variable_name(context: Context, v: Variable) -> None:
    """A variable of the module with such a name; .extern and .visible ones of its type pass."""
    if _is_special(v.name) and (v.linkage not in ("extern", "visible") or v.dims):
        refuse(context, f"the variable '{v.name}' has the name of a special register", v.name_span, "4.4")


def check_sizes(context: Context, v: Variable) -> None:
    """Sizes of arrays that are expressions (5.4.3)."""
    text, at = context.text, v.name_span[1]
    while found := _SIZES.match(text, at):
        size, at = found[1], found.end()
        if _COMPUTED.match(size) and not any(mark in size for mark in _COMMENT):
            message = f"'{v.name}': the size of the array is an expression"
            refuse(context, message, found.span(), "5.4.3", "write the number")
            return


def check_scope(context: Context, op: Opcode, span: Span) -> None:
    """A store with .release and without a scope (9.7.9.12)."""
    if op.name == "st.async" and op.has("release") and _SCOPED.isdisjoint(op.atoms):
        refuse(context, f"'{op.text}' has no scope", span, op.section, "write .release.sys")
