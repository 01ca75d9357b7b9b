"""Convert modules of PTX 1.0 to 1.3 to the form of later versions."""

from __future__ import annotations

from ptxtools.records import replace

from .nodes import Function, Module, Scope, Variable


def with_listed_parameters(module: Module) -> Module:
    """The module with the parameters of its kernels in their headers; before PTX 1.4 they are declared in the body
    (5.1.6.1).

    The same object for a module of a later version.
    """
    if not (0, 0) < module.version < (1, 4):
        return module
    items = [_listed(item) if isinstance(item, Function) and item.kind == "entry" else item for item in module.items]
    return replace(module, items=items)


def _listed(kernel: Function) -> Function:
    if kernel.body is None:
        return kernel
    inside = [item for item in kernel.body.items if isinstance(item, Variable) and item.space == "param"]
    rest = [item for item in kernel.body.items if not (isinstance(item, Variable) and item.space == "param")]
    body = Scope(rest, kernel.body.span)
    return replace(kernel, params=[*kernel.params, *inside], body=body)
