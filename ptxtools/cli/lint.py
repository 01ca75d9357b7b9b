"""ptx-lint: find what is wrong, hazardous, not portable or slow in PTX."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from ptxtools.diagnostics.colour import style_for

from .checking import Unreadable, lint_all
from .common import (
    CONTEXT_SETTINGS,
    FINDINGS,
    OK,
    STDIN,
    STDIN_NAME,
    Failure,
    common_options,
    examples,
    input_names,
    print_diagnostics,
    run_command,
    tool_version,
)
from .settings import FORMATS, SettingsFinder

_EXAMPLES = examples(
    "ptx-lint kernel.ptx",
    "nvcc -ptx -o - kernel.cu | ptx-lint --stdin-filename kernel.ptx",
    "ptx-lint --target sm_75 --target sm_90a build/*.ptx",
    "ptx-lint --requirements kernel.ptx        # lowest .version and .target",
    "ptx-lint --format sarif kernel.ptx > findings.sarif",
    "ptx-lint --select PTX1,PTX2 --strict kernel.ptx",
    "ptx-lint --exclude third_party build     # all PTX, containers and NVVM IR below build",
    "ptx-lint --reformat kernel.ptx           # --check-format: only say which files differ",
    "ptx-lint --nvvm-dialect 7 kernel.ll",
    "ptx-lint --explain PTX301",
)
#: Options for which folders are not searched for NVVM IR.
_ONLY_PTX = ("reformat", "check_format", "requirements")


@click.command(name="ptx-lint", context_settings=CONTEXT_SETTINGS, epilog=_EXAMPLES,
               short_help="Find mistakes in PTX.")  # fmt: skip
@click.argument("files", nargs=-1, metavar="[FILES OR FOLDERS]...")
@click.option("--format", "format_", type=click.Choice(FORMATS), help="Output format of findings; default: text.")
@click.option("--target", "targets", metavar="TARGET", multiple=True,
              help="Check as if the module declared this target; may be repeated.")  # fmt: skip
@click.option("--ptx-version", metavar="X.Y", help="Check as if the module declared this version.")
@click.option("--nvvm-dialect", type=click.Choice(("7", "modern")),
              help="The dialect of NVVM IR that is meant; default: the one that the text is in.")  # fmt: skip
@click.option("--stdin-filename", metavar="NAME", help="The name of standard input in findings.")
@click.option("--select", metavar="CODES", multiple=True, help="Report only these codes; prefixes work: PTX1,PTX203.")
@click.option("--ignore", metavar="CODES", multiple=True, help="Do not report these codes; prefixes work.")
@click.option("--exclude", metavar="PATTERNS", multiple=True, help="Skip these in folders: names, or relative paths.")
@click.option("--strict", is_flag=True, default=None, help="Exit with 1 for warnings, too.")
@click.option("--exit-zero", is_flag=True, default=None, help="Exit with 0 despite findings.")
@click.option("--fix", is_flag=True, help="Apply safe fixes to the files.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, without changing it.")
@click.option("--reformat", is_flag=True, help="Write the files in the canonical layout; with --diff, only show it.")
@click.option("--check-format", is_flag=True, help="Print which files --reformat would change; exit with 1 if any.")
@click.option("--baseline", metavar="FILE", help="Only count findings that FILE does not have; it is made if missing.")
@click.option("--requirements", is_flag=True, help="Print the lowest .version and targets that accept each file.")
@click.option("--statistics", is_flag=True, help="Print counts per code instead of findings.")
@click.option(
    "--explain", metavar="CODE", help="Print the page of a code, or list the codes of a family such as PTX3, and exit."
)
@click.option("--lsp", is_flag=True, help="Be a language server on standard input and output (needs pygls).")
@click.option("--no-cache", is_flag=True, help="Neither use nor keep findings of files seen before.")
@click.option("--config", metavar="FILE", help="Settings file; default: [tool.ptx-lint] in the nearest pyproject.toml.")
@click.option(
    "-j",
    "--jobs",
    metavar="N",
    type=click.IntRange(1),
    help="Number of processes, for files and for the functions of a large one.",
)
@common_options
def command(**options: Any) -> int:
    """Find what is wrong, hazardous, not portable or slow in PTX.

    FILES are PTX text, containers, binaries that embed PTX, or NVVM IR, which is held against its own specification;
    - is standard input; for a folder, all *.ptx, *.ptxo, *.ll and *.bc in it and below are checked, but for LLVM IR for
    other machines. The exit status is 1 if a file has an error (with --strict: any finding), 2 if one cannot be read.
    """
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
            raise click.UsageError(f"--requirements supports text, json, sarif and github, not {format_}")
        from .requirements import print_requirements

        return print_requirements(names, options["stdin_filename"] or STDIN_NAME, options["color"], format_, failures)
    if options["statistics"] and format_ not in ("text", "json"):
        raise click.UsageError(f"--statistics supports text and json, not {format_}")
    status = OK
    if options["diff"]:
        _refuse(options, "--diff", "statistics", "baseline")
        from .fixing import show_fixes

        return show_fixes(names, settings, failures)
    if options["fix"]:
        from .fixing import fix

        fixed, unwritten = fix(names, settings)
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
            raise click.UsageError(f"{what} and --{other} exclude each other")


def _files(names: Sequence[str], settings: SettingsFinder, nvvm: bool) -> tuple[list[str], list[Unreadable]]:
    """The files to check, including those in folders; and the folders that cannot be listed."""
    names = list(dict.fromkeys(names))
    if not any(os.path.isdir(name) for name in names):
        return names, []
    from .folders import expanded

    return expanded(names, settings, nvvm)


def main() -> NoReturn:
    """The console script."""
    run_command(command, "ptx-lint")


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
        raise click.UsageError(unknown_code(code))
    found = page(code.upper(), pages) or titles(code.upper(), {name: pages[name] for name in like})
    style = style_for(options["color"], sys.stdout)
    head, _, rest = found.partition("\n")
    sys.stdout.write(f"{style.paint(head, 'bold')}\n{rest}\n")
    return OK


if __name__ == "__main__":
    main()
