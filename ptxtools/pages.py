"""Every code of every package with its page: for `--explain`, `--statistics`, SARIF, and to know wrong codes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache


@cache
def all_pages() -> dict[str, tuple[str, str]]:
    """code -> (title, page), sorted by code."""
    from ptxtools.container import EXPLANATIONS
    from ptxtools.syntax.codes import CODES

    from .linter.explain import rule_pages

    found = {**CODES, **rule_pages(), **EXPLANATIONS}
    found.setdefault("PTX901", ("not supported", "What: the simulator does not run this instruction yet."))
    return dict(sorted(found.items()))


def describe(code: str) -> tuple[str, str]:
    """Title and page of a code; its own name for one that has none."""
    return all_pages().get(code, (code, code))


def family(text: str) -> list[str]:
    """The codes that begin with a text, for which `PTX3xx` may be written, too."""
    start = re.sub(r"(?<=\d)X+$", "", text.upper())
    return [code for code in all_pages() if code.startswith(start)] if start else []


def unknown_code(code: str) -> str:
    """What is wrong with a code that no rule has, and which ones look like it: those of its family first."""
    from difflib import get_close_matches

    like = get_close_matches(code.upper(), family(code[:4]), 3) or get_close_matches(code.upper(), all_pages(), 3)
    return f"no rule has the code '{code}'" + (f"; did you mean {' or '.join(like)}?" if like else "")


def check_codes(codes: Iterable[str]) -> None:
    """Raise ValueError for the first one that is no code, no beginning of one, and not "all"."""
    for code in codes:
        if code.upper() != "ALL" and not family(code):
            raise ValueError(unknown_code(code))
