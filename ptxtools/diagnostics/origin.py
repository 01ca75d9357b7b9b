"""Where generated PTX comes from: a line of CUDA C++, Triton or another source language (11.5.4)."""

from __future__ import annotations

from typing import Any

from ptxtools.records import dataclass

from .names import demangled
from .text import printable


@dataclass(frozen=True, slots=True)
class Origin:
    """A location in a compiler's source. `function` is its name as in the PTX ("" if unknown), possibly mangled;
    `inlined_at` is the location of the call, if the function was inlined there."""

    file: str
    line: int
    column: int = 0
    function: str = ""
    inlined_at: Origin | None = None

    def __str__(self) -> str:
        return f"{printable(self.file)}:{self.line}"

    @property
    def chain(self) -> list[Origin]:
        """This location, then the one it was inlined at, and so on to the function that was not inlined."""
        found: list[Origin] = [self]
        while found[-1].inlined_at is not None:
            found.append(found[-1].inlined_at)
        return found

    def calls(self) -> list[str]:
        """One line per inlined call, innermost first: `inlined at a.cu:7 in f(int)`."""
        inner = f"in {printable(demangled(self.function))}, " if self.function else ""
        lines = []
        for n, place in enumerate(self.chain[1:]):
            outer = f" in {printable(demangled(place.function))}" if place.function else ""
            lines.append(f"{inner if n == 0 else ''}inlined at {place}{outer}")
        return lines

    def lines(self) -> list[str]:
        """For a report: `source: FILE:LINE`, and the chain of inlining below it, indented."""
        return [f"source: {self}", *(f"  {line}" for line in self.calls())]

    def keys(self) -> dict[str, Any]:
        """The keys of a JSON finding: "source", and the locations in "inlined_at", innermost first."""
        place, *callers = [{"file": place.file, "line": place.line} for place in self.chain]
        return {"source": place, **({"inlined_at": callers} if callers else {})}
