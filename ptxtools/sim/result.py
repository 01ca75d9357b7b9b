"""What a finished launch gives back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.records import dataclass, field

if TYPE_CHECKING:
    from ptxtools.diagnostics.findings import Exploration, Finding, Verdict


@dataclass(slots=True)
class RunResult:
    """A finished launch. seconds: wall time of the kernel; instructions: thread-instructions executed; printed: what
    the kernel printed; reports: findings of checkers; silenced: those that a comment or a
    file silences; verdict: that of racecheck, where it has found no race; explored:
    what other schedules have shown, where they were asked for."""

    seconds: float = 0.0
    instructions: int = 0
    printed: str = ""
    reports: list[Finding] = field(default_factory=list)
    silenced: list[Finding] = field(default_factory=list)
    verdict: Verdict | None = None
    explored: Exploration | None = None

    def _repr_html_(self) -> str:
        """For notebooks: a table, then what was printed and found."""
        from html import escape

        rows = [("seconds", f"{self.seconds:.6f}"), ("thread-instructions", f"{self.instructions:,}")]
        rows += [("racecheck", str(self.verdict))] if self.verdict is not None else []
        found = "\n".join(map(str, self.reports))
        table = "".join(f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in rows)
        texts = (("printed", self.printed), ("found by checkers", found))
        return f"<table>{table}</table>" + "".join(
            f"<details open><summary>{name}</summary><pre>{escape(text)}</pre></details>"
            for name, text in texts
            if text
        )
