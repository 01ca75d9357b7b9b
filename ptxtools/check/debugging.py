"""What debugging directives need (11.5)."""

from __future__ import annotations

from ptxtools.ir.nodes import DataLine, File, Section

from .context import Context

_KIND = "a {} in a debug section"


def check_debugging(context: Context, item: File | Section) -> None:
    """The version that a `.file` or `.section` needs; of a section, each kind of addition is named once."""
    if isinstance(item, File):
        if item.timestamp is not None:
            context.require_addition("a time stamp in .file", item.span)
        return
    if not context.require_directive(".section", context.word(item.span, ".section")):
        return
    seen: set[str] = set()
    for line in item.lines:
        for subject, word in _additions(line):
            if subject not in seen:
                seen.add(subject)
                context.require_addition(subject, context.word(item.span, word))


def _additions(line: DataLine) -> list[tuple[str, str]]:
    """What a line has that sections had not from the start, each with a word of it."""
    if line.type == "label":
        return [(_KIND.format("label"), str(line.values[0]))]
    found = [(".b16 in a debug section", ".b16")] if line.type == "b16" else []
    for value in line.values:
        if isinstance(value, int):
            if value < 0:
                found.append((_KIND.format("negative number"), str(value)))
        elif "-" in value:
            found.append((_KIND.format("difference of labels"), value.partition("-")[0]))
        elif "+" in value:
            found.append((_KIND.format("label with an offset"), value.partition("+")[0]))
    return found
