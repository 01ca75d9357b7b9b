"""What ptx-lint does with its options. Nothing here needs click, except wrong usage."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from ptxtools.diagnostics.colour import style_for

from .checking import Unreadable, lint_all
from .common import FINDINGS, OK, STDIN, STDIN_NAME, Failure, input_names, print_diagnostics, tool_version, usage_error
from .settings import SettingsFinder

#: Options for which folders are not searched for NVVM IR.
_ONLY_PTX = ("reformat", "check_format", "requirements")


def lint(options: dict[str, Any]) -> int:
    """Lint what the options name, and print what they ask for; returns the exit status."""
    if options["explain"] is not None:
        return _explain(options["explain"], options)
    if options["lsp"]:
        return _serve()
    settings = SettingsFinder(options)
    names, failures = _files(input_names(options["files"]), settings, not any(options[one] for one in _ONLY_PTX))
    format_ = settings.format(names)
    if options["reformat"] or options["check_format"]:
        from .formatting import reformat_files

        _refuse(options, "--reformat and --check-format", "fix", "requirements", "statistics", "baseline")
        how = "diff" if options["diff"] else "check" if options["check_format"] else "write"
        return reformat_files(names, settings, failures, how, options["color"])
    if options["requirements"]:
        _refuse(options, "--requirements", "fix", "diff", "statistics", "baseline")
        if format_ in ("gitlab", "junit"):
            raise usage_error(f"--requirements supports text, json, sarif and github, not {format_}")
        from .requirements import print_requirements

        return print_requirements(names, options["stdin_filename"] or STDIN_NAME, options["color"], format_, failures)
    if options["statistics"] and format_ not in ("text", "json"):
        raise usage_error(f"--statistics supports text and json, not {format_}")
    status = OK
    if options["diff"]:
        _refuse(options, "--diff", "statistics")
        from .fixing import show_fixes

        return show_fixes(names, settings, failures, options["baseline"])
    if options["fix"]:
        from .fixing import fix

        fixed, unwritten = fix(names, settings, options["baseline"])
        failures += unwritten
        for report in fixed:  # standard input: its text went to standard output
            print_diagnostics(report.findings, style_for(options["color"], sys.stderr), sys.stderr)
            status = FINDINGS if report.fails else status
        names = [name for name in names if name != STDIN]
        if not names and not failures:
            return status
    files = [(name, settings.for_file(name)) for name in names]
    reports = lint_all(files, options)
    if options["baseline"]:
        from .baseline import without_known

        reports, made = without_known(reports, [of for _, of in files], options["baseline"])
        if made >= 0:
            sys.stderr.write(f"{options['baseline']}: made, with {made} finding{'' if made == 1 else 's'}\n")
    from .reporting import print_reports

    return max(status, print_reports(reports, options, format_, failures))


def _refuse(options: dict[str, Any], what: str, *others: str) -> None:
    """Raise a usage error for the first of some options that is given beside one that it does not go with."""
    for other in others:
        if options[other]:
            raise usage_error(f"{what} and --{other} exclude each other")


def _files(names: Sequence[str], settings: SettingsFinder, nvvm: bool) -> tuple[list[str], list[Unreadable]]:
    """The files to check, including those in folders; and the folders that cannot be listed."""
    names = list(dict.fromkeys(names))
    if not any(os.path.isdir(name) for name in names):
        return names, []
    from .folders import expanded

    return expanded(names, settings, nvvm)


def _serve() -> int:
    """Be a language server until the client says goodbye."""
    try:
        from ptxtools.editor.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise Failure("--lsp needs pygls: pip install 'ptxtools[lsp]'") from None
    serve(tool_version())
    return OK


def _explain(code: str, options: dict[str, Any]) -> int:
    """Print the page of a code, or the titles of the codes with this prefix."""
    from ptxtools.linter.explain import page, titles
    from ptxtools.pages import all_pages, family, unknown_code

    pages, like = all_pages(), family(code)
    if not like:
        raise usage_error(unknown_code(code))
    found = page(code.upper(), pages) or titles(code.upper(), {name: pages[name] for name in like})
    style = style_for(options["color"], sys.stdout)
    head, _, rest = found.partition("\n")
    sys.stdout.write(f"{style.paint(head, 'bold')}\n{rest}\n")
    return OK
