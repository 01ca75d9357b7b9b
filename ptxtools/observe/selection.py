"""Which events of a run an observer is asked about: whose, where, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.records import dataclass

if TYPE_CHECKING:
    from ptxtools.machine.events import View

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which events are wanted; an empty set, and None, choose all.

    ctas: positions (x, y, z) in the grid; warps: their numbers in the CTA; lanes: their numbers; lines: ranges of PTX
    lines, both ends included; opcodes: how opcodes begin, such as "ld.global"; registers: names that an instruction
    mentions.
    """

    ctas: frozenset[tuple[int, int, int]] = frozenset()
    warps: frozenset[int] = frozenset()
    lanes: frozenset[int] = frozenset()
    lines: tuple[tuple[int, int], ...] = ()
    opcodes: tuple[str, ...] = ()
    registers: frozenset[str] = frozenset()

    def warp(self, at: View) -> bool:
        """Whether a warp is chosen."""
        return (not self.ctas or at.cta.place in self.ctas) and (not self.warps or at.warp in self.warps)

    def only(self, lanes: Array) -> Array:
        """The chosen ones of some lanes."""
        return lanes[np.isin(lanes, list(self.lanes))] if self.lanes else lanes

    def instruction(self, line: int | None, opcode: str, names: tuple[str, ...]) -> bool:
        """Whether an instruction is chosen, whoever executes it."""
        if self.lines and (line is None or not any(first <= line <= last for first, last in self.lines)):
            return False
        if self.opcodes and not opcode.startswith(self.opcodes):
            return False
        return not self.registers or not self.registers.isdisjoint(names)


@dataclass(frozen=True, slots=True)
class Moment:
    """When tracing begins or ends: a chosen warp comes to a line, to an opcode that begins so, or enters a function."""

    line: int | None = None
    opcode: str = ""
    function: str = ""

    @classmethod
    def parse(cls, text: str) -> Moment:
        """From "42", "line:42", "opcode:bar.sync" or "function:f". Raises ValueError."""
        kind, _, rest = text.rpartition(":")
        if kind in ("", "line") and rest.isascii() and rest.isdigit():
            return cls(line=int(rest))
        if kind == "opcode" and rest:
            return cls(opcode=rest)
        if kind == "function" and rest:
            return cls(function=rest)
        raise ValueError(f"'{text}' is no moment: LINE, opcode:BEGINNING or function:NAME")

    def reached(self, line: int | None, opcode: str) -> bool:
        """Whether an instruction is the moment."""
        return line == self.line if self.line is not None else bool(self.opcode) and opcode.startswith(self.opcode)
