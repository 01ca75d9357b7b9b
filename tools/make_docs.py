"""Rebuild the pages of docs/ that are made from the code.

Usage: python tools/make_docs.py [--check]

--check: write nothing; exit with 1 when a page is not up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def rules() -> str:
    """docs/rules.md: every code with its page."""
    from ptxtools.cli.pages import all_pages
    from ptxtools.lint.explain import markdown

    return markdown(all_pages())


PAGES: dict[str, Callable[[], str]] = {"docs/rules.md": rules}


def main() -> int:
    stale = []
    for name, make in PAGES.items():
        path, text = ROOT / name, make()
        if path.exists() and path.read_text("utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(text, "utf-8")
            print(f"wrote {name}")
    if "--check" in sys.argv and stale:
        print(f"not up to date: {', '.join(stale)} (run `make docs`)", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
