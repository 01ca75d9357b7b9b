"""Comments that silence findings: `// ptx-lint: disable=CODE`, `// ptx-run: disable=CHECKER`, and `disable-file`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ptxtools.records import NamedTuple

from .kinds import CHECKERS

if TYPE_CHECKING:
    from .findings import Finding
    from .source import Source


class Comment(NamedTuple):
    """A comment that silences findings. span: without what follows the codes; lines: those that it is for, all if it is
    for the whole file."""

    span: tuple[int, int]
    codes: list[str]
    lines: tuple[int, ...] | None


def matches(code: str, prefixes: Iterable[str]) -> bool:
    """Whether a code is one of `prefixes`, or begins with one, in either case; "all" matches everything."""
    return any(prefix == "ALL" or code.upper().startswith(prefix) for prefix in map(str.upper, prefixes))


def silenced(source: Source, tool: str, mark: str = "//") -> tuple[dict[int, list[str]], list[str]]:
    """What comments for a tool silence on each line, and in the whole file. A comment on a line of its own is for the
    line below it. mark: what a comment begins with."""
    lines: dict[int, list[str]] = {}
    whole: list[str] = []
    for comment in comments_for(source, tool, mark):
        if comment.lines is None:
            whole.extend(comment.codes)
        for number in comment.lines or ():
            lines.setdefault(number, []).extend(comment.codes)
    return lines, whole


def comments_for(source: Source, tool: str, mark: str = "//") -> Iterator[Comment]:
    """The comments that silence findings of a tool."""
    for found in re.finditer(rf"{mark}\s*{tool}:\s*(disable|disable-file)\s*=\s*([\w, \t]+)", source.text):
        codes = [code for code in re.split(r"[,\s]+", found[2]) if code]
        span = found.start(), found.start() + len(found[0].rstrip())
        if found[1] == "disable-file":
            yield Comment(span, codes, None)
            continue
        number = source.line_of(found.start())
        alone = not source.line(number).partition(mark)[0].strip()
        yield Comment(span, codes, (number, _next_line(source, number, mark)) if alone else (number,))


def heard(findings: Iterable[Finding], source: Source | None) -> list[Finding]:
    """The checkers' findings that no comment silences: on their line, or on one of those that they name with it."""
    found = list(findings)
    if source is None or "ptx-run:" not in source.text:
        return found
    lines, whole = silenced(source, "ptx-run")

    def is_heard(finding: Finding) -> bool:
        places = [finding.line, *(other.line for other in finding.others)]
        codes = [code for line in places if line is not None for code in lines.get(line, ())]
        return not matches(finding.checker, [*whole, *codes])

    return [finding for finding in found if is_heard(finding)]


_RUN = re.compile(r"//[ \t]*ptx-run[ \t]*:[ \t]*disable(?:-file)?\b([ \t]*=[ \t]*)?([\w, \t]*)")


def idle_for_checkers(source: Source) -> Iterator[tuple[tuple[int, int], str]]:
    """Spans of `ptx-run: disable` comments that name what is no checker, or nothing, and why they are without effect.
    Words behind a name may say why it is there."""
    if "ptx-run" not in source.text:
        return
    for found in _RUN.finditer(source.text):
        named = [part.split() for part in found[2].split(",")]
        words = [word for part in named for place, word in enumerate(part) if not place or word.endswith("check")]
        span = found.start(), found.start() + len(found[0].rstrip())
        if found[1] is None or not words:
            yield span, f"it names no checker, such as disable={CHECKERS[0]}"
        elif unknown := [word for word in words if not any(matches(name, (word,)) for name in CHECKERS)]:
            yield span, f"no checker is called {unknown[0]}: {', '.join(CHECKERS)}, or all"


def _next_line(source: Source, number: int, mark: str) -> int:
    """The next line with something other than a comment."""
    last = source.line_of(len(source.text))
    while number < last:
        number += 1
        if source.line(number).partition(mark)[0].strip():
            break
    return number
