"""Instructions that the model has no meaning for: refused by name, with the section of the manual that has one."""

from __future__ import annotations

from typing import NoReturn

from ptxtools import isa

from .words import Reader, Word


def not_modelled(reader: Reader, word: Word, modifier: str = "") -> NoReturn:
    """Raises PtxError at the instruction's name. modifier: without its dot, if only that one has no meaning."""
    what = f"'.{modifier}' of '{word.text}'" if modifier else f"'{word.text}'"
    section = section_of(word.text)
    reader.fail(f"{what} is not modelled" + (f" (section {section})" if section else ""), word)


def section_of(opcode: str) -> str:
    """The section of an instruction, or of the one nearest to it; "" if PTX has none of that name."""
    try:
        return isa.resolve(opcode).section
    except isa.OpcodeError as error:
        return error.section or ""
