"""What a run-time checker reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ptxtools.records import dataclass, field

from .diagnostic import shown

if TYPE_CHECKING:
    from .diagnostic import Trap
    from .origin import Origin

#: x, y, z of a CTA or of a thread.
Coordinates = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Site:
    """The other side of a report: file, line and text of the PTX, who was there (None where that is not known), and
    what the line was generated from."""

    file: str = ""
    line: int | None = None
    text: str = ""
    cta: Coordinates | None = None
    thread: Coordinates | None = None
    source: Origin | None = None

    def __str__(self) -> str:
        where = [f"{self.file}:{self.line}"] if self.line is not None else []
        where += [f"{what} ({','.join(map(str, place))})" for what, place in _who(self) if place is not None]
        origin = f" ({self.source})" if self.source else ""
        return f"with: {', '.join(where)}{origin}" + (f": {' '.join(self.text.split())}" if self.text else "")

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.file, "line": self.line, "thread": self.thread, "cta": self.cta,
            "source": _source(self.source),
        }  # fmt: skip


@dataclass(slots=True)
class Finding:
    """A report: checker, what is wrong, and where: kernel, CTA, thread, line and text of the PTX, and the place that
    the line was generated from (`source`), where the file says it; count: how often it came there.

    kind: a word for what is wrong, the same for all reports of its sort; others: the other sides of it; address, space:
    the memory, where it is about some; allocation: the one it lies in or near; help: what would have been right; also:
    other checkers that report the same.
    """

    checker: str
    message: str
    kernel: str = ""
    cta: Coordinates | None = None
    thread: Coordinates | None = None
    file: str = ""
    line: int | None = None
    text: str = ""
    details: tuple[str, ...] = field(default=())
    source: Origin | None = None
    count: int = 1
    kind: str = ""
    others: tuple[Site, ...] = ()
    address: int | None = None
    space: str = ""
    allocation: str = ""
    help: str = ""
    also: tuple[str, ...] = ()

    @property
    def checkers(self) -> tuple[str, ...]:
        """All that report it."""
        return self.checker, *self.also

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.line is not None else ""
        who = f" in kernel {shown(self.kernel)}" if self.kernel else ""
        for what, place in _who(self):
            if place is not None:
                who += f", {what} ({','.join(map(str, place))})"
        return "\n".join(
            [f"{where}{', '.join(self.checkers)}: {self.message}{who}", *(f"    {line}" for line in self.below())]
        )

    def below(self) -> list[str]:
        """The lines below the first."""
        origin = self.source.lines() if self.source else ()
        lines = [" ".join(self.text.split()), *map(str, self.others), *origin, self.allocation, *self.details]
        if self.help:
            lines.append(f"help: {self.help}")
        if self.count > 1:
            lines.append(f"{self.count:,} times")
        return [line for line in lines if line]

    def to_json(self) -> dict[str, Any]:
        """One of the objects in "reports"; lists are x, y, z."""
        return {
            "checker": str(self.checker), "also": list(map(str, self.also)), "kind": self.kind,
            "message": self.message, "kernel": self.kernel,
            "cta": self.cta, "thread": self.thread, "file": self.file, "line": self.line,
            "source": _source(self.source), "with": [other.to_json() for other in self.others],
            "address": self.address, "space": self.space, "allocation": self.allocation,
            "details": list(self.details), "help": self.help, "count": self.count,
        }  # fmt: skip


def without_echoes(findings: Sequence[Finding]) -> list[Finding]:
    """One report where memcheck and racecheck say the same: that a grid writes what it reads through the texture
    proxy."""
    races = {_lines(one): one for one in findings if (one.checker, one.kind) == ("racecheck", "proxy")}
    found = []
    for one in findings:
        race = races.get(_lines(one)) if (one.checker, one.kind) == ("memcheck", "read-only") else None
        if race is None:
            found.append(one)
        else:
            race.also = (one.checker,)
    return found


def says_again(trap: Trap, finding: Finding) -> bool:
    """Whether a trap that is a checker's finding ends the run at what that checker has reported already."""
    place = trap.kind, trap.kernel, trap.cta, trap.file, trap.line, trap.text
    return place == (finding.checker, finding.kernel, finding.cta, finding.file, finding.line, finding.text)


