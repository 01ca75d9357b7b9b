"""`ptx-run --new-launch`: a commented launch file for a kernel, to standard output or a file."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from ptxtools.diagnostics.text import printable

from .common import OK, STDIN, Failure, read_input, write_output


def templating_options(command: Any) -> Any:
    """Add the options to a command."""
    command = click.option("-o", "--output", metavar="FILE", help="Where --new-launch writes; default: standard "
                           "output.")(command)  # fmt: skip
    return click.option("--new-launch", is_flag=True, help="Write a commented launch file for a kernel of MODULE, "
                        "with values that have been tried.")(command)  # fmt: skip


def write_template(name: str, options: dict[str, Any]) -> int:
    """Write the launch file; returns the exit status. Raises `Failure`, `PtxError`."""
    from ptxtools.api import read_module
    from ptxtools.launch.errors import SpecError
    from ptxtools.launch.runner import find_kernel, run_job
    from ptxtools.launch.template import new_launch
    from ptxtools.sim.tree import TreeModule

    if name == STDIN:
        raise click.UsageError("--new-launch needs the name of a module: the launch file refers to it")
    tree = read_module(read_input(name), name)
    module = TreeModule(tree)
    try:
        kernel = find_kernel(module, options["kernel"] or "", name)
    except SpecError as error:
        raise Failure(str(error)) from None
    target = options["output"] or STDIN
    folder = "" if target == STDIN else os.path.dirname(target)
    path = name if os.path.isabs(name) else os.path.relpath(name, folder or ".")
    made = new_launch(tree, kernel, path, lambda job: run_job(job, lambda _: module))
    try:
        data = made.text.encode()
    except UnicodeEncodeError:
        raise Failure(f"{name}: its name is not UTF-8, which launch files are written in") from None
    write_output(target, data)
    if made.problem and not options["quiet"]:
        sys.stderr.write(f"ptx-run: the launch does not run as it is: {printable(made.problem)}\n")
    return OK
