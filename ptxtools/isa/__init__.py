"""The instruction set as data: targets, types, spaces, registers, directives, and every instruction form.

`resolve("add.sat.s32")` gives the `Opcode`; a chapter's tables are loaded with its first instruction.
Names and submodules load on first use, so importing this package is cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import directives, errors, registers, spaces, targets, types
    from .errors import OpcodeError
    from .form import Form
    from .opcode import Need, Opcode, declared, forms, pages, resolve, slack
    from .patterns import OperandSpec

__all__ = [
    "Form",
    "Need",
    "Opcode",
    "OpcodeError",
    "OperandSpec",
    "declared",
    "directives",
    "errors",
    "forms",
    "pages",
    "registers",
    "resolve",
    "slack",
    "spaces",
    "targets",
    "types",
]

_HOME = {
    "Form": "form",
    "Need": "opcode",
    "Opcode": "opcode",
    "OpcodeError": "errors",
    "OperandSpec": "patterns",
    "forms": "opcode",
    "pages": "opcode",
    "declared": "opcode",
    "resolve": "opcode",
    "slack": "opcode",
}


def __getattr__(name: str) -> object:
    if name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    elif name in __all__:
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = value
    return value
