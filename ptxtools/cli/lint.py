"""ptx-lint: find what is wrong, hazardous, not portable or slow in PTX.

A start whose arguments are files and a few plain options does without click (`plain`). `command`, click's command, is
made when it is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from ptxtools.bundle import Bundle

from . import plain

NAME = "ptx-lint"
#: What `command` gives for options that are absent (tests/cli/lint/test_plain.py compares the two).
_DEFAULTS: dict[str, Any] = {
    "format_": None, "targets": (), "ptx_version": None, "nvvm_dialect": None, "stdin_filename": None, "select": (),
    "ignore": (), "exclude": (), "strict": None, "exit_zero": None, "fix": False, "diff": False, "reformat": False,
    "check_format": False, "baseline": None, "requirements": False, "statistics": False, "explain": None, "lsp": False,
    "no_cache": False, "config": None, "jobs": None, "color": "auto", "quiet": False, "verbose": False,
}  # fmt: skip
#: The options that need no click.
_PLAIN: dict[str, tuple[str, plain.Reader | None]] = {
    "-q": ("quiet", None), "--quiet": ("quiet", None), "--strict": ("strict", None),
    "--exit-zero": ("exit_zero", None), "--no-cache": ("no_cache", None),
    "--format": ("format_", plain.one_of(("text", "json"))), "--color": ("color", plain.one_of(plain.COLOURS)),
    "-j": ("jobs", plain.whole(1)), "--jobs": ("jobs", plain.whole(1)),
}  # fmt: skip


def plain_options(arguments: Sequence[str]) -> dict[str, Any] | None:
    """The options that these arguments say, as `command` reads them; None where click is to read them."""
    return plain.read(arguments, "files", _DEFAULTS, _PLAIN)


def _lint(options: dict[str, Any]) -> int:
    from .linting import lint

    return lint(options)


def _command() -> Any:
    from .lint_options import command

    return command


def main() -> NoReturn:
    """The console script."""
    bundle = Bundle("lint")
    sys.meta_path.insert(0, bundle)
    from .common import run_command, run_function

    options = None if plain.needs_click(NAME) else plain_options(sys.argv[1:])
    if options is not None:
        run_function(plain.plainly(lambda: _lint(options), NAME, _command), NAME, bundle.leave)
    run_command(_command(), NAME)


def __getattr__(name: str) -> Any:
    if name == "command":
        return _command()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if __name__ == "__main__":
    main()
