"""Options of `ptx-run` that watch a run and write what they saw to files: `--coverage`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .common import STDIN, Failure, read_input

if TYPE_CHECKING:
    from ptxtools.observe.coverage import Coverage

T = TypeVar("T")
#: Writes what an observer saw.
Write = Callable[[], None]

_OPTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("--coverage", "coverage", {
        "metavar": "FILE", "multiple": True,
        "help": "Write which lines, branches and lanes were executed: LCOV; JSON if FILE ends in .json; annotated PTX "
        "if it ends in .txt or is - for standard output. May be repeated."}),
    ("--coverage-from", "coverage_from", {
        "metavar": "FILE.json", "multiple": True, "help": "Add the coverage of an earlier run, written as JSON."}),
)  # fmt: skip


def watching_options(command: Any) -> Any:
    """Add the options to a command."""
    for flag, name, how in reversed(_OPTIONS):
        command = click.option(flag, name, **how)(command)
    return command


def watched(options: dict[str, Any], run: Callable[[list[object]], T]) -> T:
    """Run with the observers that the options ask for. What they saw is written also if the run traps or is
    interrupted."""
    observers: list[object] = []
    writes: list[Write] = []
    for begin in (_coverage,):
        begin(options, observers, writes)
    try:
        return run(observers)
    finally:
        for write in writes:
            write()


def _coverage(options: dict[str, Any], observers: list[object], writes: list[Write]) -> None:
    paths, earlier = options["coverage"], options["coverage_from"]
    if not paths:
        if earlier:
            raise click.UsageError("--coverage-from requires --coverage")
        return
    from ptxtools.observe.coverage import Coverage
    from ptxtools.observe.coverage_files import CoverageError, add_json

    coverage = Coverage()
    for path in earlier:
        try:
            add_json(coverage, read_input(path))
        except CoverageError as error:
            raise Failure(f"{path}: {error}") from None
    observers.append(coverage)
    writes.extend(_writer(coverage, path, options["quiet"]) for path in paths)


def _writer(coverage: Coverage, path: str, quiet: bool) -> Write:
    from ptxtools.observe import coverage_files as forms

    form = forms.as_lcov
    if path == STDIN or path.endswith(".txt"):
        form = forms.as_text
    elif path.endswith(".json"):
        form = forms.as_json

    def write() -> None:
        write_text(path, form(coverage))
        if path != STDIN and not quiet:
            sys.stderr.write(f"ptx-run: {path}: {coverage}\n")

    return write


def write_text(path: str, text: str) -> None:
    """Write a file whole; - is standard output. Raises `Failure`."""
    from ptxtools.files.writing import reason, write_whole

    data = text.encode("utf-8", "surrogateescape")
    if path == STDIN:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    try:
        write_whole(path, lambda file: file.write(data))
    except OSError as error:
        raise Failure(f"cannot write {path}: {reason(error)}") from None
