"""`ptx-run --against OTHER`: two runs of one launch, and where they part."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from ptxtools.diagnostics.text import printable

from .common import FINDINGS, OK, Failure, read_input
from .lowering import lowering_of
from .sweeping import refuse_of_one_run

if TYPE_CHECKING:
    from ptxtools.launch.job import Job


def opposing_options(command: Any) -> Any:
    """Add the option to a command."""
    return click.option("--against", metavar="OTHER", multiple=True, help="Run the launch with OTHER as well, a module "
                        "or engine=NAME, seed=N, numerics=NAME, tier=NAME, threads=N, compare the results, and show "
                        "the stores where they part. May be repeated, for both.")(command)  # fmt: skip


def oppose(options: dict[str, Any], make: Callable[[dict[str, Any]], Job]) -> int:
    """Run both and report; returns the exit status, 1 if they differ. make: the job for the options of a command."""
    from ptxtools.api import loadable
    from ptxtools.launch.against import Side, against
    from ptxtools.launch.compare import Tolerance
    from ptxtools.launch.errors import SpecError

    refuse_of_one_run("against", options)
    for name in ("expects", "saves"):
        if options[name]:
            raise click.UsageError(f"--against and --{name.removesuffix('s')} exclude each other")
    other = _varied(options)
    read = cache(read_input)  # standard input is read once

    def side(name: str, own: dict[str, Any]) -> Side:
        def load(path: str, target: str | None) -> Any:
            return loadable(read(path), "<stdin>" if path == "-" else path, lowering_of(own), target)

        return Side(name, lambda: make(own), load)

    try:
        sides = side(options["module"] or options["launch_file"], options), side(" ".join(options["against"]), other)
        found = against(*sides, Tolerance(options["rtol"] or 0.0, options["atol"] or 0.0))
    except SpecError as error:
        raise Failure(str(error)) from None
    for first, *rest in found.differences:
        click.echo(printable(first))
        for line in rest:
            click.echo(f"    {printable(line)}")
    if not found.differences and not options["quiet"]:
        buffers = f"{found.buffers} buffer{'s' * (found.buffers != 1)}"
        sys.stdout.write(f"no difference in {buffers} and what is printed\n")
    return FINDINGS if found.differences else OK


def _varied(options: dict[str, Any]) -> dict[str, Any]:
    """The options of the other run."""
    from ptxtools.launch.errors import SpecError
    from ptxtools.launch.sweep import VARIED, checked, parse_axis

    other = dict(options)
    for text in options["against"]:
        name = text.partition("=")[0]
        if name not in VARIED or "=" not in text:
            other["module"] = text
            continue
        try:
            axis = parse_axis(text)
            if len(axis.values) != 1:
                raise SpecError(f"'{text}' has {len(axis.values)} values")
            other[name] = checked(VARIED[name], axis.values[0])
        except SpecError as error:
            raise click.UsageError(f"--against: {error}") from None
    return other
