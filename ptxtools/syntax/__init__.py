"""Convert PTX text to a module and back (chapters 4, 5, 7 and 11 of the manual)."""

from .parser import ParseResult, parse
from .printer import print_module, print_statement

__all__ = ["ParseResult", "parse", "print_module", "print_statement"]
