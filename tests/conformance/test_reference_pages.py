"""The pages of docs/isa/: one for each instruction, honest about what runs. `tests/linter` holds them up to date."""

from importlib import import_module
from pathlib import Path

import click
import pytest

from ptxtools import isa
from ptxtools.isa.index import CHAPTERS
from ptxtools.program.lowering.registry import LOWERERS
from tools import make_docs, man_pages

DOCS = Path(__file__).parents[2] / "docs"


def test_every_instruction_has_a_page_and_is_in_the_index() -> None:
    index = (DOCS / "isa" / "README.md").read_text("utf-8")
    for family in CHAPTERS:
        page = (DOCS / "isa" / f"{family}.md").read_text("utf-8")
        assert f"[{family}]({family}.md)" in index
        for section in {page.section for page in isa.pages(family)}:
            assert f"({section})" in page


def test_pages_come_from_the_tables() -> None:
    made = make_docs.pages()
    assert len(made) == len(CHAPTERS) + 5 + len(man_pages.COMMANDS) + len(make_docs.pictures())
    page = made["docs/isa/setmaxnreg.md"]()
    assert "24 to 256 in steps of 8" in page and "sm_90a" in page and "`.inc`, `.dec`" in page


def test_what_does_not_lower_is_said_not_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    import reference_pages

    form = next(form for form in isa.forms("wgmma") if form.name == "wgmma.fence")
    assert reference_pages.runs(form)
    monkeypatch.delitem(LOWERERS, "wgmma.fence")
    assert not reference_pages.runs.__wrapped__(form)


@pytest.mark.parametrize("name", man_pages.COMMANDS)
def test_manual_pages_have_what_the_help_has(name: str) -> None:
    page = (DOCS / "man" / f"{name}.1").read_text("utf-8").replace("\\", "")
    command = import_module(f"ptxtools.cli.{man_pages.COMMANDS[name]}").command
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert max(option.opts, key=len) in page
    assert f"{name} - " in page and all(line.strip() in page for line in command.epilog.splitlines()[2:])
