"""Whether the declared version and target provide a feature, and which ones do (11.1.1, 11.1.2)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol

from ptxtools.diagnostics import Requires
from ptxtools.isa import targets
from ptxtools.isa.targets import DOUBLES, FIRST_VERSION, NEWEST, VERSIONS, provides, provides_any, version_text
from ptxtools.records import NamedTuple

Version = tuple[int, int]
_NEVER: Version = (NEWEST[0] + 1, 0)


class AnyNeed(Protocol):
    @property
    def ptx(self) -> Version: ...
    @property
    def targets(self) -> tuple[str, ...]: ...
    @property
    def late(self) -> tuple[tuple[str, Version], ...]: ...


class Demand(NamedTuple):
    """A need in reduced form: the lowest version, and alternative targets (empty: any), some of them only from a later
    version on."""

    ptx: Version
    targets: tuple[str, ...] = ()
    late: tuple[tuple[str, Version], ...] = ()

    def since(self, target: str) -> Version:
        """The first version at which a target that meets the demand does so."""
        if not self.late:
            return self.ptx
        late = dict(self.late)
        return min((late.get(name, self.ptx) for name in self.targets if provides(target, name)), default=self.ptx)


def demands_of(needs: Iterable[AnyNeed]) -> tuple[Demand, ...]:
    """The different demands of some needs."""
    return tuple(dict.fromkeys(Demand(need.ptx, need.targets, need.late) for need in needs))


class Lack(NamedTuple):
    """A feature that the declared version or target lacks. `version`: the version is too low, else the target."""

    version: bool
    message: str
    requires: Requires


class Declared(NamedTuple):
    """The module's declarations, or those `forced` by the caller. `target` is "" if missing or unknown, version (0, 0)
    likewise. doubles: .target has map_f64_to_f32, with which every target accepts double precision."""

    version: Version
    target: str
    forced: bool = False
    doubles: bool = False

    def provides(self, demand: Demand) -> bool:
        """Whether the target meets the demand, regardless of the version."""
        return provides_any(self.target, demand.targets) or (self.doubles and demand.targets == (DOUBLES,))

    def __str__(self) -> str:
        what = [f"PTX {version_text(self.version)}"] if self.version != (0, 0) else []
        what += [self.target] if self.target else []
        return f"{'checked as' if self.forced else 'the module declares'} {', '.join(what)}"


def lack(subject: str, needs: Iterable[AnyNeed], declared: Declared) -> Lack | None:
    """Why `subject` is invalid for the declared version and target, or None if it is valid."""
    version, target = declared.version, declared.target
    demands = demands_of(needs)
    first = [demand.since(target) if target else demand.ptx for demand in demands]
    too_old = [ptx for ptx in first if version != (0, 0) and version < ptx]
    refused = [demand.targets for demand in demands if target and not declared.provides(demand)]
    if not too_old and not refused:
        return None
    late = f" for {target}" if too_old and max(too_old) > max(demand.ptx for demand in demands) else ""
    wanted = [f"PTX {version_text(max(too_old))}{late}"] if too_old else []
    wanted += [targets.describe(names) for names in dict.fromkeys(refused)]
    message = f"{subject} needs {' and '.join(wanted)} ({declared})"
    return Lack(bool(too_old), message, requirement(demands, version))


def is_gone(need: AnyNeed, version: Version, target: str) -> bool:
    """Whether a feature removed as in `need` is gone; for an unknown target, only if it is gone everywhere."""
    return version >= need.ptx and (not need.targets or (bool(target) and provides_any(target, need.targets)))


@lru_cache(maxsize=1024)
def requirement(demands: tuple[Demand, ...], declared: Version, gone: tuple[Demand, ...] = ()) -> Requires:
    """The lowest version at which some target meets all demands, and the lowest such targets at the higher of this and
    the declared version. gone: features in use, and the versions and targets that removed them.

    If the demands conflict, no target meets them all: then every target named by a demand is listed.
    """
    able = able_targets(demands, gone)
    if not able:
        lowest = max((demand.ptx for demand in demands), default=VERSIONS[0])
        return Requires(version_text(lowest), tuple(dict.fromkeys(n for demand in demands for n in demand.targets)))
    version = min(able.values())
    at = max(version, min(declared, NEWEST))
    return Requires(version_text(version), lowest_targets(name for name, first in able.items() if first <= at))


def able_targets(demands: tuple[Demand, ...], gone: tuple[Demand, ...] = ()) -> dict[str, Version]:
    """The targets that meet all demands, each with the first version at which it does."""
    able = {
        name: max((first, *(demand.since(name) for demand in demands)))
        for name, first in FIRST_VERSION.items()
        if all(provides_any(name, demand.targets) for demand in demands)
    }
    return {name: first for name, first in able.items() if first < _end(name, gone)} if gone else able


def _end(target: str, gone: Iterable[Demand]) -> Version:
    """The version from which on `target` lacks something of `gone`."""
    return min((removal.ptx for removal in gone if provides_any(target, removal.targets)), default=_NEVER)


def lowest_targets(names: Iterable[str]) -> tuple[str, ...]:
    """The fewest targets that imply all of `names`: the lowest plain one, then families and single chips that it does
    not cover."""
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
