"""Every code of every package with its page, for `--explain`, `--statistics` and SARIF."""

from __future__ import annotations

from functools import cache


@cache
def all_pages() -> dict[str, tuple[str, str]]:
    """code -> (title, page), sorted by code."""
    from ptxtools.container import EXPLANATIONS
    from ptxtools.linter.explain import rule_pages
    from ptxtools.syntax.codes import CODES

    found = {**CODES, **rule_pages(), **EXPLANATIONS}
    found.setdefault("PTX901", ("not supported", "What: the simulator does not run this instruction yet."))
    return dict(sorted(found.items()))


def describe(code: str) -> tuple[str, str]:
    """Title and page of a code; its own name for one that has none."""
    return all_pages().get(code, (code, code))


def near(code: str) -> str:
    """`; did you mean PTX201?` for the codes that look most like an unknown one, or nothing."""
    from difflib import get_close_matches

    found = get_close_matches(code.upper(), all_pages(), 3)
    return f"; did you mean {' or '.join(found)}?" if found else ""
