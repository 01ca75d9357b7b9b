"""What a run-time checker reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .diagnostic import shown

if TYPE_CHECKING:
    from .origin import Origin


@dataclass(slots=True)
class Finding:
    """A report: checker, what is wrong, and where: kernel, CTA, thread, line and text of the PTX, and the place that
    the line was generated from (`source`), where the file says it; count: how often it came there."""

    checker: str
    message: str
    kernel: str = ""
    cta: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    file: str = ""
    line: int | None = None
    text: str = ""
    details: tuple[str, ...] = field(default=())
    source: Origin | None = None
    count: int = 1

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.line is not None else ""
        who = f" in kernel {shown(self.kernel)}" if self.kernel else ""
        for what, place in (("CTA", self.cta), ("thread", self.thread)):
            if place is not None:
                who += f", {what} ({','.join(map(str, place))})"
        lines = [f"{where}{self.checker}: {self.message}{who}"]
        origin = self.source.lines() if self.source else ()
        lines += [f"    {line}" for line in (" ".join(self.text.split()), *origin, *self.details) if line]
        if self.count > 1:
            lines.append(f"    {self.count:,} times")
        return "\n".join(lines)


@dataclass(slots=True)
class Leak(Finding):
    """A block of the heap that was never freed."""

    address: int = 0
