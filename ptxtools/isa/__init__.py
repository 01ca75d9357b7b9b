"""The instruction set as data: targets, types, spaces, registers, directives, and every instruction form.

`resolve("add.sat.s32")` gives the `Opcode`; the tables of a chapter load when an instruction of it is first met.
"""

from .errors import OpcodeError
from .notation import Form
from .opcode import Need, Opcode, forms, pages, resolve
from .patterns import OperandSpec

__all__ = ["Form", "Need", "Opcode", "OpcodeError", "OperandSpec", "forms", "pages", "resolve"]
