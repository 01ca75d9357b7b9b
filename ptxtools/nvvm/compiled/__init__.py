"""Loops over the bytes and names of a large text in machine code.

`scan` finds lines and names, `flow` follows names through functions, `nodes` finds what is equal among nodes of
metadata. They are written in a part of Python (`notation`), and are functions of Python, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .code import Code

#: Texts of more characters are worth the load of machine code, and its making.
LOADED, MADE = 100_000, 400_000


def code_for(size: int) -> Code | None:
    """Machine code for so many characters; None if they are too few, or if there is none."""
    if size < LOADED:
        return None
    from .code import code

    return code(size >= MADE)
