"""Rebuild the pages of docs/ that are made from the code.

Usage: python tools/make_docs.py [--check] [PAGE ...]

--check: write nothing; exit with 1 when a page is not up to date. PAGE: only these, such as docs/rules.md.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]


def rules() -> str:
    """docs/rules.md: every code with its page."""
    from ptxtools.linter.explain import markdown
    from ptxtools.pages import all_pages

    return markdown(all_pages())


def pictures() -> dict[str, Callable[[], str]]:
    """The pictures of docs/memory-model.md, drawn from the tests whose names they have."""
    from ptxtools.diagnostics import Source
    from ptxtools.model.executions import run
    from ptxtools.model.litmus import read_litmus
    from ptxtools.model.nearest import nearest
    from ptxtools.model.pictures import as_svg

    def drawn(name: str) -> str:
        test = read_litmus(Source((ROOT / "testdata" / "litmus" / f"{name}.litmus").read_text("utf-8"), name))
        execution = run(test).witness or nearest(test)
        assert execution is not None, f"{name} has nothing to show"
        return as_svg(execution, test.name)

    page = (ROOT / "docs" / "memory-model.md").read_text("utf-8")
    names = re.findall(r"\]\(memory-model/(\S+)\.svg\)", page)
    return {f"docs/memory-model/{name}.svg": partial(drawn, name) for name in names}


def pages() -> dict[str, Callable[[], str]]:
    """Every page with the function that makes it."""
    import man_pages
    import reference_pages as reference
    from device_page import device_page
    from engine_page import page as engine_page

    from ptxtools.isa.index import CHAPTERS

    found: dict[str, Callable[[], str]] = {"docs/rules.md": rules, "docs/coverage.md": reference.coverage}
    found["docs/devices.md"] = device_page
    found["docs/native-engine.md"] = engine_page
    found["docs/isa/README.md"] = reference.index
    for name in man_pages.COMMANDS:
        found[f"docs/man/{name}.1"] = partial(man_pages.page, name)
    for family in CHAPTERS:
        found[f"docs/isa/{family}.md"] = partial(reference.instruction_page, family)
    return found | pictures()


def main() -> int:
    stale = []
    wanted = pages()
    named = [name for name in sys.argv[1:] if name != "--check"]
    unknown = [name for name in named if name not in wanted]
    if unknown:
        print(f"no page of these is made from the code: {', '.join(unknown)}", file=sys.stderr)
        return 2
    for name in [str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "isa").glob("*.md")]:
        if name not in wanted and not named:
            stale.append(name)
            if "--check" not in sys.argv:
                (ROOT / name).unlink()
    for name in named or wanted:
        make = wanted[name]
        path, text = ROOT / name, make()
        if path.exists() and path.read_text("utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
            print(f"wrote {name}")
    if "--check" in sys.argv and stale:
        print(f"not up to date: {', '.join(stale)} (run `make docs`)", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
