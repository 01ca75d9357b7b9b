"""Constant expressions that LLVM 7 has and later LLVMs lack, as instructions on the same line.

`add i32 %a, mul (i32 2, i32 3)` becomes `%.constant.0 = mul i32 2, 3 add i32 %a, %.constant.0`: LLVM needs no ends of
lines, so all lines keep their numbers.
"""

from __future__ import annotations

import re
from itertools import count

#: Those that LLVM 22 lacks; and those that it has, which become instructions if one of the others is in them.
_PAIRS = r"mul|shl|[la]shr|and|or|[us]div|[us]rem|f(?:add|sub|mul|div|rem)|[if]cmp \w+"
_GONE = rf"{_PAIRS}|[zs]ext|fptrunc|fpext|fpto[us]i|[us]itofp|select"
_KEPT = r"add|sub|xor|trunc|ptrtoint|inttoptr|bitcast|addrspacecast|getelementptr|extractelement"
_HEAD = r"(?<![\w.$%@!-])({})((?: (?:nuw|nsw|exact|inbounds))*) ?\("
_FIRST = re.compile(_HEAD.format(_GONE))
_ANY = re.compile(_HEAD.format(f"{_GONE}|{_KEPT}"))
_NAME = "%.constant."
#: Those with two operands of one type, which an instruction writes once.
_OF_PAIRS = re.compile(f"{_PAIRS}|add|sub|xor")
#: Where a statement begins that an instruction may stand before.
_STATEMENT = re.compile(r"\s*(?:%\S+ = (?!phi )|(?:store|ret|br|switch|(?:tail )?call) )")
#: What may stand between a type's first word and its value.
_SUFFIX = re.compile(r"\s*(?:\*|addrspace\(\d+\)(?=\s*\*))")
_WORD = re.compile(r'%"[^"]*"|[%\w.$-]+')


def with_instructions(text: str) -> str:
    """The text with such expressions in functions as instructions; those that are in phis and aggregates stay."""
    if not _FIRST.search(text) or _NAME in text:
        return text
    lines, inside, numbers = text.split("\n"), False, count()
    for at, line in enumerate(lines):
        if line.startswith("define "):
            inside = True
        elif line.startswith("}"):
            inside = False
        elif inside and '"' not in line and _STATEMENT.match(line) and _FIRST.search(line):
            lines[at] = _expanded(line.partition(";")[0], numbers) or line
    return "\n".join(lines)


def _expanded(line: str, numbers: count[int]) -> str | None:
    """A statement behind what was in it; None if an expression stands where no name can."""
    made: list[str] = []
    while found := _last(line):
        end = _closing(line, found.end() - 1)
        instruction = _instruction(found[1], found[2], line[found.end() : end]) if end else None
        if instruction is None or _in_aggregate(line, found.start()):
            return None
        name = f"{_NAME}{next(numbers)}"
        made.append(f"{name} = {instruction} ")
        line = line[: found.start()] + name + line[end + 1 :]
    blanks = len(line) - len(line.lstrip())
    return line[:blanks] + "".join(made) + line[blanks:]


def _last(line: str) -> re.Match[str] | None:
    """The last expression that must become an instruction: those in it stand behind its begin."""
    for found in reversed(list(_ANY.finditer(line))):
        end = _closing(line, found.end() - 1)
        if _FIRST.match(line, found.start()) or _NAME in line[found.end() : end]:
            return found
    return None


def _closing(text: str, at: int) -> int:
    """Where the bracket at a place is closed; 0 if it is not."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] in "([{<") - (text[place] in ")]}>")
        if not depth:
            return place
    return 0


def _in_aggregate(line: str, at: int) -> bool:
    """Whether a place is in a constant of several values."""
    opened: list[str] = []
    for one in line[:at]:
        if one in "([{<":
            opened.append(one)
        elif one in ")]}>" and opened:
            opened.pop()
    return any(one != "(" for one in opened)


def _instruction(op: str, flags: str, inside: str) -> str | None:
    """The instruction of an expression; None if its operands are not read."""
    if not _OF_PAIRS.fullmatch(op):
        return f"{op}{flags} {inside}"
    parts = [_split(one) for one in _listed(inside)]
    if len(parts) != 2 or parts[0][0] != parts[1][0]:
        return None
    return f"{op}{flags} {parts[0][0]} {parts[0][1]}, {parts[1][1]}"


def _listed(text: str) -> list[str]:
    """What stands between the commas that are in no brackets."""
    found, depth, begin = [], 0, 0
    for at, one in enumerate(text):
        depth += (one in "([{<") - (one in ")]}>")
        if one == "," and not depth:
            found.append(text[begin:at])
            begin = at + 1
    return [*found, text[begin:]]


def _split(operand: str) -> tuple[str, str]:
    """The type and the value of an operand."""
    text = operand.strip()
    word = _WORD.match(text)
    end = word.end() if word else _closing(text, 0) + 1
    while suffix := _SUFFIX.match(text, end):
        end = suffix.end()
    return text[:end], text[end:].strip()
