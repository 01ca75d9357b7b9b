"""Every code of every package with its page: for `--explain`, `--statistics`, SARIF, and to reject unknown codes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache


@cache
def all_pages() -> dict[str, tuple[str, str]]:
    """code -> (title, page), sorted by code."""
    from ptxtools.container import EXPLANATIONS
    from ptxtools.nvvm.failures import EXPLANATIONS as LOWERING
    from ptxtools.nvvm.rules.levels import pages as nvvm_pages
    from ptxtools.syntax.codes import CODES

    from .linter.explain import rule_pages

    found = {**CODES, **rule_pages(), **EXPLANATIONS, **LOWERING, **nvvm_pages()}
    found.setdefault("PTX901", ("not supported", "What: the simulator does not run this instruction yet."))
    return dict(sorted(found.items()))


def describe(code: str) -> tuple[str, str]:
    """Title and page of a code; the code itself if it has none."""
    return all_pages().get(code, (code, code))


def family(text: str) -> list[str]:
    """The codes with a prefix, which may also be written `PTX3xx`."""
    start = re.sub(r"(?<=\d)X+$", "", text.upper())
    return [code for code in all_pages() if code.startswith(start)] if start else []


def unknown_code(code: str) -> str:
    """The message for an unknown code, with similar codes, those of its family first."""
    from difflib import get_close_matches

    like = get_close_matches(code.upper(), family(code[:4]), 3) or get_close_matches(code.upper(), all_pages(), 3)
    return f"unknown code '{code}'" + (f"; did you mean {' or '.join(like)}?" if like else "")


def check_codes(codes: Iterable[str]) -> None:
    """Raise ValueError for the first one that is not a code, a prefix of one, or "all"."""
    for code in codes:
        if code.upper() != "ALL" and not family(code):
            raise ValueError(unknown_code(code))
