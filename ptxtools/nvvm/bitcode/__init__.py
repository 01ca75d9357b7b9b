"""LLVM's bitcode: what it says of itself, and the text that it stands for, without the upgrades of LLVM's readers."""

from .facts import Facts, facts_of
from .module import disassembled
from .stream import BitcodeError

__all__ = ["BitcodeError", "Facts", "disassembled", "facts_of"]
