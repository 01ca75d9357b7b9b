"""What must be defined before a module can be linked or run."""

from __future__ import annotations

from ptxtools.ir.nodes import Alias, Function, Module, Variable
from ptxtools.ir.references import RUNTIME, is_runtime_function

from . import codes
from .context import Context


def undefined(module: Module) -> list[Function | Variable]:
    """Declarations without a definition in this module; except those supplied by a launch and the runtime's
    functions."""
    return [s for s in _undefined(module) if not (isinstance(s, Function) and is_runtime_function(s.name))]


def _undefined(module: Module) -> list[Function | Variable]:
    defined = {f.name for f in module.functions if f.body is not None}
    defined |= {v.name for v in module.variables if v.linkage != "extern"}
    missing: dict[str, Function | Variable] = {}
    for function in module.functions:
        if function.body is None and function.name not in defined:
            missing.setdefault(function.name, function)
    for variable in module.variables:
        if variable.linkage == "extern" and not variable.is_given and variable.name not in defined:
            missing.setdefault(variable.name, variable)
    return list(missing.values())


def check_undefined(context: Context) -> None:
    """Report symbols that are declared, but neither defined nor `.extern`. The linker checks the rest.

    A definition with syntax errors counts.
    """
    module = context.module
    known = {item.name for item in module.items if isinstance(item, Alias)} | context.inconsistent | context.unread
    for symbol in _undefined(module):
        if symbol.name in known or symbol.name in RUNTIME or symbol.linkage == "extern":
            continue
        message = f"'{symbol.name}' is declared but not defined"
        context.report(codes.UNDEFINED, message, symbol.name_span, section="11.6.1")
