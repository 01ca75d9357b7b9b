"""Whether ptx-lint says what ptxas said."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ptxtools.check import check
from ptxtools.diagnostics import Diagnostic, Severity
from ptxtools.isa.targets import provides
from ptxtools.syntax import parse

from .record import Record
from .setting import LINES, MODULE, header, module_of

#: Probes of one module: few enough that no limit on findings is met.
_BATCH = 150


#: Mistakes in directives, which ptxas notices at the token behind: it may stand on the next line.
_BY_NEXT_TOKEN = re.compile(r"PTX(100|108|202|40.|41.|301)")


#: A brace too few or too many: where a scope ends, and so what is named first, is anybody's guess.
_UNBALANCED = frozenset({"PTX116", "PTX117"})
#: What ptxas notices at the end of the module, whatever the line: what is not defined.
_AT_THE_END = frozenset({"PTX440"})
#: What it may notice after it has read the module: types that cannot be passed.
_AFTER_READING = frozenset({"PTX422", "PTX430"})


class Deviation(NamedTuple):
    """A reviewed difference: regular expressions for topic, probe, setting and our verdict, and the reason."""

    topic: re.Pattern[str]
    text: re.Pattern[str]
    setting: re.Pattern[str]
    verdict: re.Pattern[str]
    reason: str

    def covers(self, difference: Difference) -> bool:
        record = difference.record
        return (
            self.verdict.fullmatch(difference.verdict) is not None
            and self.topic.fullmatch(record.topic) is not None
            and self.setting.fullmatch(record.setting) is not None
            and self.text.fullmatch(record.text) is not None
        )


class Difference(NamedTuple):
    """A probe that we judge otherwise. ours: accepted; None: another requirement is named. said: our findings."""

    record: Record
    ours: bool | None
    said: tuple[Diagnostic, ...]

    @property
    def verdict(self) -> str:
        """What we say: "accept", or the code of the first finding."""
        return self.said[0].code if self.said else "accept"

    def __str__(self) -> str:
        theirs = "accepts" if self.record.accepted else f"refuses ({self.record.requires})"
        what = "; ".join(f"{d.code} {d.message}" for d in self.said) or "nothing"
        return f"{self.record.setting} {self.record.topic}: {self.record.text}\n    ptxas {theirs}, ours: {what}"


def deviations(folder: Path) -> list[Deviation]:
    """The reviewed lists: tab-separated topic, probe, setting, our verdict ("accept", "PTX221", …), reason."""
    found = []
    for path in sorted(folder.glob("*.tsv")):
        for line in path.read_text().splitlines():
            if line and not line.startswith("#"):
                topic, text, setting, verdict, reason = line.split("\t")
                patterns = [re.compile(pattern, re.DOTALL) for pattern in (topic, text, setting, verdict)]
                found.append(Deviation(*patterns, reason))
    return found


def findings(setting: str, place: str, probes: Sequence[str]) -> list[list[Diagnostic]]:
    """The error findings of each probe."""
    lines, first = module_of(setting, place, list(probes))
    result = parse("\n".join(lines))
    said: list[list[Diagnostic]] = [[] for _ in probes]
    for diagnostic in [*result.diagnostics, *check(result.module)]:
        if diagnostic.severity is Severity.ERROR:
            at = 0 if place in (MODULE, LINES) else diagnostic.line - 1 - first
            said[min(max(at, 0), len(said) - 1)].append(diagnostic)
    return said


def tolerated(records: Iterable[Record]) -> int:
    """Of how many probes ptx-lint warns that the manual does not have them (PTX610)."""
    count = 0
    for setting, place, part in _together(records):
        lines, first = module_of(setting, place, [record.text for record in part])
        warned = {d.line for d in check(parse("\n".join(lines)).module) if d.severity is Severity.WARNING}
        count += bool(warned) if place in (MODULE, LINES) else sum(first < line <= first + len(part) for line in warned)
    return count


def _together(records: Iterable[Record]) -> Iterator[tuple[str, str, list[Record]]]:
    """The setting, the place and the probes of each module that probes share; without those that ptxas crashed on."""
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        if not record.crashed:
            groups[record.setting, record.place].append(record)
    for (setting, place), members in groups.items():
        size = 1 if place in (MODULE, LINES) else _BATCH
        for start in range(0, len(members), size):
            yield setting, place, members[start : start + size]


def differences(records: Iterable[Record]) -> Iterator[Difference]:
    """Every record on which ptx-lint and ptxas differ. Probes share modules; what differs is tried again alone."""
    for setting, place, part in _together(records):
        for record, said in zip(part, findings(setting, place, [r.text for r in part]), strict=True):
            if not _agrees(record, said) and not _agrees(record, said := findings(setting, place, [record.text])[0]):
                yield Difference(record, None if not record.accepted and said else not said, tuple(said))


def _agrees(record: Record, said: list[Diagnostic]) -> bool:
    if record.accepted or not said:
        return record.accepted == (not said)
    if record.place == LINES:
        before = 0 if record.text.startswith(".version") else len(header(record.setting))
        if not record.requires or any(d.code in _UNBALANCED for d in said):
            return True
        return int(record.requires[1:]) in {line - before for line in _first_lines(said)}
    only_lacks = all(diagnostic.requires is not None for diagnostic in said)
    return not record.requires or not only_lacks or _names(record.requires, said)


def _first_lines(said: list[Diagnostic]) -> set[int]:
    """The lines that ptxas may name first."""
    lines = set()
    for later in (_AT_THE_END, _AT_THE_END | _AFTER_READING):
        first = min([d for d in said if d.code not in later] or said, key=lambda d: d.line)
        lines |= {first.line, first.line + 1} if _BY_NEXT_TOKEN.fullmatch(first.code) else {first.line}
    return lines


def _names(requires: str, said: list[Diagnostic]) -> bool:
    """Whether what ptxas names follows from what a finding demands. ptxas names the first things that it misses, a
    finding all; the exact boundaries are probes of their own."""
    words = requires.split()
    targets = [word for word in words if word.startswith("sm_")]
    for diagnostic in said:
        ours = diagnostic.requires
        if ours is None or (targets != words and _number(ours.ptx) < _number(words[0])):
            continue
        # `sm_100f` and `sm_100a` stand above every plain target that is not newer.
        if all(provides(have, want.rstrip("af")) for want in targets for have in ours.targets):
            return True
    return False


def _number(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))
