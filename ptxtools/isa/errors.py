"""The errors of `isa.resolve`, and their codes."""

from __future__ import annotations

UNKNOWN_INSTRUCTION = "PTX110"
UNKNOWN_MODIFIER = "PTX111"
MISSING_MODIFIER = "PTX112"
BAD_COMBINATION = "PTX113"
REPEATED_MODIFIER = "PTX114"
BAD_TYPE = "PTX210"


class OpcodeError(Exception):
    """No instruction form fits an opcode.

    message: what was found, and what is wrong with it; help: corrections, one sentence each; code: one of
    the codes of this module; section: of the nearest form, or None; word: the wrong modifier with its dot, or "".
    """

    def __init__(
        self, message: str, help: tuple[str, ...], code: str, section: str | None = None, word: str = ""
    ) -> None:
        super().__init__(message)
        self.message, self.help, self.code, self.section, self.word = message, help, code, section, word

    def __reduce__(self) -> tuple[object, ...]:
        return OpcodeError, (self.message, self.help, self.code, self.section, self.word)


class TableError(Exception):
    """A page of the instruction tables is inconsistent: a bug in ptxtools, found when the page is read."""
