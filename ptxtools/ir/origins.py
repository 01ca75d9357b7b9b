"""Map PTX locations to the source they were generated from, by `.loc`, `.file` and `.debug_str` (11.5).

A `.loc` holds for what follows it in its function, up to the next one. One with `inlined_at` was generated from an
inlined function: the location of the call is an earlier `.loc`, which may itself be inlined.

Computed only for reports: runs and checks without a report do not need it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property

from ptxtools.diagnostics import Diagnostic
from ptxtools.diagnostics.origin import Origin

from .nodes import File, Function, Loc, Module, Scope, Section
from .sections import section_image, section_labels

#: Steps of inlining that are followed: compilers make a few dozen at most.
_MOST_STEPS = 64


def origins_of(module: Module) -> Origins | None:
    """The sources of a module's lines, or None if it names no source file, or was put together of several texts."""
    if module.source is not None and module.source.joined:
        return None
    return Origins(module) if any(isinstance(item, File) for item in module.items) else None


def add_origins(findings: Iterable[Diagnostic], module: Module) -> None:
    """Add the source locations of their lines to findings in a module's text."""
    findings = [finding for finding in findings if finding.origin is None]
    origins = origins_of(module) if findings else None
    if origins is not None:
        for finding in findings:
            finding.origin = origins.find(finding.span[0])


class Origins:
    """The sources of one module's lines, by offsets in its text."""

    def __init__(self, module: Module) -> None:
        self._files: dict[int, str] = {}
        self._sections: list[Section] = []
        self._starts: list[int] = []  # from there on …
        self._locs: list[tuple[Loc | None, str]] = []  # … this one holds, in that function
        self._numbers: dict[tuple[str, int, int, int], list[int]] = {}  # of the `.loc` with a place in a function
        for item in module.items:
            self._add(item.span[0], None, "")
            if isinstance(item, File):
                self._files.setdefault(item.index, item.name)
            elif isinstance(item, Section):
                self._sections.append(item)
            elif isinstance(item, Function) and item.body is not None:
                for loc in _locs_of(item.body):
                    self._numbers.setdefault((item.name, loc.file, loc.line, loc.column), []).append(len(self._starts))
                    self._add(loc.span[0], loc, item.name)

    def _add(self, start: int, loc: Loc | None, function: str) -> None:
        self._starts.append(start)
        self._locs.append((loc, function))

    def find(self, offset: int) -> Origin | None:
        """The source location of the statement at an offset; None without a `.loc`.

        Line 0 marks code without a source line: the location it was inlined into is used instead.
        """
        found: Origin | None = None
        for loc, function in reversed(self._steps(bisect_right(self._starts, offset) - 1)):
            if loc.line:
                name = self._files.get(loc.file, f"<file {loc.file}>")
                found = Origin(name, loc.line, loc.column, function, found)
        return found

    def _steps(self, at: int) -> list[tuple[Loc, str]]:
        """The `.loc` with this number and its function, then what it is inlined at, and so on."""
        steps: list[tuple[Loc, str]] = []
        while at >= 0 and len(steps) < _MOST_STEPS:
            loc, owner = self._locs[at]
            if loc is None:
                break
            if loc.inlined_at is None:
                steps.append((loc, owner))
                break
            steps.append((loc, self._string(loc)))
            earlier = self._numbers.get((owner, *loc.inlined_at), [])
            before = bisect_left(earlier, at) - 1
            if before < 0:  # no `.loc` has the place: it is told itself, as far as it is known
                steps.append((Loc(*loc.inlined_at), ""))
                break
            at = earlier[before]
        return steps

    def _string(self, loc: Loc) -> str:
        """The name of the function that a `.loc` says it is in; "" if it says none."""
        label = loc.function_name or ""
        for labels, data in self._images:
            if label in labels:
                return data[labels[label] + loc.function_offset :].partition(b"\0")[0].decode("utf-8", "replace")
        return ""

    @cached_property
    def _images(self) -> list[tuple[dict[str, int], bytes]]:
        """Labels and content of the sections."""
        return [(section_labels([section]), section_image(section, lambda _: 0)) for section in self._sections]


def _locs_of(scope: Scope) -> Iterator[Loc]:
    for item in scope.items:
        if isinstance(item, Loc):
            yield item
        elif isinstance(item, Scope):
            yield from _locs_of(item)
