"""The tutorial, the cookbook and the page of the memory model: every command is run, and prints what stands there."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

import ptxtools
from tools import console_pages
from tools.site import links

ROOT = Path(__file__).parents[1]
PAGES = ("docs/tutorial.md", "docs/cookbook.md", "docs/memory-model.md")
#: What the pages show and nobody runs here, as it needs a CUDA toolkit or Triton.
NOT_RUN = {
    "docs/tutorial.md": ["nvcc -ptx -arch=sm_80 -lineinfo smooth.cu"],
    "docs/memory-model.md": [],
    "docs/cookbook.md": ["python softmax.py", "nvcc -ptx -arch=sm_80 -std=c++17 -I cutlass/include product.cu"],
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the debugger goes back, which needs fork")
@pytest.mark.parametrize("name", PAGES)
def test_what_commands_print(name: str) -> None:
    page = (ROOT / name).read_text("utf-8")
    renewed, wrong = console_pages.renewed(page)
    assert not wrong, renewed
    assert console_pages.not_run(page) == NOT_RUN[name]


def test_a_page_that_is_wrong_is_seen() -> None:
    page = "<!-- in: examples/cookbook -->\n```console\n$ echo $?\n1\n$ cat none\n…\n$ echo $?\n1\n```\n"
    renewed, wrong = console_pages.renewed(page)
    assert wrong == ["$ echo $?"] and "$ echo $?\n0\n" in renewed


def test_lines_left_out() -> None:
    assert console_pages.alike(["a", "…", "d"], ["a", "b", "c", "d"])
    assert not console_pages.alike(["a", "…", "d"], ["a", "b"])
    assert not console_pages.alike(["a"], ["a", "b"])


def test_a_script_uses_every_public_object(capsys: pytest.CaptureFixture[str]) -> None:
    """`make check` runs mypy --strict on it."""
    script = ROOT / "examples" / "public.py"
    text = script.read_text("utf-8")
    assert not [name for name in ptxtools.__all__ if f"ptxtools.{name}" not in text]
    runpy.run_path(str(script), run_name="__main__")
    assert "\ntrap\n" in capsys.readouterr().out


def test_the_site_has_every_page() -> None:
    """mkdocs itself checks links: make site."""
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))

    def named(nav: Any) -> list[str]:
        if isinstance(nav, str):
            return [nav]
        return [page for part in (nav.values() if isinstance(nav, dict) else nav) for page in named(part)]

    pages = named(site["nav"])
    assert sorted(pages) == sorted([*(path.name for path in (ROOT / "docs").glob("*.md")), "isa/README.md"])
    for page in (ROOT / "docs").glob("*.md"):
        assert all((ROOT / name).is_file() for name in links(page)), page
