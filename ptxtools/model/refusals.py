"""Instructions that the model has no meaning for: refused by name, with the section of the manual that has one."""

from __future__ import annotations

import re
from typing import NoReturn

from ptxtools import isa

from .words import Reader, Word

#: Beginnings of names -> why there is no meaning, or what says the same; docs/memory-model.md has the list.
REASONS = {
    r"cp\.async\.bulk\.prefetch|prefetch|applypriority|createpolicy": "it changes no value: leave it out",
    r"discard": "it leaves memory without a value (9.7.9.17)",
    r"tcgen05\.(alloc|dealloc|relinquish)": "tensor memory is declared, in the initial values: 'tmem d = 0'",
    r"mma|wmma|ldmatrix|stmatrix|movmatrix": "it works on matrices that the registers of a warp hold together",
    r"(shfl|vote|match|redux|activemask|elect)\b": "it exchanges registers of a warp; a test has only its memory",
    r"(tex|tld4|suld\.b|sust\.[bp]|sured\.[bp])\b": "a texel's address is not modelled; 'tld', 'suld', 'sust' and "
        "'sured' of a location stand for such an access",
    r"(ldu)\b": "write 'ld.global.nc'",
    r"(call|brx)\b": "write its instructions in its place",
}  # fmt: skip


def not_modelled(reader: Reader, word: Word, modifier: str = "") -> NoReturn:
    """Raises PtxError at the instruction's name. modifier: without its dot, if only that one has no meaning."""
    what = f"'.{modifier}' of '{word.text}'" if modifier else f"'{word.text}'"
    section = section_of(word.text)
    reason = next((reason for name, reason in REASONS.items() if re.match(name, word.text)), "")
    reader.fail(f"{what} is not modelled" + (f" (section {section})" if section else ""), word, reason)


def section_of(opcode: str) -> str:
    """The section of an instruction, or of the one nearest to it; "" if PTX has none of that name."""
    try:
        return isa.resolve(opcode).section
    except isa.OpcodeError as error:
        return error.section or ""
