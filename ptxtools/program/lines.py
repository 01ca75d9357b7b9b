"""Parts of an instruction's text, as `Program.lines` has it."""

from __future__ import annotations

import re

#: The guard and the opcode of an instruction.
_OPCODE = re.compile(r"(@!?\s*\S+\s+)?([^\s;]+)")


def bare_opcode(text: str) -> str:
    """The opcode in an instruction's text; "" if there is none."""
    match = _OPCODE.match(text)
    return match[2] if match else ""
