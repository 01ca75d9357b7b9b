"""Map locations in a program to lines of the PTX, and of the source that the PTX was generated from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxtools.diagnostics import Source
    from ptxtools.diagnostics.origin import Origin
    from ptxtools.ir.origins import Origins
    from ptxtools.program.program import Program

    from .kernel import Bounds
    from .loadable import Body, Loadable


class ProgramLines:
    """Lines of one module, looked up when the first one is asked for: a run without reports pays nothing."""

    def __init__(self, module: Loadable) -> None:
        self.module = module
        self._source: Source | None = None
        self._source_asked = False
        self._origins: Origins | None = None
        self._origins_asked = False

    @property
    def source(self) -> Source | None:
        """The text that lines refer to."""
        if not self._source_asked:
            self._source_asked, self._source = True, self.module.source()
        return self._source

    def bounds(self, kernel: str) -> Bounds | None:
        """The performance directives of a kernel of the module."""
        found = self.module.contents.kernels.get(kernel)
        return None if found is None else found.bounds

    def bodies(self) -> list[Body]:
        """The functions of the module, with their instructions."""
        return self.module.bodies()

    def line_at(self, start: int) -> tuple[str, int | None]:
        """File and line of the PTX where a span starts; "" and None if unknown."""
        source = self.source
        return ("", None) if source is None else (source.name_of(start), source.line_of(start))

    def origin_at(self, start: int) -> Origin | None:
        """The source location of what starts there, if the module has it (`.loc`, 11.5.4)."""
        if not self._origins_asked:
            self._origins_asked, self._origins = True, self.module.origins()
        return None if self._origins is None else self._origins.find(start)

    def line_of(self, program: Program, where: int) -> tuple[str, int | None]:
        """File and line of the PTX at `program.lines[where]`; "" and None if unknown."""
        return self.line_at(program.lines[where][1]) if 0 <= where < len(program.lines) else ("", None)

    def source_of(self, program: Program, where: int) -> Origin | None:
        """The source location of `program.lines[where]`, if the module has it (`.loc`, 11.5.4)."""
        return self.origin_at(program.lines[where][1]) if 0 <= where < len(program.lines) else None

    def brief(self, program: Program, where: int) -> str:
        """One of several locations in a report: `line 12`, or `line 12 (kernel.cu:33)`; "" for an unknown one."""
        _, line = self.line_of(program, where)
        origin = self.source_of(program, where) if line is not None else None
        return "" if line is None else f"line {line}" + (f" ({origin})" if origin else "")
