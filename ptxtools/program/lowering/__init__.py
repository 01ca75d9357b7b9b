"""Lower the intermediate representation to a `Program` that both engines run.

One file per group of instructions, which registers its functions (`registry.py`). `link.py` finds reachable functions,
`function.py` holds the state for one function, `values.py` finds the value an operand stands for, `finish.py` improves
the result and gives out slots.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from ptxtools.ir import Module
from ptxtools.program.program import Program
from ptxtools.program.variant import PLAIN, Variant

from .link import Linker, kernel_of

__all__ = ["lower"]

#: The files that register what they lower; none of them is used by name.
_FILES = (
    "arithmetic",
    "bulk",
    "calls",
    "clusters",
    "control",
    "copies",
    "hints",
    "matrix",
    "mbarrier",
    "memory",
    "multimem",
    "registers",
    "tensor",
    "textures",
    "video",
    "warp",
)
for _name in _FILES:
    import_module(f"{__name__}.{_name}")


def lower(module: Module, kernel: str, addresses: Callable[[str], int], *, variant: Variant = PLAIN) -> Program:
    """Lower a kernel and the functions that it reaches.

    addresses: device address of a module-scope .global or .const variable. Raises PtxError (PTX901) naming everything
    that cannot be run.
    """
    return Linker(module, addresses, variant).program(kernel_of(module, kernel))
