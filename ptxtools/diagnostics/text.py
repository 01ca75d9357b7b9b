"""A finding as text: the head line, the source line with a caret range, the notes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .colour import PLAIN, Style
from .diagnostic import Diagnostic, Requires, Severity, shown
from .source import Span

#: The longest part of a source line to show; longer lines are cut around the caret.
_WIDTH = 160
#: Mangled names in a message, and how many of them are explained.
_MANGLED = re.compile(r"(?<=')_[ZR][A-Za-z0-9_$.]+(?=')")
_MOST_NAMES = 4
_MARGIN = 40
_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "blue"}


def render(diagnostic: Diagnostic, style: Style = PLAIN) -> str:
    """The finding as `file:line:column: severity: message [CODE]`, source line, carets and notes; no final newline."""
    d = diagnostic
    where = printable(f"{d.file}:{d.line}:{d.column}:")
    severity = style.paint(f"{d.severity.value}:", _COLOURS[d.severity])
    message = printable(headline(d))
    lines = [f"{style.paint(where, 'bold')} {severity} {style.paint(message, 'bold')} [{d.code}]"]
    lines.extend(_excerpt(d, style))
    lines.extend(f"  {style.paint(head, 'cyan')} {printable(text)}" for head, text in notes(d))
    return "\n".join(lines)


def headline(diagnostic: Diagnostic) -> str:
    """The message, with the finding's target if there are several."""
    return diagnostic.message + (f" (target {diagnostic.target})" if diagnostic.target else "")


def notes(diagnostic: Diagnostic) -> Iterable[tuple[str, str]]:
    """The notes below a finding, each as (head, text): its source, demangled names of the message, help."""
    if diagnostic.origin is not None:
        yield "source:", str(diagnostic.origin)
        for text in diagnostic.origin.calls():
            yield "       ", text
    for name in dict.fromkeys(_MANGLED.findall(diagnostic.message)[:_MOST_NAMES]):
        if shown(name) != name:
            yield "name:", f"{name} is {shown(name)}"
    for text in diagnostic.help:
        yield "help:", text
    if diagnostic.requires is not None:
        yield "requires:", describe_requires(diagnostic.requires)
    if diagnostic.section is not None:
        manual = "NVVM IR specification" if diagnostic.code.startswith("NVVM") else "PTX ISA"
        yield "see:", f"{manual} {diagnostic.section}"


def describe_requires(requires: Requires) -> str:
    """Such as "PTX ISA 8.0 or later, target sm_90 or later"; alternative targets are joined by "or"."""
    parts = [f"PTX ISA {requires.ptx} or later"] if requires.ptx else []
    if requires.targets:
        parts.append("target " + join_words([describe_target(t) for t in requires.targets], "or"))
    return ", ".join(parts) or "no known version or target"


def describe_target(target: str) -> str:
    """`sm_90` means that or later, `sm_100f` its family from there on, `sm_90a` itself."""
    if target.endswith("a"):
        return target
    if target.endswith("f"):
        return f"{target} or later in its family"
    return f"{target} or later"


def join_words(words: Sequence[str], last: str) -> str:
    """ "a", "a or b", "a, b or c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def printable(text: str) -> str:
    """`text` without terminal control characters: a tab becomes a space, others `?`."""
    if text.isprintable():
        return text
    return "".join(map(_printable, text))


def _printable(char: str) -> str:
    return char if char.isprintable() else " " if char == "\t" else "\ufffd" if char > "\x7f" else "?"


def _excerpt(d: Diagnostic, style: Style) -> list[str]:
    if d.source is None or not d.source.text:
        return []
    text, (begin, stop) = d.source.text, d.source.real_span(d.span)
    first, last = text.rfind("\n", 0, begin) + 1, text.find("\n", begin)
    last = len(text) if last < 0 else last
    last -= text[first:last].endswith("\r")
    line, start, end = _cut(text, (first, last), min(begin, last), min(max(stop, begin + 1), last))
    if not line.strip():
        return []
    shown = "".join(c if c == "\t" else printable(c) for c in line)
    lead = "".join("\t" if c == "\t" else " " * _cells(c) for c in shown[:start])
    marked = shown[start:end] if stop <= last else shown[start:].rstrip()
    carets = "^" * max(1, sum(_cells(c) for c in marked))
    return [f"    {shown}", f"    {lead}{style.paint(carets, 'green')}"]


def _cut(text: str, line: Span, start: int, end: int) -> tuple[str, int, int]:
    """At most `_WIDTH` characters of a line around the range, and the range within them. The line may have
    megabytes."""
    first, last = line
    if last - first <= _WIDTH:
        return text[first:last], start - first, end - first
    left = max(first, start - _MARGIN)
    right = min(last, left + _WIDTH)
    head = "…" if left > first else ""
    shift = len(head) - left
    shown = head + text[left:right] + ("…" if right < last else "")
    return shown, start + shift, min(end, right) + shift


def _cells(char: str) -> int:
    """The number of terminal cells of a character: 2 for wide East Asian ones."""
    if char < "\u1100":
        return 1
    from unicodedata import combining, east_asian_width

    return 0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1
