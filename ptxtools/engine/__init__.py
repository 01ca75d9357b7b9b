"""How a kernel is computed: lowering to a `Program`, and the engines that run it."""

from .grid import AddressSpace, Launch, Outcome
from .lowering import lower
from .program import Program

__all__ = ["AddressSpace", "Launch", "Outcome", "Program", "lower"]
