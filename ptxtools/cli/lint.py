"""ptx-lint: find what is wrong, hazardous, not portable or slow in PTX.

click takes half as long to load as all of ours, so a start whose arguments are files and a few plain options does
without it. `command`, click's command, is made when it is asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ptxtools.bundle import Bundle

NAME = "ptx-lint"
#: What `command` gives for options that are absent (tests/cli/lint/test_plain.py compares the two).
_DEFAULTS: dict[str, Any] = {
    "format_": None, "targets": (), "ptx_version": None, "nvvm_dialect": None, "stdin_filename": None, "select": (),
    "ignore": (), "exclude": (), "strict": None, "exit_zero": None, "fix": False, "diff": False, "reformat": False,
    "check_format": False, "baseline": None, "requirements": False, "statistics": False, "explain": None, "lsp": False,
    "no_cache": False, "config": None, "jobs": None, "color": "auto", "quiet": False, "verbose": False,
}  # fmt: skip
#: Options without a value, and the ones with a word from a list, that need no click.
_FLAGS = {"-q": "quiet", "--quiet": "quiet", "--strict": "strict", "--exit-zero": "exit_zero", "--no-cache": "no_cache"}
_WORDS = {"--format": ("format_", ("text", "json")), "--color": ("color", ("auto", "always", "never"))}


def plain_options(arguments: Sequence[str]) -> dict[str, Any] | None:
    """The options that these arguments say, as `command` reads them; None where click is to read them."""
    options, files, rest = dict(_DEFAULTS), [], iter(arguments)
    for word in rest:
        if not word.startswith("-") or word == "-":
            files.append(word)
        elif word in _FLAGS:
            options[_FLAGS[word]] = True
        elif word in _WORDS:
            name, choices = _WORDS[word]
            options[name] = next(rest, "")
            if options[name] not in choices:
                return None
        elif word in ("-j", "--jobs"):
            number = next(rest, "")
            if not (number.isascii() and number.isdecimal() and 0 < len(number) < 9 and int(number)):
                return None
            options["jobs"] = int(number)
        else:
            return None
    options["files"] = tuple(files)
    return options


def _plainly(options: dict[str, Any]) -> Callable[[], int]:
    """What lints with these options, and fails as click's command does."""

    def work() -> int:
        from .linting import lint

        try:
            return lint(options)
        except KeyboardInterrupt:
            sys.stderr.write("\n")  # behind the terminal's ^C
            raise
        except Exception as error:
            if hasattr(error, "ctx"):  # wrong usage; click is loaded
                from .lint_options import command

                error.ctx = command.context_class(command, info_name=NAME)
            raise

    return work


def main() -> NoReturn:
    """The console script."""
    bundle = Bundle("linter")
    sys.meta_path.insert(0, bundle)
    from .common import run_command, run_function

    # click expands patterns on Windows, and completes words for shells
    completes = any(name.startswith("_PTX_LINT") for name in os.environ)
    options = None if os.name == "nt" or completes else plain_options(sys.argv[1:])
    if options is not None:
        run_function(_plainly(options), NAME, bundle.leave)
    from .lint_options import command

    run_command(command, NAME)


def __getattr__(name: str) -> Any:
    if name == "command":
        from .lint_options import command

        return command
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if __name__ == "__main__":
    main()
