"""`--explain`: the pages of all codes, including those of other packages once registered."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: code -> (title, page)
Pages = Mapping[str, tuple[str, str]]


def rule_pages() -> dict[str, tuple[str, str]]:
    """The pages of the rules of `check` and `linter`, by code."""
    from ptxtools.check.pages import pages as check_pages

    from .registry import pages as warning_pages

    return {**check_pages(), **warning_pages()}


def page(code: str, pages: Pages) -> str | None:
    """The whole page of a code, title first; None for an unknown code."""
    found = pages.get(code)
    if found is None:
        return None
    from inspect import cleandoc

    return f"{code}: {found[0]}\n\n{cleandoc(found[1])}"


def titles(start: str, pages: Pages) -> str:
    """The codes with a prefix, each with its title."""
    lines = [f"{start}: {len(pages)} codes", ""]
    lines += [f"{code}  {title}" for code, (title, _) in pages.items()]
    return "\n".join([*lines, "", f"ptx-lint --explain {next(iter(pages))} prints the page of the first."])


def markdown(pages: Pages) -> str:
    """docs/rules.md: a table of all codes, then their pages."""
    from inspect import cleandoc

    lines = ["# Rules", "", "Generated from the pages that `ptx-lint --explain CODE` prints.", ""]
    lines += ["| code | meaning |", "|---|---|"]
    lines += [f"| [{code}](#{code.lower()}) | {pages[code][0]} |" for code in sorted(pages)]
    from .precision import precision

    lines += ["", *precision()]
    for code in sorted(pages):
        title, text = pages[code]
        linked = re.sub(r"^More: docs/(\S+?)(#\S+)$", r"More: [\1](\1\2)", cleandoc(text), flags=re.MULTILINE)
        lines += ["", f"## {code}", "", f"**{title}**", "", linked]
    return "\n".join(lines) + "\n"
