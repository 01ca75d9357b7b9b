"""From a module as a tree to what a device loads."""

from __future__ import annotations

import struct
from math import prod
from typing import TYPE_CHECKING

from ptxtools.diagnostics import Diagnostic, Source
from ptxtools.engine.layout import Placed, function_addresses, kernel_parameters, variable_alignment, variable_size
from ptxtools.ir import Directive, Function, Immediate, Initializer, Module, SymbolValue, Variable
from ptxtools.ir.symbols import module_names
from ptxtools.isa.types import TYPES

from .kernel import Bounds, Dim3, Kernel, Parameter
from .loadable import Contents, Link, Storage

if TYPE_CHECKING:
    from ptxtools.engine.program import Program

    from .image import Image

_FLOAT_FORMAT = {"f16": "<e", "f32": "<f", "f64": "<d"}
_BITS_FORMAT = {"f32": "<I", "f64": "<Q"}


class TreeModule:
    """A module that is at hand as a tree. Raises `PtxError` for an initialiser that names something unknown."""

    def __init__(self, tree: Module) -> None:
        self.tree = tree
        self.contents = contents_of(tree)

    def lower(self, kernel: str, image: Image) -> Program:
        from ptxtools.engine import lower

        return lower(self.tree, kernel, image.address)

    def source(self) -> Source | None:
        return self.tree.source


def contents_of(module: Module) -> Contents:
    """What a device needs to know of a module."""
    names = module_names(module)
    found: dict[str, Variable] = {}
    undefined: dict[str, Diagnostic] = {}
    for variable in module.variables:
        if variable.space in ("global", "const"):
            symbol = names.lookup(variable.name)
            if isinstance(symbol, Variable) and symbol.linkage != "extern":
                found[variable.name] = symbol
            else:
                undefined[variable.name] = _undefined(variable, module)
