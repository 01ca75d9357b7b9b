"""docs/observers.md tells the truth: its examples run, and its table is what the interface says."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

from ptxtools.machine.observers import EVENTS, Observer

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "observers.md").read_text(encoding="utf-8")


def blocks() -> list[str]:
    """The indented blocks of the page."""
    found = re.findall(r"(?:^(?: {4}.*)?\n)+", PAGE, re.MULTILINE)
    return ["".join(line[4:] + "\n" for line in block.splitlines()).strip() for block in found if block.strip()]


def test_examples(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    first, output, second = blocks()
    names: dict[str, object] = {}
    exec(compile(first, "docs/observers.md", "exec"), names)
    printed = capsys.readouterr().out
    assert printed.startswith(output + "\n") and len(printed.splitlines()) == 6
    assert np.array_equal(names["out"], np.array([0, 2, 0, 0], np.float32))
    exec(compile(second, "docs/observers.md", "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[0. 2.]" and [line.split()[0] for line in lines[1:]] == ["2", "2", "2"]


def test_the_table_names_all_events() -> None:
    rows = dict(
        re.findall(r"^\| `(\w+)\(.*?\)` \| (.*) \|$", PAGE.split("## What observers need not be told")[0], re.MULTILINE)
    )
    wanted = {name: " ".join((inspect.getdoc(getattr(Observer, name)) or "").split()) for name in EVENTS}
    assert rows == wanted
