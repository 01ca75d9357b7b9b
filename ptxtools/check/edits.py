"""What the fixes of warning rules are made of: edits of one statement, which keep what stands around and between them.

A rule offers a fix where one answer is right and the module means the same with it, or what the finding says it was to
mean. Where the text is not what the tree says, as with an opcode that comments divide, there is none.
"""

from __future__ import annotations

from ptxtools.diagnostics import Fix, Span
from ptxtools.ir.nodes import Instruction
from ptxtools.ir.positions import parts_of
from ptxtools.isa import OpcodeError, resolve, slack


def joined(text: str, title: str, *changes: tuple[Span, str]) -> Fix:
    """One edit that makes several replacements, in the order of the text."""
    (start, at), new = changes[0]
    for (begin, end), more in changes[1:]:
        new += text[at:begin] + more
        at = end
    return Fix((start, at), new, title)


def rewritten(text: str, item: Instruction, opcode: str, operands: dict[int, str] | None = None) -> Fix | None:
    """Another opcode, and other operands by their index, for an instruction; an operand that is "" goes with the comma
    behind it, or before it if it is the last. None if the manual has no such opcode, in whatever order."""
    parts = parts_of(item)
    try:
        opcode = resolve(opcode).text if slack(opcode) is None else ""
    except OpcodeError:
        opcode = ""
    if not opcode or text[slice(*parts.opcode)] != item.opcode:
        return None
    changes, last = [(parts.opcode, opcode)], len(parts.operands) - 1
    for index, new in sorted((operands or {}).items()):
        if not 0 <= index <= last:
            return None
        start, end = parts.operands[index]
        if not new and index < last:
            end = parts.operands[index + 1][0]
        elif not new:
            start = parts.operands[index - 1][1]
        changes.append(((start, end), new))
    return joined(text, f"use {opcode}", *changes)


def valid(opcode: str) -> bool:
    """Whether the manual has an opcode as it is written."""
    try:
        return resolve(opcode).text == opcode and slack(opcode) is None
    except OpcodeError:
        return False


def with_word(opcode: str, word: str) -> str:
    """An opcode with one more modifier, at the place that the manual gives it; "" if there is none."""
    words = opcode.split(".")
    tried = (".".join((*words[:at], word, *words[at:])) for at in range(1, len(words) + 1))
    return next((one for one in tried if valid(one)), "")


def removed(text: str, span: Span, title: str) -> Fix:
    """A statement or directive goes: with its semicolon, with the line that is left empty, or else with the spaces
    before it. A comment stays."""
    start, end = span
    if text[end : end + 1] == ";":
        end += 1
    line = text.rfind("\n", 0, start) + 1
    break_ = text.find("\n", end)
    behind = len(text) if break_ < 0 else break_ + 1
    before = text[line:start]
    if not before.strip() and not text[end:behind].strip():
        return Fix((line, behind), "", title)
    if before.strip():
        start = line + len(before.rstrip(" \t"))
    else:
        end += len(text[end:behind]) - len(text[end:behind].lstrip(" \t"))
    return Fix((start, end), "", title)


def behind(text: str, span: Span, line: str, title: str) -> Fix:
    """A line of its own behind the one in which a span ends; behind the span, if that line goes on with code."""
    end = text.find("\n", span[1])
    rest = text[span[1] : end].strip() if end >= 0 else "code"
    ending = "\r\n" if text[:end].endswith("\r") else "\n"
    if rest and not rest.startswith("//"):
        return Fix((span[1], span[1]), f"{ending}{line}{ending}", title)
    return Fix((end + 1, end + 1), line + ending, title)


def at_the_end(text: str, brace: int, statement: str, title: str) -> Fix | None:
    """A statement before a closing brace: in a line of its own, if the brace begins one. None if there is no brace."""
    if text[brace : brace + 1] != "}":
        return None
    line = text.rfind("\n", 0, brace) + 1
    if text[line:brace].strip():
        return Fix((brace, brace), f"{statement} ", title)
    ending = "\r\n" if text[: line - 1].endswith("\r") else "\n"
    return Fix((line, line), f"{text[line:brace]}\t{statement}{ending}", title)
