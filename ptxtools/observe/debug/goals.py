"""What a debugger is asked for: where to stop, how far to go, and what it tells when it has stopped."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from ptxtools.records import dataclass, field

Dim3: TypeAlias = tuple[int, int, int]
ALL_LANES = (1 << 32) - 1

#: continue: to the next stop; step: one instruction; next: over calls; finish: out of the function; barrier: to the
#: next barrier; source: to another source line; count: to a moment.
GoalKind: TypeAlias = Literal["continue", "step", "next", "finish", "barrier", "source", "count"]


@dataclass(slots=True)
class Focus:
    """The lane that commands are about."""

    cta: Dim3
    warp: int
    lane: int

    def __str__(self) -> str:
        return "CTA ({},{},{}) warp {} lane {}".format(*self.cta, self.warp, self.lane)


@dataclass(slots=True)
class Goal:
    """How far to go. Of whom: lanes of a warp of a CTA; warp None: any of the CTA; cta None: anybody. depth: calls that
    the lane is in when it starts; source: the source line then; times: how often; goes_on:
    it does not stop at the moment `count` that it goes back to."""

    kind: GoalKind = "continue"
    cta: Dim3 | None = None
    warp: int | None = None
    lanes: int = ALL_LANES
    depth: int = 0
    source: str = ""
    count: int = 0
    times: int = 1
    goes_on: bool = False


@dataclass(slots=True)
class Breakpoint:
    """A stop that the user has asked for. kind: "break" at a location, or "watch" of a value; location, condition: as
    written; cta, warp, lane: for whom (None: anybody); ignore: hits still to be passed by; hits: so far. Of a watch:
    words of host memory (`View.words`), its PTX type, its last value, and the CTA that it ends with."""

    number: int
    kind: Literal["break", "watch"]
    location: str
    condition: str = ""
    cta: Dim3 | None = None
    warp: int | None = None
    lane: int | None = None
    enabled: bool = True
    temporary: bool = False
    ignore: int = 0
    hits: int = 0
    words: list[tuple[int, int]] = field(default_factory=list)
    type: str = ""
    owner: Dim3 | None = None
    value: Any = None

    def __str__(self) -> str:
        parts = [self.location]
        if self.cta is not None:
            parts.append("cta ({},{},{})".format(*self.cta))
        parts += [f"{name} {value}" for name in ("warp", "lane") if (value := getattr(self, name)) is not None]
        return " ".join(parts) + (f" if {self.condition}" if self.condition else "")


@dataclass(slots=True)
class Stop:
    """Why a run has stopped. kind: "entry", "breakpoint", "watchpoint", "step", "pause", "report", "trap", "end",
    "history" (there is nothing earlier) or "goto"; text: the same for people, a line or more; numbers: breakpoints."""

    kind: str
    text: str
    numbers: tuple[int, ...] = ()


@dataclass(slots=True)
class Goto:
    """Going to a moment that has been; stop: what is told there, None: the run goes on from there."""

    count: int
    stop: Stop | None


@dataclass(slots=True)
class Search:
    """Looking for the last moment before `limit` at which a goal is met, from the snapshot at `first` on. best: found
    so far; stop: what is told there, None: what was met."""

    goal: Goal
    limit: int
    first: int
    best: int = 0
    stop: Stop | None = None


@dataclass(slots=True)
class Session:
    """What stays when the run goes back: the user's stops and settings. furthest: the last moment that was reached;
    front: whatever the front end keeps; trapped: the run has gone back from its trap; ending: what the trap said."""

    breakpoints: dict[int, Breakpoint] = field(default_factory=dict)
    number: int = 0
    furthest: int = 0
    front: dict[str, Any] = field(default_factory=dict)
    trapped: bool = False
    ending: str = ""
    stops_at_reports: bool = True


@dataclass(slots=True)
class Orders:
    """What a process that comes back to a moment is told."""

    session: Session
    task: Goto | Search
