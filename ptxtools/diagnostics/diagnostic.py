"""Findings about an input, and the three kinds of failure."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from ptxtools.records import dataclass, field

from .kinds import Cause, TrapKind
from .shorten import line_around, shortened
from .source import NO_SPAN, Source, Span

if TYPE_CHECKING:
    from .findings import Finding
    from .origin import Origin


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"  # not a finding: `--requirements` in formats that only have findings


@dataclass(frozen=True, slots=True)
class Requires:
    """What would make a line valid: the lowest PTX version, and the lowest targets, one of which suffices."""

    ptx: str | None
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fix:
    """A safe edit: replace the characters of `span` by `text`."""

    span: Span
    text: str
    title: str = ""


@dataclass(slots=True)
class Diagnostic:
    """One finding. span: a range of character offsets in `source.text`; subject: the name it is about, if any; origin:
    the source location that the PTX was generated from, if the file has it."""

    code: str
    message: str
    span: Span = NO_SPAN
    source: Source | None = None
    severity: Severity = Severity.ERROR
    requires: Requires | None = None
    section: str | None = None
    help: tuple[str, ...] = ()
    target: str | None = None
    fix: Fix | None = field(default=None, compare=False)
    subject: str = field(default="", compare=False)
    origin: Origin | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        self.message = shortened(self.message)
        if self.help:
            self.help = tuple(shortened(text) for text in self.help)

    @property
    def file(self) -> str:
        return self.source.name_of(self.span[0]) if self.source else "<unknown>"

    @property
    def line(self) -> int:
        return self.source.position(self.span[0])[0] if self.source else 1

    @property
    def column(self) -> int:
        return self.source.position(self.span[0])[1] if self.source else 1

    @property
    def end_line(self) -> int:
        return self.source.position(self.span[1])[0] if self.source else 1

    @property
    def end_column(self) -> int:
        return self.source.position(self.span[1])[1] if self.source else 1

    def to_json(self) -> dict[str, Any]:
        """The object that `--format json` prints; "target" is present if the finding is for one of several, "source" if
        the file records where its lines were generated from."""
        needs = self.requires
        found: dict[str, Any] = {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "end_line": self.end_line,
            "end_column": self.end_column,
            "code": self.code,
            "severity": self.severity.value,
            "message": self.message,
            "requires": None if needs is None else {"ptx": needs.ptx, "targets": list(needs.targets)},
            "section": self.section,
        }
        if self.target is not None:
            found["target"] = self.target
        if self.origin is not None:
            found.update(self.origin.keys())
        return found


class PtxError(Exception):
    """The input is wrong: `.diagnostics` says where and why."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        self.diagnostics = diagnostics
        errors = [d for d in diagnostics if d.severity is Severity.ERROR] or diagnostics
        text = "; ".join(f"{d.file}:{d.line}:{d.column}: {d.message} [{d.code}]" for d in errors[:3])
        more = len(errors) - 3
        super().__init__(text + (f"; and {more} more" if more > 0 else ""))

    def __reduce__(self) -> tuple[object, ...]:
        return PtxError, (self.diagnostics,)


class PtxWarning(UserWarning):
    """A module is accepted with warnings, `.diagnostics`: ptxas compiles it, and the manual does not have all of it.

    A warning that has come from another process, such as a worker of pytest-xdist, has its text alone.
    """

    def __init__(self, diagnostics: list[Diagnostic] | str) -> None:
        self.diagnostics: list[Diagnostic] = []
        if isinstance(diagnostics, str):
            super().__init__(diagnostics)
            return
        self.diagnostics = diagnostics
        first, more = diagnostics[0], len(diagnostics) - 1
        text = f"{first.file}:{first.line}:{first.column}: {first.message} [{first.code}]"
        super().__init__(text + (f"; and {more} more" if more else ""))

    def __reduce__(self) -> tuple[object, ...]:
        return PtxWarning, (self.diagnostics or str(self),)


class LaunchError(Exception):
    """A launch was refused before anything ran: bad shape, arguments, device or limits."""


def shown(name: str) -> str:
    """The name of a kernel or function for a message, demangled if possible."""
    if not name.startswith(("_Z", "_R")):
        return name
    from .names import demangled  # which loads the demangler

    return demangled(name)


class Trap(Exception):  # noqa: N818 - the user-facing name
    """A kernel went wrong while it ran.

    kernel: entry name, as in the PTX; cta, thread: (x, y, z); line: PTX line number (of the text, or of the container's
    disassembly); text: that line; reason: what happened, for people; kind: a text, too:
    "trap", "timeout", "deadlock" or a checker's name; cause, space: what the thread did wrong, in which state space;
    source: the place that the line was generated from (`Origin`: file, line, function, inlined_at), or None;
    where: index into the program's lines, from which the device finds file and line; places: the same for each of the
    details, -1 where one has no place; parted: of a deadlock, the places where lanes of a warp wait for one another;
    lacking: those where warps wait for others of their warpgroup; findings: what checkers reported before it.
    """

    def __init__(
        self,
        reason: str,
        *,
        kernel: str = "",
        cta: tuple[int, int, int] | None = None,
        thread: tuple[int, int, int] | None = None,
        file: str = "",
        line: int | None = None,
        text: str = "",
        kind: str = TrapKind.TRAP,
        cause: Cause = Cause.OTHER,
        space: str = "",
        details: tuple[str, ...] = (),
        where: int | None = None,
    ) -> None:
        self.where = where
        self.findings: tuple[Finding, ...] = ()
        self.places: tuple[int, ...] = ()
        self.parted: tuple[int, ...] = ()
        self.lacking: tuple[int, ...] = ()
        self.source: Origin | None = None
        self.reason, self.kernel, self.cta, self.thread = reason, kernel, cta, thread
        self.file, self.line, self.text, self.details = file, line, text, details
        self.kind, self.cause, self.space = TrapKind(kind), cause, space
        super().__init__(self.describe())

    def describe(self) -> str:
        where = f"{self.file}:{self.line}: " if self.line is not None else ""
        who = f" in kernel {shown(self.kernel)}" if self.kernel else ""
        if self.cta is not None:
            who += f", CTA ({','.join(map(str, self.cta))})"
        if self.thread is not None:
            who += f", thread ({','.join(map(str, self.thread))})"
        lines = [f"{where}{self.kind}: {self.reason}{who}"]
        if self.text:
            lines.append(f"    {line_around(self.text.strip())}")
        lines.extend(f"    {line}" for line in (self.source.lines() if self.source else ()))
        lines.extend(f"    {detail}" for detail in self.details)
        return "\n".join(lines)
