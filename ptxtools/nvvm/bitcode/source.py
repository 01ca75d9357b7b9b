"""Positions in bitcode: the function and the number of the instruction, since there are no lines."""

from __future__ import annotations

from ptxtools.diagnostics import Diagnostic, PtxError, Source
from ptxtools.diagnostics.origin import Origin

from .module import Text, disassembled
from .stream import BitcodeError

_DAMAGED = "NVVM102"


class Disassembly(Source):
    """The text of a module in bitcode.

    An offset in a function belongs to "k.bc(@f)", its line is the number of the instruction (from 1), and its column
    that in the instruction's text. An offset outside of functions is at 1:1 of the file.
    """

    __slots__ = ("_made",)
    disassembled = True

    def __init__(self, made: Text, name: str) -> None:
        super().__init__(made.text, name)
        self._made = made

    @property
    def dialect(self) -> str:
        return self._made.facts.dialect

    def position(self, offset: int) -> tuple[int, int]:
        place = self._made.place(offset)
        if not place.function:
            return 1, 1
        return max(place.number, 1), super().position(offset)[1]

    def line_of(self, offset: int) -> int:
        return self.position(offset)[0]

    def name_of(self, offset: int) -> str:
        function = self._made.place(offset).function
        return f"{self.name}({function})" if function else self.name

    def line(self, number: int) -> str:
        """Nothing: a number alone says no function."""
        return ""

    def origin(self, offset: int) -> Origin | None:
        """The place in the source that the debug information names."""
        return self._made.place(offset).origin


def disassembly(data: bytes, name: str) -> Disassembly:
    """The text of a bitcode file, with positions in the bitcode. Raises PtxError for one that is damaged."""
    try:
        return Disassembly(disassembled(data), name)
    except BitcodeError as error:
        finding = Diagnostic(_DAMAGED, f"the bitcode cannot be read: {error}", source=Source("", name))
        raise PtxError([finding]) from None