def _lines(finding: Finding) -> frozenset[tuple[str, int | None]]:
    """Of both sides."""
    return frozenset([(finding.file, finding.line), *((other.file, other.line) for other in finding.others)])


@dataclass(frozen=True, slots=True)
class Verdict:
    """What racecheck says of a launch without races. decided_by: file, line and sort of what decides an order; nothing:
    there are no races in any schedule."""

    decided_by: tuple[tuple[str, int | None, str], ...] = ()

    @classmethod
    def of(cls, lines: Mapping[tuple[str, int | None], str]) -> Verdict:
        """From lines, by file and number."""
        return cls(tuple((*place, lines[place]) for place in sorted(lines, key=lambda one: (one[0], one[1] or 0))))

    @classmethod
    def joined(cls, verdicts: Sequence[Verdict | None]) -> Verdict | None:
        """That of several launches: None if one of them has none."""
        if not verdicts or None in verdicts:
            return None
        return cls.of({(file, line): what for one in verdicts if one for file, line, what in one.decided_by})

    def __str__(self) -> str:
        if not self.decided_by:
            return "race-free in every schedule of this launch"
        lines = [f"line {line} ({what})" for _, line, what in self.decided_by]
        more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
        verb = "decides" if len(lines) == 1 else "decide"
        return f"race-free in this schedule; {', '.join(lines[:_SHOWN])}{more} {verb} the order"

    def to_json(self) -> dict[str, Any]:
        """The object "racecheck"."""
        name = "this-schedule" if self.decided_by else "every-schedule"
        return {"verdict": name, "decided_by": [line for _, line, _ in self.decided_by]}


@dataclass(frozen=True, slots=True)
class Exploration:
    """What further schedules of a launch have shown. schedules: how many were run; orders: in how many orders warps
    came to the memory through which they learn of one another; complete: there are no others; failed, differs: by
    number of the schedule how it ended otherwise than the launch, and where its results differ."""

    schedules: int = 0
    orders: int = 1
    complete: bool = True
    failed: tuple[tuple[int, str], ...] = ()
    differs: tuple[tuple[int, str], ...] = ()

    @classmethod
    def joined(cls, some: Sequence[Exploration]) -> Exploration:
        """That of several launches: schedules are numbered through, and an order is that of all launches, of which one
        at a time differs from the first run."""
        found = cls()
        for one in some:
            before = found.schedules
            found = cls(
                before + one.schedules, found.orders + one.orders - 1, found.complete and one.complete,
                (*found.failed, *((before + number, text) for number, text in one.failed)),
                (*found.differs, *((before + number, text) for number, text in one.differs)),
            )  # fmt: skip
        return found

    def __str__(self) -> str:
        """One line, and a line for each schedule that came out otherwise."""
        count = f"{self.orders:,} order{'s' * (self.orders != 1)}"
        extent = f"{count}, and there are no others" if self.complete else f"at least {count}"
        head = f"{self.schedules:,} further schedule{'s' * (self.schedules != 1)}: {extent}"
        shown = [f"    schedule {number} ends with {text}" for number, text in self.failed]
        shown += [f"    schedule {number} has another result: {text}" for number, text in self.differs]
        more = len(shown) - _MOST_SHOWN
        return "\n".join([head, *shown[:_MOST_SHOWN], *([f"    and {more:,} more"] if more > 0 else [])])

    def to_json(self) -> dict[str, Any]:
        """The object "explored"."""
        return {
            "schedules": self.schedules, "orders": self.orders, "complete": self.complete,
            "failed": [{"schedule": number, "reason": text} for number, text in self.failed],
            "differs": [{"schedule": number, "where": text} for number, text in self.differs],
        }  # fmt: skip


#: Schedules of an exploration that are shown.
_MOST_SHOWN = 8
#: Lines of a verdict that are shown.
_SHOWN = 4


def _who(at: Finding | Site) -> tuple[tuple[str, Coordinates | None], ...]:
    return ("CTA", at.cta), ("thread", at.thread)


def _source(origin: Origin | None) -> dict[str, Any] | None:
    """File and line that a line was generated from."""
    return None if origin is None else {"file": origin.file, "line": origin.line}
