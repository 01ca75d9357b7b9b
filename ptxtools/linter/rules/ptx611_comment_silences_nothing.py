"""PTX611 | comment that silences nothing | 4.2

What: a `ptx-lint: disable` comment without a code, with a code that no rule has, or in `/* */`; a `ptx-run: disable`
comment without the name of a checker. If the rule is selected by its full name (`--select all,PTX611`), also a comment
whose rules find nothing where it stands; `--fix` removes it then.
Why: what it was to silence is reported all the same; or it may hide a finding that is made there later.
Example:
    add.u16 %h1, %h2, 65536; // ptx-lint: disable
Better:
    add.u16 %h1, %h2, 65536; // ptx-lint: disable=PTX501
"""

from __future__ import annotations

import re

from ptxtools.check import codes as errors
from ptxtools.diagnostics.comments import idle_for_checkers

from ..context import LintContext
from ..registry import modules, names

CODE = "PTX611"

_COMMENT = re.compile(r"(//|/\*)[ \t]*ptx-lint[ \t]*:[ \t]*disable(?:-file)?\b([ \t]*=[ \t]*)?([\w, \t]*)")
#: Words that are meant as codes of PTX; those of binaries and NVVM IR are others, and those of syntax begin like this.
_SYNTAX = "PTX1"
_MEANT = re.compile(r"ptx(?!8)\w*", re.IGNORECASE)


@modules
def check(context: LintContext) -> None:
    for span, why in idle_for_checkers(context.source):
        context.warn(CODE, f"this comment silences nothing: {why}", span, section="4.2")
    if "ptx-lint" not in context.source.text:
        return
    known = _Known()
    for found in _COMMENT.finditer(context.source.text):
        mark, equals, words = found.groups()
        why = ""
        if mark == "/*":
            why = "only a comment that begins with // is looked at"
        elif not equals or not words.strip():
            why = "it names no code, such as disable=PTX501"
        elif unknown := [word for word in re.split(r"[,\s]+", words) if _MEANT.fullmatch(word) and not known[word]]:
            why = f"no rule has the code {unknown[0]}"
        if why:
            span = found.start(), found.start() + len(found[0].rstrip())
            context.warn(CODE, f"this comment silences nothing: {why}", span, section="4.2")


class _Known(dict[str, bool]):
    """Whether prefixes are of codes, as they are asked for."""

    def __init__(self) -> None:
        known = {value for value in vars(errors).values() if isinstance(value, str)}
        self._codes = known | {name[: len(CODE)].upper() for name in names()}

    def __missing__(self, prefix: str) -> bool:
        found = prefix.upper().startswith(_SYNTAX) or any(code.startswith(prefix.upper()) for code in self._codes)
        self[prefix] = found
        return found
