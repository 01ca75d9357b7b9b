"""`ptx-run --litmus`: what the memory consistency model allows of small programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from ptxtools.diagnostics import PtxError
from ptxtools.diagnostics.colour import style_for
from ptxtools.model import DEFAULT_MODEL, MODELS

from .common import FINDINGS, OK, STDIN, STDIN_NAME, Failure, input_names, print_diagnostics, read_input, write_output

if TYPE_CHECKING:
    from ptxtools.model.executions import Execution, Outcomes


def litmus_options(command: Any) -> Any:
    """Add the options to a command."""
    for add in (
        click.option("--unroll", type=click.IntRange(1, 64), help="How often --litmus executes an instruction; "
                     "default: 2."),
        click.option("--model", type=click.Choice(MODELS), help=f"The manual's version that --litmus follows; "
                     f"default: {DEFAULT_MODEL}."),
        click.option("--litmus", is_flag=True, help="The arguments are litmus tests, or folders of them: say what the "
                     "memory consistency model allows. Status 1 if a condition does not hold."),
    ):  # fmt: skip
        command = add(command)
    return command


def refuse_without_litmus(options: dict[str, Any]) -> None:
    """Options that only `--litmus` has."""
    for name in ("model", "unroll"):
        if options[name] is not None:
            raise click.UsageError(f"--{name} requires --litmus")


def litmus(names: Sequence[str], options: dict[str, Any]) -> int:
    """Run the tests of the named files, and report them; returns the exit status."""
    version = options["model"] or DEFAULT_MODEL
    form = options["format_"] or "text"
    if form == "cat":
        from ptxtools.model.cat import as_cat

        click.echo(as_cat(version), nl=False)
        return OK
    files = list(_files(input_names(names)))
    if form in ("dot", "svg"):
        return _picture(files, version, form, options)
    write = _JsonReport() if form == "json" else _TextReport(options["verbose"] or len(files) == 1, options["quiet"])
    status = OK
    for name in files:
        try:
            tests = [
                (outcomes, _against(outcomes, options) if write.explains else None)
                for outcomes in _outcomes(name, version, options)
            ]
        except PtxError as error:
            write.error(error)
            status = FINDINGS
            continue
        for outcomes, against in tests:
            write.test(outcomes, against)
            status = status if outcomes.holds and outcomes.conclusive else FINDINGS
    write.end()
    return status


def _files(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if name == STDIN or not os.path.isdir(name):
            yield name
            continue
        below = [os.path.join(folder, file) for folder, _, files in os.walk(name) for file in files]
        found = sorted(path for path in below if path.endswith((".litmus", ".test")))
        if not found:
            raise Failure(f"{name}: the folder has no *.litmus and no *.test files")
        yield from found


def _outcomes(name: str, version: str, options: dict[str, Any]) -> list[Outcomes]:
    from ptxtools.api import litmus_launch, litmus_tests

    unroll = {} if options["unroll"] is None else {"unroll": options["unroll"]}
    if name.endswith(".toml"):
        from ptxtools.launch.errors import SpecError

        try:
            return [litmus_launch(name, model=version, **unroll)]
        except SpecError as error:
            raise Failure(str(error)) from None
    text = read_input(name).decode("utf-8", "replace")
    return litmus_tests(text, name=STDIN_NAME if name == STDIN else name, model=version, **unroll)


def _against(outcomes: Outcomes, options: dict[str, Any]) -> Execution | None:
    """For a condition that nothing decides: the execution nearest to deciding it."""
    from ptxtools.model.nearest import nearest

    if outcomes.witness is not None or outcomes.test.condition is None:
        return None
    return nearest(outcomes.test, outcomes.version, outcomes.unroll)


def _picture(files: list[str], version: str, form: str, options: dict[str, Any]) -> int:
    from ptxtools.model.pictures import as_dot, as_svg

    if len(files) != 1:
        raise click.UsageError(f"--format {form} draws one test")
    tests = _outcomes(files[0], version, options)
    if len(tests) != 1:
        raise click.UsageError(f"--format {form} draws one test; {files[0]} holds {len(tests)}")
    outcomes = tests[0]
    execution = outcomes.witness or _against(outcomes, options)
    if execution is None:
        raise Failure(f"{files[0]}: there is no execution to draw", FINDINGS)
    draw: Callable[..., str] = as_dot if form == "dot" else as_svg
    write_output(STDIN, draw(execution, outcomes.test.name).encode())
    return OK if outcomes.holds else FINDINGS


class _TextReport:
    """explains: whether the lines below the summaries are wanted."""

    def __init__(self, explains: bool, quiet: bool) -> None:
        self.explains, self.quiet, self.tests, self.failed = explains and not quiet, quiet, 0, 0

    def test(self, outcomes: Outcomes, against: Execution | None) -> None:
        from ptxtools.model.reports import details, summary

        self.tests += 1
        failed = not (outcomes.holds and outcomes.conclusive)
        self.failed += failed
        if self.quiet and not failed:
            return
        click.echo(f"{outcomes.test.source.name}: {summary(outcomes)}")
        if self.explains:
            for line in details(outcomes, against):
                click.echo(line)

    def error(self, error: PtxError) -> None:
        self.tests += 1
        self.failed += 1
        print_diagnostics(error.diagnostics, style_for("auto", sys.stderr), sys.stderr)

    def end(self) -> None:
        if self.tests > 1 and not self.quiet:
            click.echo(f"{self.tests} tests, {self.failed} failed")


class _JsonReport:
    explains = True

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def test(self, outcomes: Outcomes, against: Execution | None) -> None:
        from ptxtools.model.reports import as_json

        self.rows.append(as_json(outcomes, against))

    def error(self, error: PtxError) -> None:
        first = error.diagnostics[0]
        self.rows.append({"file": first.file, "error": first.to_json()})

    def end(self) -> None:
        import json

        click.echo("[\n " + ",\n ".join(map(json.dumps, self.rows)) + "\n]")
