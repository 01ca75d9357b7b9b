"""Selection of findings: `--select`, `--ignore`, and comments in the source."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from ptxtools.diagnostics import Diagnostic, Severity, Source, Span
from ptxtools.diagnostics.comments import comments_for, matches, silenced
from ptxtools.ir.nodes import Module

#: The rule of comments that silence nothing; and what looks like a code in them.
NEEDLESS = "PTX611"
_CODE = re.compile(r"all|(ptx|nvvm)\d+", re.IGNORECASE)
_UNDECLARED, _NO_END, _FOREIGN = "PTX201", "PTX102", "PTX101"
#: Errors behind which it is not clear in which function a statement is.
_OF_BRACES = frozenset({"PTX116", "PTX117", "PTX118", "PTX121"})
#: Errors of statements of which it is not clear what was meant.
_NOT_UNDERSTOOD = ("PTX1", "PTX2")
#: Rules that miss something: an end, a use, a write, a wait, a fence. Some of them look at the whole module.
_UNUSED = ("PTX513", "PTX514", "PTX523", "PTX527")
_LACKING = (
    "PTX510", "PTX511", "PTX512", "PTX520", "PTX521", "PTX522", "PTX534", "PTX56", "PTX57", "PTX59",
    *(f"PTX58{n}" for n in range(10) if n != 7), *_UNUSED,  # PTX587: what is there contradicts itself
)  # fmt: skip


def without_repeats(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Findings without those that walks through several kernels make in a function that all of them call: of these one
    stays, the same whatever the order."""
    walked = {_place(each) for each in found if each.help and each.help[0].startswith(_LEVELS)}
    if len(walked) < 2 and len(found) < 2:
        return list(found)
    best: dict[object, Diagnostic] = {}
    for each in found:
        place = _place(each)
        if place in walked:
            known = best.get(place)
            if known is None or (each.help, each.message) < (known.help, known.message):
                best[place] = each
    return [each for each in found if _place(each) not in walked or best[_place(each)] is each]


#: What the help of a finding begins with that walks of threads make.
_LEVELS = ("certain: ", "possible: ")


def _place(one: Diagnostic) -> object:
    return one.code, one.span, one.target


def chosen(diagnostics: Iterable[Diagnostic], select: Sequence[str], ignore: Sequence[str]) -> list[Diagnostic]:
    """The findings left by `--select` and `--ignore`; if both match a code, the longer prefix wins."""
    return [d for d in diagnostics if is_chosen(d.code, select, ignore)]


def is_chosen(code: str, select: Sequence[str], ignore: Sequence[str]) -> bool:
    """Whether `--select` and `--ignore` leave findings of a code."""
    wanted = max((_length(p) for p in select if matches(code, (p,))), default=0 if not select else -1)
    refused = max((_length(p) for p in ignore if matches(code, (p,))), default=-1)
    return wanted > refused


def _length(prefix: str) -> int:
    """The length of a prefix; 0 for "all"."""
    return 0 if prefix.upper() == "ALL" else len(prefix)


def suppressed(diagnostics: list[Diagnostic], source: Source | None, mark: str = "//") -> list[Diagnostic]:
    """The findings not silenced by a `// ptx-lint: disable=CODE` comment. mark: what a comment begins with."""
    if source is None or "ptx-lint:" not in source.text:
        return diagnostics
    lines, whole = silenced(source, "ptx-lint", mark)
    return [
        d
        for d in diagnostics
        if not matches(d.code, whole) and not matches(d.code, lines.get(d.line, ()))
    ]  # fmt: skip


def needless(
    found: Sequence[Diagnostic],
    source: Source | None,
    untold: Sequence[str],
    select: Sequence[str],
    ignore: Sequence[str],
) -> list[Diagnostic]:
    """Findings of PTX611 for comments that silence none of these. Codes that `select` and `ignore` leave out are not
    looked at, and none of rules that were not asked (`untold`)."""
    result: list[Diagnostic] = []
    for comment in comments_for(source, "ptx-lint") if source is not None and "ptx-lint:" in source.text else ():
        here = {d.code for d in found if comment.lines is None or d.line in comment.lines}
        idle = [
            code
            for code in comment.codes
            if _CODE.fullmatch(code)
            and not any(matches(one, (code,)) for one in here)
            and not any(matches(one, (code,)) or matches(code, (one,)) for one in untold)
            and (code.upper() == "ALL" or is_chosen(code, select, ignore))
        ]
        if idle and source is not None:
            message = f"nothing is found here that {' or '.join(idle)} would silence"
            fix = None
            if len(idle) == len(comment.codes):
                from ptxtools.check.edits import removed  # which files without such comments need not load

                fix = removed(source.text, comment.span, "remove the comment")
            result.append(
                Diagnostic(NEEDLESS, message, comment.span, source, Severity.WARNING, None, "4.2", (), None, fix)
            )
    return result


def without_echoes(findings: Iterable[Diagnostic], syntax: Sequence[Diagnostic], module: Module) -> list[Diagnostic]:
    """The findings without consequences of syntax errors: a declaration that could not be parsed leaves its names
    undeclared, and an unparsed label leaves its branches without a target; in a function's body, those of the function.
    If a comment hides the rest of a text, little is known about it. A foreign character in a comment or string damages
    nothing."""
    syntax = [d for d in syntax if not (d.code == _FOREIGN and d.subject)]
    if not syntax or syntax[0].source is None:
        return list(findings)
    if any(d.code == _NO_END and d.source and d.source.excerpt(d.span) == "/*" for d in syntax):
        return []
    source, bodies = syntax[0].source, [f.body.span for f in module.functions if f.body is not None]
    damaged: dict[Span | None, str] = {}
    for d in syntax:
        place = None if d.code in _OF_BRACES else _around(d, bodies)
        damaged[place] = " ".join([damaged.get(place, ""), *map(source.line, range(d.line - 1, d.line + 2))])
    everywhere = damaged.get(None, "")
    return [
        d
        for d in findings
        if d.code != _UNDECLARED or not _echo(d.subject, everywhere + damaged.get(_around(d, bodies), ""))
    ]


def _around(d: Diagnostic, bodies: Iterable[Span]) -> Span | None:
    """The body that a finding is in."""
    return next((span for span in bodies if span[0] < d.span[0] < span[1]), None)


def _echo(name: str, damaged: str) -> bool:
    """Whether the lines around syntax errors may have declared a name."""
    if not damaged:
        return False
    if not name.startswith("%"):
        return True
    return name in damaged or f"{name.rstrip('0123456789')}<" in damaged


def without_guesses(findings: Iterable[Diagnostic], syntax: Sequence[Diagnostic], module: Module) -> list[Diagnostic]:
    """The findings without warnings of what a function lacks, where a statement of it has an error: that may stand
    for what is missing, as while a line is typed."""
    findings = list(findings)
    errors = sorted(
        d.span[0] for d in (*syntax, *findings) if d.severity is Severity.ERROR and d.code.startswith(_NOT_UNDERSTOOD)
    )
    if not errors:
        return findings
    damaged = [
        function.span
        for function in module.functions
        if function.body is not None and bisect_left(errors, function.span[0]) < bisect_right(errors, function.span[1])
    ]
    if not damaged:
        return findings
    return [
        d for d in findings
        if not d.code.startswith(_LACKING)
        or (not d.code.startswith(_UNUSED) and not any(start <= d.span[0] <= end for start, end in damaged))
    ]  # fmt: skip
