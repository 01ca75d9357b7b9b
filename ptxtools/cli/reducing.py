"""`ptx-as --reduce COMMAND`."""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import Any

import click

from ptxtools.diagnostics import PtxError

from .common import OK, STDIN, STDIN_NAME, Failure, read_input, write_output


def reduce_file(names: list[str], options: dict[str, Any]) -> int:
    """Write the smallest module found for which the command ends with 0, and each one on the way to it.

    Returns the exit status. Raises PtxError, Failure.
    """
    from ptxtools.api import parsed
    from ptxtools.check.checker import errors_of
    from ptxtools.reducer import Trial, reduced
    from ptxtools.syntax import print_module

    if len(names) != 1:
        raise click.UsageError("--reduce takes one file")
    if not options["reduce_command"].strip():
        raise click.UsageError("--reduce: the command is empty")
    (name,) = names
    shown = STDIN_NAME if name == STDIN else name
    modules = parsed(read_input(name), shown)
    if len(modules) != 1:
        raise Failure(f"{name} embeds {len(modules)} modules; extract one with -d")
    module, errors = modules[0]
    if errors:
        raise PtxError(errors)
    output = options["output"] or f"{os.path.splitext(name)[0]}.reduced.ptx"
    if name != STDIN and os.path.exists(output) and os.path.samefile(name, output):
        raise Failure(f"{output} is the input and would be overwritten; choose another output file")
    tolerated = Counter(error.code for error in errors_of(module))
    state = _State(output, options["quiet"], print_module(module))
    if tolerated and not options["quiet"]:
        sys.stderr.write(f"{shown}: has errors ({', '.join(sorted(tolerated))}); candidates may have the same ones\n")
    base = "stdin.ptx" if name == STDIN else f"{os.path.splitext(os.path.basename(name))[0]}.ptx"
    with Trial(options["reduce_command"], base, options["jobs"] or 1, tolerated, state.keep) as trial:
        state.trial = trial
        if not trial.holds(state.text):
            raise Failure(
                f"the command does not end with 0 for {shown}, printed without its comments: nothing to reduce"
            )
        state.keep(state.text)
        try:
            reduced(module, trial)
        finally:
            state.close()
    return OK


class _State:
    """The smallest module so far: written as soon as it is found, to standard output at the end."""

    def __init__(self, output: str, quiet: bool, text: str) -> None:
        self.output, self.text = output, text
        self._shown = not quiet and sys.stderr.isatty()
        self._quiet, self._first = quiet, _size(text)
        self.trial: Any = None

    def keep(self, text: str) -> None:
        self.text = text
        if self.output != STDIN:
            write_output(self.output, text.encode("utf-8", "surrogateescape"))
        if self._shown:
            sys.stderr.write(f"\r{_size(text)} bytes, {self.trial.runs} commands \x1b[K")
            sys.stderr.flush()

    def close(self) -> None:
        """Say what came out."""
        if self.output == STDIN:
            write_output(STDIN, self.text.encode("utf-8", "surrogateescape"))
        if self._shown:
            sys.stderr.write("\r\x1b[K")
        if not self._quiet:
            where = "" if self.output == STDIN else f"{self.output}: "
            sys.stderr.write(f"{where}{_size(self.text)} bytes, from {self._first}; {self.trial.runs} commands\n")


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
