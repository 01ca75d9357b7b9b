"""Starts without click: it takes half as long to load as all that a small file needs of ours, so arguments that are
files and plain options are read here, as click reads them. All others are left to click.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

COLOURS = ("auto", "always", "never")
#: Reads the word behind an option; None where click is to read it.
Reader = Callable[[str], Any]


def whole(least: int = 0) -> Reader:
    """Reads a whole number of at least this, in plain digits."""

    def read(word: str) -> int | None:
        plain = word.isascii() and word.isdecimal() and 0 < len(word) < 9
        return int(word) if plain and int(word) >= least else None

    return read


def seconds(word: str) -> float | None:
    """Reads a whole number of seconds above 0, in plain digits."""
    number = whole(1)(word)
    return None if number is None else float(number)


def one_of(choices: Sequence[str]) -> Reader:
    """Reads a word from a list."""
    return lambda word: word if word in choices else None


def read(arguments: Sequence[str], files: str, defaults: Mapping[str, Any],
         options: Mapping[str, tuple[str, Reader | None]]) -> dict[str, Any] | None:  # fmt: skip
    """The options that these arguments say, or None where click is to read them.

    files: the name of what is no option. defaults: by name; a tuple where an option may be repeated. options: by
    spelling, an option's name and what reads the word behind it, None for a flag.
    """
    found, names, rest = dict(defaults), [], iter(arguments)
    for word in rest:
        if not word.startswith("-") or word == "-":
            names.append(word)
            continue
        name, reader = options.get(word, ("", None))
        if not name:
            return None
        value: Any = True
        if reader is not None:
            given = next(rest, None)
            value = None if given is None else reader(given)
            if value is None:
                return None
        found[name] = (*found[name], value) if isinstance(defaults[name], tuple) else value
    found[files] = tuple(names)
    return found


def needs_click(name: str) -> bool:
    """Whether a command cannot do without: click expands patterns on Windows, and completes words for shells."""
    variable = f"_{name.replace('-', '_').upper()}"
    return os.name == "nt" or any(each.startswith(variable) for each in os.environ)


def plainly(work: Callable[[], int], name: str, command: Callable[[], Any]) -> Callable[[], int]:
    """What does some work, and fails as click's command (which `command` makes) does."""

    def done() -> int:
        try:
            return work()
        except KeyboardInterrupt:
            sys.stderr.write("\n")  # behind the terminal's ^C
            raise
        except Exception as error:
            if hasattr(error, "ctx"):  # wrong usage; click is loaded
                made = command()
                error.ctx = made.context_class(made, info_name=name)
            raise

    return done
