"""Dependency files for make, as compilers write them: -MD, -MMD, -MF, -MP, -MT, -MQ (GCC, "Preprocessor Options")."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import click

from ptxtools.records import dataclass

from .common import STDIN, Failure

#: Options of several letters after one dash, whose value may follow directly: `-MFfile`.
_JOINED = ("-MF", "-MT", "-MQ")


@dataclass(frozen=True, slots=True)
class Output:
    """A file to write once all checks have passed, and the `inputs` it was made from."""

    path: str
    data: bytes
    inputs: tuple[str, ...]


def spelled_out(arguments: Sequence[str], command: click.Command) -> list[str]:
    """Split `-MFfile` into `-MF file`, as compilers do (click would read single letters), and turn `-MQ name` into
    `-MT` with the name quoted, so that the targets keep their order."""
    valued = {spelling for option in command.params if isinstance(option, click.Option) and not option.is_flag
              for spelling in option.opts}  # fmt: skip
    found: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return [*found, argument, *rest]
        option, value = argument, None
        if argument in valued:
            value = next(rest, None)
        elif argument.startswith(_JOINED):
            option, value = argument[:3], argument[3:]
        if option == "-MQ" and value is not None:
            option, value = "-MT", make_name(value)
        found += [option] if value is None else [option, value]
    return found


def wants_dependencies(options: dict[str, Any]) -> bool:
    """Whether a dependency file is to be written."""
    return bool(options["dependencies"] or options["dependency_file"])


def check_dependency_usage(options: dict[str, Any], inputs: int) -> None:
    """Raise click.UsageError for conflicting options."""
    file = options["dependency_file"]
    if not wants_dependencies(options):
        wrong = "-MP" if options["phony"] else "-MT" if options["rule_targets"] else None
        if wrong:
            raise click.UsageError(f"{wrong} requires a dependency file: add -MD, -MMD or -MF")
        return
    if options["output"] == STDIN and not file:
        raise click.UsageError("-MMD with -o - needs -MF: there is no output name to derive the file name from")
    if options["output"] == file == STDIN:
        raise click.UsageError("-o - and -MF - would both be written to standard output")
    if file and options["separate"] and inputs > 1:
        raise click.UsageError("-MF with -c takes one input: each output has its own dependencies")


def dependency_file(output: Output, options: dict[str, Any]) -> Output:
    """A make rule for an output. With -MP also an empty rule for each input but the first, so that make does not fail
    when one is deleted. Raises Failure if it would overwrite an output or an input."""
    path = options["dependency_file"] or f"{os.path.splitext(output.path)[0]}.d"
    if path == output.path:
        raise Failure(f"{path} is the output: give its dependency file another name with -MF")
    targets = options["rule_targets"] or [make_name(output.path)]
    inputs = [make_name(name) for name in output.inputs if name != STDIN]
    lines = [f"{' '.join(targets)}: {' '.join(inputs)}".rstrip()]
    if options["phony"]:
        lines += [f"{name}:" for name in dict.fromkeys(inputs[1:]) if name != inputs[0]]
    return Output(path, ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"), output.inputs)


def make_name(name: str) -> str:
    """Quote a name for make: GNU make reads 2n+1 backslashes before white space as n of them and the space; elsewhere a
    backslash is literal."""
    return re.sub(r"(\\*)([ \t])", r"\1\1\\\2", name.replace("$", "$$").replace("#", "\\#"))
