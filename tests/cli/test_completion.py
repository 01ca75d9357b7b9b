"""Completion of the commands in shells: what click makes of their options."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.shell_completion import get_completion_class

from ptxtools.cli.assemble import command as assemble
from ptxtools.cli.lint import command as lint
from ptxtools.cli.run import command as run
from tests.rows import rows

COMMANDS = {"ptx-run": run, "ptx-as": assemble, "ptx-lint": lint}


def completed(name: str, words: list[str], begun: str, shell: str = "bash") -> list[str]:
    kind: Any = get_completion_class(shell)
    found = kind(COMMANDS[name], {}, name, "_COMPLETE").get_completions(words, begun)
    return [item.value for item in found]


@rows(("name", "words", "begun", "found"), [
    ("ptx-run", [], "--swe", ["--sweep"]),
    ("ptx-run", ["--engine"], "", ["native", "reference"]),
    ("ptx-run", ["k.ptx", "--format"], "c", ["csv", "cat"]),
    ("ptx-as", [], "--disas", ["--disassemble"]),
    ("ptx-lint", ["--format"], "sa", ["sarif"]),
])  # fmt: skip
def test_options_and_their_values(name: str, words: list[str], begun: str, found: list[str]) -> None:
    assert completed(name, words, begun) == found


@rows(("shell", "name"), [(shell, name) for shell in ("bash", "zsh", "fish") for name in COMMANDS])
def test_every_shell_has_a_script(shell: str, name: str) -> None:
    kind: Any = get_completion_class(shell)
    variable = f"_{name.replace('-', '_').upper()}_COMPLETE"
    script = kind(COMMANDS[name], {}, name, variable).source_template % {
        "complete_func": f"_{name}_completion", "complete_var": variable, "prog_name": name
    }  # fmt: skip
    assert f"{variable}={shell}_complete" in script


def test_the_command_answers_the_shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("_PTX_RUN_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "ptx-run --new")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises((SystemExit, click.exceptions.Exit)):
        run.main([], prog_name="ptx-run")
    assert capsys.readouterr().out == "plain,--new-launch\n"
