"""`--requirements`: the lowest version and targets that accept a module, and the lines that require them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ptxtools.check import errors_of, gather
from ptxtools.check.availability import Demand, able_targets, demands_of, requirement
from ptxtools.check.context import Gathered
from ptxtools.diagnostics import Diagnostic, Requires, Severity, Source, Span
from ptxtools.diagnostics.shorten import line_around
from ptxtools.diagnostics.text import describe_target, join_words, printable
from ptxtools.ir.nodes import Module
from ptxtools.isa.targets import FIRST_VERSION, VERSIONS, provides_any, version_text
from ptxtools.records import dataclass

#: The rule name for requirements in machine-readable formats, and its title.
RULE, TITLE = "requirements", "lowest version and targets"
#: Errors in the headers themselves, which say nothing about the needs of the rest of the module.
_HEADER_CODES = frozenset({"PTX303", "PTX304", "PTX305"})


@dataclass(frozen=True, slots=True)
class Cause:
    """A line that requires a version, targets, or both (else None, ()); or, among removals, a line with a feature that
    is gone from that version on for those targets (None: "1.0", (): all of them)."""

    line: int
    text: str
    ptx: str | None
    targets: tuple[str, ...]
    subject: str
    span: Span

    def to_json(self) -> dict[str, Any]:
        return {"line": self.line, "text": self.text, "ptx": self.ptx, "targets": list(self.targets)}

    def needs(self) -> str:
        """Such as "PTX 7.8, sm_90 or later"."""
        return ", ".join(
            [*([f"PTX {self.ptx}"] if self.ptx else []), *([_any_of(self.targets)] if self.targets else [])]
        )

    def gone(self) -> str:
        """Such as "not from PTX 6.4 on for sm_70 or later"."""
        return f"not{f' from PTX {self.ptx} on' if self.ptx else ''}{_for(self.targets)}"


@dataclass(frozen=True, slots=True)
class Requirements:
    """The requirements of one module. lowest: without targets if no known target has everything. because: the lines
    that force this; removed: the lines with features that later versions or targets lack."""

    file: str
    declared_ptx: str | None
    declared_target: str | None
    lowest: Requires
    because: tuple[Cause, ...]
    removed: tuple[Cause, ...]
    source: Source

    def to_json(self) -> dict[str, Any]:
        """The object that `--requirements --format json` prints; "removed" is present if something was."""
        found: dict[str, Any] = {
            "file": self.file,
            "declared": {"ptx": self.declared_ptx, "target": self.declared_target},
            "lowest": {"ptx": self.lowest.ptx, "targets": list(self.lowest.targets)},
            "because": [cause.to_json() for cause in self.because],
        }
        if self.removed:
            found["removed"] = [cause.to_json() for cause in self.removed]
        return found

    def summary(self) -> str:
        """Such as "needs PTX 7.8, sm_90 or later (declares 8.0, sm_90a)"."""
        limits = "".join(f", {text}" for text in dict.fromkeys(cause.gone() for cause in self.removed))
        declared = f"(declares {self.declared_ptx or 'no version'}, {self.declared_target or 'no target'})"
        if not self.lowest.targets:
            return f"needs PTX {self.lowest.ptx}, but no known target provides all of it{limits} {declared}"
        return f"needs PTX {self.lowest.ptx}, {_any_of(self.lowest.targets)}{limits} {declared}"

    def to_text(self) -> str:
        """The summary, and a line for each cause; causes of one kind are counted."""
        lines = [f"{self.file}: {self.summary()}"]
        for causes, describe in ((self.because, Cause.needs), (self.removed, Cause.gone)):
            alike: dict[tuple[str, str], list[Cause]] = {}
            for cause in causes:
                alike.setdefault((cause.subject, describe(cause)), []).append(cause)
            for (_, what), found in alike.items():
                lines.append(f"  {_where(found)}: {printable(found[0].text)}  ({what})")
        return "\n".join(lines)

    def notes(self) -> list[Diagnostic]:
        """The summary and the causes as findings, for formats that only have findings."""
        head = next((cause.span for cause in self.because), (0, 0))
        found = [self._note(self.summary(), head)]
        found += [self._note(f"{cause.subject} needs {cause.needs()}", cause.span) for cause in self.because]
        return found + [self._note(f"{cause.subject}: {cause.gone()}", cause.span) for cause in self.removed]

    def _note(self, message: str, span: Span) -> Diagnostic:
        return Diagnostic(RULE, message, span, self.source, Severity.NOTE)


def requirements(module: Module, name: str) -> Requirements:
    """The requirements of a module without errors."""
    gathered = gather(module)
    demands = demands_of(need for item in gathered for need in item.needs)
    gone = demands_of(need for item in gathered for need in item.gone)
    if able_targets(demands, gone):
        lowest = requirement(demands, (0, 0), gone)
    else:
        lowest = Requires(version_text(max((demand.ptx for demand in demands), default=VERSIONS[0])), ())
    version = module.version
    return Requirements(
        name,
        version_text(version) if version != (0, 0) else None,
        module.target or None,
        lowest,
        _because(module, gathered, lowest, _strongest(demands)),
        _removed(module, gathered),
        module.source or Source("", name),
    )


def remaining_errors(module: Module, needs: Requirements) -> list[Diagnostic]:
    """The errors that remain at the lowest version and target: no other header would fix them."""
    assert needs.lowest.ptx is not None
    major, minor = needs.lowest.ptx.split(".")
    if not needs.lowest.targets:
        return [d for d in errors_of(module) if not d.code.startswith("PTX3")]
    errors = errors_of(module, target=needs.lowest.targets[0], version=(int(major), int(minor)))
    return [d for d in errors if d.code not in _HEADER_CODES]


def _strongest(demands: tuple[Demand, ...]) -> frozenset[tuple[str, ...]]:
    """The demands for targets that exclude some target and are not implied by another demand."""
    wishes = {demand.targets for demand in demands}
    reach = {wanted: frozenset(n for n in FIRST_VERSION if provides_any(n, wanted)) for wanted in wishes}
    return frozenset(
        wanted
        for wanted, able in reach.items()
        if len(able) < len(FIRST_VERSION) and not any(other < able for other in reach.values())
    )


def _because(
    module: Module, gathered: list[Gathered], lowest: Requires, strongest: frozenset[tuple[str, ...]]
) -> tuple[Cause, ...]:
    assert lowest.ptx is not None
    at = VERSIONS[[version_text(v) for v in VERSIONS].index(lowest.ptx)]
    causes: list[Cause] = []
    for item in gathered:
        own = requirement(demands_of(item.needs), at)
        ptx = own.ptx if own.ptx == lowest.ptx and at > VERSIONS[0] else None
        forcing = any(need.targets in strongest for need in item.needs)
        if ptx or forcing:
            causes.append(_cause(module, item, ptx, own.targets if forcing else ()))
    return _sorted(causes)


def _removed(module: Module, gathered: list[Gathered]) -> tuple[Cause, ...]:
    return _sorted(
        _cause(module, item, version_text(need.ptx) if need.ptx > VERSIONS[0] else None, need.targets)
        for item in gathered
        for need in item.gone
    )


def _cause(module: Module, item: Gathered, ptx: str | None, targets: tuple[str, ...]) -> Cause:
    source = module.source
    if source is None:
        return Cause(1, "", ptx, targets, item.subject, item.span)
    line, column = source.position(item.span[0])
    text = line_around(source.line(line), column - 1).strip()
    return Cause(line, text, ptx, targets, item.subject, item.span)


def _sorted(causes: Iterable[Cause]) -> tuple[Cause, ...]:
    """In line order, without repetitions on a line."""
    unique = {(c.line, c.ptx, c.targets): c for c in reversed(list(causes))}
    return tuple(sorted(unique.values(), key=lambda cause: cause.line))


def _where(causes: list[Cause]) -> str:
    """Such as "line 7", "lines 7, 8 and 9", "line 7 and 12 similar ones"."""
    numbers = [str(cause.line) for cause in causes]
    if len(numbers) > 4:
        return f"line {numbers[0]} and {len(numbers) - 1} similar ones"
    return f"line{'s' if len(numbers) > 1 else ''} {join_words(numbers, 'and')}"


def _any_of(targets: tuple[str, ...]) -> str:
    return join_words([describe_target(target) for target in targets], "or")


def _for(targets: tuple[str, ...]) -> str:
    return f" for {_any_of(targets)}" if targets else ""
