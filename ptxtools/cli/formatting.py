"""`ptx-lint --reformat` and `--check-format`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ptxtools.diagnostics import PtxError
from ptxtools.diagnostics.colour import style_for
from ptxtools.diagnostics.decode import decode, encode

from .checking import Unreadable, shown
from .common import FINDINGS, OK, STDIN, USAGE, Failure, print_diagnostics, read_input, write_output
from .reporting import print_failures
from .settings import SettingsFinder


def reformat_files(
    names: Sequence[str], finder: SettingsFinder, failures: Sequence[Unreadable], how: str, colour: str
) -> int:
    """Lay out each file anew, and return the exit status: 1 if one has syntax errors, or differs and is not written.

    how: "write", "check" (print the names of files that would change) or "diff" (print the changes as a patch).
    """
    status, unreadable = OK, list(failures)
    for name in names:
        label = shown(name, finder.for_file(name))
        try:
            data = read_input(name)
            changed = _canonical(data, label)
            if changed != data and how != "write":
                status = FINDINGS
            if name == STDIN or changed != data:
                _show(name, label, data, changed, how)
        except Failure as error:
            unreadable.append(Unreadable(name, error.message))
        except PtxError as error:
            print_diagnostics(error.diagnostics, style_for(colour, sys.stderr), sys.stderr)
            status = FINDINGS
    print_failures(unreadable)
    return USAGE if unreadable else status


def _canonical(data: bytes, label: str) -> bytes:
    """The bytes of a file in its canonical layout. Raises PtxError for what is no text, or has syntax errors; Failure
    for NVVM IR."""
    from ptxtools.api import is_nvvm
    from ptxtools.syntax.reformat import reformat

    if is_nvvm(data):
        raise Failure(f"{label} is NVVM IR: only PTX has a canonical layout")
    text, errors = reformat(decode(data, label), label)
    if errors:
        raise PtxError(errors)
    return encode(text, data)


def _show(name: str, label: str, data: bytes, changed: bytes, how: str) -> None:
    """Write or print what has become of a file."""
    if how == "write":
        write_output(name, changed)
        if name != STDIN:
            sys.stderr.write(f"{name}: reformatted\n")
    elif changed == data:
        return
    elif how == "check":
        sys.stdout.write(f"{label}: would be reformatted\n")
    else:
        from ptxtools.linter.fixes import unified_diff

        write_output(STDIN, unified_diff(data, changed, label))
