"""`ptx-as --compare OTHER`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ptxtools.diagnostics.text import printable

from .common import FINDINGS, OK, STDIN, STDIN_NAME, read_input

if TYPE_CHECKING:
    from ptxtools.ir import Module


def compare_files(names: list[str], other: str) -> int:
    """Print how two modules differ; returns the exit status, 1 if they do. Raises PtxError, Failure."""
    from ptxtools.syntax.compare import compare

    if len(names) != 1:
        raise click.UsageError("--compare takes one file beside OTHER")
    if names[0] == other == STDIN:
        raise click.UsageError("standard input ('-') can be read only once")
    found = compare(_module(names[0]), _module(other))
    for difference in found:
        where = f"in {difference.where}" if difference.where else "in the module"
        lines = [f"{where}:"]
        lines += [f"- {number}: {text}" for number, text in difference.before]
        lines += [f"+ {number}: {text}" for number, text in difference.after]
        sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))
    return FINDINGS if found else OK


def _module(name: str) -> Module:
    """The one module in a file."""
    from ptxtools.api import canonical, modules_in
    from ptxtools.container import decode_all, link
    from ptxtools.inputs import detect

    data = read_input(name)
    modules = modules_in(data, STDIN_NAME if name == STDIN else name)
    if len(modules) == 1 and detect(data) != "ptxo":
        return modules[0]
    return canonical(decode_all(modules[0] if len(modules) == 1 else link(modules)))
