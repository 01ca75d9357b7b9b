"""`ptx-lint --requirements`: the requirements of each file, in each format."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ptxtools.diagnostics import Diagnostic, PtxError
from ptxtools.diagnostics.colour import style_for

from .checking import Unreadable
from .common import FINDINGS, OK, STDIN, USAGE, Failure, print_diagnostics, read_input, tool_version
from .reporting import print_failures

if TYPE_CHECKING:
    from ptxtools.linter.requirements import Requirements


def print_requirements(
    names: Sequence[str], stdin_name: str, colour: str, format_: str, failures: Sequence[Unreadable]
) -> int:
    """Print the requirements of each file, or its errors if no version and target would fix them."""
    found: list[Requirements] = []
    errors: list[Diagnostic] = []
    unreadable = list(failures)
    for name in names:
        shown = stdin_name if name == STDIN else name
        try:
            for needs, wrong in _needs(read_input(name), shown):
                errors += wrong
                found += [] if wrong else [needs]
        except PtxError as error:
            errors += error.diagnostics
        except Failure as error:
            unreadable.append(Unreadable(shown, error.message))
    print_diagnostics(errors, style_for(colour, sys.stderr), sys.stderr)
    sys.stdout.write(_REQUIREMENTS[format_](found) if format_ != "sarif" else _requirements_sarif(found, unreadable))
    print_failures(unreadable)
    impossible = any(not needs.lowest.targets for needs in found)
    return USAGE if unreadable else FINDINGS if errors or impossible else OK


def _needs(data: bytes, name: str) -> Iterable[tuple[Requirements, list[Diagnostic]]]:
    """The requirements of each module in a file, and the errors that they do not fix."""
    from ptxtools.api import parsed
    from ptxtools.linter.requirements import remaining_errors, requirements

    for module, syntax in parsed(data, name):
        needs = requirements(module, module.source.name if module.source else name)
        yield needs, syntax or remaining_errors(module, needs)


def _requirements_json(found: list[Requirements]) -> str:
    import json

    return "".join(json.dumps(needs.to_json()) + "\n" for needs in found)


def _requirements_sarif(found: list[Requirements], failures: Sequence[Unreadable]) -> str:
    from ptxtools.diagnostics.sarif import to_sarif
    from ptxtools.linter.requirements import TITLE

    notes = [note for needs in found for note in needs.notes()]
    return to_sarif(notes, lambda _: (TITLE, TITLE), tool_version(), failures) + "\n"


def _requirements_github(found: list[Requirements]) -> str:
    from ptxtools.diagnostics.formats import to_github

    return "".join(f"{to_github(needs.notes())}\n" for needs in found)


def _requirements_text(found: list[Requirements]) -> str:
    return "".join(f"{needs.to_text()}\n" for needs in found)


_REQUIREMENTS: dict[str, Callable[[list[Requirements]], str]] = {
    "text": _requirements_text,
    "json": _requirements_json,
    "github": _requirements_github,
}
