"""Functions of which better ones may take the place while they are in use.

Each is a jump to where a word says, its `slot`: callers keep the address of the jump. The word is aligned, so whoever
calls sees the old function or the new one. Written for x86-64 and ELF.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Iterable

from . import jit


def possible() -> bool:
    """Whether this machine's code can be written so."""
    return sys.platform == "linux" and sys.maxsize > 1 << 32 and jit.is_x86()


def _slot(name: str) -> str:
    return f"{name}.slot"


def symbols(names: Iterable[str]) -> list[str]:
    """What the object code of `module` defines."""
    return [symbol for name in names for symbol in (name, _slot(name))]


def module(text: str, names: Iterable[str]) -> str:
    """The IR of a module in which some functions are replaceable."""
    names = list(names)
    text = re.sub(rf"@({'|'.join(map(re.escape, names))})(?![\w.])", r"@\1.first", text)
    lines = [f"@{_slot(name)} = global ptr @{name}.first, align 8" for name in names]
    for name in names:
        for line in (".text", f".globl {name}", f".type {name},@function", f"{name}: jmpq *{_slot(name)}(%rip)"):
            lines.append(f'module asm "{line}"')
    return "\n".join([text, *lines, ""])


def replace(known: dict[str, int], better: dict[str, int]) -> None:
    """Have the functions of a linked module go on to better ones."""
    for name, address in better.items():
        ctypes.c_int64.from_address(known[_slot(name)]).value = address
