"""Whole blocks of the manual's examples: functions, and sequences of statements with their declarations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from . import manual
from .manual import Example

#: The edition whose blocks are taken.
_EDITION = "000"
_DOTS = re.compile(r"\.\s?\.(?:\s?\.)*(?!\w)|…")
_DECLARATION = re.compile(r"\.(?:reg|shared|global|local|const|param)\b")


def blocks(folder: Path) -> Iterator[Example]:
    """Every block that declares something and has instructions, once; its statements are separated by `\\n`."""
    seen: set[str] = set()
    for path in sorted(folder.glob(f"{_EDITION}*.txt")):
        for where, lines in manual.example_blocks(path.read_text("utf-8").splitlines()):
            for statements in _sequences(_statements(manual.code(lines))):
                text = "\\n".join(statements)
                if _is_block(statements) and text not in seen:
                    seen.add(text)
                    yield Example(f"{manual.EDITIONS[_EDITION]} {where} block", text)


def _sequences(statements: Iterator[str]) -> Iterator[list[str]]:
    """Statements that belong together: what is declared once more begins another example. Scopes are closed."""
    found: list[str] = []
    names: set[str] = set()
    depth = 0
    for statement in statements:
        plain = depth or statement in "{}" or statement.startswith(".alias")
        declared = set() if plain else manual.declared(statement)
        if names & declared:
            yield found
            found, names = [], set()
        if statement == "}" and not depth:
            continue
        depth += (statement == "{") - (statement == "}")
        names |= declared
        found.append(statement)
    yield [*found, *"}" * depth]


def _is_block(statements: list[str]) -> bool:
    plain = [s for s in statements if not s.startswith(".") and not s.endswith(":") and s not in "{}"]
    whole = any(manual.FUNCTION.match(s) and not s.endswith("{ }") for s in statements)
    return whole or (len(plain) > 1 and any(_DECLARATION.match(s) for s in statements))


def _statements(text: str) -> Iterator[str]:
    """Statements in order, with labels and scopes; functions whole. What the manual leaves out is left out."""
    at, text = 0, _DOTS.sub(" ", text)
    while at < len(text):
        if text[at] in " \t\n;":
            at += 1
        elif text[at] in "{}":
            yield text[at]
            at += 1
        elif label := manual.LABEL.match(text, at):
            yield f"{label[1]}:"
            at = label.end()
        elif line := manual.TO_LINE_END.match(text, at):
            yield manual.tidy(line[0])
            at = line.end()
        elif not manual.starts(text[at:]):  # prose
            at = text.find("\n", at) % (len(text) + 1)
        else:
            end = manual.end_of(text, at)
            if missing := manual.MISSING.search(text, at, end):
                yield manual.tidy(f"{text[at : missing.start()]};")
                at = missing.start()
            elif text[end : end + 1] == "{":
                close, depth = _closing(text, end)
                yield manual.tidy(text[at:close] + " }" * depth)
                at = close
            else:
                yield manual.tidy(f"{text[at:end]};")
                at = end + 1


def _closing(text: str, at: int) -> tuple[int, int]:
    """The place behind the `}` that closes the `{` at `at`, or where the next function begins; how many are open."""
    depth = 0
    for index in range(at, len(text)):
        if index > at and manual.FUNCTION.match(text, index) and text[index] == ".":
            return index, depth
        depth += (text[index] == "{") - (text[index] == "}")
        if depth == 0:
            return index + 1, 0
    return len(text), depth
