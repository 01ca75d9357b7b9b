"""The lines of a program as a debugger names them: PTX lines, labels, functions, source lines, kinds of opcodes."""

from __future__ import annotations

import os
import re
from functools import cached_property
from typing import TYPE_CHECKING

from ptxtools.diagnostics import shown
from ptxtools.records import dataclass

if TYPE_CHECKING:
    from ptxtools.diagnostics.origin import Origin
    from ptxtools.machine.launch import Launch

_LABEL = re.compile(r"^[ \t]*([\w$%]+)[ \t]*:(?!:)", re.MULTILINE)
#: The guard and the opcode of an instruction.
_OPCODE = re.compile(r"(?:@!?\S+\s+)?([^\s;]+)")
#: How the opcodes of barriers begin.
BARRIERS = ("bar.", "barrier.", "mbarrier.")


class LocationError(ValueError):
    """There is no such place in the program; the message says why."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instruction stands: its file and line in the PTX ("" and None if unknown), its text, its function."""

    file: str
    line: int | None
    text: str
    function: str

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}" if self.line is not None else shown(self.function)


class Code:
    """The instructions of a program; `where` is a number of one (`Op.where`)."""

    def __init__(self, launch: Launch) -> None:
        self.program = launch.program
        self._lines = None if launch.context is None else launch.context.places
        self._places: dict[int, Place] = {}

    def place(self, where: int) -> Place:
        """Where an instruction stands."""
        found = self._places.get(where)
        if found is None:
            known = 0 <= where < len(self.program.lines)
            file, line = ("", None) if self._lines is None else self._lines.line_of(self.program, where)
            text = " ".join(self.program.lines[where][2].split()).rstrip(" ;") if known else ""
            found = self._places[where] = Place(file, line, text, self._function_of.get(where, self.program.kernel))
        return found

    def origin(self, where: int) -> Origin | None:
        """The source line that an instruction was generated from."""
        return None if self._lines is None else self._lines.source_of(self.program, where)

    def opcode(self, where: int) -> str:
        """The opcode of an instruction, without its guard."""
        match = _OPCODE.match(self.place(where).text)
        return match[1] if match else ""

    def text_around(self, line: int, count: int) -> list[tuple[int, str]]:
        """Lines of the PTX around one, with their numbers."""
        texts = self._text.splitlines()
        first = max(1, min(line - count // 2, len(texts) - count + 1))
        return list(enumerate(texts[first - 1 : first - 1 + count], first))

    @cached_property
    def _text(self) -> str:
        source = None if self._lines is None else self._lines.source
        return "" if source is None else source.text

    @cached_property
    def _function_of(self) -> dict[int, str]:
        program = self.program
        starts = [*(function.first for function in program.functions), len(program.blocks)]
        found: dict[int, str] = {}
        for function, first, end in zip(program.functions, starts, starts[1:], strict=False):
            name = program.kernel if function.first == 0 else function.name
            for block in program.blocks[first:end]:
                for where in (*(op.where for op in block.ops), block.terminator.where):
                    found.setdefault(where, name)
        return found

    @cached_property
    def _of_line(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for where in sorted(where for where in self._function_of if where >= 0):
            line = self.place(where).line
            if line is not None:
                found.setdefault(line, []).append(where)
        return found

    # --- locations ----------------------------------------------------------------------------------------------------

    def find(self, text: str) -> list[int]:
        """The instructions at a location: LINE, FILE:LINE (of the PTX or of its source), LABEL, FUNCTION,
        FUNCTION:LABEL, "barrier", or "opcode PREFIX". Raises `LocationError`."""
        kind, _, rest = text.strip().partition(" ")
        if kind == "barrier" and not rest:
            return self._opcodes(BARRIERS, "barrier")
        if kind == "opcode" and rest:
            return self._opcodes((rest.strip(),), f"instruction that begins with {rest.strip()}")
        name, colon, last = text.strip().rpartition(":")
        if last.isdecimal() and len(last) < 10:
            if not colon or os.path.basename(name) == os.path.basename(self.file):
                return self.at_line(int(last))
            return self.at_source(name, int(last))
        return self._named(text.strip())

    @cached_property
    def file(self) -> str:
        """The file of the PTX, "" if unknown."""
        return next((self.place(where).file for where in self._function_of if self.place(where).file), "")

    def _opcodes(self, prefixes: tuple[str, ...], what: str) -> list[int]:
        found = [where for where in sorted(self._function_of) if self.opcode(where).startswith(prefixes)]
        if not found:
            raise LocationError(f"the kernel has no {what}")
        return found

    def at_line(self, line: int) -> list[int]:
        """The first instruction at a PTX line or behind it."""
        after = min((known for known in self._of_line if known >= line), default=None)
        if after is None:
            raise LocationError(f"the kernel has no instruction at line {line} or behind it")
        return self._of_line[after][:1]

    def at_source(self, file: str, line: int) -> list[int]:
        """The first instructions of a line of the source: one for each stretch of instructions that come from it."""
        found, before = [], -2
        files: set[str] = set()
        for where in sorted(where for where in self._function_of if where >= 0):
            chain = () if (origin := self.origin(where)) is None else origin.chain
            files.update(os.path.basename(place.file) for place in chain)
            if any(place.line == line and _same_file(place.file, file) for place in chain):
                if where != before + 1:
                    found.append(where)
                before = where
        if not found:
            known = f"; its sources are {', '.join(sorted(files))}" if files else "; it names no source lines (.loc)"
            raise LocationError(f"the kernel has no instruction from {file}:{line}{known}")
        return found

    def _named(self, name: str) -> list[int]:
        for function in self.program.functions:
            mangled = self.program.kernel if function.first == 0 else function.name
            if name in (mangled, shown(mangled)) or shown(mangled).startswith(f"{name}("):
                return [min(where for where, owner in self._function_of.items() if owner == mangled and where >= 0)]
        owner, _, label = name.rpartition(":")
        found = []
        for match in _LABEL.finditer(self._text):
            if match[1] == label:
                line = self._text.count("\n", 0, match.start(1)) + 1
                after = min((known for known in self._of_line if known >= line), default=None)
                if after is not None:
                    where = self._of_line[after][0]
                    if owner in ("", self.place(where).function, shown(self.place(where).function)):
                        found.append(where)
        if not found:
            raise LocationError(f"the kernel has no line, label or function '{name}'")
        return found

    def names(self) -> list[str]:
        """Labels and functions, for completion."""
        labels = dict.fromkeys(match[1] for match in _LABEL.finditer(self._text))
        functions = (self.program.kernel if one.first == 0 else one.name for one in self.program.functions)
        return [*functions, *labels]


def _same_file(path: str, name: str) -> bool:
    """Whether a name, which may leave out folders, means a file."""
    return path == name or path.endswith(f"/{name}")
