"""Whether the declared version and target provide something, and what would (11.1.1, 11.1.2)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple, Protocol

from ptxtools.diagnostics import Requires
from ptxtools.isa import targets
from ptxtools.isa.targets import FIRST_VERSION, NEWEST, VERSIONS, provides, provides_any, version_text

Version = tuple[int, int]
#: A need reduced to what counts: the lowest version, and targets of which one suffices (empty: any).
Demand = tuple[Version, tuple[str, ...]]


class AnyNeed(Protocol):
    @property
    def ptx(self) -> Version: ...
    @property
    def targets(self) -> tuple[str, ...]: ...


class Lack(NamedTuple):
    """What the declared version or target does not provide. `version`: the version is too low, else the target."""

    version: bool
    message: str
    requires: Requires


class Declared(NamedTuple):
    """What the module declares, or is `forced` to by the caller. `target` is "" when it is missing or unknown,
    version (0, 0) likewise."""

    version: Version
    target: str
    forced: bool = False

    def __str__(self) -> str:
        what = [f"PTX {version_text(self.version)}"] if self.version != (0, 0) else []
        what += [self.target] if self.target else []
        return f"{'checked as' if self.forced else 'the module declares'} {', '.join(what)}"


def lack(subject: str, needs: Iterable[AnyNeed], declared: Declared) -> Lack | None:
    """What keeps `subject` from being valid for the declared version and target, or None when nothing does."""
    demands = tuple((need.ptx, need.targets) for need in needs)
    too_old = [ptx for ptx, _ in demands if declared.version != (0, 0) and declared.version < ptx]
    refused = [names for _, names in demands if declared.target and not provides_any(declared.target, names)]
    if not too_old and not refused:
        return None
    wanted = [f"PTX {version_text(max(too_old))}"] if too_old else []
    wanted += [targets.describe(names) for names in dict.fromkeys(refused)]
    message = f"{subject} needs {' and '.join(wanted)} ({declared})"
    return Lack(bool(too_old), message, requirement(demands, declared.version))


@lru_cache(maxsize=1024)
def requirement(demands: tuple[Demand, ...], declared: Version) -> Requires:
    """The lowest version at which some target meets all demands, and the lowest such targets at the higher of that
    and the declared version."""
    lowest = max((ptx for ptx, _ in demands), default=VERSIONS[0])
    able = {
        name: max(first, lowest)
        for name, first in FIRST_VERSION.items()
        if all(provides_any(name, wanted) for _, wanted in demands)
    }
    if not able:
        return Requires(version_text(lowest), tuple(dict.fromkeys(n for _, names in demands for n in names)))
    version = min(able.values())
    at = max(version, min(declared, NEWEST))
    return Requires(version_text(version), lowest_targets(name for name, first in able.items() if first <= at))


def lowest_targets(names: Iterable[str]) -> tuple[str, ...]:
    """The fewest targets that stand for all of `names`: the lowest plain one, then families and single chips that
    it does not cover."""
    kept: list[str] = []
    known = sorted(names, key=_number)
    for suffix in ("", "f", "a"):
        for name in (n for n in known if _suffix(n) == suffix):
            if not any(provides(name, other) for other in kept):
                kept.append(name)
    return tuple(kept)


def _suffix(name: str) -> str:
    return name[-1] if name[-1] in "af" else ""


def _number(name: str) -> int:
    return int(name[3:].rstrip("af"))
