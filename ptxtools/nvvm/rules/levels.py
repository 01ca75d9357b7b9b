"""What the table of rules says of each code: its section, and whether it only warns."""

from __future__ import annotations

import re

from .pages import PAGES

_HEAD = re.compile(r"^# (NVVM\d+) \| ([^|\n]+) \| ([^|\n]+) \| (\w+)$", re.M)

#: code -> title, section of the specification, level: "illegal", "ignored" or "deprecated".
LEVELS: dict[str, tuple[str, str, str]] = {found[1]: (found[2], found[3], found[4]) for found in _HEAD.finditer(PAGES)}
SECTIONS = {code: section for code, (_, section, _) in LEVELS.items() if section != "LLVM"}
#: The codes of what is accepted: findings with them are warnings.
IGNORED = frozenset(code for code, (_, _, level) in LEVELS.items() if level != "illegal")


def pages() -> dict[str, tuple[str, str]]:
    """code -> title and page, for `ptx-lint --explain`."""
    heads = list(_HEAD.finditer(PAGES))
    ends = [head.start() for head in heads[1:]] + [len(PAGES)]
    found = {}
    for head, end in zip(heads, ends, strict=True):
        see = f"NVVM IR specification {head[3]}" if head[3] != "LLVM" else "LLVM language reference"
        found[head[1]] = head[2], f"{PAGES[head.end() : end].strip()}\n\nLevel: {head[4]}. See: {see}."
    return found
